"""Occupancy measures: equations (1) and (2), Lemma 3.1, and values against brute force."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import advmdp as am
from tests.helpers.strategies import mdps, played


def trajectories(mdp: am.MDP, policy: np.ndarray) -> list[tuple[float, list[int]]]:
    """All trajectories with their probabilities, by enumeration: (probability, transitions)."""
    sk = mdp.skeleton
    found: list[tuple[float, list[int]]] = [(1.0, [])]
    for _ in range(sk.num_layers):
        longer = []
        for chance, path in found:
            x = sk.successor[path[-1]] if path else 0
            for p in range(sk.pair_ptr[x], sk.pair_ptr[x + 1]):
                for i in range(sk.transition_ptr[p], sk.transition_ptr[p + 1]):
                    longer.append((chance * policy[p] * mdp.transition[i], [*path, i]))
        found = longer
    return found


def deterministic_policies(sk: am.Skeleton) -> list[np.ndarray]:
    choices = [range(n) for n in np.diff(sk.pair_ptr)[:-1]]
    return [am.deterministic_policy(sk, list(choice)) for choice in product(*choices)]


@given(played(max_width=8, max_steps=8))
def test_occupancy_measures_satisfy_equations_1_and_2(case: tuple) -> None:
    mdp, policy, _ = case
    q = am.occupancy(mdp, policy)
    residuals = am.flow_residuals(mdp.skeleton, q)
    assert residuals.layer.shape == (mdp.skeleton.num_layers,)
    assert residuals.state.shape == (mdp.skeleton.num_states,)
    assert residuals.largest <= 1e-12


@given(played(max_width=4, max_steps=6), st.sampled_from([1 - 5e-10, 1 + 5e-10]))
def test_rounding_in_a_policy_is_removed(case: tuple, factor: float) -> None:
    mdp, policy, loss = case
    q = am.occupancy(mdp, factor * policy)
    assert am.flow_residuals(mdp.skeleton, q).largest <= 1e-12
    exact = am.policy_values(mdp, policy, loss).state[0]
    np.testing.assert_allclose(am.policy_values(mdp, factor * policy, loss).state[0], exact, rtol=1e-13)


@given(played(max_width=3, max_steps=4))
def test_occupancy_is_the_probability_of_passing_by_enumeration(case: tuple) -> None:
    mdp, policy, _ = case
    expected = np.zeros(mdp.skeleton.num_transitions)
    for chance, path in trajectories(mdp, policy):
        expected[path] += chance
    np.testing.assert_allclose(am.occupancy(mdp, policy), expected, rtol=1e-12, atol=1e-15)


@given(played(max_width=3, max_steps=4))
def test_values_agree_with_enumeration(case: tuple) -> None:
    mdp, policy, loss = case
    sk = mdp.skeleton
    paths = trajectories(mdp, policy)
    total = sum(chance * loss[path].sum() for chance, path in paths)
    per_step = sum((chance * loss[path] for chance, path in paths), np.zeros(sk.num_layers))
    q = am.occupancy(mdp, policy)
    np.testing.assert_allclose(am.policy_values(mdp, policy, loss).state[0], total, rtol=1e-12)
    np.testing.assert_allclose(am.expected_losses(sk, q, loss), per_step, rtol=1e-12)
    np.testing.assert_allclose(q @ loss, total, rtol=1e-12)


@given(played(max_width=5, max_steps=5))
def test_pair_and_state_values_satisfy_bellman(case: tuple) -> None:
    mdp, policy, loss = case
    sk = mdp.skeleton
    state, pair = am.policy_values(mdp, policy, loss)
    assert state[-1] == 0.0
    for p in range(sk.num_pairs):
        row = slice(sk.transition_ptr[p], sk.transition_ptr[p + 1])
        np.testing.assert_allclose(pair[p], mdp.transition[row] @ (loss[row] + state[sk.successor[row]]), rtol=1e-12)
    for x in range(sk.num_states - 1):
        row = slice(sk.pair_ptr[x], sk.pair_ptr[x + 1])
        np.testing.assert_allclose(state[x], policy[row] @ pair[row], rtol=1e-12)


@given(played(max_width=2, max_steps=4, max_actions=2))
def test_best_response_is_the_best_of_all_deterministic_policies(case: tuple) -> None:
    mdp, _, loss = case
    policy, value = am.best_response(mdp, loss)
    values = [am.occupancy(mdp, other) @ loss for other in deterministic_policies(mdp.skeleton)]
    np.testing.assert_allclose(value, min(values), rtol=1e-12)
    np.testing.assert_allclose(am.occupancy(mdp, policy) @ loss, value, rtol=1e-12)
    assert set(np.unique(policy)) <= {0.0, 1.0}


@given(played(max_width=6, max_steps=6))
def test_no_policy_beats_the_best_response_in_any_state(case: tuple) -> None:
    mdp, policy, loss = case
    best = am.policy_values(mdp, am.best_response(mdp, loss)[0], loss).state
    assert (best <= am.policy_values(mdp, policy, loss).state + 1e-12).all()


def test_ties_go_to_the_first_action() -> None:
    mdp = am.MDP.random([1, 3, 1], actions=3, seed=0)
    policy, _ = am.best_response(mdp, np.zeros(mdp.skeleton.num_transitions))
    assert policy.tolist() == [1.0, 0.0, 0.0] * 4


@given(played(max_width=6, max_steps=6))
def test_round_trip_from_q_to_dynamics_and_policy_and_back_is_the_identity(case: tuple) -> None:
    mdp, policy, _ = case
    sk = mdp.skeleton
    q = am.occupancy(mdp, policy)
    back = am.occupancy(am.MDP(sk, am.transition_of(sk, q)), am.policy_of(sk, q))
    np.testing.assert_allclose(back, q, rtol=1e-12, atol=1e-300)


@given(played(max_width=6, max_steps=6))
def test_lemma_3_1_an_occupancy_measure_of_the_mdp_induces_its_dynamics_and_policy(case: tuple) -> None:
    mdp, policy, _ = case
    sk = mdp.skeleton
    q = am.occupancy(mdp, policy)
    pair_mass = np.add.reduceat(q, sk.transition_ptr[:-1])
    visited = sk.over_transitions(pair_mass) > 1e-290
    np.testing.assert_allclose(am.transition_of(sk, q)[visited], mdp.transition[visited], rtol=1e-9)
    state_mass = np.add.reduceat(pair_mass, sk.pair_ptr[:-2])[sk.state_of_pair]
    np.testing.assert_allclose(am.policy_of(sk, q)[state_mass > 1e-290], policy[state_mass > 1e-290], rtol=1e-9)


def test_policy_and_dynamics_are_uniform_where_q_has_no_mass() -> None:
    sk = am.Skeleton.dense([1, 2, 2, 1], actions=[1, 3, 2])
    mdp = am.MDP(sk, [1.0, 0.0, *[0.5] * 12, *[1.0] * 4])
    q = am.occupancy(mdp, am.uniform_policy(sk))
    assert am.policy_of(sk, q)[4:7].tolist() == [1 / 3] * 3
    assert am.transition_of(sk, q)[8:14].tolist() == [0.5] * 6
    am.MDP(sk, am.transition_of(sk, q))


def test_subnormal_mass_still_gives_distributions() -> None:
    sk = am.Skeleton.dense([1, 2, 1], actions=2)
    q = np.array([1.0, 5e-324, 0.0, 5e-324, 0.5, 0.5, 5e-324, 5e-324])
    policy = am.policy_of(sk, q)
    np.testing.assert_allclose(np.add.reduceat(policy, sk.pair_ptr[:-2]), 1.0)
    am.MDP(sk, am.transition_of(sk, q))


@given(played(max_width=5, max_steps=5), st.floats(0, 1))
def test_lemma_3_1_what_satisfies_the_equations_and_has_the_dynamics_is_an_occupancy_measure(
    case: tuple, share: float
) -> None:
    """A mixture of two occupancy measures does, and is that of the policy it induces."""
    mdp, policy, loss = case
    one, two = am.occupancy(mdp, policy), am.occupancy(mdp, am.best_response(mdp, loss)[0])
    mixture = share * one + (1 - share) * two
    np.testing.assert_allclose(am.occupancy(mdp, am.policy_of(mdp.skeleton, mixture)), mixture, atol=1e-13)


@given(mdps())
def test_twice_an_occupancy_measure_misses_equation_1_by_one(mdp: am.MDP) -> None:
    sk = mdp.skeleton
    q = am.occupancy(mdp, am.uniform_policy(sk))
    assert am.flow_residuals(sk, 2.0 * q).layer == pytest.approx(np.ones(sk.num_layers))


def test_residuals_say_where_flow_is_lost() -> None:
    sk = am.Skeleton.dense([1, 2, 1], actions=1)
    residuals = am.flow_residuals(sk, [0.5, 0.5, 0.3, 0.7])
    assert residuals.state == pytest.approx([0.0, 0.2, -0.2, 0.0])
    assert residuals.largest == pytest.approx(0.2)


def test_expected_losses_of_several_dimensions_are_those_of_each() -> None:
    mdp = am.MDP.random([1, 3, 3, 1], 2, seed=0)
    q = am.occupancy(mdp, am.uniform_policy(mdp.skeleton))
    loss = np.random.default_rng(0).random((mdp.skeleton.num_transitions, 3))
    both = am.expected_losses(mdp.skeleton, q, loss)
    assert both.shape == (3, 3)
    for j in range(3):
        np.testing.assert_allclose(both[:, j], am.expected_losses(mdp.skeleton, q, loss[:, j]), rtol=1e-14)


def test_out_is_filled_and_must_fit() -> None:
    mdp = am.MDP.random([1, 3, 1], 2, seed=0)
    policy, out = am.uniform_policy(mdp.skeleton), np.empty(mdp.skeleton.num_transitions)
    assert am.occupancy(mdp, policy, out=out) is out
    assert (out == am.occupancy(mdp, policy)).all()
    for bad in (np.empty(3), np.empty(12, np.float32), np.empty(24)[::2]):
        with pytest.raises(am.InputError, match="out"):
            am.occupancy(mdp, policy, out=bad)


@given(st.sampled_from([np.nan, np.inf, -np.inf]), st.integers(0, 11))
def test_a_loss_that_is_not_finite_is_an_error_that_names_the_pair(bad: float, i: int) -> None:
    mdp = am.MDP.random([1, 3, 1], 2, seed=0)
    sk = mdp.skeleton
    loss = np.zeros(12)
    loss[i] = bad
    p = int(np.searchsorted(sk.transition_ptr, i, side="right")) - 1
    for call in (lambda: am.best_response(mdp, loss), lambda: am.policy_values(mdp, am.uniform_policy(sk), loss)):
        with pytest.raises(am.InputError) as caught:
            call()
        assert caught.value.where == f"loss at {sk.where_pair(p)}"


def test_bad_shapes_and_measures_are_errors() -> None:
    mdp = am.MDP.random([1, 3, 1], 2, seed=0)
    sk, policy = mdp.skeleton, am.uniform_policy(mdp.skeleton)
    q = am.occupancy(mdp, policy)
    calls = [
        (lambda: am.best_response(mdp, np.zeros(5)), "loss"),
        (lambda: am.expected_losses(sk, q, np.zeros((12, 2, 2))), "loss"),
        (lambda: am.policy_of(sk, -q), "q at layer 0"),
        (lambda: am.policy_of(sk, q / 0.0), "q at layer 0"),
        (lambda: am.expected_losses(sk, q, np.full(12, np.nan)), "loss at layer 0"),
        (lambda: am.transition_of(sk, np.full(12, np.nan)), "q at layer 0"),
        (lambda: am.flow_residuals(sk, q[1:]), "shape"),
        (lambda: am.occupancy(mdp, 2 * policy), "a policy is a distribution"),
        (lambda: am.policy_values(mdp, 2 * policy, q), "a policy is a distribution"),
    ]
    for call, message in calls:
        with np.errstate(divide="ignore"), pytest.raises(am.InputError, match=message):
            call()
