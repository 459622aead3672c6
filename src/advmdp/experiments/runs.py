"""One run of an experiment: a learner in a world against losses, for a horizon and a seed.

A run consists of exactly what determines its result: the world, the losses (files by their contents), the criterion,
the learner with its parameters, the horizon, the seed, and the version of this library.  It is identified by a hash of
these, so equal runs have equal results, wherever and in whatever order they are played.

Each run has its own folder, in Parquet and JSON:

    curve.parquet     cumulative loss, regret and its parts, bound, epochs, radii, at log-spaced episodes
    flow.parquet      for each transition: its name where it has one, layer, state, action, successor, P, and q of the
                      last and of the best policy
    manifest.json     the run, its results, versions and machine, the checksums of the two files above and of itself;
                      written last: a run with a manifest is finished
    checkpoint.npz    while it is being played
    traceback.txt     if it failed
"""

import hashlib
import json
import platform
import shutil
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from importlib.metadata import version
from importlib.util import find_spec
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pydantic import TypeAdapter

from advmdp import __version__
from advmdp.core.errors import CheckpointError, StorageError
from advmdp.core.files import table_bytes, write_bytes
from advmdp.criteria import Criterion
from advmdp.experiments import making
from advmdp.experiments.spec import CriterionSpec, FilePart, LearnerSpec, LossesSpec, Spec, WorldSpec
from advmdp.game.checkpoint import SECONDS
from advmdp.game.play import play
from advmdp.game.result import Game
from advmdp.learners.base import Learner
from advmdp.learners.parameters import parameter_names
from advmdp.learners.registry import LEARNERS, make_learner
from advmdp.losses import Losses, Units
from advmdp.model.mdp import MDP
from advmdp.model.occupancy import occupancy

FORMAT = 1
MANIFEST, CURVE, FLOW, CHECKPOINT, TRACEBACK = (
    "manifest.json", "curve.parquet", "flow.parquet", "checkpoint.npz", "traceback.txt",
)  # fmt: skip
MOST_FLOW = 100_000
"""The flow of worlds with more transitions is not written: it would be unreadable."""
PACKAGES = ("numpy", "scipy", "polars")


