"""Measures the projection: compared with CVXPY and with one pass of NumPy's exp; its certificate, growth and memory.

Problems come from a run, except for the size of the sets.  Counts are drawn from the true dynamics, about thirty visits
per pair.  Radii are those of Section 4.1 (for boxes, Bernstein bounds) times a scale that makes none, a tenth or four
fifths of the rows tight.  eta is that of Theorem 5.1, and weights q_t exp(-eta z_t) come from the run itself.
`learning.py` takes the problems of real runs.

Goals: the first projection of a new process takes 0.5 s of CPU with all imports; every problem is solved 1,000x (5x5x4)
and 2,000x (6x10x4) faster than by CVXPY + Clarabel; at most 15x NumPy's exponential pass at 16,200 entries with few
tight rows, 30x with most, 12x at 400,000; the cost is linear from 10^3 to 10^7 transitions, and for sparse problems the
cost per transition at 10^7 is at most twice that at 10^4; less than 12 arrays of the size of q.  If arrays exceed the
caches, NumPy's own pass slows down too; the table has both.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import mean

import numpy as np
from rich.console import Console
from rich.table import Table

import advmdp as am
from benchmarks.measure import best_time, peak_bytes
from tests.helpers.builds import KERNELS, ROOT, edited

SIZES = {"5x5x4": (5, 5, 4), "6x10x4": (6, 10, 4), "10x20x5": (10, 20, 5), "10x100x5": (10, 100, 5)}
SETTINGS = {"none tight": 0.0, "few tight": 0.1, "most tight": 0.8}
SETS = ("ball", "box")
HORIZON, DELTA = 10**5, 0.05
WITHOUT_CERTIFICATE = (
    f"{KERNELS}/certificate.py",
    "    found: Certificate\n    for x in range(sk.states):\n",
    "    found: Certificate\n"
    "    found.gap = found.doubt = found.flow = found.rows = found.apart = found.value = 0.0\n"
    "    if sk.states > 0:\n"
    "        return found\n"
    "    for x in range(sk.states):\n",
)
"""An edit in a copy of the package that removes the certificate, to measure its cost."""


@dataclass
class Run:
    """UC-O-REPS in a late epoch: the set is constant, q changes."""

    mdp: am.MDP
    rows: am.L1Ball | am.Box
    eta: float
    projector: am.Projector
    log_q: np.ndarray
    losses: am.losses.Stochastic

    def weights(self, t: int) -> np.ndarray:
        return self.log_q - self.eta * self.losses.at(t)

    def tight(self) -> float:
        """The share of pairs whose set is active."""
        r = self.projector.project(self.weights(0), self.rows)
        return float((r.mu > 1e-9).mean())


def around(mdp: am.MDP, kind: str, scale: float) -> am.L1Ball | am.Box:
    """The sets after about thirty visits per pair: observed centres, sizes times ``scale``."""
    sk = mdp.skeleton
    counts = np.random.default_rng(0).poisson(30 * mdp.transition)
    visits = np.add.reduceat(counts, sk.transition_ptr[:-1])
    n = np.maximum(1, visits)
    center = counts / sk.over_transitions(n)
    log = np.log(HORIZON * sk.num_states * sk.num_actions / DELTA)
    if kind == "ball":
        next_layer = np.repeat(sk.layer_sizes[1:], np.diff(sk.layer_pair_ptr))
        return am.L1Ball(center, scale * np.sqrt(2 * next_layer * log / n))
    share = log / sk.over_transitions(n)
    width = scale * (2 * np.sqrt(center * share) + 14 / 3 * share)
    unseen = sk.over_transitions(visits == 0)
    return am.Box(np.maximum(center - width, 0.0), np.where(unseen, 1.0, np.minimum(center + width, 1.0)))


def start(mdp: am.MDP, kind: str, scale: float, episodes: int) -> Run:
    """A run ``episodes`` into an epoch, with the theory's sets times ``scale``."""
    sk = mdp.skeleton
    eta = np.sqrt(np.log(sk.num_states**2 * sk.num_actions / sk.num_layers**2) / HORIZON)
    uniform = np.repeat(-np.log(np.diff(sk.layer_transition_ptr)), np.diff(sk.layer_transition_ptr))
    losses = am.losses.Stochastic(sk, noise=0.5)
    run = Run(mdp, around(mdp, kind, scale), eta, am.Projector(sk, threads=1), uniform, losses)
    for t in range(episodes):
        run.log_q = run.projector.project(run.weights(t), run.rows).log_q
    return run


def start_tight(mdp: am.MDP, kind: str, share: float, episodes: int) -> Run:
    """A run in which about the given share of the rows is tight, by bisection on the scale of the sets."""
    if share == 0.0:
        return start(mdp, kind, 1.0, episodes)
    low, high = 1e-3, 1.0
    for _ in range(12):
        scale = np.sqrt(low * high)
        low, high = (low, scale) if start(mdp, kind, scale, 3).tight() < share else (scale, high)
    return start(mdp, kind, scale, episodes)


