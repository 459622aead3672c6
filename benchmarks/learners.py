"""Microseconds an episode takes, for every learner at three sizes, beside learners that others ship, in one run.

Every learner has the theory's parameters and meets stochastic losses, whose drawing is counted.  What must be done
anyway (draw the losses, draw the trajectory, account for the policy) is the time of ``Uniform``.
"""

import json
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

import advmdp as am
from advmdp.learners.registry import LEARNERS, make_learner
from benchmarks.learning import HORIZON, episode_time
from benchmarks.peers import World
from benchmarks.projection import SIZES, dense

STANDARD = ("5x5x4", "6x10x4", "10x20x5")
PEERS = Path(".venv-peers")


def main(console: Console) -> None:
    table = Table(title=f"An episode, in microseconds: the theory's parameters for T = {HORIZON:,}, one thread")
    for column in ("learner", "knows", "sees", *STANDARD):
        table.add_column(column, justify="right" if column in STANDARD else "left")
    worlds = {size: dense(*SIZES[size]) for size in STANDARD}
    for name in LEARNERS:
        kind = LEARNERS[name]
        times = [f"{our_time(name, worlds[size]) * 1e6:,.1f}" for size in STANDARD]
        table.add_row(name, kind.knows, kind.sees, *times)
    table.add_section()
    theirs = [their_times(worlds[size]) for size in STANDARD]
    for name in sorted({name for times in theirs for name in times}):
        table.add_row(name, "skeleton", "bandit", *(f"{times[name] * 1e6:,.1f}" for times in theirs))
    console.print(table)
    if not theirs[0]:
        console.print("no peers here: make .venv-peers/ready installs them")


def our_time(name: str, mdp: am.MDP) -> float:
    """Seconds an episode takes at its best, after some."""
    learner, sk = make_learner(name, mdp, offered={"horizon": HORIZON}), mdp.skeleton
    losses = am.losses.Stochastic(sk, noise=0.5)
    count = max(20, 400_000 // sk.num_transitions)
    am.play(mdp, losses, learner, 2 * count)
    return episode_time(mdp, losses, learner, count)


def their_times(mdp: am.MDP) -> dict[str, float]:
    """Seconds an episode, of every peer that is installed, each under its own interpreter."""
    found: dict[str, float] = {}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "world.npz"
        World.of(mdp, am.losses.Stochastic(mdp.skeleton, noise=0.5), 1000).save(path)
        for python in sorted(PEERS.glob("*/bin/python")):
            done = subprocess.run([python, "-m", "benchmarks.peers", path], capture_output=True, text=True, check=True)
            found |= json.loads(done.stdout)
    return found
