"""Reference routings: the least possible peak load, the system optimum, and equilibria.

The occupancy measures q of the whole game (:class:`advmdp.scenarios.congestion.game.CongestionGame`) form a polytope.
With flows f = f(q) and a constant cost of a lost packet,

    least_peak   min over q of max_e f_e / capacity_e                                   a linear program (HiGHS)
    optimum      min over q of  sum_e f_e d_e(f_e) / D  + lost:     gradient d_e + f_e d'_e, the marginal delay
    equilibrium  min over q of  sum_e int_0^{f_e} d_e / D + lost:   gradient d_e, Beckmann's potential

The last two are convex, with d_e the delay without its cap.  The Frank-Wolfe method solves them, with an exact line
search and conjugate directions (Mitradjieva and Lindberg 2013).  Its linearised problem is one backward induction: the
best response s of all commodities to the gradient g.  The inequality

    <q - s, g>  >=  objective(q) - least objective

is a certificate.  The gap is this certificate divided by the mean delay of q.  For the optimum, a gap of 1e-3 means
that no routing is faster by more than a thousandth.  For the equilibrium, the gap is the share of the delay that
commodities could save if each alone took its best routes; it is 0 in a Wardrop equilibrium.

All routes are within the hop limit.  ``excluded`` is the share of the costs (delays, or marginal delays for the
optimum) that shortest paths of any length would save (limits.py).  If it exceeds the gap, longer routes belong to the
solution, and a warning says so: give the game more ``slack``.
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
"""A smaller share of the delay is not worth a warning."""
MOST_OF_LAST = 0.99
"""The largest weight of the last target, so that each target contains some of the new best response."""


class AssignmentError(AdvMDPError):
    """A routing could not be certified to the requested gap.

    Examples
    --------
    >>> import networkx as nx
    >>> from advmdp.scenarios.congestion import congestion_game
    >>> from advmdp.scenarios.congestion.assignment import AssignmentError, assignment
    >>> ring = nx.cycle_graph(["a", "b", "c", "d"])
    >>> ring.graph["demands"] = {"a": {"c": 5.0}}
    >>> try:
    ...     assignment(congestion_game(ring), "optimum", gap=1e-9, most=1)
    ... except AssignmentError:
    ...     print("not certified")
    not certified
    """


@dataclass(frozen=True, eq=False, repr=False)
class Assignment:
    """A routing of all commodities, and its precision.

    Attributes
    ----------
    q
        Its occupancy measure.
    policy
        Its policy, for :class:`advmdp.scenarios.congestion.routers.Fixed`.
    delay
        The mean delay of all packets; a lost packet counts as the game's scale.
    gap
        The certified relative gap.
    iterations
        The number of iterations.
    excluded
        The share of the costs that routes beyond the hop limit would save; 0 if the limit does not matter.

    Examples
    --------
    >>> import networkx as nx
    >>> from advmdp.scenarios.congestion import congestion_game
    >>> from advmdp.scenarios.congestion.assignment import assignment
    >>> ring = nx.cycle_graph(["a", "b", "c", "d"])
    >>> ring.graph["demands"] = {"a": {"c": 5.0}}
    >>> assignment(congestion_game(ring), "optimum").excluded
    0.0
    """

    q: FloatArray
    policy: FloatArray
    delay: float
    gap: float
    iterations: int
    excluded: float

    def __repr__(self) -> str:
        return f"Assignment(delay {self.delay:.4g}, gap {self.gap:.1e}, {self.iterations:,} iterations)"


def assignment(
    game: CongestionGame, kind: Literal["optimum", "equilibrium"], gap: float = 1e-4, most: int = MOST
) -> Assignment:
    """Compute the system optimum or an equilibrium.

    Parameters
    ----------
    game
        The game.
    kind
        "optimum" for the least mean delay, "equilibrium" for routes from which no commodity gains by deviating.
    gap
        The relative gap to certify.
    most
        The largest number of iterations.

    Returns
    -------
    Assignment
        The routing and its certified gap.

    Raises
    ------
    InputError
        If a parameter is invalid.
    scenarios.congestion.assignment.AssignmentError
        If the gap is not reached.

    Warns
    -----
    AdvMDPWarning
        If the hop limit excludes routes that belong to the solution.

    Examples
    --------
    >>> import networkx as nx
    >>> from advmdp.scenarios.congestion import congestion_game
    >>> from advmdp.scenarios.congestion.assignment import assignment
    >>> ring = nx.cycle_graph(["a", "b", "c", "d"])
    >>> ring.graph["demands"] = {"a": {"c": 5.0}}
    >>> game = congestion_game(ring)
    >>> bool(assignment(game, "optimum").delay <= assignment(game, "equilibrium").delay * 1.0001)
    True
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
        if step == 0.0:  # the conjugate direction does not descend
            target = best
            step = _step(game, slope, flow, target - q)
            if step == 0.0:  # only rounding errors are left
                break
        q = q + step * (target - q)
    raise AssignmentError(f"{kind}: a gap of {reached:.2e} after {done + 1:,} iterations; expected {asked:.2e}")


