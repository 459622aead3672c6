"""What the tables of a spec become: worlds, losses and criteria of the library.

A scenario and an environment of Gymnasium bring losses of their own, and a scenario a criterion that fits them: these
are what ``kind = "own"`` means.  Whatever a world is read with besides this library, topologies say, or Gymnasium,
determines it too, so its versions are part of a run's identity; files count by their contents.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from advmdp import losses as kinds_of_losses
from advmdp.core.errors import InputError
from advmdp.criteria import Criterion, Risk, TotalLoss, WorstCase
from advmdp.experiments.spec import (
    CriterionSpec,
    ExpandedWorld,
    FilePart,
    GymnasiumWorld,
    LossesSpec,
    OwnCriterion,
    OwnLosses,
    RandomWorld,
    ReplayLosses,
    RiskSpec,
    ScenarioWorld,
    WorldSpec,
    WorstCaseSpec,
)  # fmt: skip
from advmdp.losses import Losses
from advmdp.model.expansion import time_expand
from advmdp.model.mdp import MDP
from advmdp.scenarios import make_scenario, scenario_packages

WORLD: TypeAdapter[Any] = TypeAdapter(WorldSpec)


@dataclass(frozen=True, eq=False)
class World:
    """An MDP, and what some kinds bring with it."""

    mdp: MDP
    own_losses: Callable[[int], Losses] | None = None
    """seed -> losses."""
    own_criterion: Criterion | None = None
    units: "Units | None" = None
    """Those of its own losses."""


@dataclass(frozen=True)
class Units:
    """What a loss of the game is in the units of the problem: ``scale`` * loss + ``offset`` for each episode."""

    name: str
    scale: float
    offset: float


def make_world(world: WorldSpec, seed: int, allow_import: tuple[str, ...] = ()) -> World:
    """The world; ``seed`` is that of the run, for what the spec left open.

    A spec may come from anyone, so code that it names is imported only if it is in one of the modules of
    ``allow_import``.
    """
    return _made(world.model_dump_json(), seed if isinstance(world, RandomWorld) else 0, allow_import)


@lru_cache(maxsize=1)
def _made(text: str, seed: int, allow_import: tuple[str, ...]) -> World:
    """Learners of a spec meet the same world one after the other, and a large one takes long to make."""
    world = WORLD.validate_json(text)
    if isinstance(world, RandomWorld):
        chosen = seed if world.seed is None else world.seed
        return World(MDP.random(list(world.layers), world.actions, chosen, world.branching, world.concentration))
    if isinstance(world, ScenarioWorld):
        file = {} if world.file is None else {"file": unchanged(world)}
        found = make_scenario(world.name, **world.parameters, **file)
        units = Units(found.unit, float(found.scale), float(found.offset))
        return World(found.mdp, found.losses_from, found.criterion, units)
    if isinstance(world, GymnasiumWorld):
        return _environment(world, allow_import)
    return World(_expanded(world))


def make_losses(losses: LossesSpec, world: World, seed: int) -> Losses:
    """The losses; ``seed`` is that of the run, for what the spec left open."""
    if isinstance(losses, ReplayLosses):
        return kinds_of_losses.Replay(world.mdp.skeleton, unchanged(losses), rescale=losses.rescale)
    chosen = seed if losses.seed is None else losses.seed
    if isinstance(losses, OwnLosses):
        if world.own_losses is None:
            raise InputError("losses", "kind 'own'", "a world that has losses of its own: a scenario or Gymnasium's")
        return world.own_losses(chosen)
    kind: Callable[..., Losses] = getattr(kinds_of_losses, losses.kind.capitalize())
    given = losses.model_dump(exclude={"kind", "seed"}, exclude_none=True)
    return kind(world.mdp.skeleton, seed=chosen, **given)


def make_criterion(criterion: CriterionSpec, world: World, losses: LossesSpec) -> Criterion:
    """The criterion; the world's own is for its own losses."""
    if isinstance(criterion, OwnCriterion):
        fitting = world.own_criterion if isinstance(losses, OwnLosses) else None
        return fitting or TotalLoss()
    if isinstance(criterion, RiskSpec):
        return Risk(criterion.alpha, criterion.c, reading=criterion.reading)
    return WorstCase() if isinstance(criterion, WorstCaseSpec) else TotalLoss()


def make_units(world: World, losses: LossesSpec, criterion: Criterion) -> Units | None:
    """The units of what is paid, where they are known: of a world's own losses, by its own criterion."""
    own = isinstance(losses, OwnLosses) and criterion == (world.own_criterion or TotalLoss())
    return world.units if own else None


def packages_of(world: WorldSpec) -> dict[str, str]:
    """What a world is read with besides this library, and its version."""
    names: tuple[str, ...] = ()
    if isinstance(world, ScenarioWorld):
        names = scenario_packages(world.name)
    elif isinstance(world, GymnasiumWorld):
        names = ("gymnasium",)
    return {name: _version(name) for name in names}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def unchanged(part: FilePart) -> str:
    """The file, which must still be what the identity says."""
    assert part.file is not None
    try:
        content = Path(part.file).read_bytes()
    except OSError as error:
        raise InputError(part.file, f"{error.strerror}", "the file that the spec names") from None
    if hashlib.sha256(content).hexdigest() != part.digest:
        raise InputError(part.file, "a file that has changed since the spec was read", "the same one, or a new start")
    return part.file


def _expanded(world: ExpandedWorld) -> MDP:
    try:
        # Opened here, since NumPy does not close what it cannot read.
        with open(unchanged(world), "rb") as file, np.load(file, allow_pickle=False) as archive:
            transition = archive["transition"]
    except InputError:
        raise
    except Exception as error:  # whatever NumPy makes of a file that is none
        raise InputError(world.file, f"{error}", "an .npz file with an array called transition") from None
    return time_expand(transition, world.steps, world.initial).mdp


def _environment(world: GymnasiumWorld, allow_import: tuple[str, ...]) -> World:
    from advmdp.integrations.gymnasium import tabular_model
    from advmdp.model.gymnasium_tables import make_environment

    model = tabular_model(make_environment(world.id, world.options, allow_import), world.steps)
    # What was paid is the return with its sign turned; where all rewards are zero there is nothing to scale.
    units = Units("negative reward", float(model.scale), -float(model.offset)) if model.scale > 0.0 else None
    return World(model.mdp, lambda seed: model.losses, units=units)
