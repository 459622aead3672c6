"""Time expansion loses nothing: values equal those of direct finite-horizon dynamic programming on the original."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import advmdp as am


def cyclic(rng: np.random.Generator, states: int, actions: int, sparsity: float) -> np.ndarray:
    """A random P[s, a, s'] with loops; each state keeps at least one action."""
    weights = rng.exponential(size=(states, actions, states)) * (rng.random((states, actions, states)) > sparsity)
    weights[:, 0, rng.integers(states)] += 0.5
    totals = weights.sum(axis=2, keepdims=True)
    return np.divide(weights, totals, where=totals > 0, out=np.zeros_like(weights))


def optimal(P: np.ndarray, loss: np.ndarray, terminal: np.ndarray | None = None) -> np.ndarray:
    """Direct backward induction on P[h, s, a, s'] and loss[h, s, a, s']: the least loss from each state."""
    V = np.zeros(P.shape[1])
    for h in range(len(P) - 1, -1, -1):
        Q = (P[h] * (loss[h] + V)).sum(axis=2)
        Q[P[h].sum(axis=2) == 0] = np.inf
        V = np.where(np.isinf(Q.min(axis=1)), V, Q.min(axis=1))
    return V


worlds = st.tuples(st.integers(0, 2**32), st.integers(1, 6), st.integers(1, 3), st.sampled_from([0.0, 0.5, 0.8]))


@given(worlds, st.integers(1, 6))
def test_a_cyclic_mdp_keeps_its_values(case: tuple, horizon: int) -> None:
    seed, states, actions, sparsity = case
    rng = np.random.default_rng(seed)
    P, loss = cyclic(rng, states, actions, sparsity), rng.random((states, actions, states))
    start = rng.dirichlet(np.ones(states))
    e = am.time_expand(P, horizon, initial=start)
    direct = start @ optimal(np.array([P] * horizon), np.array([loss] * horizon))
    np.testing.assert_allclose(am.best_response(e.mdp, e.losses(loss))[1], direct, rtol=1e-12)


@given(worlds, st.integers(1, 5))
def test_a_finite_horizon_mdp_that_depends_on_the_step_keeps_its_values(case: tuple, horizon: int) -> None:
    seed, states, actions, sparsity = case
    rng = np.random.default_rng(seed)
    P = np.array([cyclic(rng, states, actions, sparsity) for _ in range(horizon)])
    loss = rng.random(P.shape)
    e = am.time_expand(P, horizon, initial=states - 1)
    direct = optimal(P, loss)[states - 1]
    np.testing.assert_allclose(am.best_response(e.mdp, e.losses(loss))[1], direct, rtol=1e-12)


@given(worlds, st.integers(1, 5))
def test_a_policy_of_the_original_costs_the_same_there(case: tuple, horizon: int) -> None:
    seed, states, actions, _ = case
    rng = np.random.default_rng(seed)
    P, loss = cyclic(rng, states, actions, 0.0), rng.random((states, actions, states))
    policy = rng.dirichlet(np.ones(actions), size=(horizon, states))
    V = np.zeros(states)
    for h in range(horizon - 1, -1, -1):
        V = (policy[h] * (P * (loss + V)).sum(axis=2)).sum(axis=1)
    e = am.time_expand(P, horizon)
    np.testing.assert_allclose(am.policy_values(e.mdp, e.policy(policy), e.losses(loss)).state[0], V[0], rtol=1e-12)


def test_sparse_matrices_give_what_the_dense_array_gives() -> None:
    P = cyclic(np.random.default_rng(3), states=7, actions=3, sparsity=0.7)
    dense = am.time_expand(P, 5)
    sparse = am.time_expand([scipy.sparse.csr_array(P[:, a]) for a in range(3)], 5)
    assert sparse.mdp == dense.mdp
    assert (sparse.pair_action == dense.pair_action).all()


def test_sparse_matrices_may_have_stored_zeros_and_duplicates() -> None:
    """Stored zeros are no transitions, entries stored twice are added up."""
    stored = scipy.sparse.csr_array(([1.0, 0.0, 1.0], [0, 1, 1], [0, 2, 3]), shape=(2, 2))
    assert am.time_expand([stored], 2).mdp == am.time_expand(stored.toarray()[:, None], 2).mdp
    twice = scipy.sparse.coo_array(([0.5, 0.5, 1.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    assert am.time_expand([twice], 3).mdp == am.time_expand(twice.toarray()[:, None], 3).mdp
    with pytest.raises(am.ModelError, match=r"rows sum to one.*P_0\[1\]"):
        am.time_expand([scipy.sparse.csr_array([[0.0, 1.0], [0.5, 0.0]])], 2)


def test_states_that_cannot_be_reached_are_left_out() -> None:
    ring = np.zeros((5, 1, 5))
    ring[np.arange(5), 0, (np.arange(5) + 1) % 5] = 1.0
    e = am.time_expand(ring, 7)
    assert e.mdp.skeleton.layer_sizes.tolist() == [1] * 8
    assert e.state.tolist() == [0, 1, 2, 3, 4, 0, 1, 2]


def test_a_terminal_state_waits_for_the_horizon_at_no_loss() -> None:
    P = np.zeros((2, 1, 2))
    P[0, 0] = [0.5, 0.5]
    e = am.time_expand(P, 3, state_names=["play", "over"])
    value = am.best_response(e.mdp, e.losses(np.ones((2, 1, 2))))[1]
    assert value == pytest.approx(1 + 0.5 + 0.25)
    assert e.mdp.skeleton.state_names == ("play@0", "play@1", "over@1", "play@2", "over@2", "play@3", "over@3", "end")


def test_an_added_start_has_a_name_too() -> None:
    e = am.time_expand(np.full((2, 1, 2), 0.5), 1, initial=[0.5, 0.5], state_names=["a", "b"])
    assert e.mdp.skeleton.state_names == ("start", "a@0", "b@0", "a@1", "b@1", "end")


def test_the_original_action_of_every_pair_is_kept() -> None:
    P = np.zeros((2, 3, 2))
    P[0, 2, 1] = P[0, 0, 0] = P[1, 1, 0] = 1.0
    e = am.time_expand(P, 2)
    sk = e.mdp.skeleton
    kept = [(e.state[sk.state_of_pair[p]], e.pair_step[p], e.pair_action[p]) for p in range(sk.num_pairs)]
    assert kept == [(0, 0, 0), (0, 0, 2), (0, 1, 0), (0, 1, 2), (1, 1, 1), (0, -1, -1), (1, -1, -1)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.ones((2, 1, 3)), 2), "shape"),
        ((np.ones((3, 2, 1, 2)), 2), "H = 2"),
        ((np.eye(2)[:, None], 0), "steps"),
        ((np.eye(2)[:, None], 2, 2), "initial: state 2"),
        ((np.eye(2)[:, None], 2, [0.5, 0.4]), "initial.*0.5 0.4"),
        ((np.eye(2)[:, None] * 0.5, 2), r"rows sum to one.*P\[0, 0\]"),
        ((np.eye(2)[:, None] * [[[1.0]], [[7.0]]], 2), r"rows sum to one.*P\[1, 0\]"),
        ((np.array([np.eye(2), 0.9 * np.eye(2)])[:, :, None], 2), r"rows sum to one.*P\[1\]\[0, 0\]"),
        ((np.eye(2)[:, None] * np.nan, 2), r"no NaN.*P\[0, 0, 0\]"),
        ((np.eye(2)[:, None] * -1.0, 2), r"no negative probability.*P\[0, 0, 0\]"),
        ((np.eye(2)[:, None], 2.0), "steps"),
        ((np.eye(2)[:, None], 2, 0, ["one"]), "state_names"),
        (([scipy.sparse.eye_array(2), scipy.sparse.eye_array(3)], 2), "one shape"),
    ],
)
def test_bad_input_is_named(arguments: tuple, message: str) -> None:
    with pytest.raises(am.InputError, match=message):
        am.time_expand(*arguments)


@pytest.mark.parametrize("shape", [(2, 1), (2, 2, 1, 2, 1, 1), (1, 1, 2), (3, 2, 1, 2), (9, 9, 9)])
def test_a_loss_of_another_shape_is_an_error(shape: tuple[int, ...]) -> None:
    e = am.time_expand(np.full((2, 1, 2), 0.5), 2)
    with pytest.raises(am.InputError, match="loss.*shape"):
        e.losses(np.zeros(shape))


def test_several_losses_are_carried_over_at_once() -> None:
    rng = np.random.default_rng(0)
    e = am.time_expand(cyclic(rng, 3, 2, 0.3), 4)
    for shape in ((3, 2, 3, 5), (4, 3, 2, 3, 5)):
        losses = rng.random(shape)
        both = e.losses(losses)
        assert both.shape == (e.mdp.skeleton.num_transitions, 5)
        for j in range(5):
            assert (both[:, j] == e.losses(losses[..., j])).all()


def test_a_policy_must_be_a_distribution_where_it_counts() -> None:
    e = am.time_expand(np.full((2, 2, 2), 0.5), 2)
    with pytest.raises(am.ModelError, match="a policy is a distribution"):
        e.policy(np.full((2, 2), 0.9))
    with pytest.raises(am.InputError, match="not finite"):
        e.losses(np.full((2, 2, 2), np.nan))


def test_names_of_actions_are_kept_and_added_actions_are_called_wait() -> None:
    transition = np.zeros((2, 2, 2))
    transition[0, 0, 0] = transition[0, 1, 1] = 1.0  # the second state is terminal
    expansion = am.time_expand(transition, 3, state_names=["here", "there"], action_names=["stay", "go"])
    sk = expansion.mdp.skeleton
    assert sk.transition_label(sk.transition("here@0", "go", "there@1")) == "here@0/go/there@1"
    assert sk.pair("there@1", "wait") >= 0
    assert {sk.action_names[p] for p in np.flatnonzero(expansion.pair_action == -1)} == {"wait"}
    with pytest.raises(am.InputError, match="action_names: 1 names; expected 2"):
        am.time_expand(transition, 3, action_names=["stay"])
