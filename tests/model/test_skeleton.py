"""Skeleton: every structural rule is checked, and the error says which rule is broken and where."""

import copy

import numpy as np
import pytest
from hypothesis import given

import advmdp as am
from tests.helpers.strategies import mdps

# x0 has two actions; the first leads to both inner states, the second to the second; both go on to the end.
GOOD = {
    "layer_ptr": [0, 1, 3, 4],
    "pair_ptr": [0, 2, 3, 4, 4],
    "transition_ptr": [0, 2, 3, 4, 5],
    "successor": [1, 2, 2, 3, 3],
}


def test_a_ragged_sparse_skeleton_has_the_documented_layout() -> None:
    sk = am.Skeleton(**GOOD)
    assert sk.num_steps == sk.num_layers  # one name for the paper's L, and its alias
    assert (sk.num_steps, sk.num_states, sk.num_pairs, sk.num_transitions) == (2, 4, 4, 5)
    assert sk.num_actions == 2
    assert sk.layer_sizes.tolist() == [1, 2, 1]
    assert sk.layer_pair_ptr.tolist() == [0, 2, 4]
    assert sk.layer_transition_ptr.tolist() == [0, 3, 5]
    assert sk.state_of_pair.tolist() == [0, 0, 1, 2]
    assert sk.over_transitions(np.array([1.0, 2.0, 3.0, 4.0])).tolist() == [1, 1, 2, 3, 4]


BROKEN = [
    ({"layer_ptr": [0, 1]}, "pointers ascend from 0", "layer_ptr"),
    ({"layer_ptr": [1, 1, 3, 4]}, "pointers ascend from 0", "layer_ptr"),
    ({"layer_ptr": [0, 1, 1, 4]}, "pointers ascend from 0", "layer 1"),
    ({"layer_ptr": [0, 1, 4]}, "one start, one end", "layer 1"),
    ({"layer_ptr": [0, 2, 3, 4]}, "one start, one end", "layer 0"),
    ({"pair_ptr": [0, 2, 3, 4]}, "pointers ascend from 0", "pair_ptr"),
    ({"pair_ptr": [1, 2, 3, 4, 4]}, "pointers ascend from 0", "pair_ptr"),
    ({"pair_ptr": [0, 3, 2, 4, 4]}, "pointers ascend from 0", "layer 1, state 1"),
    ({"pair_ptr": [0, 2**63 - 1, -2, 4, 4]}, "pointers ascend from 0", "layer 1, state 1"),
    ({"layer_ptr": [0, 2**63 - 1, -2, 4]}, "pointers ascend from 0", "layer 1"),
    ({"transition_ptr": [0, 2**63 - 1, -2, 4, 5]}, "pointers ascend from 0", "layer 0, state 0, action 1"),
    ({"pair_ptr": [0, 2, 2, 4, 4]}, "no dead ends", "layer 1, state 1"),
    ({"pair_ptr": [0, 1, 2, 3, 4]}, "the episode ends", "layer 2, state 3"),
    ({"transition_ptr": [0, 2, 3, 5]}, "pointers ascend from 0", "transition_ptr"),
    ({"transition_ptr": [0, 3, 2, 4, 5]}, "pointers ascend from 0", "layer 0, state 0, action 1"),
    ({"transition_ptr": [0, 2, 2, 4, 5]}, "no dead ends", "layer 0, state 0, action 1"),
    ({"successor": [1, 2, 2, 3]}, "pointers cover all", "successor"),
    ({"successor": [1, 2, 2, 3, 2]}, "successors in the next layer", "layer 1, state 2, action 0, successor 2"),
    ({"successor": [1, 3, 2, 3, 3]}, "successors in the next layer", "layer 0, state 0, action 0, successor 3"),
    ({"successor": [1, -1, 2, 3, 3]}, "successors in the next layer", "layer 0, state 0, action 0, successor -1"),
    ({"successor": [1, 2**40, 2, 3, 3]}, "successors in the next layer", "successor 1099511627776"),
    ({"successor": [2, 2, 2, 3, 3]}, "distinct successors", "layer 0, state 0, action 0, successor 2"),
    ({"state_names": ["a", "b", "c"]}, "one name each", "state_names"),
    ({"action_names": ["a", "b", "c"]}, "one name each", "action_names"),
    ({"state_names": ["a", "b", "b", "c"]}, "names are distinct", "layer 1, state 1 (b)"),
    ({"action_names": ["go", "go", "go", "go"]}, "names are distinct", "layer 0, state 0, action 1 (go)"),
]


