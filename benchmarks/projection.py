"""The projection: against CVXPY, against the least that any method must do, its certificate, growth and memory.

Problems are those of a run, but for the size of the sets: counts drawn from the true dynamics as after thirty visits a
pair, radii of Section 4.1 times a scale that makes none, a tenth or four fifths of the rows tight, eta of Theorem 5.1,
and weights q_t exp(-eta z_t) that the run itself has brought about.  `learning.py` takes the problems of real runs.

Aims: at most 15x NumPy's exponential pass at 16,200 entries with few tight rows, 30x with most, 12x at 400,000; cost
linear in the transitions from 10^3 to 10^7; less than 12 arrays of the size of q; 10^5 problems of every kind without a
failure.  Where arrays outgrow the caches NumPy's own pass slows down too; the table has both.
"""

import subprocess
import sys
import time
from dataclasses import dataclass
from itertools import product

import numpy as np
from numba import njit
from rich.console import Console
from rich.table import Table

import advmdp as am
from advmdp.projection.kernels.certificate import certify
from advmdp.projection.kernels.dual import evaluate
from advmdp.projection.kernels.types import Work, Workspace
from benchmarks.measure import best_time, peak_bytes

SIZES = {"5x5x4": (5, 5, 4), "6x10x4": (6, 10, 4), "10x20x5": (10, 20, 5), "10x100x5": (10, 100, 5)}
SETTINGS = {"none tight": 0.0, "few tight": 0.1, "most tight": 0.8}
HORIZON, DELTA = 10**5, 0.05


@dataclass
class Run:
    """UC-O-REPS in a late epoch: the set does not change any more, q does."""

    mdp: am.MDP
    rows: am.L1Ball
    eta: float
    projector: am.Projector
    log_q: np.ndarray
    losses: am.losses.Stochastic

    def weights(self, t: int) -> np.ndarray:
        return self.log_q - self.eta * self.losses.at(t)

    def tight(self) -> float:
        """The share of pairs whose set binds."""
        r = self.projector.project(self.weights(0), self.rows)
        return float((r.mu > 1e-9).mean())


def estimates(mdp: am.MDP) -> tuple[np.ndarray, np.ndarray]:
    """The centre and the radii of Section 4.1 after thirty visits a pair, more or less."""
    sk = mdp.skeleton
    counts = np.random.default_rng(0).poisson(30 * mdp.transition)
    n = np.add.reduceat(counts, sk.transition_ptr[:-1])
    next_layer = np.repeat(sk.layer_sizes[1:], np.diff(sk.layer_pair_ptr))
    log = np.log(HORIZON * sk.num_states * sk.num_actions / DELTA)
    return counts / np.maximum(1, sk.over_transitions(n)), np.sqrt(2 * next_layer * log / np.maximum(1, n))


def start(mdp: am.MDP, scale: float, episodes: int) -> Run:
    """A run ``episodes`` into an epoch, with the paper's radii times ``scale``."""
    sk = mdp.skeleton
    center, radius = estimates(mdp)
    eta = np.sqrt(np.log(sk.num_states**2 * sk.num_actions / sk.num_layers**2) / HORIZON)
    uniform = np.repeat(-np.log(np.diff(sk.layer_transition_ptr)), np.diff(sk.layer_transition_ptr))
    run = Run(
        mdp,
        am.L1Ball(center, scale * radius),
        eta,
        am.Projector(sk, threads=1),
        uniform,
        am.losses.Stochastic(sk, noise=0.5),
    )
    for t in range(episodes):
        run.log_q = run.projector.project(run.weights(t), run.rows).log_q
    return run


def start_tight(mdp: am.MDP, share: float, episodes: int) -> Run:
    """A run in which about the given share of the rows is tight, by bisection on the scale of the radii."""
    if share == 0.0:
        return start(mdp, 1.0, episodes)
    low, high = 1e-3, 1.0
    for _ in range(12):
        scale = np.sqrt(low * high)
        low, high = (low, scale) if start(mdp, scale, 3).tight() < share else (scale, high)
    return start(mdp, scale, episodes)


def dense(steps: int, width: int, actions: int) -> am.MDP:
    return am.MDP.random([1, *[width] * (steps - 1), 1], actions, seed=0)


