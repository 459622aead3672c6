"""The best policy in hindsight: against brute force, closed forms, and the whole sum as one convex program of CVXPY."""

from __future__ import annotations

import tracemalloc
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import advmdp as am
from advmdp.planning.hindsight import Comparator, Played, comparator, comparators, quadratic, total_comparator
from advmdp.planning.hindsight.quadratic import _least_in_hull as least_in_hull
from tests.helpers.cvx import cp
from tests.helpers.oracles import flow_rules, occupancy_variable, owners, summing
from tests.helpers.strategies import build_mdp, mdps, random_policy

SMALL = am.MDP.random(layers=[1, 2, 2, 1], actions=2, seed=0)
MIDDLE = am.MDP.random(layers=[1, 4, 4, 1], actions=3, seed=3)
FORK = am.MDP.from_steps([("start", "left", "end", 1.0), ("start", "right", "end", 1.0)])
ONE_LOSS = [
    am.TotalLoss(),
    am.Risk(0.5, 2.0),
    am.Risk(0.3, 1.5),
    am.Risk(0.5, 2.0, reading="lemma"),
    am.Risk(0.3, 1.5, reading="lemma"),
    am.Risk(0.0, 3.0, reading="lemma"),
    0.7 * am.TotalLoss() + 0.3 * am.Risk(1.0, 2.0),
    0.5 * am.WorstCase() + 2.0 * am.Risk(0.1, 1.25) + am.Risk(0.3, 2.5, reading="lemma"),
]


class Rows:
    """A sequence in memory."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = rows

    def block(self, first: int, stop: int, /) -> np.ndarray:
        return self.rows[first:stop]


def in_python(criterion: am.Criterion, sk: am.Skeleton) -> am.FunctionCriterion:
    """The same criterion, as one that lives in Python."""
    return am.FunctionCriterion(
        value=lambda q, loss: criterion.value(sk, q, loss),
        subgradient=lambda q, loss: criterion.subgradient(sk, q, loss),
        lipschitz=criterion.lipschitz,
    )


def sequences(sk: am.Skeleton, dimensions: int | None) -> list[am.losses.Losses]:
    return [
        am.losses.Stochastic(sk, seed=1, dimensions=dimensions),
        am.losses.Switching(sk, period=7, seed=2, dimensions=dimensions),
        am.losses.Switching(sk, period=5, seed=3, noise=0.0, gap=0.6, dimensions=dimensions),
        am.losses.Drifting(sk, period=20, seed=4, dimensions=dimensions),
    ]


def summed(sk: am.Skeleton, criterion: am.Criterion, rows: np.ndarray, q: cp.Variable) -> cp.Expression:
    """G_T(q) by the formulas of the paper; rows are (T, n), or (T, n, d) for MM."""
    if rows.ndim == 3:
        return criterion.terms[:, 1].sum() * cp.sum(cp.max(cp.vstack([loss.T @ q for loss in rows]), axis=1))
    layers = summing(owners(sk)[0], sk.num_layers).toarray()
    v = [(rows * layer) @ q for layer in layers]
    total = cp.Constant(0.0)
    for kind, weight, alpha, c in criterion.terms:
        total += weight * alpha * cp.sum(cp.power(sum(v), c))
        if kind == 2:
            total += weight * (1.0 - alpha) * sum(cp.sum(cp.power(step, c)) for step in v)
        if kind == 3:
            total += weight * (1.0 - alpha) * ((rows**c).sum(axis=0) @ q)
    return total


def optimum(mdp: am.MDP, criterion: am.Criterion, rows: np.ndarray) -> float:
    """min over Delta(M) of G_T, by CVXPY and Clarabel."""
    sk = mdp.skeleton
    q = occupancy_variable(sk)
    pairs = summing(owners(sk)[2], sk.num_pairs)
    rules = [*flow_rules(sk, q), q == scipy.sparse.diags_array(mdp.transition) @ pairs.T @ pairs @ q]
    problem = cp.Problem(cp.Minimize(summed(sk, criterion, rows, q)), rules)
    problem.solve(solver=cp.CLARABEL)
    assert problem.status == "optimal"
    return float(problem.value)


def paid(mdp: am.MDP, criterion: am.Criterion, rows: np.ndarray, policy: np.ndarray) -> float:
    q = am.occupancy(mdp, policy)
    return sum(criterion.value(mdp.skeleton, q, loss) for loss in rows)


def check(mdp: am.MDP, criterion: am.Criterion, rows: np.ndarray, found: Comparator, gap: float = 1e-4) -> None:
    """All that a comparator says of itself is so, and the oracle's optimum lies between its bounds."""
    exact = optimum(mdp, criterion, rows)
    slack = 2e-7 * max(exact, 0.1)  # of the oracle, which stops at 1e-8
    assert found.episodes == len(rows)
    assert found.lower <= exact + slack
    assert exact <= found.value + slack
    assert 0.0 <= found.gap <= gap
    assert found.gap == pytest.approx((found.value - found.lower) / found.value, abs=1e-15)
    np.testing.assert_array_equal(found.q, am.occupancy(mdp, found.policy))
    assert found.value == pytest.approx(paid(mdp, criterion, rows, found.policy), rel=1e-11)


