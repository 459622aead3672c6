"""Measures an agent in a running system: the time of a durable step compared with one commit of SQLite, and of opening.

Claim: act + arrive + cost, durable, take at most 3 times as long as one commit of one row.  Both alternate, on the same
disk and with the same settings, so that a slow moment of the machine affects both; medians are compared.
"""

import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table

import advmdp as am

STEPS = [
    ("home", "bus", "station"), ("home", "bus", "stuck"), ("home", "walk", "station"),
    ("station", "train", "work"), ("station", "taxi", "work"), ("stuck", "wait", "work"),
]  # fmt: skip
ROUNDS = 400
MOST = 3.0
"""The most commits that a step may cost."""
EPISODES = 2000
COMMIT, STEP = "one commit of one row", "act + arrive + cost"


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def plain(path: Path) -> Callable[[], object]:
    """One row in one commit, in a file with the agent's settings."""
    connection = sqlite3.connect(path, isolation_level=None)
    for line in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)"):
        connection.execute(line)
    return lambda: connection.execute("INSERT INTO t(b) VALUES (?)", ("x" * 100,))


def step(episode: am.Episode) -> None:
    episode.act()
    episode.arrive("station")
    episode.cost(12.5)


def measured(folder: Path) -> dict[str, list[float]]:
    sk = am.Skeleton.from_steps(STEPS)
    agent = am.Agent.open(folder / "agent.db", skeleton=sk, learner="SelfTuning", units=(0, 90))
    commit, loss = plain(folder / "plain.db"), dict.fromkeys([step[:2] for step in STEPS], 30.0)
    found: dict[str, list[float]] = {name: [] for name in (COMMIT, STEP, "begin", "arrive at the end", "tell")}
    for _ in range(ROUNDS):
        episodes: list[am.Episode] = []
        found["begin"].append(seconds(lambda to=episodes: to.append(agent.begin())))
        episode = episodes[0]
        found[COMMIT].append(seconds(commit))
        found[STEP].append(seconds(lambda one=episode: step(one)))
        found["arrive at the end"].append(seconds(lambda one=episode: one.arrive("work")))
        found["tell"].append(seconds(lambda one=episode: agent.tell(one, loss)))
    agent.close()
    return found


def opening(folder: Path) -> tuple[int, float, float]:
    """CPU seconds to open an agent from its snapshot, and from the log alone."""
    sk, rng = am.Skeleton.from_steps(STEPS), np.random.default_rng(0)
    with am.Agent.open(folder / "long.db", skeleton=sk, durable=False) as agent:
        for _ in range(EPISODES):
            episode = agent.begin()
            episode.arrive("station")
            episode.arrive("work")
            agent.tell(episode, rng.random(sk.num_transitions))
        events = agent.log.last

    def cpu() -> float:
        start = time.process_time()
        agent = am.Agent.open(folder / "long.db")
        taken = time.process_time() - start
        agent.log.close()
        return taken

    cached = min(cpu() for _ in range(3))
    connection = sqlite3.connect(folder / "long.db", isolation_level=None)
    connection.execute("DELETE FROM snapshot")
    connection.close()
    return events, cached, cpu()


def main(console: Console) -> None:
    with tempfile.TemporaryDirectory(dir=".") as name:  # the default may be in memory, where commits are free
        folder = Path(name)
        found = {what: median(times) for what, times in measured(folder).items()}
        table = Table("durable", "ms, median", "commits")
        for what, taken in found.items():
            table.add_row(what, f"{1e3 * taken:.2f}", f"{taken / found[COMMIT]:.2f}")
        console.print(table)
        ratio = found[STEP] / found[COMMIT]
        met = "met" if ratio <= MOST else "NOT met in this run"
        console.print(f"claimed: {STEP} take at most {MOST:g} commits ({ratio:.2f}): {met}", highlight=False)
        events, cached, alone = opening(folder)
        console.print(f"opening an agent of {events:,} events: {cached:.3f} s of CPU, from the log alone {alone:.2f} s")
