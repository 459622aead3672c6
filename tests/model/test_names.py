"""Names: skeletons from steps without probabilities, and policies, losses and trajectories by name."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import advmdp as am
from tests.helpers.strategies import mdps

STEPS = [
    ("home", "bus", "station"), ("home", "bus", "stuck"), ("home", "walk", "station"),
    ("station", "train", "work"), ("station", "taxi", "work"), ("stuck", "wait", "work"),
]  # fmt: skip
SK = am.Skeleton.from_steps(STEPS)


def test_a_skeleton_from_steps_equals_that_of_an_mdp_from_the_same_steps() -> None:
    probabilities = [0.8, 0.2, 1.0, 1.0, 1.0, 1.0]
    mdp = am.MDP.from_steps([(*step, p) for step, p in zip(STEPS, probabilities, strict=True)])
    assert mdp.skeleton == SK
    assert SK.state_names == ("home", "station", "stuck", "work")


def test_several_first_states_get_a_start_that_may_lead_to_each() -> None:
    sk = am.Skeleton.from_steps([("a", "go", "c"), ("b", "go", "c")], initial=["a", "b"])
    assert sk.layer_sizes.tolist() == [1, 2, 1]
    assert sk.transition("start", "start", "b") == 1


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([("home", "bus", "work", 0.5)], r"row 0 of the steps: .*expected \(state, action, next state\)"),
        ([("home", "bus")], r"row 0 of the steps"),
        (["abc"], r"row 0 of the steps: 'abc'"),
        ([("home", "bus", ["work"])], r"row 0 of the steps"),
        ([], r"steps: none"),
        ([("home", "bus", "work"), ("home", "bus", "work")], "distinct successors"),
        ([("a", "go", "b"), ("b", "go", "c"), ("a", "fly", "c")], "paths of equal length"),
        (3, "row 0"),
    ],
)
def test_invalid_steps_are_named(steps: object, message: str) -> None:
    with pytest.raises(am.InputError, match=message):
        am.Skeleton.from_steps(steps)  # type: ignore[arg-type]


@given(mdps())
def test_numbers_and_labels_are_inverse_to_each_other(mdp: am.MDP) -> None:
    """Against a walk over the pointers."""
    plain = mdp.skeleton
    states = [f"s{x}" for x in range(plain.num_states)]
    actions = [f"a{p % 3}_{p}" for p in range(plain.num_pairs)]
    named = am.Skeleton(
        plain.layer_ptr, plain.pair_ptr, plain.transition_ptr, plain.successor, state_names=states, action_names=actions
    )
    i = 0
    for x in range(plain.num_states):
        for p in range(plain.pair_ptr[x], plain.pair_ptr[x + 1]):
            for _ in range(plain.transition_ptr[p + 1] - plain.transition_ptr[p]):
                y = int(plain.successor[i])
                assert named.transition(states[x], actions[p], states[y]) == i
                assert plain.transition(x, p - int(plain.pair_ptr[x]), y) == i
                assert named.transition_label(i) == f"{states[x]}/{actions[p]}/{states[y]}"
                i += 1


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: SK.state("statoin"), "unknown name 'statoin'.*did you mean station?"),
        (lambda: SK.pair("home", "wlak"), "unknown action 'wlak'.*did you mean walk?"),
        (lambda: SK.transition("home", "walk", "stuck"), "successor stuck; expected one of station"),
        (lambda: SK.transition("home", "bus", "sattion"), "did you mean station?"),
        (lambda: SK.transition("home", "bus", "work"), "expected one of station, stuck"),
        (lambda: SK.state("nowhere at all"), "expected one of home, station, stuck, work$"),
    ],
)
def test_an_unknown_name_is_an_error_that_guesses(ask: object, message: str) -> None:
    with pytest.raises(am.InputError, match=message):
        ask()  # type: ignore[operator]


@given(mdps(), st.integers(0, 2**32 - 1))
def test_policies_and_losses_by_name_are_the_vectors(mdp: am.MDP, seed: int) -> None:
    sk, rng = mdp.skeleton, np.random.default_rng(seed)
    weights = rng.random(sk.num_pairs) + 0.1
    policy = weights / np.repeat(np.add.reduceat(weights, sk.pair_ptr[:-2]), np.diff(sk.pair_ptr)[:-1])
    loss = rng.random(sk.num_transitions)
    by_name, losses = am.policy_by_name(sk, policy), am.loss_by_name(sk, loss)
    assert np.array_equal(am.checked_policy(sk, by_name), policy)
    assert np.array_equal(am.loss_vector(sk, losses), loss)
    assert np.array_equal(am.loss_vector(sk, dict(sorted(losses.items(), key=lambda _: rng.random()))), loss)
    assert np.array_equal(am.occupancy(mdp, by_name), am.occupancy(mdp, policy))
    assert am.policy_values(mdp, by_name, losses).state[0] == am.policy_values(mdp, policy, loss).state[0]
    assert am.best_response(mdp, losses)[1] == am.best_response(mdp, loss)[1]


def test_a_cost_of_a_transition_takes_precedence_over_that_of_its_pair() -> None:
    rest = {(s, a): 0.5 for s, a, _ in STEPS if s != "home"}
    for order in (1, -1):
        home = [(("home", "bus", "stuck"), 0.9), (("home", "bus"), 0.1), (("home", "walk"), 0.3)][::order]
        assert am.loss_vector(SK, dict(home) | rest).tolist() == [0.1, 0.9, 0.3, 0.5, 0.5, 0.5]


def test_a_policy_may_name_one_action_and_leave_out_states_without_a_choice() -> None:
    assert am.checked_policy(SK, {"home": "walk", "station": {"taxi": 1.0}}).tolist() == [0, 1, 0, 1, 1]


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"home": "walk"}, r"policy at layer 1, state 1 \(station\): missing"),
        ({"home": "fly", "station": "taxi"}, "unknown action 'fly'"),
        ({"home": {"bus": 0.5}, "station": "taxi"}, "a policy is a distribution"),
        ({"home": {"bus": "much"}, "station": "taxi"}, "'much'; expected a probability"),
        ({"home": "walk", "station": "taxi", "work": "rest"}, "the episode ends there"),
    ],
)
def test_an_invalid_policy_by_name_is_refused(policy: dict, message: str) -> None:
    with pytest.raises(am.InputError, match=message):
        am.checked_policy(SK, policy)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ({("home", "bus"): 0.5}, r"loss at layer 0, state 0 \(home\), action 1 \(walk\).*missing"),
        ({"home": 0.5}, "the key 'home'"),
        ({("home", "bus"): "dear"}, "'dear'; expected a number"),
        ({("home", "bsu"): 0.5}, "did you mean bus?"),
    ],
)
def test_an_invalid_loss_by_name_is_refused(loss: dict, message: str) -> None:
    with pytest.raises(am.InputError, match=message):
        am.loss_vector(SK, loss)


@given(mdps(), st.integers(0, 2**32 - 1))
def test_a_trajectory_by_name_is_the_one_that_was_sampled(mdp: am.MDP, seed: int) -> None:
    sk = mdp.skeleton
    drawn = mdp.sample(am.uniform_policy(sk), np.random.default_rng(seed))
    actions = [int(p - sk.pair_ptr[x]) for x, p in zip(drawn.states, drawn.pairs, strict=False)]
    again = am.Trajectory.from_names(sk, drawn.states.tolist(), actions)
    for part in ("states", "pairs", "transitions"):
        assert np.array_equal(getattr(again, part), getattr(drawn, part))


@pytest.mark.parametrize(
    ("states", "actions", "message"),
    [
        (["home", "station"], ["bus"], "1 steps, to station; expected 2 steps"),
        (["station", "work"], ["train"], "a start in layer 1"),
        (["home", "stuck", "work"], ["walk", "wait"], "successor stuck"),
        (["home", "station"], ["bus", "train"], "with one state more"),
        ("home", [], "lists of states"),
    ],
)
def test_an_impossible_trajectory_by_name_is_refused(states: list, actions: list, message: str) -> None:
    with pytest.raises(am.InputError, match=message):
        am.Trajectory.from_names(SK, states, actions)


def test_learners_take_losses_by_name() -> None:
    loss = {(s, a): 0.1 * k for k, (s, a) in enumerate(dict.fromkeys(step[:2] for step in STEPS))}
    path = am.Trajectory.from_names(SK, ["home", "stuck", "work"], ["bus", "wait"])
    vector = am.loss_vector(SK, loss)
    for make in (am.SelfTuning, am.UCOREPS, am.FollowLeader, am.ReplayLast, lambda sk: am.UOBREPS(sk, 10)):
        by_name, plain = make(SK), make(SK)
        by_name.update(path, loss)
        plain.update(path, vector[path.transitions] if plain.feedback == "bandit" else vector)
        assert np.array_equal(by_name.policy, plain.policy), make
    late = am.UOBREPS(SK, 10)
    handle = late.begin()
    late.learn({("home", "bus"): 0.5, ("stuck", "wait"): 1.0, ("home", "walk"): 0.3}, handle, path)
    assert late.outstanding == []
    with pytest.raises(am.InputError, match="numbers from 0 to 1"):
        am.UOBREPS(SK, 10).update(path, {("home", "bus"): 0.5})
    hinted = am.SelfTuning(SK)
    hinted.hint(loss)
    assert am.TotalLoss().value(SK, hinted.q, loss) == am.TotalLoss().value(SK, hinted.q, vector)
