"""The command ``advmdp run``: its plan (``--dry-run``) and its summary."""

import signal
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from advmdp.core.errors import InputError
from advmdp.core.wording import apart, number, plural
from advmdp.experiments.engines.local import Engine
from advmdp.experiments.findings import MEANING, reacting_note, setting_name
from advmdp.experiments.reading import LOSS, SETTING
from advmdp.experiments.results import Results
from advmdp.experiments.runner import check, estimate, run_experiment
from advmdp.experiments.runs import runs_of
from advmdp.experiments.spec import read_spec
from advmdp.experiments.store import Store

MOST_SETTINGS = 6
"""How many settings the summary shows."""


def plan(path: Path, out: Path, jobs: int, allow_import: Sequence[str], console: Console) -> None:
    """Print what would run, how long it would take, and how much disk space it needs."""
    spec = read_spec(path)
    runs, store = runs_of(spec, allow_import), Store(out)
    with console.status("trying out the spec"):
        check(spec, runs)
    states = [store.state(run) for run in runs]
    todo = [run for run, state in zip(runs, states, strict=True) if state != "finished"]
    table = Table(title=f"{escape(spec.name)}: {plural(len(runs), 'run')}")
    for column in ("learner", "worlds", "losses", "horizons", "seeds", "runs", "to play"):
        table.add_column(column, justify="left" if column == "learner" else "right")
    for learner in spec.learners:
        mine = [run for run in runs if run.learner == learner]
        left = sum(run.learner == learner for run in todo)
        sizes = (len(spec.worlds), len(spec.losses), len(spec.horizons), len(spec.seeds), len(mine), left)
        table.add_row(escape(learner.shown), *(f"{size:,}" for size in sizes))
    console.print(table)
    if not todo:
        console.print("nothing to play: all runs are finished")
        return
    with console.status("playing a few episodes of each kind"):
        guess = estimate(todo)
    console.print(
        f"{plural(len(todo), 'run')} to play: about {_span(guess.seconds)} of one core, "
        f"{_span(guess.seconds / min(jobs, len(todo)))} with -j {jobs}, and {guess.bytes / 1e6:,.1f} MB of disk",
        highlight=False,
    )


def play(
    path: Path, out: Path, *, jobs: int, resume: bool, fail_fast: bool, engine: Engine, checkpoint_seconds: float,
    allow_import: Sequence[str], console: Console,
) -> bool:  # fmt: skip
    """Play the experiment and print a summary; return whether every run has its result."""
    spec = read_spec(path)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the signal by which schedulers stop a job
    try:
        summary = run_experiment(
            spec, out, jobs=jobs, resume=resume, fail_fast=fail_fast, engine=engine, console=console,
            checkpoint_seconds=checkpoint_seconds, allow_import=allow_import,
        )  # fmt: skip
    except KeyboardInterrupt:
        console.print(f"stopped; to continue from the checkpoints in {escape(str(out))}, add --resume to the command")
        return False
    kept = f", {summary.kept:,} kept from before" if summary.kept else ""
    console.print(f"{plural(summary.finished, 'run')} played{kept}: [bold]{escape(str(out))}[/]", highlight=False)
    if summary.left_over:
        left = plural(len(summary.left_over), "run")
        console.print(f"kept in {escape(str(out))}/runs, but no longer in the spec: {left}")
    if skipped := summary.unfinished - len(summary.failed):
        console.print(f"{plural(skipped, 'run')} not played; to play the rest, add --resume to the command")
    try:
        _say_paid(Results(out), console)
    except InputError as error:  # a file of an earlier run is damaged
        console.print(f"[red]not read[/]: {escape(str(error))}", soft_wrap=True)
    for folder, why in summary.failed.items():
        console.print(f"[red]failed[/]: {escape(folder)}: {escape(why)} (traceback.txt there)", soft_wrap=True)
    return summary.good


def _say_paid(results: Results, console: Console) -> None:
    """Print what each learner paid, the least first; only the first settings, if there are many."""
    table = results.table()
    for key, rows in list(table.group_by(SETTING, maintain_order=True))[:MOST_SETTINGS]:
        unit = "" if rows["unit"][0] == LOSS else f", in {rows['unit'][0]}"
        shown = Table(
            title=escape(f"{setting_name(results, key)}{unit}"), title_justify="left", box=None, pad_edge=False
        )
        shown.add_column("learner")
        for column in ("paid", "per episode", "regret"):
            shown.add_column(column, justify="right")
        paid, each = apart(rows["paid"].to_list()), apart((rows["paid"] / rows["horizon"]).to_list())
        for label, total, one, regret in zip(rows["label"], paid, each, rows["regret"], strict=True):
            shown.add_row(escape(label), total, one, number(regret))
        console.print(shown)
    if len(table):
        rest = max(0, len(results.settings) - MOST_SETTINGS)
        console.print(f"Means over seeds. {MEANING}", highlight=False)
        if table["reacts"].any():
            console.print(reacting_note(table), highlight=False)
        if rest:
            console.print(f"{plural(rest, 'more setting')}: see advmdp report", highlight=False)


def _span(seconds: float) -> str:
    """A duration in words."""
    for unit, size in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.0f} seconds" if seconds >= 2 else "a second or two"
