"""The best fixed policy against losses that react linearly to occupancy measures: a quadratic problem, with a bound.

Let the loss of an episode be a + B x, with x(x, a) the visits of the pairs in the previous episode.  A fixed policy
always reacts to itself, so over a game it pays F(x) = <a, x> + <x, B x>, with the a and B of the whole game.  We
minimise F over the visits x of all policies (the polytope Delta(M)).

The bound.  Let mu be the smallest shift that makes H + mu I positive semidefinite on the directions within Delta(M),
with H = B + B^T, and u the largest possible number of visits of each pair.  Since 0 <= x <= u,

    G(x) = F(x) + mu / 2 * sum_i x_i (x_i - u_i)   <=   F(x)

and G is convex on Delta(M).  The tangent of G at its minimum, minimised by backward induction, is a lower bound on
every F(x).  If F itself is convex, mu is 0 and the bound is exact up to the requested gap.

The policy.  The Frank-Wolfe method on F from several starting points, with exact line searches.  It ends at points
without a feasible descent direction.  If F is not convex, a better policy may exist; the bound limits how much better.
"""

import numpy as np

from advmdp.core.arrays import FloatArray, exact_floats
from advmdp.core.errors import InputError
from advmdp.model.mdp import MDP
from advmdp.planning.hindsight.polytope import Polytope
from advmdp.planning.hindsight.quadratic import least_of_model
from advmdp.planning.hindsight.tasks import MOST_PAIRS

STEPS = 500
GAP = 1e-10
STRAIGHT = 1e-12
"""A reaction smaller than this, relative to the losses, is ignored."""


def best_of_quadratic(mdp: MDP, a: FloatArray, B: FloatArray, starts: list[FloatArray]) -> tuple[FloatArray, float]:
    """The best policy found for <a, x> + <x, B x>, starting from ``starts``, and a lower bound for all policies."""
    pairs, polytope = mdp.skeleton.num_pairs, Polytope(mdp)
    if pairs > MOST_PAIRS:
        raise InputError("linear_reaction", f"a matrix over {pairs:,} pairs", f"at most {MOST_PAIRS:,} pairs, or None")
    linear, matrix = exact_floats(a, "a", (pairs,)), exact_floats(B, "B", (pairs, pairs))
    if not (np.isfinite(linear).all() and np.isfinite(matrix).all()):
        raise InputError("linear_reaction", "numbers that are not finite", "finite numbers")
    H = matrix + matrix.T
    x, lower = _relaxed(polytope, linear, H, polytope.visits(starts[0]))
    found = [_descended(polytope, linear, H, one) for one in (x, *map(polytope.visits, starts))]
    best = min(found, key=lambda one: float((linear + H @ one / 2.0) @ one))
    return polytope.policy(best), lower


def _relaxed(polytope: Polytope, a: FloatArray, H: FloatArray, start: FloatArray) -> tuple[FloatArray, float]:
    """The least point of G, and a line below it at its own least point."""
    size = float(np.abs(H).max())
    if size <= STRAIGHT * float(np.abs(a).max()):  # <x, H x> <= size (sum of x)^2, and a visit is made at each step
        x, least = polytope.best(a)
        return x, least - size * polytope.sk.num_steps**2 / 2.0
    inside = _directions(polytope)
    least = float(np.linalg.eigvalsh(inside.T @ H @ inside)[0]) if inside.shape[1] else 0.0
    rounding = 1e-13 * float(np.abs(H).sum(axis=1).max())
    shift = max(0.0, rounding - least)
    most = np.array([-polytope.best(-row)[1] for row in np.eye(len(a))]) if shift > 0.0 else np.zeros(len(a))
    bent, b = H + shift * np.eye(len(a)), a - shift * most / 2.0
    x, _ = least_of_model(polytope, start, float((b + bent @ start / 2.0) @ start), b + bent @ start, bent, GAP)
    slope = b + bent @ x
    return x, float((b + bent @ x / 2.0) @ x - slope @ x) + polytope.best(slope)[1]


def _directions(polytope: Polytope) -> FloatArray:
    """(pairs, dimension): an orthonormal basis of the directions in which visits can change."""
    sk, pairs = polytope.sk, np.arange(polytope.sk.num_pairs)
    flow = np.zeros((sk.num_states, len(pairs)))
    flow[sk.state_of_pair, pairs] = 1.0
    np.subtract.at(flow, (sk.successor, sk.over_transitions(pairs)), polytope.mdp.transition)
    _, sizes, rows = np.linalg.svd(flow[:-1])
    basis: FloatArray = rows[int((sizes > 1e-10 * sizes.max()).sum()) :].T
    return basis


def _descended(polytope: Polytope, a: FloatArray, H: FloatArray, x: FloatArray) -> FloatArray:
    """The Frank-Wolfe method with exact line searches."""
    for _ in range(STEPS):
        slope = a + H @ x
        vertex, least = polytope.best(slope)
        way, drop = vertex - x, float(slope @ x) - least
        if drop <= 1e-12 * max(1.0, abs(float(slope @ x))):
            break
        bend = float(way @ H @ way)
        x = x + (1.0 if bend <= drop else drop / bend) * way
    return x
