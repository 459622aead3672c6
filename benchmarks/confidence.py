"""Measures what UC-O-REPS pays with each kind of confidence set, and its regret: the tables of docs/learning.md."""

from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import advmdp as am

EPISODES, SEEDS, STEP = 3000, 3, 5.0
"""STEP is in units of the theory's eta."""
SETS: dict[str, dict[str, object]] = {
    "l1": {},
    "l1 x 0.2": {"confidence_scale": 0.2},
    "weissman": {"confidence": "weissman"},
    "chernoff": {"confidence": "chernoff"},
    "bernstein": {"confidence": "bernstein"},
    "pointwise": {"confidence": "pointwise"},
}
# dense: 5 steps, 5 states per layer; sparse: 4 steps, 8 states per layer, 2 successors; both with 4 actions
WORLDS: dict[str, Callable[[int], am.MDP]] = {
    "dense": lambda seed: am.MDP.random([1, 5, 5, 5, 5, 1], 4, seed=seed),
    "sparse": lambda seed: am.MDP.random([1, 8, 8, 8, 1], 4, seed=seed, branching=2),
}
LOSSES: dict[str, Callable[[am.Skeleton, int], am.losses.Losses]] = {
    "noise": lambda sk, seed: am.losses.Stochastic(sk, seed=seed),
    "losses that react": lambda sk, seed: am.losses.Adaptive(sk, seed=seed),
}


def main(console: Console) -> None:
    tables = [
        Table(title=f"{what}: UC-O-REPS with {STEP:g} eta, {SEEDS} seeds of {EPISODES:,} episodes")
        for what in ("Mean cost per episode", "Mean regret")
    ]
    for table in tables:
        for column in ("", *SETS):
            table.add_column(column, justify="right" if column else "left")
    settings = [(world, losses) for world in WORLDS for losses in LOSSES]
    for world, losses in track(settings, "games", console=console, transient=True):
        found = np.array([play(world, losses, parameters) for parameters in SETS.values()])
        tables[0].add_row(f"{world}; {losses}", *(f"{paid:.3f}" for paid in found[:, 0]))
        tables[1].add_row(f"{world}; {losses}", *(f"{regret:,.0f}" for regret in found[:, 1]))
    for table in tables:
        console.print(table)


def play(world: str, losses: str, parameters: dict[str, object]) -> tuple[float, float]:
    """The mean cost per episode and the mean regret over the seeds."""
    games = []
    for seed in range(SEEDS):
        mdp = WORLDS[world](seed)
        eta = STEP * am.bounds.eta(mdp.skeleton, EPISODES)
        learner = am.make_learner("UCOREPS", mdp, horizon=EPISODES, eta=eta, **parameters)
        games.append(am.play(mdp, LOSSES[losses](mdp.skeleton, seed), learner, EPISODES, seed, comparator_at="end"))
    return float(np.mean([g.total_loss for g in games])) / EPISODES, float(np.mean([g.regret for g in games]))
