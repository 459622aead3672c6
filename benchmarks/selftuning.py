"""Measures SelfTuning: an episode compared with the projections of its experts, at three sizes, and with two threads.

Goal: an episode costs at most 1.2 times the projections of its experts.  Both use the same episodes of one run with
defaults.  The run first records the problem of every expert: weights, start and set.  Then the episodes are replayed in
one block and the problems solved again, alternately; the best of several rounds counts.  Experts with a negligible
weight rest, so the table also compares with only those projections that the learner makes.  An episode includes drawing
its path and accounting under P, but not drawing its losses.  Times are CPU times, since the machine may be shared; for
two threads they are wall-clock times.
"""

import time
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import advmdp as am
from advmdp.confidence import pointwise_set
from advmdp.core.streams import stream_key, uniforms
from advmdp.learners.episode import make_block
from advmdp.learners.kernels.episode import Block
from advmdp.learners.mirror_descent import uniform_logarithms
from advmdp.learners.pool import CUMULATIVE, DESCENT, DISCOUNTED, Expert
from advmdp.projection.kernels.memory import Bounds, Layout, Workspace, new_answer
from advmdp.projection.kernels.solver import solve_from
from advmdp.projection.projector import ITERATIONS, TOLERANCE
from advmdp.projection.status import Status
from benchmarks.projection import SIZES, dense

BEFORE = {"5x5x4": 2000, "6x10x4": 1000, "10x20x5": 200}
EPISODES = {"5x5x4": 60, "6x10x4": 30, "10x20x5": 4}
LARGE = {"10x20x5": 4, "10x100x5": 1}
"""The worlds in which threads are compared, and the episodes of a block. SelfTuning uses threads by default in the last
one."""
ROUNDS = 9
WORLDS = {
    "stochastic": lambda sk: am.losses.Stochastic(sk, noise=0.5),
    "drifting": lambda sk: am.losses.Drifting(sk, period=100, seed=1, noise=0.5),
}


class Problem(NamedTuple):
    """A projection: its start, set and weights."""

    start: np.ndarray | None
    bounds: Bounds
    log_w: np.ndarray
    made: bool
    """Whether the learner makes it; otherwise the expert rests."""


def main(console: Console) -> None:
    table = Table(title="SelfTuning in a run, with its defaults, one thread")
    columns = ("size", "losses", "after", "episode", "projections", "episode / them", "made", "episode / made")
    for column in columns:
        table.add_column(column, justify="right")
    ratios = []
    for size, (name, losses_of) in ((size, world) for size in BEFORE for world in WORLDS.items()):
        mdp = dense(*SIZES[size])
        learner = am.SelfTuning(mdp.skeleton)
        episode, alone, made, share = compared(mdp, losses_of(mdp.skeleton), learner, BEFORE[size], EPISODES[size])
        cells = (f"{episode * 1e6:,.0f} us", f"{alone * 1e6:,.0f} us", f"{episode / alone:.2f}")
        table.add_row(size, name, f"{BEFORE[size]:,}", *cells, f"{share:.0%}", f"{episode / made:.2f}")
        ratios.append((episode / alone, episode / made))
    most, most_made = (max(column) for column in zip(*ratios, strict=True))
    said = f"an episode takes at most {most:.2f} times the projections of its experts (goal: 1.2)"
    console.print(table, f"{said}, and {most_made:.2f} times those that are made\n")
    for size in LARGE:
        threads(console, size)


def compared(
    mdp: am.MDP, losses: am.losses.Losses, learner: am.SelfTuning, before: int, count: int
) -> tuple[float, float, float, float]:
    """Seconds of an episode, of all experts' projections, and of those that are made; and the share made."""
    am.play(mdp, losses, learner, before)
    begin = learner.state()
    problems = [problem for t in range(count) for problem in problems_of(mdp, losses, learner, before + t)]
    layout, workspace, answer = arena(mdp.skeleton)
    best = np.full(3, np.inf)
    share = float(np.mean([problem.made for problem in problems]))
    for _ in range(ROUNDS):
        learner.restore(begin)
        learner.episode = before
        block = block_of(mdp, losses, learner, before, count)
        start = time.process_time()
        learner.play_block(mdp.dynamics, block)
        spent = [time.process_time() - start, 0.0, 0.0]
        for at, bounds, log_w, made in sorted(problems, key=lambda problem: problem.made):
            start = time.process_time()
            assert solve_from(at, layout, bounds, workspace, log_w, answer, TOLERANCE, ITERATIONS)[0] == Status.SOLVED
            spent[1 + made] += time.process_time() - start
        best = np.minimum(best, [spent[0], spent[1] + spent[2], spent[2]])
    return *(best / count).tolist(), share


