"""The demonstration: routing that does not flap on a real network, and what learners pay on five kinds of losses.

1. Every demand of a network is a player, and links get slower as others use them.  A player that follows the last
   delay flaps; SelfTuning settles near the equilibrium without any tuning.
2. Five kinds of losses, the same for all players.  Each simple rule fails on some of them, SelfTuning on none.  This is
   an ordinary experiment, with the spec, store and report of ``advmdp run`` and ``advmdp report``.
"""

from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from advmdp.core.errors import InputError, MissingPackageError
from advmdp.core.threads import cores
from advmdp.experiments.report import write_report
from advmdp.experiments.results import Results
from advmdp.experiments.runner import run_experiment
from advmdp.experiments.spec import Spec, checked_spec
from advmdp.experiments.store import INDEX

LAYERS, ACTIONS, SEEDS = [1, 4, 6, 4, 1], 3, 3
LOSSES: dict[str, dict[str, Any]] = {
    "noise": {"kind": "stochastic"},
    "switch rarely": {"kind": "switching", "period": 100},
    "alternate": {"kind": "seasonal", "period": 2},
    "days of a week": {"kind": "seasonal", "period": 7},
    "drift": {"kind": "drifting", "period": 50},
}
PLAYERS = {
    "SelfTuning": {"name": "SelfTuning"},
    "UC-O-REPS": {"name": "UCOREPS"},
    "last best": {"name": "ReplayLast"},
    "best so far": {"name": "FollowLeader"},
    "random": {"name": "Uniform"},
}


def run(out: Path, episodes: int, seed: int, console: Console) -> bool:
    """Play both parts into the folder ``out``; print tables and the paths of the pages to ``console``."""
    spec = make_spec(episodes, seed)
    if (out / INDEX).exists() and Results(out).name != spec.name:
        raise InputError(f"{out}", f"it holds the experiment {Results(out).name!r}", "another folder")
    if out.exists() and not out.is_dir():
        raise InputError(f"{out}", "a file", "a folder, or the name of a new one")
    out.mkdir(parents=True, exist_ok=True)
    pages = show_congestion(out / "congestion.html", seed, console)
    jobs = min(2, cores())
    summary = run_experiment(spec, out, jobs=jobs, resume=True, console=console)
    console.print(losses_table(Results(out), episodes))
    console.print("In each row, all players meet the same losses. Paying less is better; the least is bold.")
    pages["The report"] = write_report(out)
    for what, path in pages.items():
        console.print(f"{what} in a browser: [bold]{escape(str(path))}[/]", soft_wrap=True)
    return summary.good


def show_congestion(page: Path, seed: int, console: Console) -> dict[str, Path]:
    """Show the first part: a table, and a page to step through; or say what to install."""
    try:
        from advmdp.cli.demo_routing import congestion, routes_table, write_congestion_report

        course = congestion(seed, console)
    except MissingPackageError:
        console.print("Skipped: routing on a real network. To include it: pip install 'advmdp\\[routing]'\n")
        return {}
    console.print(routes_table(course))
    console.print("No player knows the demands or what others do. SelfTuning has no parameters to tune.\n")
    return {"Step through the network": write_congestion_report(course, page)}


def make_spec(episodes: int, seed: int) -> Spec:
    """The experiment of the second part."""
    table = {
        "name": "every kind of loss",
        "worlds": [{"kind": "random", "layers": LAYERS, "actions": ACTIONS, "seed": seed}],
        "losses": list(LOSSES.values()),
        "learners": [{**player, "label": label} for label, player in PLAYERS.items()],
        "horizons": [episodes],
        "seeds": list(range(seed, seed + SEEDS)),
    }
    return checked_spec(table, "demo", Path())


def losses_table(results: Results, episodes: int) -> Table:
    """What each player paid per episode, with a row for each kind of loss.

    The last row is each player's worst excess over the least, as a fraction of the excess of choosing at random.
    """
    worst: dict[str, float] = {}
    table = Table(title=f"Paid per episode: {episodes:,} episodes, mean of {SEEDS} seeds, exact")
    table.add_column("losses", no_wrap=True)
    for label in PLAYERS:
        table.add_column(label, justify="right", no_wrap=True)
    paid = results.runs.group_by("losses", "label").agg(pl.col("loss").mean() / episodes)
    known = {(losses, label): loss for losses, label, loss in paid.iter_rows()}
    for said, losses in zip(LOSSES, results.settings["losses"].unique(maintain_order=True), strict=True):
        row = [known.get((losses, label)) for label in PLAYERS]
        least = min((value for value in row if value is not None), default=None)
        cells = ["-" if value is None else f"{value:.2f}" for value in row]
        bold = [f"[bold]{cell}[/]" if value == least else cell for cell, value in zip(cells, row, strict=True)]
        table.add_row(said, *bold)
        if least is not None and row[-1] is not None and row[-1] > least:
            for label, value in zip(PLAYERS, row, strict=True):
                excess = 0.0 if value is None else (value - least) / (row[-1] - least)
                worst[label] = max(worst.get(label, 0.0), excess)
    table.add_section()
    table.add_row("worst excess", *(f"{worst.get(label, 0.0):.0%}" for label in PLAYERS))
    return table
