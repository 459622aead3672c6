"""One run: a learner in a world against losses, for a horizon and a seed; its identity, and how it is played.

All that determines a result is in the run, and nothing else: the world, the losses (files by their contents), the
criterion, the learner with its parameters, the horizon, the seed, and the version of this library.  The identity is a
hash of that, so equal runs have equal results, wherever and in whatever order they are played.

A run has a folder of its own, readable by anything that reads Parquet and JSON:

    curve.parquet     cumulative loss, regret and its parts, bound, epochs, at log-spaced episodes
    flow.parquet      for each transition: layer, state, action, successor, P, and q of the last and of the best policy
    manifest.json     the run, its results, versions and machine; written last: a run with a manifest is finished
    checkpoint.npz    while it is being played
    traceback.txt     if it failed
"""

import hashlib
import inspect
import json
import platform
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import version
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pydantic import TypeAdapter

import advmdp
from advmdp import losses as kinds_of_losses
from advmdp.criteria import Criterion, Risk, TotalLoss, WorstCase
from advmdp.errors import InputError
from advmdp.expansion import time_expand
from advmdp.experiments.spec import (
    CriterionSpec,
    ExpandedWorld,
    FilePart,
    LearnerSpec,
    LossesSpec,
    RandomWorld,
    ReplayLosses,
    RiskSpec,
    Spec,
    WorldSpec,
    WorstCaseSpec,
)  # fmt: skip
from advmdp.files import write_bytes
from advmdp.learners.base import Learner, learner_class
from advmdp.losses import Losses
from advmdp.mdp import MDP
from advmdp.occupancy_measures import occupancy
from advmdp.playing import SECONDS, Game, play
from advmdp.skeleton import Skeleton

__all__ = ["Run", "play_run", "runs_of"]

FORMAT = 1
MANIFEST, CURVE, FLOW, CHECKPOINT, TRACEBACK = (
    "manifest.json", "curve.parquet", "flow.parquet", "checkpoint.npz", "traceback.txt",
)  # fmt: skip
MOST_FLOW = 100_000
"""Worlds with more transitions are not written out: nobody could look at them."""
PACKAGES = ("numpy", "scipy", "numba", "polars")