@pytest.mark.parametrize("criterion", ONE_LOSS, ids=repr)
@pytest.mark.parametrize("which", range(4))
def test_the_optimum_of_the_whole_sum_lies_between_the_bounds(criterion: am.Criterion, which: int) -> None:
    losses = sequences(MIDDLE.skeleton, None)[which]
    found = comparators(MIDDLE, losses, criterion, [13, 40])
    for one in found:
        check(MIDDLE, criterion, losses.block(0, one.episodes), one)
    if all(c in (1.0, 2.0) or (kind, alpha) == (3, 0.0) for kind, _, alpha, c in criterion.terms):
        assert [one.passes for one in found] == [1, 1]


@pytest.mark.parametrize(("mdp", "dimensions"), [(SMALL, 2), (MIDDLE, 1), (MIDDLE, 3)], ids=["2", "1", "3"])
@pytest.mark.parametrize("which", range(4))
def test_the_optimum_of_sums_of_maxima_lies_between_the_bounds(mdp: am.MDP, dimensions: int, which: int) -> None:
    losses = sequences(mdp.skeleton, dimensions)[which]
    criterion = 0.5 * am.WorstCase() + 2.0 * am.WorstCase()
    for one in comparators(mdp, losses, criterion, [13, 60]):
        check(mdp, criterion, losses.block(0, one.episodes), one)


