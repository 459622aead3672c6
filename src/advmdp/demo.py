"""The demonstration: UC-O-REPS and two simple habits under every kind of changing loss, accounted for exactly.

One random world whose probabilities nobody is told, five kinds of losses (:mod:`advmdp.losses`), three players: one
that chooses at random, one that always plays what would have been best yesterday, and UC-O-REPS with practical
parameters.  Each is held against the best fixed policy in hindsight on the very losses it met; the difference is its
regret.  Losses that drift slowly are kind to yesterday's best.  Losses that alternate, or that react to the player,
are not, and that is what UC-O-REPS is for.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from advmdp import bounds, losses, plot
from advmdp.errors import InputError
from advmdp.learners.base import Learner
from advmdp.learners.baselines import ReplayLast, Uniform
from advmdp.learners.uc_o_reps import UCOREPS
from advmdp.mdp import MDP
from advmdp.occupancy_measures import best_response, occupancy
from advmdp.playing import play
from advmdp.policy import uniform_policy

__all__ = ["Account", "accounts", "draw", "run", "world"]


@dataclass(frozen=True)
class Account:
    """What a player paid per episode, and what the best fixed policy would have paid on the same losses."""

    losses: str
    player: str
    paid: float
    best_fixed: float

    @property
    def regret(self) -> float:
        """Per episode; below zero where the player did better than any fixed policy could."""
        return self.paid - self.best_fixed


def world(seed: int) -> MDP:
    """Five steps, five states a layer, four actions."""
    return MDP.random(layers=[1, 5, 5, 5, 5, 1], actions=4, seed=seed, concentration=0.3)


def sequences(mdp: MDP, episodes: int, seed: int) -> dict[str, losses.Losses]:
    """One sequence of each kind; the last replays made-up records of raw costs, scaled to [0, 1]."""
    sk = mdp.skeleton
    recorded = 20.0 + 5.0 * np.cumsum(np.random.default_rng(seed).standard_normal((episodes, sk.num_pairs)), axis=0)
    return {
        "stochastic": losses.Stochastic(sk, seed=seed),
        "switching every episode": losses.Switching(sk, period=1, seed=seed),
        "drifting over 200 episodes": losses.Drifting(sk, period=200, seed=seed),
        "adaptive": losses.Adaptive(sk, seed=seed, strength=0.8),
        "replay of a random walk": losses.Replay(sk, recorded, rescale="range"),
    }


def players(mdp: MDP, episodes: int) -> dict[str, Learner]:
    """None of them is told the probabilities."""
    sk = mdp.skeleton
    eta = 5.0 * bounds.eta(sk, episodes)
    return {
        "at random": Uniform(sk),
        "yesterday's best": ReplayLast(sk),
        "UC-O-REPS": UCOREPS(sk, horizon=episodes, eta=eta, confidence_scale=0.2),
    }


def accounts(mdp: MDP, episodes: int, seed: int) -> Iterator[Account]:
    """Every player against every sequence, exactly: expectations over trajectories, not samples of them."""
    for kind, sequence in sequences(mdp, episodes, seed).items():
        for name, player in players(mdp, episodes).items():
            game = play(mdp, sequence, player, episodes, seed)
            yield Account(kind, name, game.total_loss / episodes, game.comparator.value / episodes)


def run(out: Path, episodes: int, seed: int, console: Console) -> None:
    """The table to ``console``, and the picture into the folder ``out``."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError("out", f"{out} ({error.strerror})", "a folder that can be made or written to") from None
    mdp = world(seed)
    console.print(f"[bold]A world the player must cross again and again[/]: {mdp}")
    count = len(sequences(mdp, episodes, seed)) * len(players(mdp, episodes))
    shown = track(accounts(mdp, episodes, seed), "playing", count, transient=True, console=console)
    table = Table(title=f"Loss per episode over {episodes:,} episodes of {mdp.skeleton.num_layers} steps, exact")
    for column in ("losses", "player"):
        table.add_column(column)
    for column in ("paid", "best fixed policy\nin hindsight", "regret"):
        table.add_column(column, justify="right")
    before = ""
    for row in shown:
        colour = "green" if row.regret <= 0 else "red"
        kind = "" if row.losses == before else row.losses
        cells = (f"{row.paid:.3f}", f"{row.best_fixed:.3f}", f"[{colour}]{row.regret:+.3f}[/]")
        table.add_row(kind, row.player, *cells, end_section=row.player == "UC-O-REPS")
        before = row.losses
    console.print(table)
    console.print(f"Where the probability goes: [bold]{draw(mdp, seed, out)}[/]", soft_wrap=True)


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
