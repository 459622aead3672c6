"""Extended backward induction and upper occupancy bounds, against linear programs over the same sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import linprog

import advmdp as am
from tests.helpers.cvx import cp
from tests.helpers.instances import NARROW, problem
from tests.helpers.oracles import box_rules, flow_rules, l1_rules, occupancy_variable, owners, rows_of, summing
from tests.helpers.strategies import played, random_policy

CASES = [(kind, shape, seed) for kind in ("l1", "box", "point") for shape in NARROW for seed in range(3)]


def rules_of(sk: am.Skeleton, rows: am.L1Ball | am.Box | am.Point, q: cp.Variable) -> list[cp.Constraint]:
    """That q is an occupancy measure whose rows lie in the set."""
    if isinstance(rows, am.L1Ball):
        return [*flow_rules(sk, q), *l1_rules(sk, q, rows.center, rows.radius)]
    low, high = (rows.lower, rows.upper) if isinstance(rows, am.Box) else (rows.transition, rows.transition)
    return [*flow_rules(sk, q), *box_rules(sk, q, low, high)]


def least(goal: cp.Expression, rules: list[cp.Constraint]) -> float:
    task = cp.Problem(cp.Minimize(goal), rules)
    task.solve(solver=cp.CLARABEL)
    assert task.status == "optimal"
    return float(task.value)


@pytest.mark.parametrize(("kind", "shape", "seed"), CASES)
def test_extended_backward_induction_is_a_linear_program(kind: str, shape: str, seed: int) -> None:
    given = problem(kind, shape, seed)
    sk, rng = given.skeleton, np.random.default_rng(seed)
    loss = rng.normal(size=sk.num_transitions)
    policy, values = am.optimistic_response(sk, loss, given.rows)
    q = occupancy_variable(sk)
    rules = rules_of(sk, given.rows, q)
    assert_allclose(values[0], least(loss @ q, rules), atol=1e-6)
    # The policy attains it: what it does not choose is not needed.
    pairs = summing(owners(sk)[2], sk.num_pairs)
    unused = np.flatnonzero(policy == 0.0)
    rules = [*rules, pairs[unused] @ q == 0] if len(unused) else rules
    assert_allclose(values[0], least(loss @ q, rules), atol=1e-6)


@pytest.mark.parametrize(("kind", "shape", "seed"), [case for case in CASES if case[2] < 2])
def test_upper_occupancy_bounds_are_linear_programs(kind: str, shape: str, seed: int) -> None:
    given = problem(kind, shape, seed)
    sk, rng = given.skeleton, np.random.default_rng(seed)
    policy = random_policy(sk, rng)
    found = am.upper_occupancy(sk, policy, given.rows)
    q = occupancy_variable(sk)
    _, state, pair = owners(sk)
    pairs, states = summing(pair, sk.num_pairs), summing(state, sk.num_states)
    played = pairs @ q == cp.multiply(policy, states[sk.state_of_pair] @ q)
    rules = [*rules_of(sk, given.rows, q), played]
    for p in rng.choice(sk.num_pairs, min(6, sk.num_pairs), replace=False):
        assert_allclose(found[p], -least(-pairs[[p]] @ q, rules), atol=1e-6)


def test_if_the_set_is_a_point_they_equal_the_best_response_and_the_occupancy_measure() -> None:
    mdp = am.MDP.random([1, 4, 6, 4, 1], 3, seed=1, branching=2)
    sk, loss = mdp.skeleton, np.random.default_rng(0).random(mdp.skeleton.num_transitions)
    policy, values = am.optimistic_response(sk, loss, am.Point(mdp.transition))
    best, value = am.best_response(mdp, loss)
    assert np.array_equal(policy, best)
    assert_allclose(values[0], value, rtol=1e-12)
    pi = random_policy(sk, np.random.default_rng(2))
    pairs = np.add.reduceat(am.occupancy(mdp, pi), sk.transition_ptr[:-1])
    assert_allclose(am.upper_occupancy(sk, pi, am.Point(mdp.transition)), pairs, rtol=1e-12)


def test_a_pair_never_visited_may_lead_anywhere() -> None:
    sk = am.Skeleton.dense([1, 3, 1], 1)
    ball = am.L1Ball(np.zeros(6), np.full(4, 0.1))
    loss = np.array([0.0, 0.0, 0.0, 0.9, 0.2, 0.5])
    assert am.optimistic_response(sk, loss, ball)[1][0] == 0.2
    assert_allclose(am.upper_occupancy(sk, np.ones(4), ball), 1.0)


@pytest.mark.parametrize("span", [0.0, 0.1, 0.3])
def test_a_cap_on_the_span_raises_the_least_values_of_a_layer(span: float) -> None:
    given = problem("l1", "dense", 3)
    sk = given.skeleton
    loss = np.random.default_rng(1).random(sk.num_transitions)
    _, free = am.optimistic_response(sk, loss, given.rows)
    _, capped = am.optimistic_response(sk, loss, given.rows, span)
    assert (capped >= free).all()
    for first, last in zip(sk.layer_ptr[:-1], sk.layer_ptr[1:], strict=True):
        assert np.ptp(capped[first:last]) <= span + 1e-12
    assert np.array_equal(am.optimistic_response(sk, loss, given.rows, 100.0)[1], free)


def test_capped_values_stay_optimistic_where_the_cap_is_right() -> None:
    mdp = am.MDP.random([1, 4, 4, 4, 1], 2, seed=5)
    sk, rng = mdp.skeleton, np.random.default_rng(3)
    loss = rng.random(sk.num_transitions)
    truth = am.optimistic_response(sk, loss, am.Point(mdp.transition))[1]
    layers = list(zip(sk.layer_ptr[:-1], sk.layer_ptr[1:], strict=True))
    span = max(float(np.ptp(truth[a:b])) for a, b in layers)
    noise = am.transition_of(sk, rng.exponential(size=sk.num_transitions))
    near = 0.8 * mdp.transition + 0.2 * noise
    radius = np.add.reduceat(np.abs(near - mdp.transition), sk.transition_ptr[:-1]) + 1e-12
    assert (am.optimistic_response(sk, loss, am.L1Ball(near, radius), span)[1] <= truth + 1e-9).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda sk: am.optimistic_response(sk, np.zeros(2), am.Point(np.ones(6))), "loss"),
        (lambda sk: am.optimistic_response(sk, np.full(6, np.nan), am.Point(np.ones(6))), "loss at"),
        (lambda sk: am.optimistic_response(sk, np.zeros(6), am.Box(np.zeros(6), np.ones(6)), -1.0), "span"),
        (lambda sk: am.optimistic_response(sk, np.zeros(6), np.ones(6)), "row_set"),
        (lambda sk: am.upper_occupancy(sk, np.ones(3), am.Box(np.zeros(6), np.ones(6))), "policy"),
        (lambda sk: am.upper_occupancy("sk", np.ones(3), am.Box(np.zeros(6), np.ones(6))), "skeleton"),
    ],
)
def test_bad_input_is_named(call: object, message: str) -> None:
    with pytest.raises(am.InputError, match=message):
        call(am.Skeleton.dense([1, 3, 1], 1))


def test_the_order_in_which_successors_are_listed_does_not_matter() -> None:
    sk, rng = am.Skeleton.dense([1, 4, 4, 1], 2), np.random.default_rng(0)
    shuffled = np.concatenate([rng.permutation(np.arange(row.start, row.stop)) for row in rows_of(sk)])
    other = am.Skeleton(sk.layer_ptr, sk.pair_ptr, sk.transition_ptr, sk.successor[shuffled])
    center = am.transition_of(sk, rng.exponential(size=sk.num_transitions))
    low, high = np.maximum(0.0, center - 0.1), np.minimum(1.0, center + 0.1)
    policy = random_policy(sk, rng)
    straight = am.upper_occupancy(sk, policy, am.Box(low, high))
    assert_allclose(am.upper_occupancy(other, policy, am.Box(low[shuffled], high[shuffled])), straight, rtol=1e-12)


@settings(max_examples=40)
@given(played(max_width=3, max_steps=3, max_actions=2), st.integers(0, 2**32 - 1), st.booleans())
def test_the_interval_of_a_policy_is_that_of_linear_programs(
    case: tuple[am.MDP, np.ndarray, np.ndarray], seed: int, box: bool
) -> None:
    """State by state from the end: each row is the worst or the best of its set, by a linear program of its own."""
    mdp, policy, loss = case
    sk, rng = mdp.skeleton, np.random.default_rng(seed)
    radius = rng.uniform(0.0, 2.2, sk.num_pairs)
    width = rng.uniform(0.0, 0.5, sk.num_transitions)
    lower, upper = np.maximum(0.0, mdp.transition - width), np.minimum(1.0, mdp.transition + width)
    row_set = am.Box(lower, upper) if box else am.L1Ball(mdp.transition, radius)
    found = am.policy_interval(sk, policy, loss, row_set)
    for sign, values in zip((1.0, -1.0), found, strict=True):
        state = np.zeros(sk.num_states)
        for x in range(sk.num_states - 2, -1, -1):
            for p in range(sk.pair_ptr[x], sk.pair_ptr[x + 1]):
                row = slice(sk.transition_ptr[p], sk.transition_ptr[p + 1])
                key = loss[row] + state[sk.successor[row]]
                n, center = len(key), mdp.transition[row]
                if box:
                    within = list(zip(lower[row], upper[row], strict=True))
                    best = linprog(sign * key, A_eq=np.ones((1, n)), b_eq=[1.0], bounds=within)
                else:  # |p - center| <= d with sum d <= radius
                    eye = np.eye(n)
                    A = np.block([[eye, -eye], [-eye, -eye], [np.zeros((1, n)), np.ones((1, n))]])
                    b = np.concatenate([center, -center, [radius[p]]])
                    cost, total = np.concatenate([sign * key, np.zeros(n)]), np.concatenate([np.ones(n), np.zeros(n)])
                    best = linprog(cost, A_ub=A, b_ub=b, A_eq=total[None], b_eq=[1.0])
                assert best.status == 0
                assert values.pair[p] == pytest.approx(sign * best.fun, abs=1e-7)
            pairs = slice(sk.pair_ptr[x], sk.pair_ptr[x + 1])
            state[x] = policy[pairs] @ values.pair[pairs]
            assert values.state[x] == pytest.approx(state[x], abs=1e-12)
    exact = am.policy_values(mdp, policy, loss).state[0]
    assert found[0].state[0] - 1e-9 <= exact <= found[1].state[0] + 1e-9
