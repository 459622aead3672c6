"""Where the traffic would go: the least possible peak, the best routing for the system, and equilibria.

Over the occupancy measures q of the whole game (:class:`advmdp.scenarios.congestion.game.CongestionGame`), which are a
polytope, with flows f = f(q), costs of links c_e and a constant for a packet that is lost:

    least_peak   min over q of max_e f_e / capacity_e                                   a linear program (HiGHS)
    optimum      min over q of  sum_e f_e d_e(f_e) / D  + lost:     gradient d_e + f_e d'_e, the marginal delay
    equilibrium  min over q of  sum_e int_0^{f_e} d_e / D + lost:   gradient d_e, Beckmann's potential

The last two are convex, with d_e the delay without the limit of a full queue, and solved by Frank and Wolfe's method
with an exact line search and conjugate directions (Mitradjieva and Lindberg 2013): the linearised problem is one
backward induction, everybody's best response s to the gradient g, and

    <q - s, g>  >=  objective(q) - least objective

is a certificate.  For the optimum it is divided by the mean delay of q, so a gap of 1e-3 says that no routing is
faster by more than a thousandth; for the equilibrium, by <q, g>, so the gap is the share of the delay that could be
saved if each commodity alone went its best way: 0 in a Wardrop equilibrium.

All this is among routes within the hop limit.  ``excluded`` is the share of the costs (delays, or for the optimum
marginal delays) that shortest routes of any number of hops would save (limits.py).  Where it is above the gap, longer
routes belong to the answer, and there is a warning: give the game more ``slack``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from advmdp.core.arrays import FloatArray, frozen, whole
from advmdp.core.errors import AdvMDPError, InputError, warn_caller
from advmdp.core.optional import optional
from advmdp.model.occupancy import best_response, occupancy, policy_of
from advmdp.model.policy import uniform_policy
from advmdp.scenarios.base import positive
from advmdp.scenarios.congestion.game import CongestionGame, total
from advmdp.scenarios.congestion.limits import excluded_share
from advmdp.scenarios.network.routing import LOST

with optional:
    from scipy import sparse
    from scipy.optimize import brentq, linprog

MOST = 100_000
LITTLE = 1e-6
"""Less than this share of the delay is not worth a warning."""
MOST_OF_LAST = 0.99
"""So much of the last target may be kept at most: some of the best response must always be new."""


class AssignmentError(AdvMDPError):
    """A routing that could not be certified to the gap that was asked for."""


@dataclass(frozen=True, eq=False)
class Assignment:
    """A routing of everybody, and how exact it is."""

    q: FloatArray
    policy: FloatArray
    delay: float
    """The mean of all packets, a lost one counting as the game's scale."""
    gap: float
    iterations: int
    excluded: float
    """The share of the costs that routes beyond the hop limit would save; 0 where the limit does not matter."""


def assignment(
    game: CongestionGame, kind: Literal["optimum", "equilibrium"], gap: float = 1e-4, most: int = MOST
) -> Assignment:
    """Compute the best routing for the system, or an equilibrium, certified to the relative ``gap``.

    Warns where the hop limit excludes routes that belong to it.
    """
    if kind not in ("optimum", "equilibrium"):
        raise InputError("kind", f"{kind!r}", "'optimum' or 'equilibrium'")
    asked = positive("gap", gap)
    slope = game.delays.marginal if kind == "optimum" else game.delays.convex
    sk = game.mdp.skeleton
    q = occupancy(game.mdp, uniform_policy(sk))
    target, reached = None, np.inf
    for done in range(whole("most", most, 1)):
        flow = game.flow(q)
        gradient = game.cost(slope(flow))
        delay = total(q, game.cost(game.delays.convex(flow)))
        response, least = best_response(game.mdp, gradient)
        reached = max(0.0, total(q, gradient) - least) / delay
        if reached <= asked:
            excluded = _excluded(game, kind, slope(flow), asked)
            return Assignment(frozen(q), frozen(policy_of(sk, q)), delay, reached, done, excluded)
        best = occupancy(game.mdp, response)
        target = best if target is None else _conjugate(game, slope, flow, q, best, target)
        step = _step(game, slope, flow, target - q)
        if step == 0.0:  # not a way down after all
            target = best
            step = _step(game, slope, flow, target - q)
            if step == 0.0:  # rounding is all that is left
                break
        q = q + step * (target - q)
    raise AssignmentError(f"{kind}: a gap of {reached:.2e} after {done + 1:,} iterations, not {asked:.2e}")


