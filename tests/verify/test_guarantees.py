"""The rows about guarantees: each learner has one, its numbers are right, and it can fail."""

from dataclasses import replace
from math import inf, sqrt
from typing import Any

import numpy as np
import pytest
from scipy import stats

import advmdp as am
from advmdp.verify import games as verify_games
from advmdp.verify import learners as verify_learners
from advmdp.verify.learners import Contender, contenders, guarantee, guarantees
from tests.helpers.learners import LEARNERS

GRID = [1000, 3162, 10_000]
WORLD = verify_games.world()
NAMED = {one.title: one for one in contenders()}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_learners, "SEEDS", 2)


def idle(bound: Any, player: type[am.Learner] = am.Uniform) -> Contender:
    """One that learns nothing, and says that it does."""
    kind = type("Idle", (player,), {"bound": lambda self, T: bound(T), "assumes": "stochastic"})
    return Contender("Idle", lambda mdp, T, seed: kind(mdp.skeleton))


def test_every_learner_with_a_guarantee_has_its_row() -> None:
    """Both kinds of feedback where there are two; and those that are left out have no bound, or the theorems'."""
    expected = []
    for name in LEARNERS:
        kind: Any = LEARNERS[name]
        if name == "UCOREPS" or (name in verify_learners.ELSEWHERE and kind(WORLD.skeleton).bound(1) == inf):
            continue
        expected += [f"{name}, full", f"{name}, bandit"] if kind.sees == "full or bandit" else [name]
    assert list(NAMED) == expected
    for title, one in NAMED.items():
        assert one.make(WORLD, 1000, 3).bound(1000) < inf
        assert one.make(WORLD, 1000, 3).feedback == "bandit" or "bandit" not in title


@pytest.mark.slow
def test_all_guarantees_hold_in_short_games() -> None:
    found = list(guarantees(5000, seed=0))
    assert [row.what.partition(":")[0] for row in found] == list(NAMED)
    assert all(row.holds for row in found)
    silent = {row.what.partition(":")[0].partition(",")[0] for row in found if "vacuous" in row.basis}
    assert silent == {"SelfTuning", "FPOP", "UCRL2", "REGAL", "UCBVI"}  # their bounds are above L T for so few episodes
    assert ["taken as 1" in row.basis for row in found] == [title == "UOBREPS" for title in NAMED]


def test_games_are_at_most_as_long_as_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_learners, "LONGEST", 4000)
    monkeypatch.setattr(verify_learners, "contenders", lambda: [NAMED["MDPE"]])
    (row,) = guarantees(10**6, seed=0)
    assert "T = 4,000;" in row.what


def test_the_measured_regret_is_the_largest_mean_and_the_exponents_are_those_of_least_squares() -> None:
    sk, one = WORLD.skeleton, NAMED["OSSP"]
    row = guarantee(one, GRID, 5)
    kinds: list[Any] = [
        lambda seed: am.losses.Stochastic(sk, means=[0.5, 0.5, 0.9, 0.9, 0.1, 0.1], seed=seed),
        lambda seed: am.losses.Stochastic(sk, means=[0.9, 0.1, 0.9, 0.1, 0.9, 0.1], seed=seed),
        lambda seed: am.losses.Switching(sk, period=1, seed=seed),
    ]

    def regret(losses: Any, T: int) -> float:
        return float(np.mean([am.play(WORLD, losses(s), am.OSSP(WORLD, horizon=T), T, seed=s).regret for s in (5, 6)]))

    worst = [max(regret(losses, T) for losses in kinds) for T in GRID]
    assert row.measured == pytest.approx(worst[-1])
    assert "worst of 3 kinds: a bad action" in row.what
    fit = stats.linregress(np.log(GRID), np.log(worst))
    assert row.beside == f"grows as T^{fit.slope:.2f} ± {fit.stderr:.2f}"
    assert row.claimed == am.OSSP(WORLD, horizon=GRID[-1]).bound(GRID[-1])
    assert "as T^0.50" in row.basis


@pytest.mark.parametrize(("title", "reacting"), [("MDPE", True), ("OSSP", False), ("UCRL2, full", False)])
def test_losses_satisfy_the_assumptions_of_the_guarantee(
    monkeypatch: pytest.MonkeyPatch, title: str, reacting: bool
) -> None:
    met = set()

    def noted(mdp: am.MDP, losses: am.losses.Losses, learner: am.Learner, T: int, seed: int) -> am.Game:
        met.add(type(losses).__name__)
        assert learner.bound(T) < inf
        return am.play(mdp, losses, learner, T, seed=seed)

    monkeypatch.setattr(verify_learners, "play", noted)
    guarantee(NAMED[title], [100, 200, 300], 0)
    expected = {"Stochastic"} | ({"Switching"} if "UCRL2" not in title else set())
    assert met == expected | ({"Adaptive"} if reacting else set())


@pytest.mark.parametrize("title", NAMED)
def test_a_bound_that_is_broken_fails(monkeypatch: pytest.MonkeyPatch, title: str) -> None:
    """A thousandth of T^0.9: no learner is that good, and its growth is not what fails."""
    kind: Any = LEARNERS[title.partition(",")[0]]
    monkeypatch.setattr(kind, "bound", lambda self, T: 1e-3 * T**0.9)
    row = guarantee(NAMED[title], [1000, 1500, 2000], 0)
    assert not row.holds
    assert row.measured > row.claimed == pytest.approx(1e-3 * 2000**0.9)


@pytest.mark.parametrize(
    ("bound", "holds"),
    [
        (lambda T: 100.0 * sqrt(T), False),  # its regret, 0.8 T, is below that; its growth is not
        (lambda T: 0.9 * T, True),
        (lambda T: 0.7 * T, False),
        (lambda T: 300.0 * sqrt(T), True),  # above L T: promises nothing
    ],
)
def test_growth_faster_than_the_bounds_fails(bound: Any, holds: bool) -> None:
    row = guarantee(idle(bound), GRID, 0)
    assert row.measured == pytest.approx(0.8 * GRID[-1], rel=0.02)
    assert row.beside.startswith("grows as T^1.00")
    assert row.holds == holds
    assert ("vacuous" in row.basis) == (row.claimed > 2 * GRID[-1])


def test_a_note_is_shown_beside_the_bound() -> None:
    assert guarantee(replace(idle(lambda T: 0.9 * T), note="guessed"), GRID, 0).basis == "0.45 L T, as T^1.00, guessed"
