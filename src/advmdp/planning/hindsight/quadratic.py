"""Quadratic functions over Delta(M): criteria that sum to one, and the minimum of one."""

from itertools import pairwise

import numpy as np

from advmdp.core.arrays import FloatArray, frozen
from advmdp.model.occupancy import occupancy
from advmdp.model.policy import uniform_policy
from advmdp.planning.hindsight.answer import Comparator
from advmdp.planning.hindsight.polytope import TINY, Polytope
from advmdp.planning.hindsight.sequence import Source
from advmdp.planning.hindsight.sums import mirrored
from advmdp.planning.hindsight.tasks import Task

VERTICES, RIDGE = 1000, 1e-12


def summed(task: Task, source: Source, prefixes: list[int], gap: float) -> list[Comparator]:
    """Compute <b, x> + <x, H x> / 2 for every prefix in one pass, and minimise each."""
    polytope, pairs = task.polytope, task.polytope.sk.num_pairs
    b, upper = np.zeros(pairs), np.zeros((pairs, pairs) if task.curved else (0, 0))
    x, found = polytope.visits(uniform_policy(polytope.sk)), []
    for first, stop in pairwise([0, *prefixes]):
        for block in source.blocks(first, stop, 0.0, 1.0):
            reduced = task.reduced(block)
            b += task.linear(block, reduced)
            if task.curved:
                task.add_curvature(reduced, x, 0.0, upper)
        if task.curved:
            H = mirrored(upper)
            x, _ = least_of_model(polytope, x, float((b + H @ x / 2.0) @ x), b + H @ x, H, 1e-3 * gap)
        else:
            x, _ = polytope.best(b)
        policy = polytope.policy(x)
        x = polytope.visits(policy)
        slope = b + H @ x if task.curved else b
        value = float((b + slope) @ x / 2.0)
        lower = value + (polytope.best(slope)[1] - float(slope @ x))
        q = occupancy(polytope.mdp, policy)
        found.append(Comparator(frozen(policy), frozen(q), value, min(value, max(lower, 0.0)), stop, 1))
    return found


def least_of_model(
    polytope: Polytope, center: FloatArray, value: float, slope: FloatArray, H: FloatArray, fraction: float
) -> tuple[FloatArray, float]:
    """Minimise value + <slope, x - center> + <x - center, H (x - center)> / 2; return x and the decrease.

    Simplicial decomposition: the vertex that minimises the gradient at x joins the atoms, and the next x minimises the
    function over their convex hull.  At the end, the minimum is within ``fraction`` of the remaining value.
    """
    ways, bends, weights, drop = np.zeros((1, len(center))), np.zeros((1, len(center))), np.ones(1), -np.inf
    for _ in range(VERTICES):
        x, bend = center + weights @ ways, weights @ bends
        before, drop = drop, -float((slope + bend / 2.0) @ (x - center))
        vertex, least = polytope.best(slope + bend)
        if (slope + bend) @ x - least <= fraction * abs(value - drop) or drop <= before:
            break
        ways = np.vstack([ways, vertex - center])
        bends = np.vstack([bends, H @ (vertex - center)])
        weights = _least_in_hull(ways @ slope, ways @ bends.T, np.append(weights, 0.0))
        kept = weights > 0.0
        ways, bends, weights = ways[kept], bends[kept], weights[kept]
    return x, drop


def _least_in_hull(b: FloatArray, Q: FloatArray, weights: FloatArray) -> FloatArray:
    """min <b, w> + <w, Q w> / 2 over distributions w, starting from ``weights``.

    Active-set method: move towards the minimum over all w with sum one.  If that leads to a negative weight, stop at
    the boundary, drop that atom, and repeat.
    """
    # In units in which the condition that w sums to one is as large as the rest, or a solver takes it for rounding.
    size = max(np.trace(Q) / len(b), TINY)
    b, Q = b / size, Q / size
    kept, w = np.arange(len(b)), weights
    while True:
        system = np.ones((len(kept) + 1, len(kept) + 1))
        system[-1, -1] = 0.0
        # The ridge makes the problem strictly convex, so that the minimum exists.
        system[:-1, :-1] = Q[np.ix_(kept, kept)] + RIDGE * max(np.trace(Q), TINY) * np.eye(len(kept))
        target = np.linalg.lstsq(system, np.append(-b[kept], 1.0), rcond=None)[0][:-1]
        out = np.flatnonzero(target < 0.0)
        if not len(out):
            answer = np.zeros(len(b))
            answer[kept] = target / target.sum()
            return answer
        reach = w[out] / (w[out] - target[out])
        w = np.maximum(w + reach.min() * (target - w), 0.0)
        w[out[np.argmin(reach)]] = 0.0
        kept, w = kept[w > 0.0], w[w > 0.0]
