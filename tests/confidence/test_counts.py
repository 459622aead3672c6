"""Counters against plain counting, and their sets against distributions that they must and must not contain."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import advmdp as am
from advmdp.confidence import Counts, bernstein_set, l1_set
from advmdp.confidence.kernels.counting import count_at_once, count_in_epoch
from tests.helpers.oracles import rows_of
from tests.helpers.strategies import mdps, random_policy


def paths(mdp: am.MDP, seed: int, count: int) -> list[am.Trajectory]:
    rng = np.random.default_rng(seed)
    policy = random_policy(mdp.skeleton, rng)
    return [mdp.sample(policy, rng) for _ in range(count)]


@given(mdp=mdps(), seed=st.integers(0, 2**32), count=st.integers(1, 40))
def test_epochs_end_when_a_pair_has_doubled_its_visits(mdp: am.MDP, seed: int, count: int) -> None:
    sk, counts = mdp.skeleton, Counts(mdp.skeleton)
    before, now = np.zeros(sk.num_pairs, int), np.zeros(sk.num_pairs, int)
    for path in paths(mdp, seed, count):
        doubled = False
        for p in path.pairs:
            now[p] += 1
            doubled |= now[p] >= max(1, before[p])
        found = count_in_epoch(counts.visits, counts.new_visits, counts.new_seen, path.pairs, path.transitions)
        assert found == doubled
        if doubled:
            counts.next_epoch()
            before, now = before + now, np.zeros(sk.num_pairs, int)
        assert np.array_equal(counts.visits, before)
        assert np.array_equal(counts.new_visits, now)


@given(mdp=mdps(), seed=st.integers(0, 2**32), count=st.integers(0, 40))
def test_estimates_are_frequencies_with_epochs_and_without(mdp: am.MDP, seed: int, count: int) -> None:
    sk, counts = mdp.skeleton, Counts(mdp.skeleton)
    visits, seen = np.zeros(sk.num_pairs, np.int64), np.zeros(sk.num_transitions, np.int64)
    estimate = np.zeros(sk.num_transitions)
    steps = []
    for path in paths(mdp, seed, count):
        count_in_epoch(counts.visits, counts.new_visits, counts.new_seen, path.pairs, path.transitions)
        count_at_once(sk.transition_ptr, visits, seen, estimate, path.pairs, path.transitions)
        steps += zip(path.pairs.tolist(), path.transitions.tolist(), strict=True)
    counts.next_epoch()
    for p, row in enumerate(rows_of(sk)):
        here = [i for pair, i in steps if pair == p]
        expected = [here.count(i) / max(1, len(here)) for i in range(row.start, row.stop)]
        assert counts.center(sk)[row] == pytest.approx(expected)
        assert estimate[row] == pytest.approx(expected)
    assert np.array_equal(visits, counts.visits)


def held(sk: am.Skeleton, rows: am.L1Ball | am.Box, transition: np.ndarray) -> np.ndarray:
    """Whether each pair's row of ``transition`` lies in its set, by the definition of the set."""
    if isinstance(rows, am.Box):
        inside = (rows.lower - 1e-12 <= transition) & (transition <= rows.upper + 1e-12)
        return np.array([inside[row].all() for row in rows_of(sk)])
    distance = [np.abs(transition[row] - rows.center[row]).sum() for row in rows_of(sk)]
    unseen = [not rows.center[row].any() for row in rows_of(sk)]
    return (np.array(distance) <= rows.radius + 1e-12) | np.array(unseen)


@pytest.mark.parametrize("kind", ["l1", "possible", "bernstein"])
def test_sets_contain_the_truth_as_often_as_promised_and_exclude_distant_rows(kind: str) -> None:
    """All pairs at once, with probability 1 - delta; and with many visits no other rows that are well apart."""
    mdp, delta, episodes = am.MDP.random([1, 3, 3, 1], 2, seed=1), 0.1, 3000
    sk = mdp.skeleton
    log = np.log(episodes * sk.num_states * sk.num_actions / delta)
    wrong = 0
    for seed in range(20):
        counts = Counts(sk)
        for path in paths(mdp, seed, episodes):
            count_in_epoch(counts.visits, counts.new_visits, counts.new_seen, path.pairs, path.transitions)
        counts.next_epoch()
        rows = (
            bernstein_set(sk, counts, log, 1.0) if kind == "bernstein" else l1_set(sk, counts, log, 1.0, kind != "l1")
        )
        wrong += not held(sk, rows, mdp.transition).all()
        far = np.zeros(sk.num_transitions)
        for row in rows_of(sk):
            far[row.start + np.argmin(mdp.transition[row])] = 1.0  # all the weight on what is least likely
        often = (counts.visits > 300) & (np.diff(sk.transition_ptr) > 1)
        assert often.any()
        assert not held(sk, rows, far)[often].any()
    assert wrong <= 20 * delta


def test_a_pair_that_was_never_visited_is_free() -> None:
    sk = am.Skeleton.dense([1, 3, 1], 2)
    ball, box = l1_set(sk, Counts(sk), 0.01, 1.0, True), bernstein_set(sk, Counts(sk), 0.01, 1.0)
    assert ball.radii(sk) == pytest.approx(2.0)
    assert (box.lower == 0.0).all()
    assert (box.upper == 1.0).all()
