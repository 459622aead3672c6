"""Opening an agent: creating a new one, or rebuilding one from its log and checking its settings."""

from collections.abc import Mapping
from contextlib import suppress
from inspect import signature
from typing import Any
from warnings import catch_warnings, simplefilter

from advmdp.core.arrays import FloatArray, whole
from advmdp.core.errors import InputError, LogError
from advmdp.core.wording import one_of
from advmdp.learners.registry import LEARNERS, make_learner, taking_late_losses
from advmdp.live.costs import Units, checked_missing
from advmdp.live.log import Event, Log
from advmdp.live.state import AgentState, Terms
from advmdp.live.worlds import WorldVersion
from advmdp.model.mdp import MDP
from advmdp.model.skeleton import Skeleton

TOLD_AGAIN = 100
"""The number of losses to learn again when the world is extended."""
PATIENCE_BY_DEFAULT = 1000


def learners_for(feedback: str) -> str:
    """The learners for an agent with whole losses ("full") or with costs of steps ("bandit")."""
    fit = (kind for kind in LEARNERS.values() if kind.takes_late_losses and kind.knows == "skeleton")
    return " or ".join(kind.__name__ for kind in fit if feedback in kind.sees)


def made(
    path: object, told: Skeleton | MDP | None, said: Mapping[str, Any], parameters: Mapping[str, Any]
) -> tuple[AgentState, Event]:
    """Make a new agent, and its first event for the log."""
    if told is None:
        raise InputError(f"{path}", "no agent there, and no skeleton", "skeleton=, to make a new agent")
    name = said.get("learner", "SelfTuning")
    if name not in (fit := taking_late_losses()):
        given = f"{name}, which needs losses in order" if isinstance(name, str) and name in LEARNERS else f"{name!r}"
        raise InputError("learner", given, one_of(name, fit))
    wanted = list(signature(LEARNERS[name]).parameters.values())[1:]  # after the world
    for one in wanted:
        if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD and one.name not in parameters:
            raise InputError(one.name, "missing", f"a value: Agent.open(..., learner={name!r}, {one.name}=...)")
    learner = make_learner(name, told, said.get("criterion"), **parameters)
    if (criterion := learner.criterion.description()) is None:
        raise InputError("criterion", f"{learner.criterion!r}, which no file can hold", "a criterion of this library")
    patience = whole("patience", said.get("patience", PATIENCE_BY_DEFAULT), 1)
    units = Units.of(said.get("units", (0.0, 1.0)), said.get("outside", "clip"))
    missing = checked_missing(said.get("missing", "carry"))
    seed = whole("seed", said.get("seed", 0), 0)
    terms = Terms(str(name), learner.parameters, criterion, units, missing, patience, seed)
    world = WorldVersion(0, learner.skeleton)
    dynamics = None if learner.mdp is None else learner.mdp.transition
    body = {"terms": terms.described(), "world": world.described()}
    return AgentState(terms, world, dynamics, learner), Event("opened", None, 0, body, dynamics)


def rebuilt(log: Log) -> tuple[AgentState, int]:
    """Rebuild the state from the log, from its snapshot if there is one; return it with the snapshot's event."""
    kept, state = 0, None
    if (snapshot := log.snapshot()) is not None:
        with suppress(Exception):  # a bad snapshot does not matter: the log is complete
            state, kept = AgentState.load(f"{log.path}, snapshot", snapshot[1]), snapshot[0]
    events = log.events(kept if state is not None else 0)
    try:
        if state is None:
            kept = 0
            _, first = next(events)
            if first.kind != "opened":
                raise InputError("event 1", f"of kind {first.kind!r}", "'opened'")
            terms, world = Terms.of(first.body["terms"]), WorldVersion.of(0, first.body["world"])
            state = AgentState(terms, world, first.numbers)
        with catch_warnings():
            simplefilter("ignore")  # these warnings were issued when the events happened
            for seq, event in events:
                _replay(log, state, seq, event)
    except LogError:
        raise
    except Exception as error:
        given = f"inconsistent events ({type(error).__name__}: {error})"
        raise LogError(f"{log.path}", given, "the log of an agent") from error
    return state, kept


def _replay(log: Log, state: AgentState, seq: int, event: Event) -> None:
    r = None
    if event.episode is not None and event.kind not in ("begun", "observed"):
        r = state.running.get(event.episode) or state.recall(log.of_episode(event.episode, seq))
    state.replay(event, r, past_losses(log, seq) if event.kind == "extended" else ())


def past_losses(log: Log, before: int) -> list[tuple[int, FloatArray]]:
    """The last whole losses, each with the number of its world."""
    told = log.latest("told", TOLD_AGAIN, before)
    return [(event.body["world"], event.numbers) for event in told if event.numbers is not None]


def _difference(world: WorldVersion, told: Skeleton) -> str:
    """The first step that differs between the agent's first world and a skeleton."""
    other = WorldVersion(0, told)
    for step in other.steps:
        if step not in world.numbers:
            return f"the step {step}, which the agent's first world lacks"
    for step in world.steps:
        if step not in other.numbers:
            return f"a world without the step {step} of the agent's first world"
    return "the same steps in another order"


def check_same(
    state: AgentState, told: Skeleton | MDP | None, said: Mapping[str, Any], parameters: Mapping[str, Any]
) -> None:
    """Check that the arguments for reopening an agent match the file."""
    terms, sk = state.terms, told.skeleton if isinstance(told, MDP) else told
    if sk is not None and sk not in (state.worlds[0].skeleton, state.world.skeleton):
        raise InputError("skeleton", _difference(state.worlds[0], sk), "the agent's, or none; Agent.extend changes it")
    kept: dict[str, Any] = {
        "learner": terms.learner, "units": terms.units[:2], "seed": terms.seed, "outside": terms.units.outside,
        "missing": terms.missing, "patience": terms.patience, "criterion": state.learner.criterion,
    }  # fmt: skip
    for name, value in said.items():
        if (tuple(value) if isinstance(value, list) else value) != kept[name]:
            raise InputError(name, f"{value!r}", f"{kept[name]!r}, as in the file, or nothing")
    for name, value in parameters.items():
        if name not in terms.parameters or terms.parameters[name] != value:
            expected = f"{terms.parameters.get(name)!r}, as in the file, or nothing"
            raise InputError(name, f"{value!r}", expected)
