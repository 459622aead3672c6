"""Parameters, clones and reprs of learners, as in scikit-learn."""

import numpy as np
import pytest

import advmdp as am
from advmdp.learners.registry import LEARNERS

MDP = am.MDP.random([1, 3, 3, 1], actions=2, seed=0)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_clone_has_the_same_arguments_and_has_learned_nothing(name: str) -> None:
    learner = am.make_learner(name, MDP, offered={"horizon": 50, "seed": 3, "delta": 0.1})
    fresh = am.make_learner(name, MDP, offered={"horizon": 50, "seed": 3, "delta": 0.1})
    feedback = {"feedback": learner.feedback} if "feedback" in learner.parameters else {}
    losses = am.losses.Switching(MDP.skeleton, period=5, seed=1)
    am.play(MDP, losses, learner, episodes=20, **feedback)
    copy = am.clone(learner)
    assert type(copy) is type(learner)
    assert copy.get_params() == learner.get_params()
    assert copy.told is learner.told
    assert copy.episode == 0
    assert learner.episode == 20
    assert np.array_equal(copy.policy, fresh.policy)
    am.play(MDP, losses, copy, episodes=20, **feedback)
    assert np.array_equal(copy.policy, learner.policy)


@pytest.mark.parametrize("name", LEARNERS)
def test_arguments_make_the_learner_again(name: str) -> None:
    learner = am.make_learner(name, MDP, offered={"horizon": 50, "seed": 3})
    assert repr(type(learner)(learner.told, **learner.get_params())) == repr(learner)


def test_threads_are_copied_too() -> None:
    assert am.clone(am.UCOREPS(MDP.skeleton, threads=2)).get_params()["threads"] == 2


@pytest.mark.parametrize(
    ("learner", "shown"),
    [
        (am.SelfTuning(MDP.skeleton), "SelfTuning()"),
        (am.SelfTuning(MDP.skeleton, experts=["UC-O-REPS"]), "SelfTuning(experts=['UC-O-REPS'])"),
        (am.UCOREPS(MDP.skeleton), "UCOREPS()"),
        (am.UCOREPS(MDP.skeleton, horizon=9, criterion=am.WorstCase()), "UCOREPS(criterion=WorstCase(), horizon=9)"),
        (am.UCOREPS(MDP.skeleton, eta=0.5, criterion=am.TotalLoss()), "UCOREPS(eta=0.5)"),
        (am.Uniform(MDP.skeleton), "Uniform()"),
        (am.ReplayLast(MDP.skeleton, kinds=range(14)), "ReplayLast(kinds=[0, 1, 2, 3, 4, 5, ...])"),
    ],
    ids=lambda thing: thing if isinstance(thing, str) else "",
)
def test_the_repr_shows_what_was_chosen(learner: am.Learner, shown: str) -> None:
    assert repr(learner) == shown


def test_only_learners_have_clones() -> None:
    with pytest.raises(am.InputError):
        am.clone(MDP)  # type: ignore[arg-type]