def dense(steps: int, width: int, actions: int) -> am.MDP:
    return am.MDP.random([1, *[width] * (steps - 1), 1], actions, seed=0)


def sparse(transitions: int) -> am.MDP:
    return am.MDP.random([1, *[max(5, transitions // 164)] * 9, 1], 4, seed=0, branching=5)


def problems_of(run: Run, count: int = 3) -> list[np.ndarray]:
    """Some weights of the run."""
    return [run.weights(1000 + t) for t in range(count)]


def project_time(run: Run, weights: np.ndarray) -> float:
    """Seconds for one projection."""
    return best_time(lambda: run.projector.project(weights, run.rows), 0.5)


def projection_time(run: Run) -> float:
    """Seconds for one projection, over a few weights of the run."""
    return mean(project_time(run, weights) for weights in problems_of(run))


def exponential_time(run: Run) -> float:
    """The time of NumPy's pass over the same arrays: the least cost of forming the weights."""
    z, out = run.losses.at(0), np.empty_like(run.log_q)
    return best_time(lambda: np.exp(run.log_q - run.eta * z, out=out), 0.3)


def clarabel_time(sk: am.Skeleton, log_weights: np.ndarray, rows: am.L1Ball | am.Box) -> tuple[float, float]:
    """Seconds of CVXPY + Clarabel for the same projection: in total, and inside the solver.

    The smaller of wall and CPU time counts: other processes interrupt a call of 100 ms, but not the best of many short
    ones.
    """
    import cvxpy as cp

    from tests.helpers.oracles import box_rules, flow_rules, l1_rules, occupancy_variable

    weights = np.exp(log_weights)
    begin, begin_cpu = time.perf_counter(), time.process_time()
    q = occupancy_variable(sk)
    box = isinstance(rows, am.Box)
    sets = box_rules(sk, q, rows.lower, rows.upper) if box else l1_rules(sk, q, rows.center, rows.radius)
    problem = cp.Problem(cp.Minimize(cp.sum(cp.kl_div(q, weights))), [*flow_rules(sk, q), *sets])
    try:
        problem.solve(solver=cp.CLARABEL)
    except cp.SolverError:
        return float("nan"), float("nan")
    whole = min(time.perf_counter() - begin, time.process_time() - begin_cpu)
    return whole, min(whole, float(problem.solver_stats.solve_time))


def least_ratios(run: Run) -> tuple[float, float]:
    """The ratio of the time of CVXPY + Clarabel, and of its solver alone, to ours: the least over some problems.

    Each problem compares CVXPY's best of three calls (of one, if that takes seconds) with our best.
    """
    sk = run.mdp.skeleton
    small = sk.num_transitions < 5000
    ratios = []
    for weights in problems_of(run, 3 if small else 1):
        ours = project_time(run, weights)
        theirs = [clarabel_time(sk, weights, run.rows) for _ in range(3 if small else 1)]
        ratios.append(np.nanmin(theirs, axis=0) / ours)
    whole, inside = np.min(ratios, axis=0)
    return float(whole), float(inside)


def main(console: Console) -> None:
    first_call(console)
    speed(console)
    certificate(console)
    threads(console)
    growth(console)


def first_call(console: Console) -> None:
    """Measure the first projection of a new process: CPU time of all its threads, imports included."""
    code = (
        "import numpy as np, advmdp as am; sk = am.Skeleton.dense([1, 2, 1], 2); "
        "am.project(sk, np.zeros(8), am.L1Ball(np.zeros(8), np.ones(6)))"
    )
    alone, whole = (min(cpu_time(words) for _ in range(7)) for words in ("import numpy", code))
    console.print(f"first projection of a new process: {whole:.2f} s of CPU in total, NumPy alone {alone:.2f} s")
    console.print("claimed: at most 0.5 s\n")


def cpu_time(code: str) -> float:
    """CPU seconds of a new Python process that runs the code."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def speed(console: Console) -> None:
    table = Table(title="One projection in steady state (one thread)")
    for column in ("size", "entries", "sets", "setting", "tight", "steps", "time", "/ np.exp", "CVXPY + Clarabel /",
                   "its solver alone /"):  # fmt: skip
        table.add_column(column, justify="right")
    for (size, shape), kind, (setting, share) in product(SIZES.items(), SETS, SETTINGS.items()):
        run = start_tight(dense(*shape), kind, share, episodes=30)
        seconds, n = projection_time(run), run.mdp.skeleton.num_transitions
        iterations = run.projector.project(run.weights(1000), run.rows).iterations
        ratios = [f"{ratio:,.0f}x" for ratio in least_ratios(run)] if n < 20_000 else ["", ""]
        table.add_row(
            size, f"{n:,}", kind, setting, f"{run.tight():.0%}", f"{iterations}", f"{seconds * 1e6:,.1f} us",
            f"{seconds / exponential_time(run):.1f}", *ratios, end_section=setting == "most tight",
        )  # fmt: skip
    console.print(table)
    console.print("against CVXPY, the least over the problems: 1,000x claimed at 5x5x4 and 2,000x at 6x10x4")
    console.print("goals against np.exp: 15 (few tight), 30 (most), 12 (at 400,000); real runs: `learning`\n")


CERTIFIED = tuple(product(("5x5x4", "6x10x4", "10x20x5"), SETS, SETTINGS))


def certified_times() -> list[float]:
    """Seconds of a projection in each case, with the package of this process."""
    return [
        projection_time(start_tight(dense(*SIZES[size]), kind, SETTINGS[setting], episodes=30))
        for size, kind, setting in CERTIFIED
    ]


def certificate(console: Console) -> None:
    """Measure the certificate's share of a projection, by comparison with a copy of the package without it."""
    times: dict[bool, list[list[float]]] = {True: [], False: []}
    with tempfile.TemporaryDirectory() as folder:
        for with_it in (True, False):
            (Path(folder) / str(with_it)).mkdir()
        environments = {
            with_it: edited(Path(folder) / str(with_it), () if with_it else (WITHOUT_CERTIFICATE,)) for with_it in times
        }
        for with_it in (True, False, True, False):
            command = [sys.executable, "-m", "benchmarks.projection"]
            done = subprocess.run(
                command, cwd=ROOT, env=environments[with_it], check=True, capture_output=True, text=True
            )
            times[with_it].append(json.loads(done.stdout))
    table = Table(title="The cost of the certificate (one thread)")
    for column in ("size", "sets", "setting", "projection", "certificate", "share"):
        table.add_column(column, justify="right")
    for (size, kind, setting), whole, rest in zip(CERTIFIED, *(np.min(t, axis=0) for t in times.values()), strict=True):
        cells = (f"{whole * 1e6:,.1f} us", f"{(whole - rest) * 1e6:,.1f} us", f"{1 - rest / whole:.0%}")
        table.add_row(size, kind, setting, *cells, end_section=setting == "most tight")
    console.print(table, "the certificate is part of every projection and cannot be disabled\n")


def threads(console: Console) -> None:
    """Compare one thread with two, from 400,000 transitions on; the answers are the same to the bit."""
    table = Table(title="Two threads")
    for column in ("kind", "transitions", "one", "two", "one / two"):
        table.add_column(column, justify="right")
    for kind, mdp, scale in (("dense", dense(10, 100, 5), 1.0), ("dense, tight rows", dense(10, 100, 5), 0.12),
                             ("sparse", sparse(4 * 10**5), 1.0), ("sparse", sparse(4 * 10**6), 1.0)):  # fmt: skip
        run = start(mdp, "ball", scale, episodes=3)
        w, rows = run.weights(1000), run.rows
        both = [am.Projector(mdp.skeleton, threads=k) for k in (1, 2)]
        one, two = (best_time(lambda p=p: p.project(w, rows), 2.0) for p in both)  # noqa: B023
        assert both[0].project(w, rows).log_q.tobytes() == both[1].project(w, rows).log_q.tobytes()
        cells = (f"{one * 1e3:.2f} ms", f"{two * 1e3:.2f} ms", f"{one / two:.2f}x")
        table.add_row(kind, f"{mdp.skeleton.num_transitions:,}", *cells)
    console.print(table, "goal: two threads help\n")


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
            run = start(mdp, "ball", 1.0, episodes=3)
            seconds, least = projection_time(run), exponential_time(run)
            weights, rows = run.weights(7), run.rows
            held = peak_bytes(lambda: am.project(mdp.skeleton, weights, am.L1Ball(rows.center, rows.radius)))  # noqa: B023
            # tracemalloc sees only allocations of the call; the weights existed before.
            arrays = (held + weights.nbytes) / (8 * n)
            cells = (f"{run.tight():.0%}", f"{seconds * 1e3:,.2f} ms", f"{seconds / n * 1e9:.1f}",
                     f"{least / n * 1e9:.1f}", f"{seconds / least:.1f}", f"{arrays:.1f}")  # fmt: skip
            table.add_row(kind, f"{n:,}", *cells)
            points.append((np.log(n), np.log(seconds)))
        table.add_section()
        more = np.exp(np.subtract(*np.diff(points, axis=1)[[4, 1], 0]))  # time per transition
        power = np.polyfit(*np.transpose(points), 1)[0]
        growths.append(f"{kind}: time grows as transitions^{power:.2f}; per transition, 10^7 / 10^4 is {more:.2f}")
    console.print(table, "; ".join(growths))
    console.print("goals: linear, so a power of one; sparse, 10^7 / 10^4 at most 2; fewer than 12 arrays\n")


if __name__ == "__main__":  # what `certificate` runs, with and without it
    print(json.dumps(certified_times()))
