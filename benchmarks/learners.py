"""Measures the time per episode of every learner at three sizes, and of learners from other libraries.

Every learner has the theory's parameters.  Losses are stochastic, and drawing them counts.  The time of ``Uniform`` is
the common part: drawing losses, drawing the trajectory, and accounting for the policy.
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
    table = Table(title=f"Microseconds per episode: the theory's parameters for T = {HORIZON:,}, one thread")
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
        console.print("other libraries are missing: make .venv-peers/ready installs them")


def our_time(name: str, mdp: am.MDP) -> float:
    """The best seconds per episode, after a warm-up."""
    learner, sk = make_learner(name, mdp, offered={"horizon": HORIZON}), mdp.skeleton
    losses = am.losses.Stochastic(sk, noise=0.5)
    count = max(20, 400_000 // sk.num_transitions)
    am.play(mdp, losses, learner, 2 * count)
    return episode_time(mdp, losses, learner, count)


def their_times(mdp: am.MDP) -> dict[str, float]:
    """Seconds per episode of every installed peer, each with its own interpreter."""
    found: dict[str, float] = {}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "world.npz"
        World.of(mdp, am.losses.Stochastic(mdp.skeleton, noise=0.5), 1000).save(path)
        for python in sorted(PEERS.glob("*/bin/python")):
            done = subprocess.run([python, "-m", "benchmarks.peers", path], capture_output=True, text=True, check=True)
            found |= json.loads(done.stdout)
    return found