@dataclass(frozen=True)
class Run:
    """Everything that determines a result."""

    world: WorldSpec
    losses: LossesSpec
    criterion: CriterionSpec
    learner: LearnerSpec
    horizon: int
    seed: int
    allow_import: tuple[str, ...] = ()
    """Modules whose code the spec may use.  This is a permission: it changes no result, so the identity ignores it."""

    @cached_property
    def description(self) -> dict[str, Any]:
        """The run for JSON, without labels and paths; a seed that the spec does not fix is the run's."""
        world, losses = _dumped(self.world), _dumped(self.losses)
        for part in (world, losses):
            if "seed" in part and part["seed"] is None:
                part["seed"] = self.seed
        learner = {"name": self.learner.name, "parameters": self.learner_parameters}
        if packages := making.packages_of(self.world):
            world["read_with"] = packages
        what = {"world": world, "losses": losses, "criterion": _dumped(self.criterion), "learner": learner}
        return {"format": FORMAT, "advmdp": __version__, **what, "horizon": self.horizon, "seed": self.seed}

    @cached_property
    def identity(self) -> str:
        """A hash of the description."""
        return hashlib.sha256(json.dumps(self.description, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def folder(self) -> str:
        """The name of its folder: learner, horizon and seed for people, and the identity."""
        return f"{self.learner.name}-T{self.horizon}-s{self.seed}-{self.identity}"

    @property
    def learner_parameters(self) -> dict[str, Any]:
        """The parameters in the spec; a horizon or seed that it does not fix is the run's, if the learner takes one."""
        takes = parameter_names(LEARNERS[self.learner.name])
        open_ones = {"horizon": self.horizon, "seed": self.seed}
        given = {name: value for name, value in open_ones.items() if name in takes}
        return given | self.learner.parameters

    @property
    def kind(self) -> str:
        """World, losses and learner: runs that differ only in horizon and seed are of one kind."""
        return f"{self.world!r} {self.losses!r} {self.learner!r}"

    def to_json(self) -> str:
        """For another process; :meth:`from_json` reads it."""
        parts = {name: getattr(self, name).model_dump(mode="json") for name in ADAPTERS}
        return json.dumps({**parts, "horizon": self.horizon, "seed": self.seed, "allow_import": self.allow_import})

    @classmethod
    def from_json(cls, text: str) -> "Run":
        """What :meth:`to_json` wrote."""
        table = json.loads(text)
        parts = {name: adapter.validate_python(table[name]) for name, adapter in ADAPTERS.items()}
        return cls(**parts, horizon=table["horizon"], seed=table["seed"], allow_import=tuple(table["allow_import"]))

    @property
    def _world(self) -> making.MadeWorld:
        return making.make_world(self.world, self.seed, self.allow_import)

    def make_world(self) -> MDP:
        """The MDP."""
        return self._world.mdp

    def make_losses(self) -> Losses:
        """The losses."""
        return making.make_losses(self.losses, self._world, self.seed)

    def make_criterion(self) -> Criterion:
        """The criterion."""
        return making.make_criterion(self.criterion, self._world, self.losses)

    def make_units(self) -> Units | None:
        """The units of the problem, if they are known."""
        return making.make_units(self._world, self.losses, self.make_criterion())

    def make_learner(self, mdp: MDP) -> Learner:
        """The learner, which optimises the criterion if it can, otherwise the total loss."""
        name, parameters = self.learner.name, self.learner_parameters
        able = LEARNERS[name].optimises == "any" and parameters.get("feedback", "full") == "full"
        return make_learner(name, mdp, self.make_criterion() if able else None, **parameters)


ADAPTERS: dict[str, TypeAdapter[Any]] = {
    "world": TypeAdapter(WorldSpec),
    "losses": TypeAdapter(LossesSpec),
    "criterion": TypeAdapter(CriterionSpec),
    "learner": TypeAdapter(LearnerSpec),
}


def runs_of(spec: Spec, allow_import: Iterable[str] = ()) -> list[Run]:
    """Worlds x losses x horizons x seeds x learners, in that order."""
    grid, allowed = product(spec.worlds, spec.losses, spec.horizons, spec.seeds, spec.learners), tuple(allow_import)
    return [Run(world, losses, spec.criterion, learner, T, seed, allowed) for world, losses, T, seed, learner in grid]


def play_run(
    run: Run, folder: Path, show: Callable[[float], None] = lambda done: None, checkpoint_seconds: float = SECONDS
) -> None:
    """Play a run into its folder, from its checkpoint if there is one; do nothing if it is finished."""
    make_folder(folder)
    if not (folder / MANIFEST).exists():
        try:
            game = _played(run, folder / CHECKPOINT, show, checkpoint_seconds)
        except CheckpointError:  # treated as missing: the run starts again, with the same results
            tidy(folder)
            game = _played(run, folder / CHECKPOINT, show, checkpoint_seconds)
        files = {CURVE: _parquet(game.curve)}
        if game.mdp.skeleton.num_transitions <= MOST_FLOW:
            files[FLOW] = _parquet(flow_frame(game))
        for name, content in files.items():
            write_bytes(folder / name, content)
        checksums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
        write_bytes(folder / MANIFEST, table_bytes({**_manifest(run, game), "files": checksums}))
    tidy(folder)


def _played(run: Run, checkpoint: Path, show: Callable[[float], None], checkpoint_seconds: float) -> Game:
    mdp = run.make_world()
    return play(
        mdp, run.make_losses(), run.make_learner(mdp), run.horizon, run.seed, progress=show,
        criterion=run.make_criterion(), checkpoint=checkpoint, checkpoint_seconds=checkpoint_seconds,
    )  # fmt: skip


def make_folder(folder: Path) -> None:
    """Make the folder of a run if it does not exist.

    A symbolic link raises an error: :func:`tidy` deletes files from the folder, and a link may lead to other files.
    """
    if folder.is_symlink():
        raise StorageError(f"{folder}", "a symbolic link", "a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{folder}", f"{error.strerror}", "a folder that can be made and written to") from None


def tidy(folder: Path) -> None:
    """Remove what a finished run does not need: checkpoints, tracebacks, and files left half written by a kill."""
    for path in folder.iterdir():
        if path.name not in (MANIFEST, CURVE, FLOW):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)


def flow_frame(game: Game) -> pl.DataFrame:
    """The occupancy measures of the learner's last policy and of the best fixed one."""
    sk = game.mdp.skeleton
    pair = sk.over_transitions(np.arange(sk.num_pairs))
    state = sk.state_of_pair[pair]
    named = sk.state_names is not None or sk.action_names is not None
    names = {"name": [sk.transition_label(i) for i in range(sk.num_transitions)]} if named else {}
    return pl.DataFrame(
        {
            **names,
            "layer": np.searchsorted(sk.layer_ptr, state, side="right") - 1,
            "state": state,
            "action": pair - sk.pair_ptr[state],
            "successor": sk.successor,
            "probability": game.mdp.transition,
            "q_learned": occupancy(game.mdp, game.learner.policy),
            "q_best": occupancy(game.mdp, game.comparator.policy),
        }
    )


def _manifest(run: Run, game: Game) -> dict[str, Any]:
    last, sk = game.curve.row(-1, named=True), game.mdp.skeleton
    chosen = {"criterion": game.learner.criterion, **game.learner.parameters}  # all, where its repr leaves out defaults
    told = ", ".join(f"{name}={value!r}" for name, value in chosen.items())
    sizes = {"layers": sk.layer_sizes.tolist(), "actions": sk.num_actions, "transitions": sk.num_transitions}
    return {
        "identity": run.identity,
        "run": run.description,
        "result": {name: value if _is_plain(value) else None for name, value in last.items()},
        **({} if (units := run.make_units()) is None else {"units": asdict(units)}),
        "world": sizes,
        "losses": repr(game.losses),
        "reacts": game.reacts,
        "learner": f"{type(game.learner).__name__}({told})",
        "criterion": repr(game.criterion),
        "versions": _versions(),
        "machine": {"system": platform.platform(), "processor": platform.machine()},
    }


def _is_plain(value: object) -> bool:
    """Whether JSON can express it: JSON has no infinity."""
    return not isinstance(value, float) or bool(np.isfinite(value))


def _parquet(frame: pl.DataFrame) -> bytes:
    content = BytesIO()
    frame.write_parquet(content)
    return content.getvalue()


def _dumped(part: Any) -> dict[str, Any]:
    hidden = {"file"} if isinstance(part, FilePart) else set()
    table: dict[str, Any] = part.model_dump(mode="json", exclude=hidden)
    return table


@cache
def _versions() -> dict[str, str]:
    known = {name: version(name) for name in PACKAGES if find_spec(name)}
    return {"python": platform.python_version(), **known}
