"""Criteria: Examples 2.1 to 2.3 and Lemma 3.2 against arithmetic by hand, NumPy, CVXPY and convex analysis."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import advmdp as am
from advmdp.criteria import RISK, RISK_LEMMA, TOTAL, WORST
from advmdp.verify.testing import check_criterion
from tests.helpers import ROOT
from tests.helpers.cvx import cp
from tests.helpers.oracles import flow_rules, occupancy_variable, owners, summing
from tests.helpers.strategies import played, random_policy

# Two steps, every number a short binary fraction: v_0 = 1/4, v_1 = 7/8, <q, l> = 9/8.
FORK = am.Skeleton.dense([1, 2, 1], 1)
Q = np.array([0.25, 0.75, 0.25, 0.75])
LOSS = np.array([1.0, 0.0, 0.5, 1.0])
BUILT_IN = [
    am.TotalLoss(),
    am.WorstCase(),
    am.Risk(0.5, 2.0),
    am.Risk(0.25, 1.5),
    am.Risk(0.5, 2.0, reading="lemma"),
    am.Risk(0.0, 3.0, reading="lemma"),
    0.7 * am.TotalLoss() + 0.3 * am.Risk(1.0, 2.0),
    0.5 * am.WorstCase() + 2.0 * am.Risk(0.1, 1.25) + am.Risk(0.3, 2.5, reading="lemma"),
]

criteria = st.lists(
    st.tuples(
        st.floats(0.0, 5.0),
        st.one_of(
            st.just(am.TotalLoss()),
            st.just(am.WorstCase()),
            st.builds(
                am.Risk,
                st.floats(0.0, 1.0),
                st.one_of(st.just(2.0), st.floats(1.01, 4.0)),
                st.sampled_from(["definition", "lemma"]),
            ),
        ),
    ),
    min_size=1,
    max_size=4,
)


def added(parts: list) -> am.Criterion:
    return sum(weight * part for weight, part in parts)


def in_numpy(sk: am.Skeleton, part: am.Criterion, q: np.ndarray, loss: np.ndarray) -> tuple[float, np.ndarray]:
    """The formulas of the paper and their derivatives, for one loss."""
    if not isinstance(part, am.Risk):
        return float((q * loss).sum()), loss
    alpha, c, layer = part.alpha, part.c, owners(sk)[0]
    v = np.array([q[layer == k] @ loss[layer == k] for k in range(sk.num_layers)])
    total = alpha * c * v.sum() ** (c - 1) * loss
    if part.reading == "lemma":
        return alpha * v.sum() ** c + (1 - alpha) * (q @ loss**c), total + (1 - alpha) * loss**c
    each = (1 - alpha) * c * v[layer] ** (c - 1) * loss
    return alpha * v.sum() ** c + (1 - alpha) * (v**c).sum(), total + each


def in_cvxpy(sk: am.Skeleton, part: am.Criterion) -> Callable:
    """The same, as an expression that CVXPY proves convex."""
    layers = summing(owners(sk)[0], sk.num_layers)

    def build(q: cp.Variable, loss: cp.Parameter) -> cp.Expression:
        if not isinstance(part, am.Risk):
            return q @ loss
        powers = cp.power(loss, part.c) @ q
        if part.reading == "definition":
            powers = cp.sum(cp.power(layers @ cp.multiply(q, loss), part.c))
        return part.alpha * cp.power(q @ loss, part.c) + (1 - part.alpha) * powers

    return build


# --- the examples of the paper ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("criterion", "value", "subgradient"),
    [
        (am.TotalLoss(), 9 / 8, [1.0, 0.0, 0.5, 1.0]),
        (am.WorstCase(), 9 / 8, [1.0, 0.0, 0.5, 1.0]),
        # 81/64 / 2 + (4/64 + 49/64) / 2; the slope of step k is 9/8 + v_k
        (am.Risk(0.5, 2.0), 67 / 64, [11 / 8, 0.0, 1.0, 2.0]),
        # 81/64 / 2 + (1/4 + 1/16 + 3/4) / 2; the slope of l is 9/8 l + l^2 / 2
        (am.Risk(0.5, 2.0, reading="lemma"), 149 / 128, [13 / 8, 0.0, 11 / 16, 13 / 8]),
        (2.0 * am.TotalLoss() + am.Risk(0.5, 2.0), 9 / 4 + 67 / 64, [27 / 8, 0.0, 2.0, 4.0]),
        (0.0 * am.TotalLoss(), 0.0, [0.0, 0.0, 0.0, 0.0]),
    ],
    ids=repr,
)
def test_examples_by_hand(criterion: am.Criterion, value: float, subgradient: list[float]) -> None:
    for loss in (LOSS, LOSS.reshape(-1, 1), LOSS.tolist()):
        assert criterion.value(FORK, Q, loss) == value
        assert criterion.subgradient(FORK, Q, loss).tolist() == subgradient


def test_the_worst_of_several_losses_is_the_first_of_the_largest() -> None:
    other = np.array([0.5, 0.5, 0.5, 0.75])  # 1/2 + 11/16 = 19/16, above 9/8
    for columns, worst in (((LOSS, other, LOSS), 1), ((other, LOSS, other), 0), ((LOSS, LOSS), 0)):
        loss = np.column_stack(columns)
        assert am.WorstCase().value(FORK, Q, loss) == Q @ columns[worst]
        assert am.WorstCase().subgradient(FORK, Q, loss).tolist() == columns[worst].tolist()
    tied = np.array([0.0, 1 / 3, 0.5, 1.0])  # also 9/8, by other transitions
    assert Q @ tied == Q @ LOSS
    for columns in ((LOSS, tied), (tied, LOSS)):
        assert am.WorstCase().subgradient(FORK, Q, np.column_stack(columns)).tolist() == columns[0].tolist()


@given(played(max_width=6, max_steps=6), criteria)
def test_terms_agree_with_the_formulas_in_numpy(case: tuple, parts: list) -> None:
    mdp, policy, loss = case
    sk, q = mdp.skeleton, am.occupancy(mdp, policy)
    answers = [in_numpy(sk, part, q, loss) for _, part in parts]
    criterion = added(parts)
    value = sum(weight * each for (weight, _), (each, _) in zip(parts, answers, strict=True))
    z = sum(weight * each for (weight, _), (_, each) in zip(parts, answers, strict=True))
    assert criterion.value(sk, q, loss) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(criterion.subgradient(sk, q, loss), z, rtol=1e-12, atol=1e-15)


@given(played(max_width=4, max_steps=4), st.integers(2, 5), st.integers(0, 2**32))
def test_the_worst_case_agrees_with_numpy_for_several_losses(case: tuple, d: int, seed: int) -> None:
    mdp, policy, _ = case
    sk, q = mdp.skeleton, am.occupancy(mdp, policy)
    loss = np.random.default_rng(seed).random((sk.num_transitions, d))
    criterion = am.WorstCase() + 0.5 * am.WorstCase()
    assert criterion.value(sk, q, loss) == pytest.approx(1.5 * (q @ loss).max(), rel=1e-12)
    np.testing.assert_allclose(criterion.subgradient(sk, q, loss), 1.5 * loss[:, (q @ loss).argmax()], rtol=1e-15)


@pytest.mark.parametrize("criterion", BUILT_IN[:6], ids=repr)
def test_cvxpy_proves_them_convex_and_agrees(criterion: am.Criterion) -> None:
    mdp = am.MDP.random([1, 3, 4, 1], 2, seed=3, branching=2)
    sk = mdp.skeleton
    oracle = am.CvxpyCriterion(in_cvxpy(sk, criterion), lipschitz=1.0)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        q, loss = am.occupancy(mdp, random_policy(sk, rng)), rng.random(sk.num_transitions)
        assert criterion.value(sk, q, loss) == pytest.approx(oracle.value(sk, q, loss), rel=1e-12)
        np.testing.assert_allclose(
            criterion.subgradient(sk, q, loss), oracle.subgradient(sk, q, loss), rtol=1e-10, atol=1e-12
        )


@pytest.mark.parametrize("criterion", [am.Risk(0.5, 2.0), am.Risk(0.2, 2.0, reading="lemma")], ids=repr)
def test_no_policy_goes_down_along_the_gradient_at_the_minimum_of_a_convex_program(criterion: am.Criterion) -> None:
    """First-order optimality over Delta(M): <z, q' - q> >= 0 for the best response q' to the loss z."""
    mdp = am.MDP.random([1, 3, 3, 1], 2, seed=5)
    sk = mdp.skeleton
    parameter = np.random.default_rng(0).random(sk.num_transitions)
    q = occupancy_variable(sk)
    pairs = summing(owners(sk)[2], sk.num_pairs)
    dynamics = [q == cp.multiply(mdp.transition, pairs.T @ (pairs @ q))]
    problem = cp.Problem(
        cp.Minimize(in_cvxpy(sk, criterion)(q, cp.Constant(parameter))), [*flow_rules(sk, q), *dynamics]
    )
    problem.solve(solver=cp.CLARABEL)
    z = criterion.subgradient(sk, q.value, parameter)
    assert criterion.value(sk, q.value, parameter) == pytest.approx(problem.value, abs=1e-7)
    assert am.best_response(mdp, z)[1] >= z @ q.value - 1e-5
    elsewhere = criterion.subgradient(sk, am.occupancy(mdp, am.uniform_policy(sk)), parameter)
    assert am.best_response(mdp, elsewhere)[1] < elsewhere @ am.occupancy(mdp, am.uniform_policy(sk)) - 0.1


# --- convex analysis --------------------------------------------------------------------------------------------------


@given(played(max_width=5, max_steps=5), criteria, st.integers(0, 2**32))
def test_subgradients_support_the_function_from_below(case: tuple, parts: list, seed: int) -> None:
    mdp, policy, loss = case
    sk, criterion = mdp.skeleton, added(parts)
    q = am.occupancy(mdp, policy)
    other = am.occupancy(mdp, random_policy(sk, np.random.default_rng(seed), sharpness=5.0))
    below = criterion.value(sk, q, loss) + criterion.subgradient(sk, q, loss) @ (other - q)
    there = criterion.value(sk, other, loss)
    assert there >= below - 1e-11 * (1.0 + there)


@given(played(max_width=5, max_steps=5), criteria, st.integers(0, 2**32))
def test_gradients_are_central_differences(case: tuple, parts: list, seed: int) -> None:
    mdp, policy, loss = case
    sk, criterion, h = mdp.skeleton, added(parts), 1e-5
    loss = 0.1 + 0.9 * loss  # away from v_k = 0, where powers below 2 bend sharply
    q = am.occupancy(mdp, policy)
    d = np.random.default_rng(seed).normal(size=sk.num_transitions) / sk.num_transitions
    difference = (criterion.value(sk, q + h * d, loss) - criterion.value(sk, q - h * d, loss)) / (2 * h)
    z = criterion.subgradient(sk, q, loss)
    assert z @ d == pytest.approx(difference, abs=1e-6 * (1.0 + np.abs(z).max()))


@given(played(max_width=5, max_steps=5), st.floats(0.0, 1.0), st.floats(1.01, 4.0))
def test_the_readings_of_risk_differ_by_jensen(case: tuple, alpha: float, c: float) -> None:
    mdp, policy, loss = case
    sk, q = mdp.skeleton, am.occupancy(mdp, policy)
    layer = owners(sk)[0]

    def both(power: float, losses: np.ndarray) -> list[float]:
        return [am.Risk(alpha, power, reading).value(sk, q, losses) for reading in ("definition", "lemma")]

    definition, lemma = both(c, loss)
    assert lemma >= definition - 1e-12 * (1.0 + definition)
    definition, lemma = both(2.0, loss)
    variance = [
        q[layer == k] @ (loss[layer == k] - q[layer == k] @ loss[layer == k]) ** 2 for k in range(len(set(layer)))
    ]
    assert lemma - definition == pytest.approx((1 - alpha) * sum(variance), abs=1e-10)
    certain = both(c, np.linspace(0.2, 1.0, sk.num_layers)[layer])
    assert certain[0] == pytest.approx(certain[1], rel=1e-10)


@pytest.mark.parametrize(
    ("criterion", "F"),
    [
        (am.TotalLoss(), 1.0),
        (am.WorstCase(), 1.0),
        (am.Risk(0.5, 2.0), 0.5 * 2 * 3 + 0.5 * 2),
        (am.Risk(0.25, 3.0), 0.25 * 3 * 9 + 0.75 * 3),
        (am.Risk(0.5, 2.0, reading="lemma"), 0.5 * 2 * 3 + 0.5),
        (am.Risk(0.25, 3.0, reading="lemma"), 0.25 * 3 * 9 + 0.75),
        (0.5 * am.TotalLoss() + 3.0 * am.Risk(1.0, 2.0), 0.5 + 3.0 * 6.0),
    ],
    ids=repr,
)
def test_lipschitz_constants_are_tight_at_loss_1(criterion: am.Criterion, F: float) -> None:
    mdp = am.MDP.random([1, 3, 3, 1], 2, seed=1)
    sk, rng = mdp.skeleton, np.random.default_rng(0)
    assert criterion.lipschitz(sk) == pytest.approx(F, rel=1e-15)
    for _ in range(20):
        q = am.occupancy(mdp, random_policy(sk, rng, 30.0))
        assert criterion.subgradient(sk, q, np.ones(sk.num_transitions)).max() == pytest.approx(F, rel=1e-12)
        z = criterion.subgradient(sk, q, rng.integers(0, 2, sk.num_transitions))
        assert 0.0 <= z.min() <= z.max() <= F + 1e-12


@pytest.mark.parametrize("reading", ["definition", "lemma"])
@pytest.mark.parametrize("c", [1.0000001, 1.5, 2.0, 3.0])
def test_powers_are_flat_at_zero(c: float, reading: str) -> None:
    criterion = am.Risk(0.5, c, reading)
    assert criterion.value(FORK, Q, np.zeros(4)) == 0.0
    assert criterion.subgradient(FORK, Q, np.zeros(4)).tolist() == [0.0] * 4
    one_step_free = np.array([0.0, 0.0, 1.0, 1.0])
    assert criterion.value(FORK, Q, one_step_free) == 1.0
    assert criterion.subgradient(FORK, Q, one_step_free).tolist()[:2] == [0.0, 0.0]
    for tiny in (1e-300, 5e-324):
        z = criterion.subgradient(FORK, Q, np.full(4, tiny))
        assert np.isfinite(z).all()
        assert (z >= 0.0).all()
    rounded, loss = np.array([-1e-18, 0.0, 0.25, 0.75]), one_step_free[::-1]
    assert criterion.value(FORK, rounded, loss) == pytest.approx(0.0, abs=1e-15)
    flat = 0.0 if reading == "definition" else 0.5
    assert criterion.subgradient(FORK, rounded, loss).tolist() == [flat, flat, 0.0, 0.0]


# --- criteria as data -------------------------------------------------------------------------------------------------


def test_terms_are_rows_of_kind_weight_alpha_and_c() -> None:
    criterion = 2.0 * (0.5 * am.TotalLoss() + am.WorstCase()) + am.Risk(0.5, 3.0) + am.Risk(0.0, 1.5, reading="lemma")
    rows = [[TOTAL, 1.0, 1.0, 1.0], [WORST, 2.0, 1.0, 1.0], [RISK, 1.0, 0.5, 3.0], [RISK_LEMMA, 1.0, 0.0, 1.5]]
    assert criterion.terms.tolist() == rows
    assert not criterion.terms.flags.writeable


@given(criteria)
def test_descriptions_survive_json(parts: list) -> None:
    criterion = added(parts)
    again = am.criterion_from(json.loads(json.dumps(criterion.description())))
    assert again == criterion
    assert hash(again) == hash(criterion)
    assert again.terms.tobytes() == criterion.terms.tobytes()


def test_a_description_names_its_kinds() -> None:
    criterion = 0.7 * am.TotalLoss() + 0.3 * am.Risk(1.0, 2.0)
    assert criterion.description() == {"terms": [["total", 0.7, 1.0, 1.0], ["risk", 0.3, 1.0, 2.0]]}


@pytest.mark.parametrize(
    ("foreign", "message"),
    [
        (None, "criterion: None; expected a mapping"),
        ({}, "one entry, 'terms'"),
        ({"terms": [["total", 1, 1, 1]], "more": 1}, "one entry, 'terms'"),
        ({"terms": []}, "criterion, terms: "),
        ({"terms": "total"}, "criterion, terms: 'total'"),
        ({"terms": [["total", 1.0, 1.0, 1.0], ["profit", 1.0, 1.0, 1.0]]}, "term 1: .*kind one of total, worst"),
        ({"terms": [["total", 1.0, 1.0]]}, "term 0"),
        ({"terms": [[["total"], 1.0, 1.0, 1.0]]}, "term 0"),
        ({"terms": [["total", -1.0, 1.0, 1.0]]}, "term 0, weight: -1.0; expected a number, 0 or more"),
        ({"terms": [["total", "1", 1.0, 1.0]]}, "term 0, weight: '1'"),
        ({"terms": [["worst", 1.0, 0.5, 1.0]]}, "term 0: alpha 0.5 and c 1.0; expected 1 and 1 for 'worst'"),
        ({"terms": [["risk", 1.0, 2.0, 2.0]]}, "term 0, alpha: 2.0"),
        ({"terms": [["risk_lemma", 1.0, 0.5, None]]}, "term 0, c: None"),
    ],
)
def test_foreign_descriptions_are_refused(foreign: object, message: str) -> None:
    with pytest.raises(am.InputError, match=message):
        am.criterion_from(foreign)


# --- arithmetic -------------------------------------------------------------------------------------------------------


def test_arithmetic_gives_flat_sums_that_say_what_they_are() -> None:
    total, risk = am.TotalLoss(), am.Risk(1.0, 2.0)
    assert repr(0.7 * total + risk * np.float64(0.3)) == (
        "0.7 * TotalLoss() + 0.3 * Risk(alpha=1.0, c=2.0, reading='definition')"
    )
    assert repr(2 * (total + 0.5 * am.WorstCase())) == "2.0 * TotalLoss() + WorstCase()"
    assert 1.0 * total == total
    assert total == am.TotalLoss() != am.WorstCase()
    assert sum([total, risk]) == total + risk != risk + total
    assert copy.deepcopy(total + risk) == total + risk


@pytest.mark.parametrize("weight", [-1.0, -1, np.float64(-0.5), np.nan, np.inf])
def test_weights_are_numbers_of_zero_or_more(weight: float) -> None:
    for scale in (lambda c: weight * c, lambda c: c * weight):
        for criterion in (am.TotalLoss(), am.TotalLoss() + am.WorstCase()):
            with pytest.raises(am.InputError, match=r"the weight of TotalLoss\(\).*; expected a number, 0 or more"):
                scale(criterion)
    with pytest.raises(am.InputError, match="inf"):
        1e200 * (1e200 * am.TotalLoss())


@pytest.mark.parametrize("bad", ["2", None, np.ones(2), [1.0]])
def test_criteria_combine_only_with_numbers_and_criteria(bad: object) -> None:
    for attempt in (lambda: bad * am.TotalLoss(), lambda: am.TotalLoss() + bad, lambda: bad + am.TotalLoss()):
        with pytest.raises(TypeError):
            attempt()


def test_a_sum_with_a_criterion_in_python_is_the_sum_of_both() -> None:
    mine = am.FunctionCriterion(value=squared, subgradient=squared_slope, lipschitz=steps_twice)
    criterion = 0.5 * mine + 2.0 * am.TotalLoss()
    assert criterion.terms is None
    assert criterion.description() is None
    assert criterion.value(FORK, Q, LOSS) == 0.5 * (9 / 8) ** 2 + 2.0 * 9 / 8
    assert criterion.subgradient(FORK, Q, LOSS).tolist() == ((9 / 8 + 2.0) * LOSS).tolist()
    assert criterion.lipschitz(FORK) == 0.5 * 4 + 2.0
    assert repr(criterion) == "0.5 * FunctionCriterion(squared) + 2.0 * TotalLoss()"


def test_a_subclass_that_overrides_the_value_is_played_as_it_is_written() -> None:
    class Thrice(am.TotalLoss):
        def value(self, sk: am.Skeleton, q: np.ndarray, loss: np.ndarray) -> float:
            return 3.0 * super().value(sk, q, loss)

        def subgradient(self, sk: am.Skeleton, q: np.ndarray, loss: np.ndarray) -> np.ndarray:
            return 3.0 * super().subgradient(sk, q, loss)

        def lipschitz(self, sk: am.Skeleton) -> float:
            return 3.0

    assert Thrice().terms is None
    assert Thrice().description() is None
    mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    losses, uniform = am.losses.Stochastic(mdp.skeleton, seed=1), am.uniform_policy(mdp.skeleton)
    q = am.occupancy(mdp, uniform)
    game = am.play(mdp, losses, am.Uniform(mdp.skeleton), episodes=20, criterion=Thrice())
    assert game.total_loss == pytest.approx(sum(3.0 * float(q @ losses.at(t)) for t in range(20)), rel=1e-12)


# --- criteria of one's own --------------------------------------------------------------------------------------------


def squared(q: np.ndarray, loss: np.ndarray) -> float:
    return (q @ loss) ** 2


def squared_slope(q: np.ndarray, loss: np.ndarray) -> np.ndarray:
    return 2.0 * (q @ loss) * loss


def steps_twice(sk: am.Skeleton) -> float:
    return 2.0 * sk.num_layers


def columns_of(d: int) -> list[Callable]:
    return [lambda loss, j=j: loss[:, j] for j in range(d)]


def test_lemma_3_2_builds_the_examples() -> None:
    mdp = am.MDP.random([1, 3, 4, 1], 2, seed=2, branching=2)
    sk, rng = mdp.skeleton, np.random.default_rng(0)
    q, loss = am.occupancy(mdp, random_policy(sk, rng)), rng.random((sk.num_transitions, 3))
    largest = am.Composite(g=np.max, gradient=lambda u: np.eye(3)[u.argmax()], h=columns_of(3), lipschitz=1)
    risk = am.Composite(
        g=lambda u: 0.25 * u[0] ** 3 + 0.75 * u[1],
        gradient=lambda u: [0.25 * 3 * u[0] ** 2, 0.75],
        h=[lambda loss: loss, lambda loss: loss**3],
        lipschitz=lambda sk: 0.25 * 3 * sk.num_layers**2 + 0.75,
    )
    for mine, example, losses in (
        (largest, am.WorstCase(), loss),
        (risk, am.Risk(0.25, 3.0, reading="lemma"), loss[:, 0].copy()),
    ):
        assert mine.value(sk, q, losses) == pytest.approx(example.value(sk, q, losses), rel=1e-13)
        np.testing.assert_allclose(
            mine.subgradient(sk, q, losses), example.subgradient(sk, q, losses), rtol=1e-12, atol=1e-15
        )
        assert mine.lipschitz(sk) == example.lipschitz(sk)
        assert mine.terms is None
        assert mine.description() is None
    assert repr(largest) == "Composite(g=max, h=[<lambda>, <lambda>, <lambda>])"
    check_criterion(largest, dimensions=3)
    check_criterion(risk)


def test_the_squared_worst_case_in_cvxpy() -> None:
    criterion = am.CvxpyCriterion(
        lambda q, loss: cp.square(cp.max(loss.T @ q)), dimensions=2, lipschitz=lambda sk: 2 * sk.num_layers
    )
    loss = np.column_stack([LOSS, [0.5, 0.5, 0.5, 0.5]])
    assert criterion.value(FORK, Q, loss) == pytest.approx((9 / 8) ** 2, rel=1e-14)
    assert criterion.subgradient(FORK, Q, loss) == pytest.approx(2 * 9 / 8 * LOSS, rel=1e-14)
    below, at_zero = np.array([-0.01, 1.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.0, 1.0])
    assert criterion.value(FORK, below, loss) == criterion.value(FORK, at_zero, loss)
    assert criterion.terms is None
    check_criterion(criterion, FORK, dimensions=2)
    one_step = am.Skeleton.dense([1, 1], 1)  # another size, and CVXPY gives a number, no matrix
    assert criterion.subgradient(one_step, [1.0], [[0.5, 0.25]]).tolist() == [2 * 0.5 * 0.5]
    constant = am.CvxpyCriterion(lambda q, loss: cp.sum(loss), lipschitz=0.0)
    assert constant.subgradient(FORK, Q, LOSS).tolist() == [0.0] * 4


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda q, loss: cp.sqrt(q @ loss), "of curvature CONCAVE; expected an expression that DCP proves convex in q"),
        (lambda q, loss: q @ cp.multiply(q, loss), "of curvature UNKNOWN; expected an expression that DCP proves"),
        (lambda q, loss: cp.square(q @ (loss - 0.5) - 1.0) - cp.square(q @ loss), "DCP proves convex"),
        (lambda q, loss: cp.multiply(loss, q), "expected a scalar CVXPY expression"),
        (lambda q, loss: 1.0, "1.0; expected a scalar CVXPY expression"),
        (lambda q, loss: q @ loss + cp.Variable(), "with other variables; expected an expression in q and the loss"),
    ],
)
def test_expressions_that_are_not_proved_convex_in_q_are_refused(build: Callable, message: str) -> None:
    with pytest.raises(am.InputError, match=message):
        am.CvxpyCriterion(build, lipschitz=1.0).value(FORK, Q, LOSS)


def test_what_cvxpy_cannot_do_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    criterion = am.CvxpyCriterion(lambda q, loss: cp.power(q @ loss, 1.5), lipschitz=10.0)
    with pytest.raises(am.InputError, match="no subgradient"):
        criterion.subgradient(FORK, Q, np.zeros(4))
    with pytest.raises(am.InputError, match="loss: -0.5; expected 0 or more"):
        criterion.value(FORK, Q, LOSS - 0.5)
    with pytest.raises(am.InputError, match=r"loss: shape \(4, 2\); expected \(4,\)"):
        criterion.value(FORK, Q, np.ones((4, 2)))
    with pytest.raises(am.InputError, match="dimensions"):
        am.CvxpyCriterion(cp.sum, dimensions=0, lipschitz=1.0)
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(am.InputError, match=r"advmdp\[cvx\]"):
        am.CvxpyCriterion(lambda q, loss: q @ loss, lipschitz=1.0).value(FORK, Q, LOSS)


def test_a_function_cannot_modify_its_arguments_or_return_the_loss_itself() -> None:
    def scribbling(q: np.ndarray, loss: np.ndarray) -> float:
        q[0] = 2.0
        return 0.0

    linear = am.FunctionCriterion(value=scribbling, subgradient=lambda q, loss: loss, lipschitz=1.0)
    with pytest.raises(ValueError, match="read-only"):
        linear.value(FORK, Q, LOSS)
    z = linear.subgradient(FORK, Q, LOSS)
    z += 1.0
    assert LOSS.tolist() == [1.0, 0.0, 0.5, 1.0]


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", [am.Risk(), am.TotalLoss() + am.Risk(), "function"], ids=repr)
@pytest.mark.parametrize(
    ("q", "loss", "message"),
    [
        (Q[:3], LOSS, r"q: an array of shape \(3,\)"),
        (Q.reshape(2, 2), LOSS, r"q: an array of shape \(2, 2\)"),
        (["a"] * 4, LOSS, "q: .*expected real numbers"),
        ([0.25, np.nan, 0.25, 0.5], LOSS, "q at layer 0, state 0, action 0, successor 2: nan"),
        (Q, LOSS[:3], r"loss: an array of shape \(3,\); expected shape \(4,\) or \(4, d\)"),
        (Q, np.ones((4, 0)), r"loss: an array of shape \(4, 0\)"),
        (Q, np.ones((4, 1, 1)), "loss: "),
        (Q, 1.0, "loss: "),
        (Q, [1.0, 1.0, np.inf, 1.0], "loss at layer 1, state 1, action 0, successor 3: inf"),
    ],
)
def test_what_cannot_be_evaluated_is_named(criterion: object, q: object, loss: object, message: str) -> None:
    if criterion == "function":
        criterion = am.FunctionCriterion(value=squared, subgradient=squared_slope, lipschitz=1.0)
    for question in (criterion.value, criterion.subgradient):
        with pytest.raises(am.InputError, match=message):
            question(FORK, q, loss)


@pytest.mark.parametrize("criterion", [*BUILT_IN, "function"], ids=repr)
def test_a_skeleton_is_a_skeleton(criterion: object) -> None:
    if criterion == "function":
        criterion = am.FunctionCriterion(value=squared, subgradient=squared_slope, lipschitz=steps_twice)
    world = am.MDP(FORK, [0.25, 0.75, 1.0, 1.0])
    for question in (criterion.value, criterion.subgradient):
        with pytest.raises(am.InputError, match=r"mdp\.skeleton is one"):
            question(world, Q, LOSS)
    with pytest.raises(am.InputError, match=r"mdp\.skeleton is one"):
        criterion.lipschitz(world)


@pytest.mark.parametrize("criterion", [c for c in BUILT_IN if c != am.WorstCase()], ids=repr)
def test_several_losses_are_for_the_worst_case_only(criterion: am.Criterion) -> None:
    for question in (criterion.value, criterion.subgradient):
        with pytest.raises(am.InputError, match="2 losses at once; expected one: only WorstCase accepts several"):
            question(FORK, Q, np.ones((4, 2)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: am.Risk(-0.1), "alpha: -0.1"),
        (lambda: am.Risk(1.1), "alpha: 1.1"),
        (lambda: am.Risk(np.nan), "alpha: nan"),
        (lambda: am.Risk(0.5, 1.0), "c: 1.0; expected a number above 1"),
        (lambda: am.Risk(0.5, np.inf), "c: inf"),
        (lambda: am.Risk(0.5, "2"), "c: '2'"),
        (lambda: am.Risk(0.5, 2.0, reading="paper"), "reading: 'paper'; expected 'definition' or 'lemma'"),
        (lambda: am.Risk(0.5, 2000.0).lipschitz(FORK), r"Risk\(.*overflows at L = 2; expected a smaller c"),
        (lambda: am.FunctionCriterion(value=1, subgradient=squared_slope, lipschitz=1.0), "value: 1; expected a func"),
        (lambda: am.FunctionCriterion(value=squared, subgradient=None, lipschitz=1.0), "subgradient: None"),
        (lambda: am.FunctionCriterion(value=squared, subgradient=squared_slope, lipschitz=-1.0), "lipschitz: -1.0"),
        (lambda: am.FunctionCriterion(value=squared, subgradient=squared_slope, lipschitz="L"), "lipschitz: 'L'"),
        (
            lambda: am.FunctionCriterion(
                value=squared, subgradient=squared_slope, lipschitz=lambda sk: np.inf
            ).lipschitz(FORK),
            r"lipschitz of FunctionCriterion\(squared\): inf",
        ),
        (lambda: am.Composite(g=np.max, gradient=np.sign, h=[], lipschitz=1.0), "h: .*one or more"),
        (lambda: am.Composite(g=np.max, gradient=np.sign, h=np.abs, lipschitz=1.0), "h: .*one or more"),
        (lambda: am.Composite(g=np.max, gradient=np.sign, h=[np.abs, 2], lipschitz=1.0), r"h\[1\]: 2"),
        (lambda: am.Composite(g=None, gradient=np.sign, h=[np.abs], lipschitz=1.0), "g: None"),
        (lambda: am.Composite(g=np.max, gradient=3, h=[np.abs], lipschitz=1.0), "gradient: 3"),
        (lambda: am.CvxpyCriterion("q @ loss", lipschitz=1.0), "build: 'q @ loss'"),
    ],
)
def test_invalid_criteria_are_refused_at_once(make: Callable, message: str) -> None:
    with pytest.raises(am.InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("value", "message"), [(np.nan, "nan; expected finite"), ([1.0, 2.0], r"shape \(2,\)"), ("x", "real numbers")]
)
def test_answers_of_functions_are_checked(value: object, message: str) -> None:
    mine = am.FunctionCriterion(value=lambda q, loss: value, subgradient=lambda q, loss: value, lipschitz=1.0)
    with pytest.raises(am.InputError, match=f"the value of FunctionCriterion.*{message}"):
        mine.value(FORK, Q, LOSS)
    with pytest.raises(am.InputError, match="the subgradient of FunctionCriterion"):
        mine.subgradient(FORK, Q, LOSS)
    inner = am.Composite(g=lambda u: value, gradient=lambda u: value, h=[np.abs], lipschitz=1.0)
    with pytest.raises(am.InputError, match=f"the value of Composite.*{message}"):
        inner.value(FORK, Q, LOSS)
    with pytest.raises(am.InputError, match="the gradient of Composite"):
        inner.subgradient(FORK, Q, LOSS)
    outer = am.Composite(g=np.max, gradient=np.sign, h=[lambda loss: value], lipschitz=1.0)
    with pytest.raises(am.InputError, match=r"h\[0\] of Composite"):
        outer.value(FORK, Q, LOSS)


# --- the kit for other people's criteria ------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", BUILT_IN, ids=repr)
def test_the_kit_passes_what_is_right(criterion: am.Criterion) -> None:
    for seed in (0, 1):
        check_criterion(criterion, seed=seed)


def test_the_kit_passes_the_worst_case_of_several_losses_and_a_skeleton_of_ones_own() -> None:
    check_criterion(am.WorstCase(), dimensions=4)
    check_criterion(am.Risk(), am.Skeleton.dense([1, 2, 2, 1], 3))


class Squared(am.Criterion):
    """<q, l>^2 done right; each of the classes below gets one thing wrong."""

    def value(self, sk, q, loss):
        return float((q @ loss) ** 2)

    def subgradient(self, sk, q, loss):
        return 2.0 * (q @ loss) * loss

    def lipschitz(self, sk):
        return 2.0 * sk.num_layers


def wrong(**methods: Callable) -> am.Criterion:
    return type("Wrong", (Squared,), methods)()


def scribble_q(self: object, sk: am.Skeleton, q: np.ndarray, loss: np.ndarray) -> float:
    q *= 1.0 + 1e-6
    return float((q @ loss) ** 2)


def scribble_loss(self: object, sk: am.Skeleton, q: np.ndarray, loss: np.ndarray) -> np.ndarray:
    loss *= 2.0 * (q @ loss)
    return loss


def forgetful() -> Callable:
    calls = iter(range(10**6))
    return lambda self, sk, q, loss: float((q @ loss) ** 2) + 1e-12 * next(calls)


BELOW, SMALL = re.escape("f(q') >= f(q) + <z, q' - q>"), re.escape("|z| <= lipschitz")
BUGS = {
    "wrong sign": ({"subgradient": lambda s, sk, q, loss: -2.0 * (q @ loss) * loss}, BELOW),
    "half": ({"subgradient": lambda s, sk, q, loss: (q @ loss) * loss}, BELOW),
    "a little too little": ({"subgradient": lambda s, sk, q, loss: 1.9999 * (q @ loss) * loss}, "<z, "),
    "another point's": ({"subgradient": lambda s, sk, q, loss: 2.0 * loss}, "<z, "),
    "lipschitz of one step": ({"lipschitz": lambda s, sk: 2.0}, SMALL),
    "lipschitz just too small": ({"lipschitz": lambda s, sk: 1.999 * sk.num_layers}, SMALL),
    "no lipschitz": ({"lipschitz": lambda s, sk: None}, "lipschitz is a number"),
    "infinite lipschitz": ({"lipschitz": lambda s, sk: np.inf}, "lipschitz is a number"),
    "changes q": ({"value": scribble_q}, "q and the loss are not modified.*q was changed"),
    "changes the loss": ({"subgradient": scribble_loss}, "q and the loss are not modified.*the loss was changed"),
    "not deterministic": ({"value": forgetful()}, "results are reproducible"),
    "concave": (
        {
            "value": lambda s, sk, q, loss: float(-((q @ loss) ** 2)),
            "subgradient": lambda s, sk, q, loss: -2.0 * (q @ loss) * loss,
        },
        "f is convex",
    ),
    "convex but for a step": ({"value": lambda s, sk, q, loss: float(np.floor(8 * q @ loss))}, "f is convex|<z, "),
    "NaN": ({"value": lambda s, sk, q, loss: float("nan")}, "the value is a finite number.*nan"),
    "array for a value": ({"value": lambda s, sk, q, loss: np.ones(1)}, "the value is a finite number"),
    "list for a subgradient": (
        {"subgradient": lambda s, sk, q, loss: loss.tolist()},
        "vector over transitions.*a list",
    ),
    "column for a subgradient": ({"subgradient": lambda s, sk, q, loss: loss[:, None]}, r"vector over.*\(3, 1\)"),
    "infinite subgradient": ({"subgradient": lambda s, sk, q, loss: loss + np.inf}, "the subgradient is finite.*inf"),
    "another's terms": ({"terms": am.TotalLoss().terms}, "the terms match the criterion"),
    "no table for terms": ({"terms": np.ones((1, 3))}, "terms are rows"),
}


def test_the_criterion_that_the_bugs_are_seeded_in_is_right() -> None:
    check_criterion(Squared())


@pytest.mark.parametrize("bug", BUGS)
def test_the_kit_catches(bug: str) -> None:
    methods, statement = BUGS[bug]
    with pytest.raises(am.ModelError, match=statement) as caught:
        check_criterion(wrong(**methods))
    assert "Skeleton(" in caught.value.where


def test_the_kit_takes_criteria_and_skeletons_only() -> None:
    for arguments in ((np.max,), (am.TotalLoss,), (am.TotalLoss(), am.MDP.random([1, 2, 1], 2, seed=0))):
        with pytest.raises(am.InputError, match="expected a (Criterion|Skeleton)"):
            check_criterion(*arguments)
    with pytest.raises(am.InputError, match="dimensions"):
        check_criterion(am.WorstCase(), dimensions=0)


# --- the package ------------------------------------------------------------------------------------------------------


def test_criteria_load_no_cvxpy() -> None:
    code = "import sys, advmdp as am; am.testing.check_criterion; am.CvxpyCriterion; print('cvxpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_page_on_criteria_runs_as_it_stands(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "criteria.md").read_text()
    code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    exec(compile(code, "docs/criteria.md", "exec"), {})
    assert capsys.readouterr().out == "f(q') >= f(q) + <z, q' - q>\n"
