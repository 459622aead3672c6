"""The folder of an experiment, in Parquet and JSON, readable without this library.

    experiment.json               the spec, and for each of its runs the folder, the label and the place in the grid
    runs/<learner>-T<horizon>-s<seed>-<identity>/    one folder a run (see :mod:`advmdp.experiments.runs`)

A run is identified by a hash of its inputs.  If the spec changes, runs that it still contains are kept.  Runs removed
from the spec stay in ``runs/`` and are listed as left over.  No file records a time of day or a duration, so the same
spec gives the same bytes, whatever happened along the way.

The folder itself may be a symbolic link.  Folders inside it may not: files would be written and deleted where it leads.
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
    """The folder of an experiment and the state of its runs."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = path_of("out", root)

    def folder(self, run: Run) -> Path:
        """The folder of a run."""
        return self.root / RUNS / run.folder

    def state(self, run: Run) -> State:
        """The state of a run."""
        return state_of(self.folder(run))

    def left_over(self, runs: Sequence[Run]) -> list[str]:
        """Folders of runs that are not among these."""
        known = {run.folder for run in runs}
        there = self.root / RUNS
        return sorted(path.name for path in there.iterdir() if path.name not in known) if there.exists() else []

    def begin(self, spec: Spec, runs: Sequence[Run], resume: bool) -> None:
        """Write the index of a new or resumed experiment."""
        index = self.root / INDEX
        if index.exists() and not resume:
            expected = "another folder, or --resume to continue"
            raise InputError(f"{self.root}", "it already holds an experiment", expected)
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
        """Make the folder if needed and lock it: only one process at a time may run an experiment into it."""
        make_folder(self.root / RUNS)
        with lock(self.root) as mine:
            if not mine:
                expected = "no other process; wait until it ends"
                raise InputError(f"{self.root}", "another process is running this experiment", expected)
            yield


def state_of(folder: Path) -> State:
    """The state of the run in this folder."""
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
    """The index of a part by identity, not equality: 0 and 0.0 are equal but have different hashes."""
    return next(i for i, one in enumerate(parts) if one is part)


@contextmanager
def lock(folder: Path, wait: bool = False) -> Iterator[bool]:
    """Lock a folder, at most until this process ends; yield whether it succeeded."""
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