def arena(sk: am.Skeleton) -> tuple[Layout, Workspace, np.ndarray]:
    layout = Layout(sk.layer_ptr, sk.pair_ptr, sk.transition_ptr, sk.successor, 1)
    return layout, Workspace(layout), new_answer(layout)[0]


def block_of(mdp: am.MDP, losses: am.losses.Losses, learner: am.SelfTuning, first: int, count: int) -> Block:
    """Episodes first, first + 1, ... with their losses drawn."""
    sk, key = mdp.skeleton, stream_key(1, "world", "trajectories")
    drawn, total = uniforms(key, first, count, 2 * sk.num_layers), np.zeros((sk.num_transitions, 1))
    return make_block(sk, losses.block(first, first + count), learner.criterion.terms, total, drawn)


def problems_of(mdp: am.MDP, losses: am.losses.Losses, learner: am.SelfTuning, t: int) -> list[Problem]:
    """The projections of the experts after episode t, which this plays."""
    pool, sk = learner._memory, mdp.skeleton
    betas, log_q, eta = pool.betas.copy(), pool.log_q.copy(), am.bounds.eta(sk, 1) / np.sqrt(t + 1.0)
    epochs = learner.epochs
    learner.play_block(mdp.dynamics, block_of(mdp, losses, learner, t, 1))
    wide, narrow = (
        Bounds(pointwise_set(sk, learner.counts, 1.0, revisit=revisit).bounds(sk)) for revisit in (True, False)
    )
    all_made, found = learner.epochs > epochs or (t + 1) % 10 == 0, []
    for e, expert in enumerate(learner._experts):
        if expert.kind == DESCENT:  # anytime: the decrease of the step size goes to the start
            keep = np.sqrt((t + 1.0) / (t + 2.0))
            log_w = keep * (log_q - eta * pool.z) + (1.0 - keep) * uniform_logarithms(sk)
        elif pool.awake[e]:
            log_w = uniform_logarithms(sk) - step_of(learner, expert, t + 1) * signal_of(learner, expert, t + 1)
        else:
            continue
        start = betas[e] if expert.kind in (CUMULATIVE, DISCOUNTED) else None
        made = expert.kind == DESCENT or all_made or pool.weights[e] >= 2.0**-53
        bounds = wide if expert.kind == DESCENT else narrow
        found.append(Problem(start, bounds, levelled(sk, log_w), bool(made)))
    return found


def levelled(sk: am.Skeleton, log_w: np.ndarray) -> np.ndarray:
    """Subtract the largest of each layer, which changes no projection."""
    first = sk.layer_transition_ptr
    return log_w - np.repeat(np.maximum.reduceat(log_w, first[:-1]), np.diff(first))


def signal_of(learner: am.SelfTuning, expert: Expert, t: int) -> np.ndarray:
    """The losses to which an expert responds in episode t."""
    pool, name = learner._memory, expert.name.split()
    if "of" in name:
        return (pool.means if name[0] == "mean" else pool.ago)[expert.first + t % expert.period]
    return pool.sums[{"all": 0, "smoothed": 1, "last": 2, "found": 4}[name[0]]]


def step_of(learner: am.SelfTuning, expert: Expert, t: int) -> float:
    sk, squares = learner.skeleton, learner._memory.account[2]
    scale = sk.num_steps * am.bounds.eta(sk, 1) * expert.pace
    return scale / float(np.sqrt(squares if expert.kind == CUMULATIVE else squares / t))


def threads(console: Console, size: str) -> None:
    """Compare one thread with two in a large world; the results are the same to the bit."""
    mdp, found = dense(*SIZES[size]), {1: np.inf, 2: np.inf}
    losses, count = WORLDS["drifting"](mdp.skeleton), LARGE[size]
    learners = {number: am.SelfTuning(mdp.skeleton, threads=number) for number in found}
    for first in range(0, ROUNDS * count, count):
        for number, learner in learners.items():
            block = block_of(mdp, losses, learner, first, count)
            start = time.perf_counter()
            learner.play_block(mdp.dynamics, block)
            found[number] = min(found[number], (time.perf_counter() - start) / count)
    assert np.array_equal(learners[1].q, learners[2].q)
    one, two = found[1] * 1e3, found[2] * 1e3
    transitions = f"{mdp.skeleton.num_transitions:,} transitions"
    text = f"{size}, {transitions}: {one:,.1f} ms per episode with one thread, {two:,.1f} with two: {one / two:.2f}x"
    console.print(text)