def _excluded(game: CongestionGame, kind: str, costs: FloatArray, asked: float) -> float:
    """What the hop limit costs at these costs of links, of which it is warned where it is more than the gap."""
    found = excluded_share(game, costs)
    if found > max(asked, LITTLE):
        warn_caller(
            f"the hop limit excludes routes of the {kind}: on longer ones {found:.2%} of the delay could be saved; "
            "give the game more slack"
        )
    return found


Slope = Callable[[FloatArray], FloatArray]


def _conjugate(
    game: CongestionGame, slope: Slope, flow: FloatArray, q: FloatArray, best: FloatArray, target: FloatArray
) -> FloatArray:
    """A mixture of the best response and the last target, such that the way there is conjugate to the last one.

    Straight to the best response, ways zigzag.  Any mixture is an occupancy measure, so the curvature may be rough.
    """
    little = 1e-6 * game.delays.capacity
    curvature = (slope(flow + little) - slope(flow)) / little
    last, now = game.flow(target - q), game.flow(best - q)
    bent = total(last * curvature, now - last)
    share = total(last * curvature, now) / bent if bent != 0.0 else 0.0
    share = min(MOST_OF_LAST, max(0.0, share))
    return share * target + (1.0 - share) * best


def _step(game: CongestionGame, slope: Slope, flow: FloatArray, way: FloatArray) -> float:
    """The point in [0, 1] along ``way`` where the objective is least: there its derivative, which ascends, is 0."""
    moved = game.flow(way) / game.demand
    lost = game.scale * float(way[game.link == LOST].sum())

    def derivative(step: float) -> float:
        return total(moved, slope(flow + step * game.demand * moved)) + lost

    if derivative(1.0) <= 0.0:
        return 1.0
    return float(brentq(derivative, 0.0, 1.0, xtol=1e-14)) if derivative(0.0) < 0.0 else 0.0


def least_peak(game: CongestionGame) -> float:
    """The least peak utilisation that any routing has, with the game's capacities."""
    sk = game.mdp.skeleton
    pair = sk.over_transitions(np.arange(sk.num_pairs))
    chance = game.mdp.transition
    # What leaves a state, minus what enters it, is 1 at the start and 0 elsewhere; nothing leaves the end.
    leave = sparse.csr_array(
        (np.ones(sk.num_pairs), (sk.state_of_pair, np.arange(sk.num_pairs))), (sk.num_states, sk.num_pairs)
    )
    enter = sparse.csr_array((chance, (sk.successor, pair)), (sk.num_states, sk.num_pairs))
    balance = sparse.hstack([(leave - enter)[:-1], sparse.csr_array((sk.num_states - 1, 1))])
    begin = np.zeros(sk.num_states - 1)
    begin[0] = 1.0
    on = game.link >= 0
    rows = game.link[on]
    # The solver drops what is below 1e-9 and refuses what is above 1e15, so the units of demands are not its business.
    weight = chance[on] / game.delays.capacity[rows]
    unit = float(weight.max())
    used = sparse.csr_array((weight / unit, (rows, pair[on])), (len(game.topology.links), sk.num_pairs))
    limits = sparse.hstack([used, -np.ones((len(game.topology.links), 1))])
    price = np.append(np.zeros(sk.num_pairs), 1.0)
    found = linprog(price, limits.tocsr(), np.zeros(limits.shape[0]), balance.tocsr(), begin, method="highs")
    if not found.success:
        raise AssignmentError(f"least peak: {found.message}")
    return game.demand * unit * float(found.fun)
