"""Measures UC-O-REPS in real runs: its projections compared with CVXPY, episodes per second, memory over T.

Goals: the projections of a run, with the theory's eta and sets from real counts, are at least 1,000x, 2,000x and 4,000x
faster than CVXPY + Clarabel on the same problems at 5x5x4, 6x10x4 and 10x20x5; an episode of ``play`` costs at most
twice the projection alone; 10^7 episodes on sixteen transitions take memory that does not grow with T.

"in the run" is the time of the kernel, called as the learner calls it.  "from Python" is ``Projector.project``, which
checks its input and builds a result.  The time of CVXPY is the best of several calls, from the definition of the
problem to its solution.
"""

import resource
import time
from collections.abc import Iterator
from functools import partial
from itertools import product

import numpy as np
from rich.console import Console
from rich.table import Table

import advmdp as am
from advmdp.projection.kernels.memory import new_answer
from advmdp.projection.kernels.solver import solve_from
from advmdp.projection.projector import ITERATIONS, TOLERANCE
from benchmarks.measure import best_time
from benchmarks.projection import SIZES, clarabel_time, dense

HORIZON = 10**5
WORLDS = {
    "stochastic": lambda sk: am.losses.Stochastic(sk, noise=0.5),
    "switching": lambda sk: am.losses.Switching(sk, period=HORIZON // 10, seed=1),
    "adaptive": lambda sk: am.losses.Adaptive(sk, strength=0.8),
}
MARKS = {"5x5x4": (10**3, 10**4, 5 * 10**4, 10**5), "6x10x4": (10**3, 10**4, 5 * 10**4, 10**5), "10x20x5": (500, 5000)}
ROUNDS = {"5x5x4": 6, "6x10x4": 5, "10x20x5": 2}


def main(console: Console) -> None:
    projections(console)
    episodes(console)
    long_game(console)


def time_in_run(projector: am.Projector, weights: np.ndarray, rows: am.L1Ball) -> float:
    """Seconds of one projection by the kernel alone, as in a learner."""
    log_w, answer = weights.copy(), new_answer(projector.layout)[0]
    problem = (
        None,
        projector.layout,
        projector.bounds(rows),
        projector.workspace,
        log_w,
        answer,
        TOLERANCE,
        ITERATIONS,
    )
    return best_time(partial(solve_from, *problem), 0.1)


def problems_of(
    mdp: am.MDP, losses: am.losses.Losses, marks: tuple[int, ...]
) -> Iterator[tuple[int, np.ndarray, am.L1Ball]]:
    """The projections of a run of UC-O-REPS at the marks: episode, weights and set."""
    sk = mdp.skeleton
    learner, eta = am.UCOREPS(sk, horizon=HORIZON), am.bounds.eta(sk, HORIZON)
    for t in marks:
        am.play(mdp, losses, learner, t - 1 - learner.episode)
        last = learner.policy  # adaptive losses react to it
        am.play(mdp, losses, learner, 1)
        yield t, learner.log_q - eta * losses.at(t, {t - 1: last}), learner.row_set


def times_of(projector: am.Projector, weights: np.ndarray, rows: am.L1Ball, rounds: int) -> tuple[float, float, float]:
    """Seconds in a run, from Python, and of CVXPY: the best of several alternating rounds."""
    alone = partial(projector.project, weights, rows)
    found = [
        (
            time_in_run(projector, weights, rows),
            best_time(alone, 0.1),
            clarabel_time(projector.skeleton, weights, rows)[0],
        )
        for _ in range(rounds)
    ]
    return tuple(np.nanmin(found, axis=0))


def projections(console: Console) -> None:
    table = Table(title=f"The projections of a run: theory's eta and radii for T = {HORIZON:,}, one thread")
    columns = ("size", "losses", "after", "tight", "steps", "in the run", "from Python", "CVXPY + Clarabel")
    for column in (*columns, "/ in the run", "/ from Python"):
        table.add_column(column, justify="right")
    for size, (name, losses_of) in product(MARKS, WORLDS.items()):
        mdp = dense(*SIZES[size])
        projector, sums = am.Projector(mdp.skeleton), np.zeros(3)
        for t, weights, rows in problems_of(mdp, losses_of(mdp.skeleton), MARKS[size]):
            r = projector.project(weights, rows)
            times = times_of(projector, weights, rows, ROUNDS[size])
            sums += times
            table.add_row(size, name, f"{t:,}", f"{(r.mu > 1e-9).mean():.0%}", f"{r.iterations}", *cells(*times))
        table.add_row(size, name, "all", "", "", *cells(*sums), style="bold", end_section=True)
    console.print(table, "goals: 1,000x, 2,000x, 4,000x against CVXPY\n")


def cells(inside: float, alone: float, oracle: float) -> list[str]:
    times = [f"{inside * 1e6:,.0f} us", f"{alone * 1e6:,.0f} us", f"{oracle * 1e3:,.0f} ms"]
    return [*times, f"{oracle / inside:,.0f}x", f"{oracle / alone:,.0f}x"]


def episode_time(mdp: am.MDP, losses: am.losses.Losses, learner: am.UCOREPS, count: int) -> float:
    """The best seconds per episode over further blocks of the game, including drawing the losses."""
    from advmdp.core.streams import stream_key, uniforms
    from advmdp.learners.episode import make_block

    sk, best = mdp.skeleton, np.inf
    key, total = stream_key(1, "world", "trajectories"), np.zeros((sk.num_transitions, 1))
    for _ in range(5):
        begin, t = time.perf_counter(), learner.episode
        drawn = uniforms(key, t, count, 2 * sk.num_layers)
        block = make_block(sk, losses.block(t, t + count), learner.criterion.terms, total, drawn)
        learner.play_block(mdp.dynamics, block)
        best = min(best, (time.perf_counter() - begin) / count)
    return best


def episodes(console: Console) -> None:
    table = Table(title=f"UC-O-REPS in a run: theory's eta and radii for T = {HORIZON:,}, one thread")
    columns = ("size", "losses", "after", "episode", "episodes/s", "projection alone", "episode / projection")
    for column in columns:
        table.add_column(column, justify="right")
    for size, length in (("5x5x4", 50_000), ("6x10x4", 50_000), ("10x20x5", 5_000)):
        for name, losses_of in WORLDS.items():
            if name == "adaptive":  # drawn episode by episode, not in blocks
                continue
            mdp = dense(*SIZES[size])
            sk = mdp.skeleton
            losses, learner = losses_of(sk), am.UCOREPS(sk, horizon=HORIZON)
            am.play(mdp, losses, learner, length)
            eta, projector = am.bounds.eta(sk, HORIZON), am.Projector(sk, threads=1)
            weights = [learner.log_q - eta * losses.at(length + k) for k in range(3)]
            rows = learner.row_set
            alone = float(np.mean([best_time(partial(projector.project, w, rows), 0.3) for w in weights]))
            once = episode_time(mdp, losses, learner, max(20, 400_000 // sk.num_transitions))
            table.add_row(
                size, name, f"{length:,}", f"{once * 1e6:,.0f} us", f"{1 / once:,.0f}",
                f"{alone * 1e6:,.0f} us", f"{once / alone:.2f}",
            )  # fmt: skip
    console.print(table, "goal: an episode takes at most 2 projections\n")


def long_game(console: Console, longest: int = 10**7) -> None:
    """Measure the peak memory of the process after games of growing length; it must not grow."""
    mdp = am.MDP.random([1, 2, 2, 1], 2, seed=0)
    losses = am.losses.Switching(mdp.skeleton, period=1000, seed=0)
    table = Table(title=f"Long games on {mdp.skeleton.num_transitions} transitions")
    for column in ("episodes", "time", "us per episode", "peak memory of the process", "paid", "regret"):
        table.add_column(column, justify="right")
    for count in (longest // 100, longest // 10, longest):
        begin = time.perf_counter()
        game = am.play(mdp, losses, am.UCOREPS(mdp.skeleton, horizon=count), count, progress=True)
        seconds = time.perf_counter() - begin
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        table.add_row(
            f"{count:,}",
            f"{seconds:.1f} s",
            f"{seconds / count * 1e6:.1f}",
            f"{peak:,.0f} MB",
            f"{game.total_loss:,.0f}",
            f"{game.regret:+,.0f}",
        )
    console.print(table, "goal: memory does not grow with T\n")
