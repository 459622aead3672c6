"""Confidence sets: counters, radii and boxes, worked out again from the trajectories."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import advmdp as am
from tests.helpers.learners import played
from tests.helpers.strategies import build_mdp

SPARSE = build_mdp([1, 3, 4, 2, 1], np.random.default_rng(5), 3, zeros=False)
DENSE = am.MDP.random([1, 3, 2, 1], 2, seed=3)


def test_the_counters_and_the_epochs_are_those_of_the_trajectories() -> None:
    sk = SPARSE.skeleton
    learner = am.UCOREPS(sk, horizon=400, eta=0.2, confidence_scale=0.3)
    history = played(learner, SPARSE, am.losses.Stochastic(sk, seed=1), 400)
    visits, seen, start, epochs = np.zeros(sk.num_pairs), np.zeros(sk.num_transitions), np.zeros(sk.num_pairs), 1
    for trajectory, _ in history:
        visits[trajectory.pairs] += 1
        seen[trajectory.transitions] += 1
        if any(visits[p] - start[p] >= max(1, start[p]) for p in trajectory.pairs):
            start, epochs = visits.copy(), epochs + 1
    counts = learner.counts
    assert np.array_equal(counts.visits + counts.new_visits, visits)
    assert np.array_equal(counts.seen + counts.new_seen, seen)
    assert np.array_equal(counts.visits, start)
    assert learner.epochs == epochs


def test_the_sets_are_those_of_section_4_1() -> None:
    sk = SPARSE.skeleton
    for successors in ("layer", "possible"):
        learner = am.UCOREPS(sk, horizon=200, delta=0.1, confidence_scale=0.5, successors=successors)
        played(learner, SPARSE, am.losses.Stochastic(sk, seed=1), 100)
        counts, rows = learner.counts, learner.row_set
        for p in range(sk.num_pairs):
            row = slice(sk.transition_ptr[p], sk.transition_ptr[p + 1])
            visits, layer = max(1, counts.visits[p]), np.searchsorted(sk.layer_pair_ptr, p, side="right") - 1
            over = sk.layer_sizes[layer + 1] if successors == "layer" else row.stop - row.start
            radius = np.sqrt(2 * over * np.log(200 * sk.num_states * sk.num_actions / 0.1) / visits)
            assert rows.radius[p] == pytest.approx(0.5 * radius)
            assert_allclose(rows.center[row], counts.seen[row] / visits)


def test_the_boxes_are_those_of_bernstein() -> None:
    sk, scale = SPARSE.skeleton, 0.05
    learner = am.UCOREPS(sk, horizon=200, delta=0.1, confidence="bernstein", confidence_scale=scale)
    played(learner, SPARSE, am.losses.Stochastic(sk, seed=1), 100)
    counts, u = learner.counts, np.log(200 * sk.num_states * sk.num_actions / 0.1)
    assert (counts.visits == 0).any()
    assert (counts.visits > 10).any()
    for p in range(sk.num_pairs):
        row, visits = slice(sk.transition_ptr[p], sk.transition_ptr[p + 1]), counts.visits[p]
        center, fewer = counts.seen[row] / max(1, visits), max(1, visits - 1)
        width = scale * (2 * np.sqrt(center * u / fewer) + 14 * u / (3 * fewer)) if visits else 1.0
        assert_allclose(learner.row_set.lower[row], np.maximum(0, center - width), atol=1e-12)
        assert_allclose(learner.row_set.upper[row], np.minimum(1, center + width), atol=1e-12)


def test_without_a_horizon_the_radii_hold_for_all_times() -> None:
    """Failing with probability delta / (N (N + 1)) after N visits sums to delta over all N."""
    learner = am.UCOREPS(DENSE.skeleton, delta=0.1)
    played(learner, DENSE, am.losses.Stochastic(DENSE.skeleton, seed=1), 64)
    p = int(np.argmax(learner.counts.visits))
    visits, sk = learner.counts.visits[p], DENSE.skeleton
    width = sk.layer_sizes[np.searchsorted(sk.layer_pair_ptr, p, side="right")]
    log = np.log(visits * (visits + 1) * sk.num_states * sk.num_actions / 0.1)
    assert learner.row_set.radius[p] == pytest.approx(np.sqrt(2 * width * log / visits))