@pytest.mark.parametrize(("change", "rule", "where"), BROKEN)
def test_a_broken_rule_is_named_with_its_place(change: dict, rule: str, where: str) -> None:
    with pytest.raises(am.ModelError) as caught:
        am.Skeleton(**{**GOOD, **change})
    assert caught.value.rule == rule
    assert where in caught.value.where
    assert rule in str(caught.value)
    assert "expected" in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, am.AdvMDPError)


@pytest.mark.parametrize("bad", [[0.0, 1.0, 3.0, 4.0], [[0, 1, 3, 4]], ["a"], None])
def test_pointers_must_be_whole_numbers(bad: object) -> None:
    with pytest.raises(am.InputError, match="layer_ptr"):
        am.Skeleton(**{**GOOD, "layer_ptr": bad})


def test_unsorted_successors_are_fine_and_duplicates_among_them_are_found() -> None:
    assert am.Skeleton(**{**GOOD, "successor": [2, 1, 2, 3, 3]}).successor.tolist() == [2, 1, 2, 3, 3]
    wide = {"layer_ptr": [0, 1, 4, 5], "pair_ptr": [0, 1, 2, 3, 4, 4], "transition_ptr": [0, 3, 4, 5, 6]}
    am.Skeleton(**wide, successor=[3, 1, 2, 4, 4, 4])
    with pytest.raises(am.ModelError, match=r"distinct successors.*successor 3"):
        am.Skeleton(**wide, successor=[3, 1, 3, 4, 4, 4])


def test_dense_has_every_successor() -> None:
    sk = am.Skeleton.dense(layers=[1, 5, 5, 1], actions=4)
    assert (sk.num_states, sk.num_pairs, sk.num_transitions) == (12, 44, 4 * 5 + 20 * 5 + 20)
    assert (np.diff(sk.transition_ptr)[:24] == 5).all()
    assert am.Skeleton.dense([1, 2, 1], [3, 1]).num_pairs == 5


def test_dense_adds_a_start_and_an_end_where_there_are_several() -> None:
    sk = am.Skeleton.dense(layers=[3, 4, 2], actions=5)
    assert sk.layer_sizes.tolist() == [1, 3, 4, 2, 1]
    assert np.diff(sk.pair_ptr).tolist() == [1, 5, 5, 5, 5, 5, 5, 5, 1, 1, 0]


def test_sparse_takes_rows_in_any_order() -> None:
    rows = np.array([(0, 0, 1), (0, 0, 2), (0, 1, 2), (1, 0, 3), (2, 0, 3)])
    for seed in range(5):
        state, action, successor = np.random.default_rng(seed).permutation(rows).T
        assert am.Skeleton.sparse([1, 2, 1], state, action, successor) == am.Skeleton(**GOOD)


def test_sparse_adds_a_start_and_an_end_where_there_are_several() -> None:
    sk = am.Skeleton.sparse([2, 2], state=[0, 1], action=[0, 0], successor=[2, 3])
    assert sk.layer_sizes.tolist() == [1, 2, 2, 1]
    assert sk.successor.tolist() == [1, 2, 3, 4, 5, 5]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (([0, 0, 1], [0, 2, 0], [1, 1, 2]), "actions are 0, 1, 2"),
        (([0, 9], [0, 0], [1, 2]), "row 1 of the table: state 9"),
        (([0, 1], [0, -1], [1, 2]), "row 1 of the table: action -1"),
        (([0, 1], [0, 0], [1, 7]), "row 1 of the table: successor 7"),
        (([0, 1], [0], [1, 2]), "1 rows"),
        (([0, 1, 1], [0, 0, 0], [1, 2, 2]), "distinct successors"),
        (([0], [0], [1]), "no dead ends"),
    ],
)
def test_a_bad_table_is_an_error_that_names_the_place(rows: tuple, message: str) -> None:
    with pytest.raises(am.InputError, match=message):
        am.Skeleton.sparse([1, 1, 1], *rows)


