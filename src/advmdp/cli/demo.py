"""The demonstration: UC-O-REPS among its rivals, on losses that react to the player, from a spec to a report.

What was played most in the last episode costs most in the next.  Whoever repeats what was best yesterday, or what was
best so far, is punished for it; so is whoever takes the losses for independent draws.  It is an experiment like any
other: the same spec, store and report as ``advmdp run`` and ``advmdp report`` make.
"""

import os
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from advmdp import losses, plot
from advmdp.core.errors import InputError
from advmdp.experiments.report import write_report
from advmdp.experiments.results import Results
from advmdp.experiments.runner import run_experiment
from advmdp.experiments.spec import Spec, checked_spec
from advmdp.experiments.store import INDEX
from advmdp.learners import bounds
from advmdp.model.mdp import MDP
from advmdp.model.occupancy import best_response, occupancy
from advmdp.model.policy import uniform_policy

LAYERS, ACTIONS, CONCENTRATION = [1, 5, 5, 5, 5, 1], 4, 0.3
SEEDS = 5


def world(seed: int) -> MDP:
    """Five steps, five states a layer, four actions."""
    return MDP.random(layers=LAYERS, actions=ACTIONS, seed=seed, concentration=CONCENTRATION)


def make_spec(episodes: int, seed: int) -> Spec:
    """The experiment; only O-REPS is told the probabilities, and only UOB-REPS is shown no more than its path."""
    eta = 5.0 * bounds.eta(world(seed).skeleton, episodes)
    learners: list[dict[str, Any]] = [
        {"name": "UCOREPS", "label": "UC-O-REPS", "eta": eta, "confidence_scale": 0.2, "successors": "possible"},
        {"name": "OREPS", "label": "O-REPS (knows P)"},
        {"name": "UOBREPS", "label": "UOB-REPS (bandit)", "confidence_scale": 0.1},
        {"name": "FPOP"},
        {"name": "UCRL2", "confidence_scale": 0.1},
        {"name": "FollowLeader", "label": "best so far"},
        {"name": "ReplayLast", "label": "yesterday's best"},
        {"name": "Uniform", "label": "at random"},
    ]
    shape = {"layers": LAYERS, "actions": ACTIONS, "concentration": CONCENTRATION, "seed": seed}
    table = {
        "name": "losses that react to the player",
        "worlds": [{"kind": "random", **shape}],
        "losses": [{"kind": "adaptive", "strength": 0.8}],
        "learners": learners,
        "horizons": [episodes],
        "seeds": list(range(seed, seed + SEEDS)),
    }
    return checked_spec(table, "demo", Path())


def run(out: Path, episodes: int, seed: int, console: Console) -> bool:
    """Play it into the folder ``out``; the table to ``console``, with the paths of the report and of a picture."""
    mdp, spec = world(seed), make_spec(episodes, seed)
    if (out / INDEX).exists() and Results(out).name != spec.name:
        raise InputError(f"{out}", f"the experiment {Results(out).name!r} is there", "another folder")
    console.print(f"[bold]A world the player must cross again and again[/]: {mdp}")
    jobs = min(2, len(os.sched_getaffinity(0)))
    summary = run_experiment(spec, out, jobs=jobs, resume=True, console=console)
    console.print(_table(Results(out), episodes))
    console.print("The losses answer to each player, so each has a best fixed policy of its own: compare regrets.")
    for what, path in (
        ("Where the probability goes", draw(mdp, seed, out)),
        ("The report, to open in a browser", write_report(out)),
    ):
        console.print(f"{what}: [bold]{escape(str(path))}[/]", soft_wrap=True)
    return summary.good


def _table(results: Results, episodes: int) -> Table:
    table = Table(title=f"Losses that react: {episodes:,} episodes, mean of {SEEDS} seeds, exact; paid per episode")
    table.add_column("learner", no_wrap=True)
    for column in ("paid", "best fixed", "regret", "95% interval"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in results.table().iter_rows(named=True):
        each = (f"{row['loss'] / episodes:.3f}", f"{row['comparator'] / episodes:.3f}")
        table.add_row(row["label"], *each, f"{row['regret']:+,.0f}", f"{row['low']:+,.0f} to {row['high']:+,.0f}")
    return table


def draw(mdp: MDP, seed: int, out: Path) -> Path:
    """Flow of the uniform against the best fixed policy, under the mean of stochastic losses, as a PNG file."""
    import matplotlib.pyplot as plt

    sk = mdp.skeleton
    loss = losses.Stochastic(sk, seed=seed).means
    best, _ = best_response(mdp, loss)
    figure, axes = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained")
    for ax, policy, title in zip(axes, (uniform_policy(sk), best), ("at random", "best fixed policy"), strict=True):
        q = occupancy(mdp, policy)
        plot.flow(sk, q, loss, ax=ax).set_title(f"{title}: expected loss {q @ loss:.2f}")
    scale = plt.cm.ScalarMappable(cmap="coolwarm")
    figure.colorbar(scale, ax=axes, label="loss of a step", shrink=0.8)
    path = out / "flow.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path