@settings(max_examples=20)
@given(mdps(max_width=3, max_steps=3), st.sampled_from(range(len(ONE_LOSS) + 1)), st.integers(0, 2**32))
def test_bounds_are_true_on_ragged_worlds(mdp: am.MDP, which: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    several = which == len(ONE_LOSS)
    criterion = am.WorstCase() if several else ONE_LOSS[which]
    shape = (mdp.skeleton.num_transitions, 2) if several else (mdp.skeleton.num_transitions,)
    rows = rng.random((8, *shape)) ** rng.choice([0.3, 1.0, 5.0])
    found = comparator(mdp, Rows(rows), criterion, 8)
    assert found.lower <= paid(mdp, criterion, rows, random_policy(mdp.skeleton, rng)) * (1 + 1e-12)
    try:
        check(mdp, criterion, rows, found)
    except (cp.SolverError, UserWarning):  # where Delta(M) is a point or nearly so, the oracle gives up
        reject()


@pytest.mark.parametrize("criterion", [am.Risk(0.3, 1.5), am.Risk(0.5, 2.0), am.WorstCase()], ids=repr)
def test_criteria_in_python_find_the_same(criterion: am.Criterion) -> None:
    for losses in sequences(SMALL.skeleton, 2 if criterion == am.WorstCase() else None):
        found = comparator(SMALL, losses, in_python(criterion, SMALL.skeleton), 40)
        check(SMALL, criterion, losses.block(0, 40), found)


def test_a_composite_that_may_be_negative() -> None:
    losses = am.losses.Stochastic(SMALL.skeleton, seed=5)
    shifted = am.Composite(
        g=lambda u: u[0] ** 2 - 9.0, gradient=lambda u: 2.0 * u, h=[lambda loss: loss], lipschitz=6.0
    )
    found = comparator(SMALL, losses, shifted, 50)
    plain = comparator(SMALL, losses, am.Risk(1.0, 2.0), 50)
    assert found.value < 0.0
    assert found.lower <= plain.value - 450.0 + 1e-9
    assert plain.lower - 450.0 <= found.value + 1e-9
    assert found.gap <= 1e-4


def test_total_loss_is_that_of_the_best_deterministic_policy() -> None:
    rng = np.random.default_rng(0)
    for _ in range(10):
        mdp = build_mdp([1, 2, 3, 1], rng, max_actions=3, zeros=True)
        sk = mdp.skeleton
        rows = rng.random((30, sk.num_transitions))
        choices = product(*(range(n) for n in np.diff(sk.pair_ptr)[:-1]))
        policies = [am.deterministic_policy(sk, list(choice)) for choice in choices]
        for found in comparators(mdp, Rows(rows), am.TotalLoss(), [7, 30]):
            total = rows[: found.episodes].sum(axis=0)
            least = min(am.occupancy(mdp, policy) @ total for policy in policies)
            assert found.value == pytest.approx(least, rel=1e-12)
            assert found.gap <= 1e-14
            running = total_comparator(mdp, total, found.episodes)
            assert (running.gap, running.passes, running.episodes) == (0.0, 0, found.episodes)
            assert running.value == pytest.approx(least, rel=1e-12)
            np.testing.assert_array_equal(running.q, am.occupancy(mdp, running.policy))


@pytest.mark.parametrize(
    ("criterion", "losses", "value"),
    [
        (am.Risk(1.0, 2.0), [[1.0, 0.0], [0.0, 1.0]], 0.5),
        (am.Risk(1.0, 1.5), [[1.0, 0.0], [0.0, 1.0]], 2.0 * 0.5**1.5),
        (am.Risk(0.5, 3.0), [[1.0, 0.0], [0.0, 1.0]], 0.25),
        (am.TotalLoss(), [[1.0, 0.0], [0.25, 1.0]], 1.0),
        (am.WorstCase(), [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]], 1.0),
        (am.WorstCase(), [[[1.0, 0.0], [0.0, 0.5]], [[1.0, 0.0], [0.0, 0.5]]], 2.0 / 3.0),
    ],
)
def test_two_actions_and_two_losses_in_closed_form(criterion: am.Criterion, losses: list, value: float) -> None:
    rows = np.tile(np.array(losses), (3000,) + (1,) * (np.ndim(losses) - 1))
    for found in comparators(FORK, Rows(rows), criterion, [2, 40, 6000]):
        assert found.lower <= value * found.episodes / 2 * (1 + 1e-12)
        assert found.value == pytest.approx(value * found.episodes / 2, rel=1e-4)


@pytest.mark.parametrize("dimensions", [None, 2])
def test_prefixes_agree_with_runs_of_their_own(dimensions: int | None) -> None:
    criterion = am.Risk(0.3, 1.5) if dimensions is None else am.WorstCase()
    for losses in sequences(MIDDLE.skeleton, dimensions):
        for found in comparators(MIDDLE, losses, criterion, [1, 20, 150, 400]):
            alone = comparator(MIDDLE, losses, criterion, found.episodes)
            assert max(found.lower, alone.lower) <= min(found.value, alone.value) * (1 + 1e-12)
            assert max(found.gap, alone.gap) <= 1e-4


LIMITS = [("tasks.MOST_PAIRS", 1), ("search.MATRICES", 1), ("search.SAMPLE", 50), ("sequence.LONGEST", 7)]


