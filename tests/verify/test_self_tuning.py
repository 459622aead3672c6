"""The rows about SelfTuning: they hold for both kinds of sets, their numbers are right, and each can fail."""

from collections.abc import Iterator

import numpy as np
import pytest

import advmdp as am
from advmdp.core.arrays import FloatArray
from advmdp.verify import games
from advmdp.verify import self_tuning as verify
from advmdp.verify.rows import Row

WORLD = games.world()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "EPISODES", 200)


def rows_with(part: str) -> Iterator[Row]:
    return (row for row in verify.self_tuning(3) if part in row.what)


def test_every_inequality_is_checked_for_both_kinds_of_sets() -> None:
    rows = list(verify.self_tuning(3))
    assert all(row.holds for row in rows)
    default, sure = ([row.what for row in rows if f", {kind}" in row.what] for kind in ("by default", "with the guar"))
    assert [what.partition(",")[0] for what in default] == [what.partition(",")[0] for what in sure]
    assert len(default) == 5


@pytest.mark.parametrize("guarantee", [False, True])
def test_both_sides_of_lemma_5_by_hand(guarantee: bool) -> None:
    """In the first epoch, which is the first episode."""
    sk, losses = WORLD.skeleton, am.losses.Stochastic(WORLD.skeleton, seed=1)
    walk = verify._walk(WORLD, losses, am.TotalLoss(), guarantee, 0)
    learner = am.SelfTuning(sk, guarantee=guarantee)
    start, z = learner.q, losses.at(0)
    layers = np.split(z, sk.layer_transition_ptr[1:-1])
    eta = am.bounds.eta(sk, 1)
    x = np.concatenate([layer - layer.min() for layer in layers])
    v = am.project(sk, verify.uniform_logarithms(sk) - verify.SHARP * x / x.max(), learner.row_set).q
    assert walk.epochs[0][0] == pytest.approx(float((start - v) @ z))
    some = v > 0.0
    right = (v[some] * np.log(v[some] / start[some])).sum() / eta
    right += eta / 8.0 * sum(np.ptp(layer) ** 2 for layer in layers)
    assert walk.epochs[0][1] == pytest.approx(right)
    assert len(walk.epochs) > 5
    assert min(right for _, right in walk.epochs) > 0.0


def test_lemma_5_fails_for_an_expert_that_never_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    still = am.uniform_policy(WORLD.skeleton)
    uniform = am.occupancy(WORLD, still)
    monkeypatch.setattr(verify, "_first_measure", lambda _: uniform)
    paid = [0.0]

    def unmoved(learner: am.SelfTuning) -> float:
        paid[0] = float(uniform @ learner.summed)
        return paid[0]

    monkeypatch.setattr(verify, "_paid_by_first", unmoved)
    monkeypatch.setattr(verify, "_oblivious", lambda mdp, seed: [games.bad_action(mdp.skeleton, seed)])
    assert [row.holds for row in rows_with("Lemma 5")] == [False, False]


def test_a_mixture_outside_its_set_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    actual = verify._outside
    monkeypatch.setattr(verify, "_outside", lambda learner: max(1e-7, actual(learner)))
    assert [row.holds for row in rows_with("outside")] == [False, False]


def test_how_far_a_measure_is_outside_pair_by_pair() -> None:
    sk, rng = WORLD.skeleton, np.random.default_rng(0)
    learner = am.SelfTuning(sk)
    for _ in range(50):
        learner.update(WORLD.sample(learner.policy, rng), rng.random(sk.num_transitions))
    assert verify._outside(learner) < 1e-12
    other = am.MDP.dense([[[[0.01, 0.99], [0.99, 0.01]]], np.ones((2, 2, 1))])
    learner._memory.q[:] = q = am.occupancy(other, am.uniform_policy(sk))
    expected: list[float] = []
    ball = learner.row_set
    assert isinstance(ball, am.L1Ball)
    for p in range(sk.num_pairs):
        row = slice(sk.transition_ptr[p], sk.transition_ptr[p + 1])
        mass: FloatArray = q[row].sum()
        expected.append(float(np.abs(q[row] - mass * ball.center[row]).sum() - mass * ball.radius[p]))
    assert verify._outside(learner) == pytest.approx(max(expected))
    assert max(expected) > 0.1
