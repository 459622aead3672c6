"""Measures the overhead of experiments: the runner compared with ``play``, a thousand short runs, a large report.

Goal: runs of about ten seconds take at most 5% longer with the runner than in a script that calls ``play``.
On a busy machine CPU time varies by more than that, and wall-clock time even more.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table

from advmdp.experiments.engines.local import Engine, Event, Player, Task, processes
from advmdp.experiments.engines.ray import make_engine
from advmdp.experiments.report import write_report
from advmdp.experiments.runner import run_experiment
from advmdp.experiments.runs import CURVE, MANIFEST, Run, play_run, runs_of
from advmdp.experiments.spec import Spec
from advmdp.game.ledger import marks

WORLD = {"kind": "random", "layers": (1, 5, 5, 5, 5, 1), "actions": 4}
ADAPTIVE = {"kind": "adaptive", "strength": 0.8}
LONG, REPEATS = 10.0, 5
RUNS, JOBS = 1000, 2
HORIZON, PLAYED, SEEDS = 10**6, 2000, 20
LEARNERS = ("UCOREPS", "OREPS", "UCRL2", "FollowLeader", "Uniform")


def main(console: Console) -> None:
    overhead(console)
    many(console)
    large_report(console)


def make_spec(learners: Sequence[str], horizon: int, seeds: int = 1, **more: Any) -> Spec:
    table = {"worlds": [WORLD], "losses": [ADAPTIVE], "learners": [{"name": name} for name in learners]}
    return Spec.model_validate({**table, "horizons": [horizon], "seeds": seeds, **more})


PLAIN = """
import advmdp as am
for seed in range({runs}):
    mdp = am.MDP.random({layers}, {actions}, seed=seed)
    losses = am.losses.Adaptive(mdp.skeleton, seed=seed, strength={strength})
    am.play(mdp, losses, am.UCOREPS(mdp.skeleton, horizon={T}), {T}, seed)
