"""What it costs to hand a run to Ray: a thousand short ones, from the spec to the store, beside local processes.

The runs are the same and so is the disk; what differs is who hands them out.  The time until the first run is
done is told apart: a cluster, and each worker, must first start and import the library.  Then the same runs are
handed out once more: all are finished, and what is left is the handing out.
"""

import tempfile
import time
from collections.abc import Generator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from advmdp.experiments.engines import Event, Task, processes
from advmdp.experiments.ray_engine import make_engine
from advmdp.experiments.runner import Engine, run_experiment
from advmdp.experiments.spec import Spec

RUNS, JOBS = 1000, 2


def main(console: Console) -> None:
    world = {"kind": "random", "layers": (1, 2, 1), "actions": 2}
    losses, learners = [{"kind": "stochastic"}], [{"name": "OREPS"}]
    table = {"worlds": [world], "losses": losses, "learners": learners, "horizons": [50], "seeds": RUNS}
    spec = Spec.model_validate(table)
    shown = Table(title=f"{RUNS:,} runs of 50 episodes, {JOBS} at once")
    for column in (
        "engine",
        "until the first is done, s",
        "the others, s",
        "runs a second",
        "finished ones a second",
    ):
        shown.add_column(column, justify="left" if column == "engine" else "right")
    for name, engine in (("processes", processes), ("ray", make_engine())):
        first, rest, again = timed(spec, engine)
        speeds = [f"{(RUNS - 1) / seconds:,.0f}" for seconds in (rest, again)]
        shown.add_row(name, f"{first:.1f}", f"{rest:.1f}", *speeds)
    console.print(shown)


def timed(spec: Spec, engine: Engine) -> tuple[float, float, float]:
    """Seconds until the first run was done, from then to the last, and that again when none is left to play."""
    when: list[float] = []
    kept: list[Task] = []

    def watched(tasks: Sequence[Task], jobs: int) -> Generator[Event, None, None]:
        kept[:] = tasks
        when[:] = [time.perf_counter()]
        for event in engine(tasks, jobs):
            if event.kind == "finished":
                when.append(time.perf_counter())
            yield event

    with tempfile.TemporaryDirectory() as folder:
        summary = run_experiment(spec, Path(folder) / "out", jobs=JOBS, engine=watched)
        assert summary.finished == len(when) - 1 == RUNS
        first, rest = when[1] - when[0], when[-1] - when[1]
        for _ in watched(list(kept), JOBS):
            pass
    return first, rest, when[-1] - when[1]
