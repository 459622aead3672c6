"""The registry: learners by name, their parameters from signatures, and files."""

import inspect

import pytest

import advmdp as am
from advmdp.learners.parameters import parameter_names
from advmdp.learners.registry import LEARNERS, make_learner

WORLD = am.MDP.random([1, 2, 1], 2, seed=0)
OFFERED = {"horizon": 7, "seed": 3}


def test_the_registry_has_every_learner_of_the_package() -> None:
    public = {name for name in am.__all__ if inspect.isclass(getattr(am, name))}
    learners = {name for name in public if issubclass(getattr(am, name), am.Learner)} - {"Learner"}
    assert learners == set(LEARNERS)
    assert all(LEARNERS[name] is getattr(am, name) for name in LEARNERS)


@pytest.mark.parametrize("name", LEARNERS)
def test_parameters_are_the_arguments_of_the_constructor(name: str) -> None:
    arguments = list(inspect.signature(LEARNERS[name].__init__).parameters)[2:]  # without self, and what it is told
    names = [one for one in arguments if one not in ("criterion", "threads")]
    learner = make_learner(name, WORLD, offered=OFFERED)
    assert list(learner.parameters) == names == list(parameter_names(LEARNERS[name]))
    for offered in set(OFFERED) & set(names):
        assert learner.parameters[offered] == OFFERED[offered]
    again = type(learner)(learner.told, criterion=learner.criterion, **learner.parameters)
    assert again.parameters == learner.parameters
    assert repr(again) == repr(learner)


@pytest.mark.parametrize("name", LEARNERS)
def test_learners_are_given_what_they_declare_to_know(name: str) -> None:
    learner = make_learner(name, WORLD, offered=OFFERED)
    assert (learner.mdp is WORLD) == (LEARNERS[name].knows == "dynamics")
    assert learner.told is (WORLD if LEARNERS[name].knows == "dynamics" else WORLD.skeleton)


def test_parameters_win_over_what_is_offered() -> None:
    assert make_learner("FPOP", WORLD, offered=OFFERED, seed=9).parameters["seed"] == 9
    assert make_learner("UCOREPS", WORLD, am.Risk(0.5, 2.0), horizon=5).criterion == am.Risk(0.5, 2.0)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: make_learner("UCOREP", WORLD), "learner: 'UCOREP'; expected one of SelfTuning, UCOREPS, OREPS"),
        (lambda: make_learner(7, WORLD), "learner: 7"),  # type: ignore[arg-type]
        (
            lambda: make_learner("UCOREPS", WORLD, depth=2),
            "learner UCOREPS: parameter 'depth'; expected one of horizon",
        ),
        (lambda: make_learner("UCOREPS", WORLD, told=2), "multiple values|parameter 'told'"),
        (lambda: make_learner("OREPS", WORLD.skeleton), "OREPS: a Skeleton; expected an MDP"),
        (lambda: make_learner("UCOREPS", "world"), "skeleton"),  # type: ignore[arg-type]
    ],
)
def test_errors_say_why_a_learner_cannot_be_made(make, says: str) -> None:
    with pytest.raises((am.InputError, TypeError), match=says):
        make()


def test_a_custom_learner_needs_no_list_of_parameters() -> None:
    class Lazy(am.Uniform):
        def __init__(self, skeleton: am.Skeleton, pace: float = 0.5, criterion: am.Criterion | None = None) -> None:
            super().__init__(skeleton, criterion)
            self.pace = pace

    assert Lazy(WORLD.skeleton, 0.25).parameters == {"pace": 0.25}
