"""Worlds, losses and criteria, made from the tables of a spec.

Scenarios and Gymnasium environments have their own losses, and a scenario has a criterion that suits them;
``kind = "own"`` selects these.  If a world comes from another package, such as a network from topohub, the version of
that package is part of a run's identity.  Files count by their contents.
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
from advmdp.losses import Losses, Units
from advmdp.model.expansion import time_expand
from advmdp.model.mdp import MDP
from advmdp.scenarios import make_scenario, scenario_packages

WORLD: TypeAdapter[Any] = TypeAdapter(WorldSpec)


@dataclass(frozen=True, eq=False)
class MadeWorld:
    """An MDP, with the losses, criterion and units that some kinds of world have."""

    mdp: MDP
    own_losses: Callable[[int], Losses] | None = None
    """seed -> losses."""
    own_criterion: Criterion | None = None
    units: Units | None = None
    """The units of its own losses."""


def make_world(world: WorldSpec, seed: int, allow_import: tuple[str, ...] = ()) -> MadeWorld:
    """The world; ``seed`` is the run's, used if the spec does not fix one.

    A spec may come from anyone, so code that it names is imported only if ``allow_import`` lists its module.
    """
    return _made(world.model_dump_json(), seed if isinstance(world, RandomWorld) else 0, allow_import)


@lru_cache(maxsize=1)
def _made(text: str, seed: int, allow_import: tuple[str, ...]) -> MadeWorld:
    """Make a world, and cache it: the learners of a spec use the same one in turn, and a large one takes long."""
    world = WORLD.validate_json(text)
    if isinstance(world, RandomWorld):
        chosen = seed if world.seed is None else world.seed
        return MadeWorld(MDP.random(list(world.layers), world.actions, chosen, world.branching, world.concentration))
    if isinstance(world, ScenarioWorld):
        file = {} if world.file is None else {"file": unchanged(world)}
        found = make_scenario(world.name, **world.parameters, **file)
        return MadeWorld(found.mdp, found.losses_from, found.criterion, found.units)
    if isinstance(world, GymnasiumWorld):
        return _environment(world, allow_import)
    return MadeWorld(_expanded(world))


def make_losses(losses: LossesSpec, world: MadeWorld, seed: int) -> Losses:
    """The losses; ``seed`` is the run's, used if the spec does not fix one."""
    if isinstance(losses, ReplayLosses):
        return kinds_of_losses.Replay(world.mdp.skeleton, unchanged(losses), rescale=losses.rescale)
    chosen = seed if losses.seed is None else losses.seed
    if isinstance(losses, OwnLosses):
        if world.own_losses is None:
            raise InputError("losses", "kind 'own'", "a world with its own losses: a scenario, or one of Gymnasium's")
        return world.own_losses(chosen)
    kind: Callable[..., Losses] = getattr(kinds_of_losses, losses.kind.capitalize())
    given = losses.model_dump(exclude={"kind", "seed"}, exclude_none=True)
    return kind(world.mdp.skeleton, seed=chosen, **given)


def make_criterion(criterion: CriterionSpec, world: MadeWorld, losses: LossesSpec) -> Criterion:
    """The criterion; the world's own criterion applies to its own losses only."""
    if isinstance(criterion, OwnCriterion):
        fitting = world.own_criterion if isinstance(losses, OwnLosses) else None
        return fitting or TotalLoss()
    if isinstance(criterion, RiskSpec):
        return Risk(criterion.alpha, criterion.c, reading=criterion.reading)
    return WorstCase() if isinstance(criterion, WorstCaseSpec) else TotalLoss()


def make_units(world: MadeWorld, losses: LossesSpec, criterion: Criterion) -> Units | None:
    """The units of the cost, known only for a world's own losses under its own criterion."""
    own = isinstance(losses, OwnLosses) and criterion == (world.own_criterion or TotalLoss())
    return world.units if own else None


def packages_of(world: WorldSpec) -> dict[str, str]:
    """The other packages that a world depends on, with their versions."""
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
    """The path of the file; raises if its contents have changed since the spec was read."""
    assert part.file is not None
    try:
        content = Path(part.file).read_bytes()
    except OSError as error:
        raise InputError(part.file, f"{error.strerror}", "the file that the spec names") from None
    if hashlib.sha256(content).hexdigest() != part.digest:
        raise InputError(part.file, "changed since the spec was read", "the same file; start again to use the new one")
    return part.file


def _expanded(world: ExpandedWorld) -> MDP:
    try:
        # Opened here, because NumPy does not close a file that it cannot read.
        with open(unchanged(world), "rb") as file, np.load(file, allow_pickle=False) as archive:
            transition = archive["transition"]
    except InputError:
        raise
    except Exception as error:  # NumPy may raise anything on an invalid file
        raise InputError(world.file, f"{error}", "an .npz file with an array called transition") from None
    return time_expand(transition, world.steps, world.initial).mdp


def _environment(world: GymnasiumWorld, allow_import: tuple[str, ...]) -> MadeWorld:
    from advmdp.integrations.gymnasium import tabular_model
    from advmdp.model.gymnasium_tables import make_environment

    model = tabular_model(make_environment(world.id, world.options, allow_import), world.steps)
    # If all rewards are zero, there is nothing to scale.
    return MadeWorld(model.mdp, lambda seed: model.losses, units=model.units if model.scale > 0.0 else None)