def _excluded(game: CongestionGame, kind: str, costs: FloatArray, asked: float) -> float:
    """The share of these link costs that the hop limit adds; warn if it exceeds the gap."""
    found = excluded_share(game, costs)
    if found > max(asked, LITTLE):
        warn_caller(
            f"the hop limit excludes routes of the {kind}: longer routes would save {found:.2%} of the delay; "
            "give the game more slack"
        )
    return found


Slope = Callable[[FloatArray], FloatArray]


def _conjugate(
    game: CongestionGame, slope: Slope, flow: FloatArray, q: FloatArray, best: FloatArray, target: FloatArray
) -> FloatArray:
    """Mix the best response and the last target so that the new direction is conjugate to the last one.

    Plain best responses would zigzag.  Any mixture is an occupancy measure, so a rough curvature suffices.
    """
    little = 1e-6 * game.delays.capacity
    curvature = (slope(flow + little) - slope(flow)) / little
    last, now = game.flow(target - q), game.flow(best - q)
    bent = total(last * curvature, now - last)
    share = total(last * curvature, now) / bent if bent != 0.0 else 0.0
    share = min(MOST_OF_LAST, max(0.0, share))
    return share * target + (1.0 - share) * best


def _step(game: CongestionGame, slope: Slope, flow: FloatArray, way: FloatArray) -> float:
    """The step in [0, 1] along ``way`` that minimises the objective: the zero of its increasing derivative."""
    moved = game.flow(way) / game.demand
    lost = game.scale * float(way[game.link == LOST].sum())

    def derivative(step: float) -> float:
        return total(moved, slope(flow + step * game.demand * moved)) + lost

    if derivative(1.0) <= 0.0:
        return 1.0
    return float(brentq(derivative, 0.0, 1.0, xtol=1e-14)) if derivative(0.0) < 0.0 else 0.0


def least_peak(game: CongestionGame) -> float:
    """The least peak utilisation of any routing, with the game's capacities."""
    sk = game.mdp.skeleton
    pair = sk.over_transitions(np.arange(sk.num_pairs))
    chance = game.mdp.transition
    # Flow conservation: outflow minus inflow is 1 at the start and 0 elsewhere; the end has no outflow.
    leave = sparse.csr_array(
        (np.ones(sk.num_pairs), (sk.state_of_pair, np.arange(sk.num_pairs))), (sk.num_states, sk.num_pairs)
    )
    enter = sparse.csr_array((chance, (sk.successor, pair)), (sk.num_states, sk.num_pairs))
    balance = sparse.hstack([(leave - enter)[:-1], sparse.csr_array((sk.num_states - 1, 1))])
    begin = np.zeros(sk.num_states - 1)
    begin[0] = 1.0
    on = game.link >= 0
    rows = game.link[on]
    # The solver drops coefficients below 1e-9 and refuses those above 1e15, so normalise the units of demands.
    weight = chance[on] / game.delays.capacity[rows]
    unit = float(weight.max())
    used = sparse.csr_array((weight / unit, (rows, pair[on])), (len(game.topology.links), sk.num_pairs))
    limits = sparse.hstack([used, -np.ones((len(game.topology.links), 1))])
    price = np.append(np.zeros(sk.num_pairs), 1.0)
    found = linprog(price, limits.tocsr(), np.zeros(limits.shape[0]), balance.tocsr(), begin, method="highs")
    if not found.success:
        raise AssignmentError(f"least peak: {found.message}")
    return game.demand * unit * float(found.fun)
