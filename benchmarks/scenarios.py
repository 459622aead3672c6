"""Measures the scenario bgp on graphs of 30,000 ASes and more: building it, an episode of UC-O-REPS, memory.

Goals: built in at most a minute; an episode, including losses and accounts, takes at most about 40 times NumPy's
exponential pass over the same arrays (np.exp(log_q - eta * z)); less than 4 GB in total.  Each size runs in its own
process, to measure its own peak.  The step size is the theory's for T = 10^4, and a hundred times that; radii x 0.1;
after thirty episodes.
"""

import json
import resource
import subprocess
import sys
import time

import numpy as np
from rich.console import Console
from rich.table import Table

import advmdp as am
from advmdp.scenarios import Scenario, make_scenario
from benchmarks.learning import episode_time
from benchmarks.measure import best_time

SIZES = (30_000, 75_000)
HORIZON, WARM = 10**4, 30


def main(console: Console) -> None:
    table = Table(title="Scenario bgp, all traffic to one destination")
    for column in (
        "ASes",
        "step",
        "threads",
        "losses",
        "projection",
        "iterations",
        "episode",
        "np.exp pass",
        "episode / np.exp",
    ):
        table.add_column(column, justify="right")
    for ases in SIZES:
        command = [sys.executable, "-m", "benchmarks.scenarios", f"{ases}"]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        said, rows = json.loads(done.stdout)
        console.print(said)
        for row in rows:
            table.add_row(*row, end_section=row is rows[-1])
    console.print(table, "goals: a minute, about 40, 4 GB\n")


def measured(ases: int) -> tuple[str, list[list[str]]]:
    """A line about a size, and a table row for each step size."""
    begin = time.perf_counter()
    scenario = make_scenario("bgp", ases=ases)
    built = time.perf_counter() - begin
    # From 400,000 transitions on, two threads can share a projection.
    kinds = [(1, 1), (100, 1), *([(1, 2)] if scenario.mdp.skeleton.num_transitions >= 400_000 else [])]
    rows = [[f"{ases:,}", f"{times} eta", f"{threads}", *timed(scenario, times, threads)] for times, threads in kinds]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    sk = scenario.mdp.skeleton
    sizes = f"{sk.num_states:,} states, {sk.num_pairs:,} pairs, {sk.num_transitions:,} transitions"
    return f"{ases:,} ASes: built in {built:.1f} s, {sizes}, peak memory {peak:.2f} GB", rows


def timed(scenario: Scenario, times: float, threads: int) -> list[str]:
    """Time the losses, the projection, an episode, and NumPy's exponential pass."""
    sk, losses = scenario.mdp.skeleton, scenario.losses_from(1)
    eta = times * am.bounds.eta(sk, HORIZON)
    learner = am.UCOREPS(sk, HORIZON, eta=eta, confidence_scale=0.1, successors="possible", threads=threads)
    am.play(scenario.mdp, losses, learner, WARM)
    log_q, z, out = learner.log_q, losses.at(WARM), np.empty(sk.num_transitions)
    projector, w = am.Projector(sk, threads=threads), log_q - eta * z
    drawn = best_time(lambda: losses.at(WARM), 0.5)
    alone = best_time(lambda: projector.project(w, learner.row_set), 1.5)
    iterations = projector.project(w, learner.row_set).iterations
    exponential = best_time(lambda: np.exp(log_q - eta * z, out=out), 0.5)
    episode = episode_time(scenario.mdp, losses, learner, 2)
    clock = [f"{seconds * 1e3:,.1f} ms" for seconds in (drawn, alone, episode, exponential)]
    return [*clock[:2], f"{iterations}", *clock[2:], f"{episode / exponential:.0f}"]


if __name__ == "__main__":
    print(json.dumps(measured(int(sys.argv[1]))))
