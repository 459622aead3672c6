"""What ``advmdp run`` and ``advmdp list`` say: a plan, a summary, a catalogue."""

import inspect
import signal
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from advmdp.core.errors import InputError
from advmdp.core.wording import plural
from advmdp.experiments.engines.local import Engine
from advmdp.experiments.runner import check, estimate, run_experiment
from advmdp.experiments.runs import runs_of
from advmdp.experiments.spec import PARTS, read_spec
from advmdp.experiments.store import Store
from advmdp.learners.parameters import parameter_names
from advmdp.learners.registry import LEARNERS
from advmdp.scenarios import SCENARIOS, scenario_parameters

GROUPS: dict[str, tuple[str, ...]] = {
    "learners": tuple(LEARNERS),
    "worlds": tuple(PARTS["worlds"]),
    "scenarios": tuple(SCENARIOS),
    "losses": tuple(PARTS["losses"]),
    "criteria": tuple(PARTS["criterion"]),
}
"""What an experiment is made of: learners, scenarios, and the kinds that the tables of a spec may have."""
TABLES = {"worlds": "worlds", "losses": "losses", "criteria": "criterion"}
"""Where in a spec these kinds stand."""


def plan(path: Path, out: Path, jobs: int, allow_import: Sequence[str], console: Console) -> None:
    """What would run, how long it would take, and how much disk."""
    spec = read_spec(path)
    runs, store = runs_of(spec, allow_import), Store(out)
    with console.status("trying out the spec"):
        check(spec, runs)
    states = [store.state(run) for run in runs]
    todo = [run for run, state in zip(runs, states, strict=True) if state != "finished"]
    table = Table(title=f"{escape(spec.name)}: {plural(len(runs), 'run')}")
    for column in ("learner", "worlds", "losses", "horizons", "seeds", "runs", "still to play"):
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
    """Play it, and say what became of it; whether every run has its result."""
    spec = read_spec(path)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # schedulers stop what they run with it
    try:
        summary = run_experiment(
            spec, out, jobs=jobs, resume=resume, fail_fast=fail_fast, engine=engine, console=console,
            checkpoint_seconds=checkpoint_seconds, allow_import=allow_import,
        )  # fmt: skip
    except KeyboardInterrupt:
        console.print(f"stopped; the same command with --resume goes on from the checkpoints in {escape(str(out))}")
        return False
    kept = f", {summary.kept:,} kept from before" if summary.kept else ""
    console.print(f"{plural(summary.finished, 'run')} played{kept}: [bold]{escape(str(out))}[/]", highlight=False)
    if summary.left_over:
        left = plural(len(summary.left_over), "run")
        console.print(f"left untouched in {escape(str(out))}/runs: {left} of another spec")
    if skipped := summary.unfinished - len(summary.failed):
        console.print(f"{plural(skipped, 'run')} not come to; the same command with --resume plays what is missing")
    for folder, why in summary.failed.items():
        console.print(f"[red]failed[/]: {escape(folder)}: {escape(why)} (traceback.txt there)", soft_wrap=True)
    return summary.good


def catalogue(what: str | None, console: Console) -> None:
    """What there is, one line each; of one group, with its parameters."""
    if what is not None and what not in GROUPS:
        raise InputError("list", f"{what!r}", f"one of {', '.join(GROUPS)}")
    if what is not None:
        tables = {"learners": _learners, "scenarios": _scenarios}
        console.print(tables[what]() if what in tables else _parts(what))
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    for group, names in GROUPS.items():
        table.add_row(f"[bold]{group}[/]")
        for name in names:
            table.add_row(f"  {name}", _first_line(_documented(group, name)))
    console.print(table)
    console.print("\n[bold]advmdp list GROUP[/] shows the parameters")


def _learners() -> Table:
    table = Table(title="learners", title_justify="left", box=None, pad_edge=False, padding=(0, 2, 1, 0))
    widths = {"name": len("FollowLeader"), "sees": len("full or"), "parameters": len("confidence_scale,")}
    for column in ("name", "what it is", "knows", "sees", "criteria", "parameters"):
        table.add_column(column, width=widths.get(column))  # so that names are never cut
    for name, kind in LEARNERS.items():
        takes = ", ".join(parameter_names(kind))
        table.add_row(name, _first_line(kind), kind.knows, kind.sees, kind.optimises, takes)
    return table


def _scenarios() -> Table:
    table = Table(title="scenarios", title_justify="left")
    for column in ("name", "what it is", "parameters"):
        table.add_column(column)
    for name in SCENARIOS:
        shown = (f"{key} = {value!r}" for key, value in scenario_parameters(name).items())
        table.add_row(name, _first_line(_documented("scenarios", name)), escape(", ".join(shown)))
    return table


def _parts(group: str) -> Table:
    table = Table(title=group, title_justify="left")
    for column in ("kind", "what it is", "fields"):
        table.add_column(column)
    for kind, part in PARTS[TABLES[group]].items():
        known = {name: field for name, field in part.model_fields.items() if name not in ("kind", "digest")}
        shown = (name if field.is_required() else f"{name} = {_value(field.default)}" for name, field in known.items())
        table.add_row(kind, _first_line(part), escape(", ".join(shown)))
    return table


def _value(default: object) -> str:
    """As one would write it; what is left open has no way to be written."""
    return "open" if default is None else repr(default)


def _documented(group: str, name: str) -> object:
    """What says in its first line what the thing is."""
    if group == "learners":
        return LEARNERS[name]
    return import_module(SCENARIOS[name]) if group == "scenarios" else PARTS[TABLES[group]][name]


def _first_line(kind: object) -> str:
    return escape((inspect.getdoc(kind) or "").split("\n")[0].rstrip(".").replace("``", ""))


def _span(seconds: float) -> str:
    """A stretch of time, as people say it."""
    for unit, size in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.0f} seconds" if seconds >= 2 else "a second or two"
