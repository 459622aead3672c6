"""MDP: constructors, the rules of probability, sampling."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

import advmdp as am
from tests.helpers.strategies import mdps, played, random_policy

ROWS = [np.array([[[0.25, 0.75], [1.0, 0.0]]]), np.ones((2, 3, 1))]


def test_dense_lays_the_rows_out_in_order() -> None:
    mdp = am.MDP.dense(ROWS)
    assert mdp.skeleton == am.Skeleton.dense([1, 2, 1], [2, 3])
    assert mdp.transition.tolist() == [0.25, 0.75, 1.0, 0.0, *[1.0] * 6]


def test_dense_adds_a_start_by_the_initial_distribution_and_an_end() -> None:
    mdp = am.MDP.dense([np.full((2, 2, 3), 1 / 3)], initial=[0.2, 0.8])
    assert mdp.skeleton.layer_sizes.tolist() == [1, 2, 3, 1]
    assert mdp.transition[:2].tolist() == [0.2, 0.8]
    with pytest.raises(am.InputError, match="first layer has 2 states"):
        am.MDP.dense([np.full((2, 2, 3), 1 / 3)])
    with pytest.raises(am.InputError, match="initial"):
        am.MDP.dense([np.full((2, 2, 3), 1 / 3)], initial=[0.2, 0.7])


def test_errors_number_states_as_given_even_if_a_start_is_added() -> None:
    rows = np.full((2, 2, 3), 1 / 3)
    for value, message in ((0.5, r"rows sum to one.*P_0\[1, 0\]"), (np.nan, r"no NaN.*P_0\[1, 0, 2\]")):
        rows[1, 0, 2] = value
        with pytest.raises(am.ModelError, match=message):
            am.MDP.dense([rows], initial=[0.2, 0.8])
    with pytest.raises(am.ModelError, match="rows sum to one.*state 1, action 0"):
        am.MDP.sparse([2, 1], [0, 1], [0, 0], [2, 2], [1.0, 0.5], initial=[0.5, 0.5])
    with pytest.raises(am.ModelError, match="no negative probability.*state 1, action 0, successor 2"):
        am.MDP.sparse([2, 1], [0, 1], [0, 0], [2, 2], [1.0, -1.0], initial=[0.5, 0.5])


@pytest.mark.parametrize(
    "bad", [[], [np.ones((1, 1))], [np.ones((1, 1, 2)), np.ones((3, 1, 1))], [np.ones((1, 0, 1))], ["no numbers"]]
)
def test_dense_checks_shapes(bad: list) -> None:
    with pytest.raises(am.InputError, match=r"P_\d|transition"):
        am.MDP.dense(bad)


def test_sparse_and_dense_agree() -> None:
    dense = am.MDP.dense([np.array([[[0.3, 0.7]]]), np.ones((2, 1, 1))])
    sparse = am.MDP.sparse([1, 2, 1], [1, 0, 2, 0], [0, 0, 0, 0], [3, 2, 3, 1], [1.0, 0.7, 1.0, 0.3])
    assert sparse == dense
    assert hash(sparse) == hash(dense)


def test_sparse_adds_both_ends() -> None:
    mdp = am.MDP.sparse([2, 2], [0, 1], [0, 0], [2, 3], [1.0, 1.0], initial=[0.5, 0.5])
    assert mdp.skeleton.layer_sizes.tolist() == [1, 2, 2, 1]
    assert mdp.transition.tolist() == [0.5, 0.5, 1.0, 1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("change", "rule", "where"),
    [
        ((0, 0.5), "rows sum to one", "layer 0, state 0, action 0"),
        ((3, np.nan), "no NaN", "layer 0, state 0, action 1, successor 2"),
        ((0, -0.25), "no negative probability", "layer 0, state 0, action 0, successor 1"),
        ((5, np.inf), "rows sum to one", "layer 1, state 1, action 1"),
        ((9, 1.0 + 1e-8), "rows sum to one", "layer 1, state 2, action 2"),
    ],
)
def test_rows_must_be_distributions(change: tuple[int, float], rule: str, where: str) -> None:
    mdp = am.MDP.dense(ROWS)
    rows = mdp.transition.copy()
    rows[change[0]] = change[1]
    with pytest.raises(am.ModelError) as caught:
        am.MDP(mdp.skeleton, rows)
    assert (caught.value.rule, caught.value.where) == (rule, where)


def test_rounding_in_rows_is_removed_and_an_mdp_of_its_own_rows_is_itself() -> None:
    rows = np.array([0.3, 0.7 + 3e-10])
    mdp = am.MDP(am.Skeleton.dense([1, 2, 1], 1), [*rows, 1.0, 1.0])
    assert abs(mdp.transition[:2].sum() - 1.0) < 1e-15
    assert am.MDP(mdp.skeleton, mdp.transition) == mdp


@given(mdps(max_width=6))
def test_normalising_twice_is_normalising_once(mdp: am.MDP) -> None:
    assert am.MDP(mdp.skeleton, mdp.transition) == mdp


def test_an_mdp_cannot_be_changed_from_outside() -> None:
    mdp = am.MDP.dense(ROWS)
    with pytest.raises(ValueError, match="read-only"):
        mdp.transition[0] = 1.0
    with pytest.raises(AttributeError):
        mdp.transition = np.ones(10)  # type: ignore[misc]


def test_the_wrong_length_is_an_error() -> None:
    with pytest.raises(am.InputError, match=r"transition.*shape \(3,\)"):
        am.MDP(am.Skeleton.dense([1, 2, 1], 1), [1.0, 1.0, 1.0])


def test_steps_with_names_find_their_layers() -> None:
    mdp = am.MDP.from_steps(
        [
            ("home", "bus", "station", 0.9),
            ("home", "bus", "stuck", 0.1),
            ("home", "walk", "station", 1.0),
            ("station", "train", "work", 1.0),
            ("station", "taxi", "work", 1.0),
            ("stuck", "wait", "work", 1.0),
        ]
    )
    sk = mdp.skeleton
    assert sk.state_names == ("home", "station", "stuck", "work")
    assert sk.action_names == ("bus", "walk", "train", "taxi", "wait")
    assert mdp.transition.tolist() == [0.9, 0.1, 1.0, 1.0, 1.0, 1.0]


def test_steps_get_a_named_start_and_end_where_there_are_several() -> None:
    steps = [("a", "go", "c", 1.0), ("b", "go", "c", 0.5), ("b", "go", "d", 0.5)]
    sk = am.MDP.from_steps(steps, initial={"a": 0.4, "b": 0.6}).skeleton
    assert sk.state_names == ("start", "a", "b", "c", "d", "end")
    renamed = [("start", "go", "end", 1.0), ("b", "go", "end", 0.5), ("b", "go", "d", 0.5)]
    sk = am.MDP.from_steps(renamed, initial={"start": 0.4, "b": 0.6}).skeleton
    assert sk.state_names == ("(start)", "start", "b", "end", "d", "(end)")


@pytest.mark.parametrize(
    ("steps", "initial", "message"),
    [
        ([], None, "at least one row"),
        ([("a", 0, "b", 1.0), ("c", 0, "b", 1.0)], None, "2 states that no step leads to"),
        ([("a", 0, "a", 1.0)], None, "no start: every state has a step that leads to it; expected a start"),
        ([("a", 0, "b", 1.0), ("a", 0, "b", 1.0)], None, "row 1 of the steps"),
        ([("a", 0, "b", 0.5), ("a", 0, "c", 0.5), ("b", 0, "c", 1.0)], None, "layer 1.*state 'c' has no step"),
        ([("a", 0, "b", 1), ("b", 0, "c", 0.5), ("b", 0, "a", 0.5), ("c", 0, "d", 1)], {"a": 1.0}, "'a' is reached"),
        ([("a", 0, "b", 1.0), ("c", 0, "b", 1.0)], {"a": 1.0}, "'c' cannot be reached"),
        ([("a", 0, "b", 1.0)], {"b": 1.0}, "state 'b', which has no steps"),
        ([("a", 0, "b", 0.7)], None, "layer 0, state 0 \\(a\\), action 0"),
        ([("a", 0, "b")], None, "row 0 of the steps"),
        ([("a", 0, "b", 1.0), ("b", [], "c", 1.0)], None, "row 1 of the steps"),
        ([("a", 0, "b", "all")], None, "row 0 of the steps"),
        (5, None, "row 0 of the steps"),
        ([("a", 0, "c", 1.0), ("b", 0, "c", 1.0)], {"a": 0.7}, "rows sum to one.*initial"),
        ([("a", 0, "b", 1.0), ("b", 0, "a", 1.0)], None, "time_expand"),
    ],
)
def test_steps_that_make_no_layers_are_errors(steps: list, initial: dict | None, message: str) -> None:
    with pytest.raises(am.InputError, match=message):
        am.MDP.from_steps(steps, initial)


def test_random_worlds_are_fixed_by_their_seed() -> None:
    layers = [1, 5, 5, 5, 5, 1]
    assert am.MDP.random(layers, 4, seed=0) == am.MDP.random(layers, 4, seed=0)
    assert am.MDP.random(layers, 4, seed=0) != am.MDP.random(layers, 4, seed=1)
    assert am.MDP.random(layers, 4, seed=0).skeleton == am.Skeleton.dense(layers, 4)


@given(st.integers(1, 9), st.integers(0, 99))
def test_random_sparse_worlds_have_the_branching_asked_for(branching: int, seed: int) -> None:
    sk = am.MDP.random([1, 7, 3, 1], actions=2, seed=seed, branching=branching).skeleton
    widths = np.diff(sk.transition_ptr)
    expected = [min(branching, 7)] * 2 + [min(branching, 3)] * 14 + [1] * 6
    assert widths.tolist() == expected


def test_random_successors_are_spread_over_the_whole_layer() -> None:
    sk = am.MDP.random([1, 50, 20, 1], actions=4, seed=0, branching=3).skeleton
    first, last = sk.layer_transition_ptr[1:3]
    assert set(sk.successor[first:last]) == set(range(51, 71))


@pytest.mark.parametrize("concentration", [1e-6, 1e-2, 0.5, 1.0, 30.0])
def test_random_rows_are_dirichlet(concentration: float) -> None:
    """Moments of Dirichlet(c, ..., c) in k dimensions: mean 1/k, variance (k - 1) / (k^2 (k c + 1))."""
    k = 5
    mdp = am.MDP.random([1, 1000, k, 1], 4, seed=0, concentration=concentration)
    rows = mdp.transition[4000 : 4000 + 4000 * k].reshape(4000, k)
    variance = (k - 1) / (k**2 * (k * concentration + 1))
    assert rows.mean(axis=0) == pytest.approx(np.full(k, 1 / k), abs=5 * np.sqrt(variance / 4000))
    assert rows.var() == pytest.approx(variance, rel=0.1)


@pytest.mark.parametrize(
    "bad",
    [
        {"actions": 0},
        {"branching": 0},
        {"concentration": 0.0},
        {"seed": -1},
        {"seed": 1.5},
        {"layers": [0]},
        {"actions": "3"},
        {"branching": 1.5},
        {"concentration": "1"},
        {"layers": [[1], 2]},
    ],
)
def test_random_checks_its_parameters(bad: dict) -> None:
    with pytest.raises(am.InputError, match=next(iter(bad))):
        am.MDP.random(**{"layers": [1, 2, 1], "actions": 2, "seed": 0, **bad})


@given(played(), st.integers(0, 2**32))
def test_a_trajectory_follows_possible_steps(case: tuple, seed: int) -> None:
    mdp, policy, _ = case
    sk = mdp.skeleton
    path = mdp.sample(policy, np.random.default_rng(seed))
    assert path.states[0] == 0
    assert path.states[-1] == sk.num_states - 1
    assert (sk.state_of_pair[path.pairs] == path.states[:-1]).all()
    assert (sk.successor[path.transitions] == path.states[1:]).all()
    assert (path.transitions >= sk.transition_ptr[path.pairs]).all()
    assert (path.transitions < sk.transition_ptr[path.pairs + 1]).all()
    assert (mdp.transition[path.transitions] > 0).all()
    assert (policy[path.pairs] > 0).all()


def test_a_draw_never_falls_on_weight_zero_nor_beyond_the_end() -> None:
    def chosen(weights: list[float], u: float) -> int:
        """The action that a policy with these weights takes, by one uniform number."""
        mdp = am.MDP.dense([np.ones((1, len(weights), 1))])
        return int(mdp.sample_from(np.array(weights), np.array([u, 0.0])).pairs[0])

    assert chosen([0.0, 1.0], 0.0) == 1
    assert chosen([0.5, 0.5 - 1e-10, 0.0], 1.0 - 1e-12) == 1
    assert [chosen([0.25, 0.75], u) for u in (0.0, 0.2499, 0.25, 0.9999)] == [0, 0, 1, 1]


def test_visits_agree_with_the_occupancy_measure() -> None:
    mdp = am.MDP.random([1, 3, 3, 1], actions=2, seed=5)
    policy = random_policy(mdp.skeleton, np.random.default_rng(0))
    q = am.occupancy(mdp, policy)
    rng = np.random.default_rng(1)
    episodes = 20_000
    counts = np.zeros_like(q)
    for _ in range(episodes):
        counts[mdp.sample(policy, rng).transitions] += 1
    for first, last in zip(mdp.skeleton.layer_transition_ptr[:-1], mdp.skeleton.layer_transition_ptr[1:], strict=True):
        assert chisquare(counts[first:last], q[first:last] * episodes).pvalue > 1e-4


def test_sampling_is_fixed_by_the_generator() -> None:
    mdp = am.MDP.random([1, 5, 5, 1], actions=3, seed=0)
    policy = am.uniform_policy(mdp.skeleton)
    one, two = (mdp.sample(policy, np.random.default_rng(7)) for _ in range(2))
    assert (one.transitions == two.transitions).all()


def test_an_invalid_policy_is_an_error_that_names_the_state() -> None:
    mdp = am.MDP.dense(ROWS)
    for bad in ([0.5, 0.4, *[1 / 3] * 6], [1.5, -0.5, *[1 / 3] * 6], [np.nan, 1.0, *[1 / 3] * 6]):
        with pytest.raises(am.ModelError, match="a policy is a distribution.*layer 0, state 0"):
            mdp.sample(bad, np.random.default_rng(0))
    with pytest.raises(am.InputError, match=r"policy.*shape \(2,\)"):
        mdp.sample([0.5, 0.5], np.random.default_rng(0))


def test_passing_an_mdp_for_its_skeleton_or_vice_versa_is_an_error() -> None:
    mdp = am.MDP.dense(ROWS)
    sk, policy, loss = mdp.skeleton, am.uniform_policy(mdp.skeleton), np.zeros(10)
    for call in (
        lambda: am.uniform_policy(mdp),
        lambda: am.policy_of(mdp, loss),
        lambda: am.occupancy(sk, policy),
        lambda: am.best_response(sk, loss),
        lambda: am.plot.flow(mdp, loss),
        lambda: am.MDP(mdp, loss),
        lambda: mdp.sample(policy, 0),
    ):
        with pytest.raises(am.InputError, match="expected (an MDP|a Skeleton|a Generator)"):
            call()


def test_errors_survive_copying_and_pickling() -> None:
    for error in (am.InputError("here", "this", "that"), am.ModelError("a rule", "here", "this", "that")):
        again = copy.copy(error)
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_deterministic_policies_take_the_action_named() -> None:
    sk = am.MDP.dense(ROWS).skeleton
    assert am.deterministic_policy(sk, [1, 0, 2]).tolist() == [0, 1, 1, 0, 0, 0, 0, 1]
    with pytest.raises(am.InputError, match="layer 0, state 0"):
        am.deterministic_policy(sk, [2, 0, 0])
    with pytest.raises(am.InputError, match="2 entries"):
        am.deterministic_policy(sk, [0, 0])
