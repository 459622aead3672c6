"""UC-O-REPS as it is played: episodes per second, against its projection alone and against CVXPY; memory over T.

Aims: an episode of ``play`` costs at most twice the projection alone; steady-state projections, with the theory's eta
and sets from real counts, are at least 1,000x, 2,000x and 4,000x faster than CVXPY + Clarabel at 5x5x4, 6x10x4 and
10x20x5; 10^7 episodes on sixteen transitions in memory that does not grow with T.
"""

import resource
import time
from functools import partial

import numpy as np
from rich.console import Console
from rich.table import Table

import advmdp as am
from benchmarks.measure import best_time
from benchmarks.projection import SIZES, clarabel_time, dense

HORIZON = 10**5
WORLDS = {
    "stochastic": lambda sk: am.losses.Stochastic(sk, noise=0.5),
    "switching": lambda sk: am.losses.Switching(sk, period=HORIZON // 10, seed=1),
}


def main(console: Console) -> None:
    episodes(console)
    long_game(console)


def episode_time(mdp: am.MDP, losses: am.losses.Losses, learner: am.UCOREPS, count: int) -> float:
    """Seconds an episode takes at its best, over further blocks of the game, the drawing of the losses included."""
    from advmdp.learners.episode import make_block, make_world
    from advmdp.streams import stream_key, uniforms

    sk, best = mdp.skeleton, np.inf
    key, total = stream_key(1, "world", "trajectories"), np.zeros((sk.num_transitions, 1))
    for _ in range(5):
        begin, t = time.perf_counter(), learner.episode
        drawn = uniforms(key, t, count, 2 * sk.num_layers)
        block = make_block(sk, losses.block(t, t + count), learner.criterion.terms, total, drawn)
        learner.play_block(make_world(mdp), block)
        best = min(best, (time.perf_counter() - begin) / count)
    return best


def episodes(console: Console) -> None:
    table = Table(title=f"UC-O-REPS in a run: theory's eta and radii for T = {HORIZON:,}, one thread")
    columns = ("size", "losses", "after", "tight", "episode", "episodes/s", "projection alone", "episode / projection",
               "CVXPY + Clarabel", "/ projection alone", "/ episode")  # fmt: skip
    for column in columns:
        table.add_column(column, justify="right")
    for size, length in (("5x5x4", 50_000), ("6x10x4", 50_000), ("10x20x5", 5_000)):
        for name, losses_of in WORLDS.items():
            mdp = dense(*SIZES[size])
            sk = mdp.skeleton
            losses, learner = losses_of(sk), am.UCOREPS(sk, horizon=HORIZON)
            am.play(mdp, losses, learner, length)
            eta, projector = am.bounds.eta(sk, HORIZON), am.Projector(sk, threads=1)
            weights = [learner.log_q - eta * losses.at(length + k) for k in range(3)]
            rows = learner.rows
            alone = float(np.mean([best_time(partial(projector.project, w, rows), 0.3) for w in weights]))
            tight = float((projector.project(weights[0], rows).mu > 1e-9).mean())
            oracle = float(np.median([clarabel_time(sk, w, rows)[0] for w in weights]))
            once = episode_time(mdp, losses, learner, max(20, 400_000 // sk.num_transitions))
            table.add_row(
                size, name, f"{length:,}", f"{tight:.0%}", f"{once * 1e6:,.0f} us", f"{1 / once:,.0f}",
                f"{alone * 1e6:,.0f} us", f"{once / alone:.2f}", f"{oracle * 1e3:,.0f} ms", f"{oracle / alone:,.0f}x",
                f"{oracle / once:,.0f}x",
            )  # fmt: skip
    console.print(table)
    console.print("aims: at most 2 projections an episode; 1,000x, 2,000x, 4,000x against CVXPY\n")


def long_game(console: Console, longest: int = 10**7) -> None:
    """The peak of the process's memory after games of growing length: it must not grow."""
    mdp = am.MDP.random([1, 2, 2, 1], 2, seed=0)
    losses = am.losses.Switching(mdp.skeleton, period=1000, seed=0)
    table = Table(title=f"Long games on {mdp.skeleton.num_transitions} transitions")
    for column in ("episodes", "time", "us per episode", "peak memory of the process", "regret"):
        table.add_column(column, justify="right")
    for count in (longest // 100, longest // 10, longest):
        begin = time.perf_counter()
        game = am.play(mdp, losses, am.UCOREPS(mdp.skeleton, horizon=count), count, progress=True)
        seconds = time.perf_counter() - begin
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        table.add_row(
            f"{count:,}", f"{seconds:.1f} s", f"{seconds / count * 1e6:.1f}", f"{peak:,.0f} MB", f"{game.regret:+,.0f}"
        )
    console.print(table, "aim: memory does not grow with T\n")
