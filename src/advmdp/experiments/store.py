"""The folder of an experiment, in Parquet and JSON, readable without this library.

    experiment.json               the spec, and for each of its runs the folder, the label and the place in the grid
    runs/<learner>-T<horizon>-s<seed>-<identity>/    one folder a run (see :mod:`advmdp.experiments.runs`)

A run is told by its identity.  When the spec changes, runs that are still in it are kept as they are; those that are
not stay in ``runs/`` and are named as left over, until someone removes them.  No file holds a time of day or how long
something took: the same spec gives the same bytes, whatever happened on the way.

The folder may be given as a symbolic link.  Inside of it no folder may be one: what it leads to would be written to and
tidied up.
"""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from advmdp.core.errors import InputError
from advmdp.core.files import path_of, table_bytes, write_bytes
from advmdp.experiments.runs import CHECKPOINT, MANIFEST, TRACEBACK, Run, make_folder, tidy
from advmdp.experiments.spec import Spec

INDEX, RUNS = "experiment.json", "runs"
State = Literal["finished", "failed", "interrupted", "new"]


class Store:
    """The folder, and which of its runs are where."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = path_of("out", root)

    def folder(self, run: Run) -> Path:
        """That of one run."""
        return self.root / RUNS / run.folder

    def state(self, run: Run) -> State:
        """How far it has come."""
        return state_of(self.folder(run))

    def left_over(self, runs: Sequence[Run]) -> list[str]:
        """Folders of runs that are not among these."""
        known = {run.folder for run in runs}
        there = self.root / RUNS
        return sorted(path.name for path in there.iterdir() if path.name not in known) if there.exists() else []

    def begin(self, spec: Spec, runs: Sequence[Run], resume: bool) -> None:
        """Write the index, of a new experiment or of one that is taken up again."""
        index = self.root / INDEX
        if index.exists() and not resume:
            raise InputError(f"{self.root}", "an experiment is there already", "another folder, or --resume to go on")
        about = {"name": spec.name, "spec": spec.model_dump(mode="json"), "runs": [_entry(spec, run) for run in runs]}
        content = table_bytes(about)
        if not index.exists() or index.read_bytes() != content:
            write_bytes(index, content)
        for run in runs:
            if self.state(run) == "finished":
                make_folder(self.folder(run))
                tidy(self.folder(run))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Only one process at a time may run an experiment into a folder, which is made if it is not there."""
        make_folder(self.root / RUNS)
        with lock(self.root) as mine:
            if not mine:
                raise InputError(f"{self.root}", "another process is running this experiment", "to wait until it ends")
            yield


def state_of(folder: Path) -> State:
    """How far the run of this folder has come."""
    if (folder / MANIFEST).exists():
        return "finished"
    if (folder / TRACEBACK).exists():
        return "failed"
    return "interrupted" if (folder / CHECKPOINT).exists() else "new"


def _entry(spec: Spec, run: Run) -> dict[str, Any]:
    return {
        "folder": run.folder,
        "identity": run.identity,
        "label": run.learner.shown,
        "learner": run.learner.name,
        "world": place(spec.worlds, run.world),
        "losses": place(spec.losses, run.losses),
        "horizon": run.horizon,
        "seed": run.seed,
    }


def place(parts: Sequence[object], part: object) -> int:
    """Which of them it is, not which is equal to it: 0 and 0.0 are not the same in a hash."""
    return next(i for i, one in enumerate(parts) if one is part)


@contextmanager
def lock(folder: Path, wait: bool = False) -> Iterator[bool]:
    """Hold a folder, for as long as this process lives at most; gives whether it could be had."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(handle)
