"""Solves hard problems with the package that Python finds, for tests that plant errors in a copy of it.

A process with the copy runs this file, so it imports little.
"""

import sys
from itertools import product
from pathlib import Path

import numpy as np

import advmdp as am
from tests.helpers.hard_problems import KINDS, SHAPES, WEIGHTS, Answers, Array, Problems, attack, draw, skeleton

LIMIT = 20
"""Iterations: more than these small problems take, and an error that keeps the solver from an answer costs no more."""


def batches(kind: str) -> list[Problems]:
    """Some problems of every shape and weights, with one kind of set."""
    numbered = enumerate(product(SHAPES, KINDS, WEIGHTS))
    drawn = [
        draw(skeleton(shape), kind, weights, count, np.random.default_rng([9, number]), counted)
        for number, (shape, found, weights) in numbered
        if found == kind
        for counted, count in ((0.0, 3), (1.0, 2))
    ]
    return [*drawn, just_inside(40, np.random.default_rng(9))] if kind == "ball" else drawn


def just_inside(count: int, rng: np.random.Generator) -> Problems:
    """Balls whose radius is spent on emptying a forbidden entry: u / sum u lies inside by no more than rounding.

    Whether it lies inside shows only on ln u, in each problem whose rounding makes it seem to lie outside. No other
    problem here gets there. The weights of the last layer are the masses that arrive at beta = 0, so the solver stays
    at this point, up to rounding.
    """
    sk = am.Skeleton.dense([1, 6, 1], [2, 1])
    low = np.ones((count, sk.num_transitions))
    first, second = low[:, :6], low[:, 6:12]
    first[:, 5] = 10.0 ** rng.uniform(-6, -1, count)
    first[:, :5] = rng.dirichlet(np.ones(5), count) * (1 - first[:, 5:])
    second[:] = rng.dirichlet(np.ones(6), count)
    log_weights = np.log(low)
    log_weights[:, 5] = -np.inf
    log_weights[:, 12:] = np.log(second + [1, 1, 1, 1, 1, 0] * first)
    radius = np.full((count, sk.num_pairs), 2.0)
    radius[:, 0] = 2 * first[:, 5] * (1 + 2.0**-52)
    return Problems(sk, "ball", log_weights, low, radius)


def solved_by(problems: Problems) -> Answers:
    projector = am.Projector(problems.skeleton)
    return attack(problems, lambda w, rows: projector.project(w, rows, max_iterations=LIMIT))


def solved(kind: str) -> dict[str, Array]:
    """What is found for all problems of a kind, and what the oracle says of it."""
    found = [solved_by(problems) for problems in batches(kind)]
    named = [
        {
            "value": a.verdict.value, "gap": a.gap, "solved": a.solved, "infeasible": a.infeasible, "untold": a.untold,
            "refused": a.refused, "wrong": a.wrong,
        }
        for a in found
    ]  # fmt: skip
    return {name: np.concatenate([one[name] for one in named]) for name in named[0]}


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    assert folder.resolve() in Path(am.__file__).resolve().parents
    np.seterr(all="ignore")
    for kind in sys.argv[2:]:
        np.savez(folder / f"{kind}.npz", **solved(kind))