@pytest.mark.parametrize(("name", "least"), LIMITS)
@pytest.mark.parametrize("dimensions", [None, 2])
def test_memory_limits_do_not_change_the_answer(
    name: str, least: int, dimensions: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    criterion = am.Risk(0.3, 1.5) if dimensions is None else am.WorstCase()
    monkeypatch.setattr(f"advmdp.planning.hindsight.{name}", least)
    for losses in sequences(MIDDLE.skeleton, dimensions):
        for found in comparators(MIDDLE, losses, criterion, [3, 60, 510]):
            if found.episodes == 60:
                check(MIDDLE, criterion, losses.block(0, 60), found)
            assert found.gap <= 1e-4


def test_a_smaller_gap_is_reached_and_a_larger_one_is_cheaper() -> None:
    losses = am.losses.Drifting(MIDDLE.skeleton, period=50, seed=1, noise=1.0, dimensions=3)
    found = [comparator(MIDDLE, losses, am.WorstCase(), 300, gap=gap) for gap in (1e-2, 1e-4, 1e-6)]
    assert [one.gap <= gap for one, gap in zip(found, (1e-2, 1e-4, 1e-6), strict=True)] == [True] * 3
    assert found[0].passes < found[1].passes
    assert max(one.lower for one in found) <= min(one.value for one in found) * (1 + 1e-12)


@pytest.mark.parametrize("criterion", [am.TotalLoss(), am.Risk(0.5, 2.0), am.Risk(0.3, 1.5), am.WorstCase()], ids=repr)
def test_zero_losses_have_no_gap(criterion: am.Criterion) -> None:
    found = comparator(SMALL, Rows(np.zeros((5, 16))), criterion, 5)
    assert (found.value, found.lower, found.gap) == (0.0, 0.0, 0.0)
    assert comparator(SMALL, Rows(np.zeros((5, 16, 2))), am.WorstCase(), 5).gap == 0.0


@pytest.mark.parametrize("criterion", ONE_LOSS, ids=repr)
def test_a_policy_without_loss_is_found(criterion: am.Criterion) -> None:
    rows = np.ones((6, 16))
    rows[:, am.occupancy(SMALL, am.deterministic_policy(SMALL.skeleton, [1, 0, 1, 1, 0])) > 0.0] = 0.0
    found = comparator(SMALL, Rows(rows), criterion, 6)
    assert found.lower == 0.0
    assert found.value <= 1e-12
    assert found.gap <= 1e-4


def test_the_same_bytes_again() -> None:
    losses = am.losses.Switching(MIDDLE.skeleton, period=9, seed=1, dimensions=2)
    runs = [comparators(MIDDLE, losses, am.WorstCase(), [50, 12000], gap=1e-3) for _ in range(2)]
    for one, other in zip(*runs, strict=True):
        assert (one.value, one.lower, one.passes) == (other.value, other.lower, other.passes)
        assert one.policy.tobytes() == other.policy.tobytes()
        assert not one.policy.flags.writeable
        assert not one.q.flags.writeable


@pytest.mark.parametrize("criterion", [am.TotalLoss(), am.Risk(0.3, 1.5), am.WorstCase()], ids=repr)
def test_memory_does_not_grow_with_the_horizon(criterion: am.Criterion) -> None:
    losses = am.losses.Switching(SMALL.skeleton, 500, seed=1, dimensions=2 if criterion == am.WorstCase() else None)
    peaks = []
    for episodes in (10_000, 10_000, 40_000):  # the first one imports and compiles
        tracemalloc.start()
        comparators(SMALL, losses, criterion, [episodes // 10, episodes], gap=1e-3)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] <= 1.1 * peaks[1]


def test_adaptive_losses_need_the_policies_that_were_played() -> None:
    sk, rng = SMALL.skeleton, np.random.default_rng(0)
    losses = am.losses.Adaptive(sk, seed=1, memory=2)
    policies = [random_policy(sk, rng) for _ in range(40)]
    found = comparator(SMALL, Played(losses, policies), am.Risk(0.3, 1.5), 40)
    check(SMALL, am.Risk(0.3, 1.5), np.array([losses.at(t, policies) for t in range(40)]), found)
    with pytest.raises(am.InputError, match=r"losses: Adaptive.*; expected Played\(losses, policies\)"):
        comparator(SMALL, losses, am.TotalLoss(), 1)


def test_progress_ascends_to_one() -> None:
    losses = am.losses.Stochastic(SMALL.skeleton, seed=1, dimensions=2)
    for criterion, source in [(am.WorstCase(), losses), (am.TotalLoss(), am.losses.Stochastic(SMALL.skeleton, seed=1))]:
        told: list[float] = []
        comparators(SMALL, source, criterion, [700, 3000], progress=told.append)
        assert len(told) > 3
        assert told == sorted(told)
        assert 0.0 < told[0] < 1.0 == told[-1]


def test_a_gap_that_is_not_reached_is_an_error_unless_allowed() -> None:
    losses = am.losses.Drifting(MIDDLE.skeleton, period=50, seed=1, dimensions=3)
    with pytest.raises(
        am.AdvMDPError, match=r"comparator of 200 episodes: a gap of .* after 2 passes; expected 0.0001"
    ):
        comparator(MIDDLE, losses, am.WorstCase(), 200, passes=2)
    found = comparator(MIDDLE, losses, am.WorstCase(), 200, passes=2, allow_gap=True)
    assert found.passes == 2
    assert found.gap > 1e-4
    check(MIDDLE, am.WorstCase(), losses.block(0, 200), found, gap=1.0)


def test_bounds_hold_where_the_linear_program_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scipy.optimize, "linprog", lambda *_, **__: SimpleNamespace(status=4))
    for criterion, dimensions in ((am.Risk(0.3, 1.5), None), (am.WorstCase(), 2)):
        losses = am.losses.Stochastic(MIDDLE.skeleton, seed=1, dimensions=dimensions)
        found = comparator(MIDDLE, losses, criterion, 60, passes=5, allow_gap=True)
        check(MIDDLE, criterion, losses.block(0, 60), found, gap=1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mdp": SMALL.skeleton}, "mdp: a Skeleton; expected an MDP"),
        ({"losses": 3}, "losses: a int; expected an object with a method block"),
        ({"criterion": "risk"}, "criterion: a str; expected a Criterion"),
        ({"episodes": []}, "episodes: .*; expected"),
        ({"episodes": [0, 3]}, r"episodes: \[0, 3\]; expected ascending numbers, 1 or more"),
        ({"episodes": [3, 3]}, r"episodes: \[3, 3\]; expected ascending numbers, 1 or more"),
        ({"episodes": [2.5]}, "episodes: .*; expected whole numbers"),
        ({"gap": 0.0}, "gap: 0.0; expected a number above 0"),
        ({"gap": float("nan")}, "gap: nan; expected a number above 0"),
        ({"passes": 0}, "passes: 0; expected a whole number, 1 or more"),
        ({"losses": Rows(np.zeros((5, 15)))}, r"losses of episode 0: shape \(15,\); expected \(16,\) or \(16, d\)"),
        ({"losses": Rows(np.zeros((5, 16, 0)))}, r"losses of episode 0: shape \(16, 0\); expected"),
        ({"losses": Rows(np.zeros(16))}, r"losses of episode 0: shape \(\); expected"),
        ({"losses": Rows(np.zeros((3, 16)))}, r"losses of episodes 0 to 4: .*; expected shape \(5, 16\)"),
        ({"losses": Rows(np.full((5, 16), 1.5))}, "losses of episodes 0 to 4: .* 1.5; expected numbers from 0 to 1"),
        ({"losses": Rows(np.full((5, 16), np.nan))}, "losses of episodes 0 to 4: .*nan; expected numbers from 0 to 1"),
        ({"losses": Rows(np.zeros((5, 16, 2)))}, "losses for TotalLoss.*: 2 losses at once; expected one"),
    ],
)
def test_unusable_arguments_are_named(change: dict, message: str) -> None:
    given = {"mdp": SMALL, "losses": Rows(np.zeros((5, 16))), "criterion": am.TotalLoss(), "episodes": [5], **change}
    with pytest.raises(am.InputError, match=message):
        comparators(**given)


@pytest.mark.parametrize("unit", [1e-15, 1e-9, 1e9, 1e15])
def test_units_do_not_change_the_least_point_of_a_hull(unit: float) -> None:
    rng = np.random.default_rng(0)
    atoms, slope, start = rng.normal(size=(6, 20)), rng.normal(size=20), np.full(6, 1.0 / 6.0)
    b, Q = atoms @ slope, atoms @ atoms.T
    assert_allclose(least_in_hull(unit * b, unit * Q, start), least_in_hull(b, Q, start), atol=1e-9)


def test_losses_of_large_units_need_no_more_atoms_than_dimensions(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    monkeypatch.setattr(quadratic, "_least_in_hull", lambda b, Q, w: sizes.append(len(b)) or least_in_hull(b, Q, w))
    mdp = am.MDP.random(layers=[1, *[3] * 11, 1], actions=2, seed=3)
    best = comparator(mdp, am.losses.Switching(mdp.skeleton, period=7, seed=1), am.Risk(0.5, 10.0), 100)
    assert best.gap <= 1e-4
    assert max(sizes) <= mdp.skeleton.num_pairs


def test_one_horizon_is_a_number() -> None:
    with pytest.raises(am.InputError, match="episodes: 0; expected a whole number, 1 or more"):
        comparator(SMALL, Rows(np.zeros((5, 16))), am.TotalLoss(), 0)
    with pytest.raises(am.InputError, match="total: .*; expected shape"):
        total_comparator(SMALL, np.zeros(3), 1)