@pytest.mark.parametrize("layers", [[1], [], [1, 0, 1], [1, -2, 1]])
def test_layers_must_be_at_least_two_and_not_empty(layers: list[int]) -> None:
    with pytest.raises(am.InputError, match="layers"):
        am.Skeleton.dense(layers, 2)


@pytest.mark.parametrize("actions", [0, -1, [1, 1, 1], [2, 0], [], 1.5])
def test_actions_must_be_positive(actions: object) -> None:
    with pytest.raises(am.InputError, match="actions"):
        am.Skeleton.dense([1, 2, 1], actions)  # type: ignore[arg-type]


def test_names_find_states_and_pairs() -> None:
    sk = am.Skeleton(**GOOD, state_names=["home", "bus", "train", "work"], action_names=["a", "b", "on", "on"])
    assert sk.state("train") == sk.state(2) == 2
    assert sk.pair("home", "b") == sk.pair(0, 1) == 1
    assert sk.pair("train", "on") == 3
    assert sk.where_transition(2) == "layer 0, state 0 (home), action 1 (b), successor 2 (train)"
    for missing in (lambda: sk.state("sea"), lambda: sk.state(4), lambda: sk.pair(1, "b"), lambda: sk.pair(1, 1)):
        with pytest.raises(am.InputError):
            missing()


def test_equality_and_hash_go_by_content() -> None:
    one, two = am.Skeleton(**GOOD), am.Skeleton(**GOOD)
    assert one == two
    assert hash(one) == hash(two)
    assert one != am.Skeleton(**GOOD, state_names="abcd")
    assert one != am.Skeleton(**GOOD, action_names="abcd")
    assert one != am.Skeleton(**{**GOOD, "successor": [2, 1, 2, 3, 3]})
    assert one != "a skeleton"


def test_a_copy_equals_the_original() -> None:
    sk = am.Skeleton(**GOOD, state_names="abcd", action_names="abcd")
    again = copy.deepcopy(sk)
    assert again == sk
    assert not again.successor.flags.writeable
    mdp = am.MDP.random([1, 2, 1], 2, seed=0)
    assert copy.deepcopy(mdp) == mdp
    assert not copy.deepcopy(mdp).transition.flags.writeable


def test_a_skeleton_cannot_be_changed_from_outside() -> None:
    mine = {name: np.array(values) for name, values in GOOD.items()}
    sk = am.Skeleton(**mine)
    mine["successor"][0] = 2
    assert sk.successor[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        sk.successor[0] = 2
    with pytest.raises(AttributeError):
        sk.successor = mine["successor"]  # type: ignore[misc]


def test_repr_shows_the_shape_and_is_short() -> None:
    assert repr(am.Skeleton(**GOOD)) == (
        "Skeleton(2 steps, layers 1-2-1, 4 states, 1 to 2 actions, 4 pairs, 5 transitions)"
    )
    assert len(repr(am.Skeleton.dense([1, *[3] * 50, 1], 2))) < 120


@given(mdps())
def test_a_skeleton_is_rebuilt_from_its_own_arrays_and_from_its_table(mdp: am.MDP) -> None:
    sk = mdp.skeleton
    assert am.Skeleton(sk.layer_ptr, sk.pair_ptr, sk.transition_ptr, sk.successor) == sk
    pair = np.repeat(np.arange(sk.num_pairs), np.diff(sk.transition_ptr))
    state = sk.state_of_pair[pair]
    assert am.Skeleton.sparse(sk.layer_sizes.tolist(), state, pair - sk.pair_ptr[state], sk.successor) == sk


def test_the_repr_counts_one_thing_in_the_singular() -> None:
    sk = am.Skeleton.from_steps([("home", "walk", "work")])
    assert repr(sk) == "Skeleton(1 step, layers 1-1, 2 states, 1 action, 1 pair, 1 transition)"
