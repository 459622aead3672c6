"""Random projection problems of every kind, small enough for an oracle."""

from dataclasses import dataclass

import numpy as np

import advmdp as am
from tests.helpers.strategies import build_mdp, random_policy

KINDS = ("l1", "box", "point")
NARROW = ("dense", "ragged", "thin", "one action", "deep")
SHAPES = (*NARROW, "wide")  # the last is too wide for elimination in Newton's step


@dataclass(frozen=True)
class Problem:
    """Weights and a set over a skeleton; the set was estimated from the world ``truth``."""

    truth: am.MDP
    log_weights: np.ndarray
    rows: am.L1Ball | am.Box | am.Point

    @property
    def skeleton(self) -> am.Skeleton:
        return self.truth.skeleton


def world(shape: str, rng: np.random.Generator) -> am.MDP:
    if shape == "dense":
        return am.MDP.random([1, *rng.integers(2, 5, 2), 1], int(rng.integers(2, 4)), seed=int(rng.integers(2**32)))
    if shape == "thin":
        return build_mdp([1, 1, int(rng.integers(1, 4)), 1, 1], rng, 3, zeros=False)
    if shape == "one action":
        return build_mdp([1, *rng.integers(1, 5, 3), 1], rng, 1, zeros=False)
    if shape == "deep":
        return build_mdp([1, *rng.integers(1, 3, 7), 1], rng, 2, zeros=True)
    if shape == "wide":
        layers, seed = [1, *rng.integers(13, 20, 2), 1], int(rng.integers(2**32))
        return am.MDP.random(layers, 2, seed=seed, branching=int(rng.integers(6, 10)))
    return build_mdp([1, *rng.integers(1, 5, rng.integers(1, 4)), 1], rng, 3, zeros=True)


def observed(mdp: am.MDP, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Estimates from a few visits per pair (some from none), or deterministic ones; and the number of visits."""
    sk = mdp.skeleton
    center = np.zeros(sk.num_transitions)
    visits = rng.integers(0, 12, sk.num_pairs) * (rng.random(sk.num_pairs) > 0.1)
    if rng.random() < 0.2:
        visits = np.minimum(visits, 1)  # one visit each: deterministic centres
    for p, (first, last) in enumerate(zip(sk.transition_ptr[:-1], sk.transition_ptr[1:], strict=True)):
        if visits[p]:
            center[first:last] = rng.multinomial(visits[p], mdp.transition[first:last]) / visits[p]
    return center, visits


def problem(kind: str, shape: str, seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    truth = world(shape, rng)
    sk = truth.skeleton
    before = am.MDP(sk, am.transition_of(sk, rng.exponential(size=sk.num_transitions)))
    q = am.occupancy(before, random_policy(sk, rng))
    eta = 10.0 ** rng.uniform(-4, 1)
    log_weights = np.log(np.maximum(q, 1e-30)) - eta * rng.random(sk.num_transitions)
    if kind == "point":
        return Problem(truth, log_weights, am.Point(truth.transition))
    center, visits = observed(truth, rng)
    if kind == "l1":
        radius = rng.choice([0.0, 2.0, rng.uniform(0, 2), rng.uniform(0, 0.2)], sk.num_pairs)
        return Problem(truth, log_weights, am.L1Ball(center, np.where(visits == 0, 2.0, radius)))
    width = sk.over_transitions(np.where(visits == 0, 1.0, rng.choice([0.02, 0.1, 0.5], sk.num_pairs)))
    return Problem(truth, log_weights, am.Box(np.maximum(center - width, 0.0), np.minimum(center + width, 1.0)))