def sparse(transitions: int) -> am.MDP:
    return am.MDP.random([1, *[max(5, transitions // 164)] * 9, 1], 4, seed=0, branching=5)


def projection_time(run: Run) -> float:
    """Seconds for one projection, over a few weights of the run."""
    weights = [run.weights(1000 + t) for t in range(3)]
    return float(np.mean([best_time(lambda w=w: run.projector.project(w, run.rows), 0.5) for w in weights]))


def exponential_time(run: Run) -> float:
    """NumPy's own pass over the same arrays: what forming the weights costs at the least."""
    z, out = run.losses.at(0), np.empty_like(run.log_q)
    return best_time(lambda: np.exp(run.log_q - run.eta * z, out=out), 0.3)


def clarabel_time(sk: am.Skeleton, log_weights: np.ndarray, rows: am.L1Ball) -> tuple[float, float]:
    """Seconds of CVXPY + Clarabel for the same projection, all in all and inside the solver."""
    import cvxpy as cp

    from tests.helpers.oracles import flow_rules, l1_rules, occupancy_variable

    weights = np.exp(log_weights)
    begin = time.perf_counter()
    q = occupancy_variable(sk)
    rules = [*flow_rules(sk, q), *l1_rules(sk, q, rows.center, rows.radius)]
    problem = cp.Problem(cp.Minimize(cp.sum(cp.kl_div(q, weights))), rules)
    try:
        problem.solve(solver=cp.CLARABEL)
    except cp.SolverError:
        return float("nan"), float("nan")
    return time.perf_counter() - begin, float(problem.solver_stats.solve_time)


def main(console: Console) -> None:
    first_call(console)
    speed(console)
    certificate(console)
    threads(console)
    growth(console)


def first_call(console: Console) -> None:
    """What a second process pays for its first projection, with the kernels compiled and on disk."""
    code = (
        "import numpy as np, advmdp as am; sk = am.Skeleton.dense([1, 2, 1], 2); "
        "am.project(sk, np.zeros(8), am.L1Ball(np.zeros(8), np.ones(6)))"
    )
    times = []
    for _ in range(2):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        times.append(time.perf_counter() - begin)
    console.print(f"first projection of a new process: {times[1]:.2f} s in all (claimed: under 2 s)\n")


def speed(console: Console) -> None:
    table = Table(title="One projection in steady state (one thread)")
    for column in (
        "size",
        "entries",
        "setting",
        "tight",
        "iterations",
        "time",
        "/ np.exp",
        "CVXPY + Clarabel /",
        "its solver alone /",
    ):
        table.add_column(column, justify="right")
    for (size, shape), (setting, share) in product(SIZES.items(), SETTINGS.items()):
        run = start_tight(dense(*shape), share, episodes=30)
        seconds, n = projection_time(run), run.mdp.skeleton.num_transitions
        iterations = run.projector.project(run.weights(1000), run.rows).iterations
        sk = run.mdp.skeleton
        whole, inside = clarabel_time(sk, run.weights(1000), run.rows) if n < 20_000 else (np.nan, np.nan)
        ratios = [f"{whole / seconds:,.0f}x", f"{inside / seconds:,.0f}x"] if n < 20_000 else ["", ""]
        table.add_row(
            size, f"{n:,}", setting, f"{run.tight():.0%}", f"{iterations}", f"{seconds * 1e6:,.0f} us",
            f"{seconds / exponential_time(run):.1f}", *ratios, end_section=setting == "most tight",
        )  # fmt: skip
    console.print(table)
    console.print(
        "aims against np.exp: 15 (few tight), 30 (most), 12 (at 400,000); against CVXPY see the runs of `learning`\n"
    )


@njit(error_model="numpy")
def restore_often(memory: Workspace, pairs: np.ndarray, states: np.ndarray, times: int) -> None:
    """What the certificate overwrites, as it was."""
    for _ in range(times):
        memory.pairs[:] = pairs
        memory.states[:] = states


@njit(error_model="numpy")
def certify_often(structure, log_w, sets, work, log_q, q, log_pairs, pairs, states, times):
    """The certificate of one answer, again and again. Returns the gap that it reports."""
    reported = 0.0
    for _ in range(times):
        work.pairs[:] = pairs
        work.states[:] = states
        gap, doubt, _, _, _, _ = certify(structure, log_w, sets, work, log_q, q, log_pairs)
        reported = max(gap, 0.0) + 2.0 * doubt
    return reported


def certificate_time(run: Run, times: int = 200) -> float:
    """Seconds that the certificate takes of one projection, over the same weights as `projection_time`."""
    structure, memory, sets = run.projector.structure, run.projector.memory, run.projector.bounds(run.rows)
    seconds = []
    for t in range(3):
        log_w = run.weights(1000 + t)
        r = run.projector.project(log_w, run.rows)
        spare = (
            np.empty_like(r.q),
            np.empty_like(r.q),
            np.empty_like(r.policy),
        )  # what the solver writes to
        work = Work(*spare, *memory, bool(np.isfinite(log_w).all() and not sets.blocking and structure.connected))
        evaluate(structure, log_w, sets, work)  # the multipliers of the rows, which the certificate has overwritten
        pairs, states = memory.pairs.copy(), memory.states.copy()
        problem = (structure, log_w, sets, work, r.log_q, r.q, r.log_pairs, pairs, states)
        assert np.isclose(certify_often(*problem, 1), r.gap, rtol=1e-6)
        restore_often(memory, pairs, states, 1)
        both = best_time(lambda p=problem: certify_often(*p, times), 0.5)
        seconds.append((both - best_time(lambda: restore_often(memory, pairs, states, times), 0.5)) / times)  # noqa: B023
    return float(np.mean(seconds))


def certificate(console: Console) -> None:
    """The share of a projection's time that its certificate takes."""
    table = Table(title="The cost of the certificate (one thread)")
    for column in ("size", "setting", "projection", "certificate", "share"):
        table.add_column(column, justify="right")
    for size, (setting, share) in product(("5x5x4", "6x10x4", "10x20x5"), SETTINGS.items()):
        run = start_tight(dense(*SIZES[size]), share, episodes=30)
        whole, part = projection_time(run), certificate_time(run)
        cells = (f"{whole * 1e6:,.1f} us", f"{part * 1e6:,.1f} us", f"{part / whole:.0%}")
        table.add_row(size, setting, *cells, end_section=setting == "most tight")
    console.print(table, "the certificate is part of every projection; there is no way to leave it out\n")


def threads(console: Console) -> None:
    """One thread against two, at 400,000 transitions and above; the answers are the same to the bit."""
    table = Table(title="Two threads")
    for column in ("kind", "transitions", "one", "two", "one / two"):
        table.add_column(column, justify="right")
    for kind, mdp, scale in (("dense", dense(10, 100, 5), 1.0), ("dense, tight rows", dense(10, 100, 5), 0.12),
                             ("sparse", sparse(4 * 10**5), 1.0), ("sparse", sparse(4 * 10**6), 1.0)):  # fmt: skip
        run = start(mdp, scale, episodes=3)
        w, rows = run.weights(1000), run.rows
        both = [am.Projector(mdp.skeleton, threads=k) for k in (1, 2)]
        one, two = (best_time(lambda p=p: p.project(w, rows), 2.0) for p in both)  # noqa: B023
        assert both[0].project(w, rows).log_q.tobytes() == both[1].project(w, rows).log_q.tobytes()
        cells = (f"{one * 1e3:.2f} ms", f"{two * 1e3:.2f} ms", f"{one / two:.2f}x")
        table.add_row(kind, f"{mdp.skeleton.num_transitions:,}", *cells)
    console.print(table, "aim: two threads help\n")


def growth(console: Console) -> None:
    table = Table(title="Growth over transitions at ten steps, the paper's radii (one thread)")
    for column in (
        "kind",
        "transitions",
        "tight",
        "time",
        "ns per transition",
        "np.exp, ns",
        "ratio",
        "arrays of q's size",
    ):
        table.add_column(column, justify="right")
    growths = []
    for kind in ("dense", "sparse"):
        points = []
        for exponent in (3, 4, 5, 6, 7):
            width = max(2, round(np.sqrt(10**exponent / 45)))
            mdp = dense(10, width, 5) if kind == "dense" else sparse(10**exponent)
            n = mdp.skeleton.num_transitions
            run = start(mdp, 1.0, episodes=3)
            seconds, least = projection_time(run), exponential_time(run)
            weights, rows = run.weights(7), run.rows
            held = peak_bytes(lambda: am.project(mdp.skeleton, weights, am.L1Ball(rows.center, rows.radius)))  # noqa: B023
            # tracemalloc sees what the call allocates; the weights were there before.
            arrays = (held + weights.nbytes) / (8 * n)
            cells = (f"{run.tight():.0%}", f"{seconds * 1e3:,.2f} ms", f"{seconds / n * 1e9:.1f}",
                     f"{least / n * 1e9:.1f}", f"{seconds / least:.1f}", f"{arrays:.1f}")  # fmt: skip
            table.add_row(kind, f"{n:,}", *cells)
            points.append((np.log(n), np.log(seconds)))
        table.add_section()
        growths.append(f"{kind}: time grows as transitions^{np.polyfit(*np.transpose(points), 1)[0]:.2f}")
    console.print(table, "; ".join(growths))
    console.print("aims: linear from 10^3 to 10^7, so a power of one; fewer than 12 arrays\n")