@dataclass(frozen=True)
class Run:
    """All that determines a result."""

    world: WorldSpec
    losses: LossesSpec
    criterion: CriterionSpec
    learner: LearnerSpec
    horizon: int
    seed: int

    @cached_property
    def description(self) -> dict[str, Any]:
        """Ready for JSON; a seed that was left open is the run's, and labels and paths are left out."""
        world, losses = _dumped(self.world), _dumped(self.losses)
        for part in (world, losses):
            if "seed" in part and part["seed"] is None:
                part["seed"] = self.seed
        learner = {"name": self.learner.name, "parameters": self.learner_parameters}
        what = {"world": world, "losses": losses, "criterion": _dumped(self.criterion), "learner": learner}
        return {"format": FORMAT, "advmdp": advmdp.__version__, **what, "horizon": self.horizon, "seed": self.seed}

    @cached_property
    def identity(self) -> str:
        """A hash of the description."""
        return hashlib.sha256(json.dumps(self.description, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def folder(self) -> str:
        """The name of its folder: what people look for, and what tells it from others."""
        return f"{self.learner.name}-T{self.horizon}-s{self.seed}-{self.identity}"

    @property
    def learner_parameters(self) -> dict[str, Any]:
        """Those of the spec; a horizon or a seed that the learner takes and the spec left open is the run's."""
        takes = inspect.signature(learner_class(self.learner.name)).parameters
        open_ones = {"horizon": self.horizon, "seed": self.seed}
        given = {name: value for name, value in open_ones.items() if name in takes}
        return given | self.learner.parameters

    def to_json(self) -> str:
        """For another process; :meth:`from_json` reads it."""
        parts = {name: getattr(self, name).model_dump(mode="json") for name in ADAPTERS}
        return json.dumps({**parts, "horizon": self.horizon, "seed": self.seed})

    @classmethod
    def from_json(cls, text: str) -> "Run":
        """What :meth:`to_json` wrote."""
        table = json.loads(text)
        parts = {name: adapter.validate_python(table[name]) for name, adapter in ADAPTERS.items()}
        return cls(**parts, horizon=table["horizon"], seed=table["seed"])

    def make_world(self) -> MDP:
        """The MDP."""
        world = self.world
        if isinstance(world, RandomWorld):
            seed = self.seed if world.seed is None else world.seed
            return MDP.random(list(world.layers), world.actions, seed, world.branching, world.concentration)
        return _expanded(world)

    def make_losses(self, sk: Skeleton) -> Losses:
        """The losses."""
        losses = self.losses
        if isinstance(losses, ReplayLosses):
            return kinds_of_losses.Replay(sk, _unchanged(losses), rescale=losses.rescale)
        kind: Callable[..., Losses] = getattr(kinds_of_losses, losses.kind.capitalize())
        given = losses.model_dump(exclude={"kind", "seed"}, exclude_none=True)
        return kind(sk, seed=self.seed if losses.seed is None else losses.seed, **given)

    def make_criterion(self) -> Criterion:
        """The criterion."""
        if isinstance(self.criterion, RiskSpec):
            return Risk(self.criterion.alpha, self.criterion.c, reading=self.criterion.reading)
        return WorstCase() if isinstance(self.criterion, WorstCaseSpec) else TotalLoss()

    def make_learner(self, mdp: MDP) -> Learner:
        """The learner, which optimises the criterion if it can, and else the total loss."""
        kind = learner_class(self.learner.name)
        parameters = self.learner_parameters
        able = kind.optimises == "any" and parameters.get("feedback", "full") == "full"
        told = mdp if kind.knows == "dynamics" else mdp.skeleton
        make: Callable[..., Learner] = kind
        return make(told, criterion=self.make_criterion() if able else None, **parameters)


ADAPTERS: dict[str, TypeAdapter[Any]] = {
    "world": TypeAdapter(WorldSpec),
    "losses": TypeAdapter(LossesSpec),
    "criterion": TypeAdapter(CriterionSpec),
    "learner": TypeAdapter(LearnerSpec),
}


def runs_of(spec: Spec) -> list[Run]:
    """Worlds x losses x horizons x seeds x learners, in that order."""
    grid = product(spec.worlds, spec.losses, spec.horizons, spec.seeds, spec.learners)
    return [Run(world, losses, spec.criterion, learner, T, seed) for world, losses, T, seed, learner in grid]


def play_run(
    run: Run, folder: Path, show: Callable[[float], None] = lambda done: None, checkpoint_seconds: float = SECONDS
) -> None:
    """Play a run into its folder, from its checkpoint if there is one; nothing if it is finished."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / MANIFEST).exists():
        mdp = run.make_world()
        game = play(
            mdp, run.make_losses(mdp.skeleton), run.make_learner(mdp), run.horizon, run.seed, progress=show,
            criterion=run.make_criterion(), checkpoint=folder / CHECKPOINT, checkpoint_seconds=checkpoint_seconds,
        )  # fmt: skip
        write_bytes(folder / CURVE, _parquet(game.curve))
        if mdp.skeleton.num_transitions <= MOST_FLOW:
            write_bytes(folder / FLOW, _parquet(flow_frame(game)))
        write_bytes(folder / MANIFEST, _manifest(run, game))
    tidy(folder)


def tidy(folder: Path) -> None:
    """Remove what a finished run needs no more: checkpoints, tracebacks, and what a kill left half written."""
    for path in folder.iterdir():
        if path.name not in (MANIFEST, CURVE, FLOW):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def flow_frame(game: Game) -> pl.DataFrame:
    """Where the probability goes under the last policy of the learner and under the best fixed one."""
    sk = game.mdp.skeleton
    pair = sk.over_transitions(np.arange(sk.num_pairs))
    state = sk.state_of_pair[pair]
    return pl.DataFrame(
        {
            "layer": np.searchsorted(sk.layer_ptr, state, side="right") - 1,
            "state": state,
            "action": pair - sk.pair_ptr[state],
            "successor": sk.successor,
            "probability": game.mdp.transition,
            "q_learned": occupancy(game.mdp, game.learner.policy),
            "q_best": occupancy(game.mdp, game.comparator.policy),
        }
    )


def _manifest(run: Run, game: Game) -> bytes:
    last, sk = game.curve.row(-1, named=True), game.mdp.skeleton
    sizes = {"layers": sk.layer_sizes.tolist(), "actions": sk.num_actions, "transitions": sk.num_transitions}
    about = {
        "identity": run.identity,
        "run": run.description,
        "result": {name: value if _is_plain(value) else None for name, value in last.items()},
        "world": sizes,
        "losses": repr(game.losses),
        "learner": repr(game.learner),
        "criterion": repr(game.criterion),
        "versions": _versions(),
        "machine": {"system": platform.platform(), "processor": platform.machine()},
    }
    return json.dumps(about, indent=1, sort_keys=True).encode()


def _is_plain(value: object) -> bool:
    """JSON has no infinity."""
    return not isinstance(value, float) or bool(np.isfinite(value))


def _parquet(frame: pl.DataFrame) -> bytes:
    content = BytesIO()
    frame.write_parquet(content)
    return content.getvalue()


def _dumped(part: Any) -> dict[str, Any]:
    hidden = {"file"} if isinstance(part, FilePart) else set()
    table: dict[str, Any] = part.model_dump(mode="json", exclude=hidden)
    return table


def _unchanged(part: FilePart) -> str:
    """The file, which must still be what the identity says."""
    try:
        content = Path(part.file).read_bytes()
    except OSError as error:
        raise InputError(part.file, f"{error.strerror}", "the file that the spec names") from None
    if hashlib.sha256(content).hexdigest() != part.digest:
        raise InputError(part.file, "a file that has changed since the spec was read", "the same one, or a new start")
    return part.file


@cache
def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}


def _expanded(world: ExpandedWorld) -> MDP:
    try:
        with np.load(_unchanged(world), allow_pickle=False) as archive:
            transition = archive["transition"]
    except (OSError, KeyError, ValueError) as error:
        raise InputError(world.file, f"{error}", "an .npz file with an array called transition") from None
    return time_expand(transition, world.steps, world.initial).mdp