"""
SPEC = """
horizons = [{T}]
seeds = {runs}
world = {{kind = "random", layers = {layers}, actions = {actions}}}
loss = {{kind = "adaptive", strength = {strength}}}
learner = {{name = "UCOREPS"}}
"""


def overhead(console: Console) -> None:
    """Compare ``advmdp run`` with a script that plays the same games; both are separate commands.

    Both start Python and import the library.  The runner does so again in the process that plays; it also checks the
    spec, shows progress, keeps checkpoints, and writes files.
    """
    short = 100_000
    horizon = int(short * LONG / (script(1, short)[1] - script(1, 1)[1]))
    table = Table(title=f"runs of {horizon:,} episodes, -j 1, including start-up, best of {REPEATS}")
    for column in ("runs", "seconds", "play alone", "advmdp run", "more"):
        table.add_column(column, justify="right")
    for runs in (1, 4):
        # Alternating, so that other load affects both.
        taken = [[make(runs, horizon) for make in (script, runner)] for _ in range(REPEATS)]
        for name, (alone, through) in zip(("wall-clock", "CPU"), np.min(taken, axis=0).T, strict=True):
            table.add_row(f"{runs}", name, f"{alone:.2f}", f"{through:.2f}", f"{through / alone - 1.0:+.1%}")
    console.print(table)


def filled(text: str, runs: int, horizon: int) -> str:
    layers, strength = list(WORLD["layers"]), ADAPTIVE["strength"]
    return text.format(runs=runs, T=horizon, layers=layers, actions=WORLD["actions"], strength=strength)


def script(runs: int, horizon: int) -> tuple[float, float]:
    """Seconds of the script."""
    return timed_command("-c", filled(PLAIN, runs, horizon))


def runner(runs: int, horizon: int) -> tuple[float, float]:
    """Seconds of ``advmdp run``."""
    with tempfile.TemporaryDirectory() as folder:
        spec = Path(folder) / "spec.toml"
        spec.write_text(filled(SPEC, runs, horizon))
        return timed_command("-m", "advmdp", "run", str(spec), "-o", f"{folder}/out")


def timed_command(*line: str) -> tuple[float, float]:
    """Seconds of a Python command: wall-clock and CPU."""
    begin = _clocks()
    subprocess.run([sys.executable, *line], check=True, capture_output=True)
    return _since(begin)


def _clocks() -> tuple[float, float]:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter(), used.ru_utime + used.ru_stime


def _since(begin: tuple[float, float]) -> tuple[float, float]:
    clock, used = _clocks()
    return clock - begin[0], used - begin[1]


def many(console: Console) -> None:
    """Measure the cost of scheduling a run and of storing its results, with a thousand short runs.

    The engines differ; the runs and the disk are the same.  The time until the first run is done is separate: a
    cluster, and each worker, must first start and import the library.  Then the same runs are scheduled again; all are
    finished, so only the cost of scheduling remains.
    """
    world = {"kind": "random", "layers": (1, 2, 1), "actions": 2}
    spec = make_spec(["OREPS"], 50, RUNS, worlds=[world], losses=[{"kind": "stochastic"}])
    shown = Table(title=f"{RUNS:,} runs of 50 episodes, {JOBS} at once")
    shown.add_column("engine")
    for column in ("until the first is done, s", "the others, s", "runs per second", "finished ones per second"):
        shown.add_column(column, justify="right")
    for name, engine in (("processes", processes), ("ray", make_engine())):
        first, rest, again = timed(spec, engine)
        speeds = [f"{(RUNS - 1) / seconds:,.0f}" for seconds in (rest, again)]
        shown.add_row(name, f"{first:.1f}", f"{rest:.1f}", *speeds)
    console.print(shown)


def timed(spec: Spec, engine: Engine) -> tuple[float, float, float]:
    """Seconds until the first run is done, from then to the last, and the latter again with all runs finished."""
    when: list[float] = []
    kept: list[Task] = []

    @contextmanager
    def watched(jobs: int) -> Iterator[Player]:
        when[:] = [time.perf_counter()]
        with engine(jobs) as play:
            yield partial(watching, play)

    def watching(play: Player, tasks: Sequence[Task]) -> Generator[Event, None, None]:
        kept[:] = tasks
        for event in play(tasks):
            if event.kind == "finished":
                when.append(time.perf_counter())
            yield event

    with tempfile.TemporaryDirectory() as folder:
        summary = run_experiment(spec, Path(folder) / "out", jobs=JOBS, engine=watched)
        assert summary.finished == len(when) - 1 == RUNS
        first, rest = when[1] - when[0], when[-1] - when[1]
        with watched(JOBS) as play:
            for _ in play(list(kept)):
                pass
    return first, rest, when[-1] - when[1]


def large_report(console: Console) -> None:
    """Measure the report of a hundred runs of a million episodes; only a few thousand episodes of each are played.

    The curves of the short games are stretched to the marks of a million episodes, so the store has its full size.
    """
    spec = make_spec(LEARNERS, HORIZON, SEEDS)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "out"
        assert run_experiment(spec, root, engine=drawn_out).good
        taken = []
        for _ in range(REPEATS):
            begin = time.perf_counter()
            page = write_report(root)
            taken.append(time.perf_counter() - begin)
        size = page.stat().st_size
        store = sum(path.stat().st_size for path in (root / "runs").rglob("*") if path.is_file())
    table = Table(title=f"the report of {len(runs_of(spec))} runs of {HORIZON:,} episodes")
    for column in ("first time, s", f"best of {REPEATS}, s", "report, MB", "store, MB"):
        table.add_column(column, justify="right")
    table.add_row(f"{taken[0]:.2f}", f"{min(taken):.2f}", f"{size / 1e6:.2f}", f"{store / 1e6:.2f}")
    console.print(table)


def drawn_out(jobs: int) -> AbstractContextManager[Player]:
    """An engine that plays the first episodes of each run and records them as the whole run."""
    return nullcontext(draw_out)


def draw_out(tasks: Sequence[Task]) -> Generator[Event, None, None]:
    at = marks(HORIZON)
    for task in tasks:
        run, folder = Run.from_json(task.run), Path(task.folder)
        play_run(replace(run, horizon=PLAYED), folder)
        short = pl.read_parquet(folder / CURVE)
        where = np.linspace(0, len(short) - 1, len(at))
        longer = {name: np.interp(where, np.arange(len(short)), short[name].to_numpy()) for name in short.columns}
        more = np.sqrt(HORIZON / PLAYED)  # roughly the growth of regret; only the number of digits matters
        frame = pl.DataFrame({name: values * more for name, values in longer.items()} | {"episode": at})
        kinds = {name: kind for name, kind in short.schema.items() if kind.is_integer()}
        frame.cast(kinds).write_parquet(folder / CURVE)
        manifest = json.loads((folder / MANIFEST).read_text())
        manifest |= {"identity": run.identity, "run": run.description}
        (folder / MANIFEST).write_text(json.dumps(manifest))
        yield Event(task.number, "finished")
