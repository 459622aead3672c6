"""The best sequence of policies with a few switches, against all policies and all episodes to switch at."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import advmdp as am
from advmdp.planning.hindsight import switching
from advmdp.planning.kernels.segments import width
from tests.helpers.oracles import policies
from tests.helpers.strategies import build_mdp, mdps

SMALL = build_mdp([1, 2, 3, 1], np.random.default_rng(1), 3, zeros=True)
SK = SMALL.skeleton


def paid(mdp: am.MDP, rows: np.ndarray) -> np.ndarray:
    """What every deterministic policy pays in every episode."""
    return np.array([[am.occupancy(mdp, pi) @ row for row in rows] for pi in policies(mdp.skeleton)])


def brute(each: np.ndarray, episodes: int, switches: int) -> float:
    """All ways to cut the episodes, and the best policy of each piece."""
    cuts = [c for s in range(switches + 1) for c in combinations(range(1, episodes), s)]
    return min(sum(each[:, a:b].sum(axis=1).min() for a, b in pairwise((0, *c, episodes))) for c in cuts)


@given(mdps(), st.integers(1, 7), st.integers(0, 4), st.integers(0, 2**20))
def test_it_is_the_best_over_all_policies_and_switching_times(
    mdp: am.MDP, episodes: int, switches: int, seed: int
) -> None:
    sk = mdp.skeleton
    if np.prod([float(n) for n in np.diff(sk.pair_ptr)[:-1]]) > 200:
        return
    rows = np.random.default_rng(seed).random((episodes, sk.num_transitions))
    found = am.switching_comparator(mdp, am.losses.Replay(sk, rows), episodes, switches)
    each = paid(mdp, rows)
    for j in range(switches + 1):
        for t in range(1, episodes + 1):
            assert found.values[j, t] == pytest.approx(brute(each, t, j), rel=1e-12, abs=1e-12)
    assert (found.values[:, 0] == 0.0).all()


def test_the_returned_sequence_costs_the_returned_value() -> None:
    losses, T = am.losses.Switching(SK, period=13, seed=3), 90  # several blocks of ends, the last one not full
    assert 2 * width() < T
    found = am.switching_comparator(SMALL, losses, T, 6)
    assert found.starts[0] == 0
    assert (np.diff(found.starts) > 0).all()
    assert len(found.policies) == len(found.starts) == 7
    total = sum(
        am.occupancy(SMALL, pi) @ losses.block(a, b).sum(axis=0)
        for pi, (a, b) in zip(found.policies, pairwise([*found.starts, T]), strict=True)
    )
    assert found.value == pytest.approx(total, rel=1e-12)
    assert repr(found) == f"SwitchingComparator(90 episodes, 6 switches: {total:,.2f})"
    assert found.starts.tolist() == [13 * k for k in range(7)]  # six switches: each is found where it happened


def test_it_agrees_with_a_plain_program_over_many_blocks() -> None:
    T, S = 3 * width() + 5, 3
    rows = am.losses.Stochastic(SK, seed=4).block(0, T)
    each = np.concatenate([np.zeros((len(policies(SK)), 1)), np.cumsum(paid(SMALL, rows), axis=1)], axis=1)
    best = [np.array([(each[:, t] - each[:, 0]).min() for t in range(T + 1)])]
    for _ in range(S):
        last = best[-1]
        best.append(
            np.array(
                [0.0] + [min(last[s] + (each[:, t] - each[:, s]).min() for s in range(t)) for t in range(1, T + 1)]
            )
        )
    found = am.switching_comparator(SMALL, am.losses.Replay(SK, rows), T, S)
    assert_allclose(found.values, best, rtol=1e-12)
    fixed = am.comparator(SMALL, am.losses.Replay(SK, rows), am.TotalLoss(), T)
    assert found.values[0, -1] == pytest.approx(fixed.value, rel=1e-12)
    assert (np.diff(found.values, axis=0) <= 0.0).all()


def test_with_a_switch_in_every_episode_each_is_met_by_its_best_response() -> None:
    losses = am.losses.Drifting(SK, period=3, seed=1)
    found = am.switching_comparator(SMALL, losses, 12, 50)
    assert found.value == pytest.approx(sum(am.best_response(SMALL, losses.at(t))[1] for t in range(12)))
    assert len(found.policies) <= 12


def test_progress_ends_at_one() -> None:
    told: list[float] = []
    am.switching_comparator(SMALL, am.losses.Stochastic(SK), 100, 2, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_unsupported_arguments_are_refused() -> None:
    with pytest.raises(am.InputError, match="reacts: other policies would have met other losses"):
        am.switching_comparator(SMALL, am.losses.Adaptive(SK), 10, 1)
    with pytest.raises(am.InputError, match="2 at once"):
        am.switching_comparator(SMALL, am.losses.Stochastic(SK, dimensions=2), 10, 1)
    with pytest.raises(
        am.InputError, match=r"episodes: 10,000,000 for up to 3 switches.* at most [\d,]+ in this world"
    ):
        am.switching_comparator(SMALL, am.losses.Stochastic(SK), 10**7, 3)
    for bad in (-1, 1.5, None):
        with pytest.raises(am.InputError, match="switches"):
            am.switching_comparator(SMALL, am.losses.Stochastic(SK), 10, bad)  # type: ignore[arg-type]


def test_the_stated_limit_on_episodes_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switching, "WORK", 10_000)
    each = SK.num_transitions + 2
    most = next(T for T in range(1, 200) if (T + 1) ** 2 // 2 * each > 10_000)
    with pytest.raises(am.InputError, match=f"at most {most} in this world"):
        am.switching_comparator(SMALL, am.losses.Stochastic(SK), most + 1, 2)
    assert am.switching_comparator(SMALL, am.losses.Stochastic(SK), most, 2).episodes == most
