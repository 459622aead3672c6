"""Attacks the projection with hard problems; Frank-Wolfe gaps in long double judge each answer."""

import os
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

import advmdp as am
from tests.helpers.builds import KERNELS, ROOT, Edit, edited
from tests.helpers.hard_problems import KINDS, SHAPES, WEIGHTS, Problems, attack, draw, skeleton

MUTATIONS = (
    (
        "rows",
        "before, s = s, (1.0 - clipped) / free",
        "before, s = s, (1.0 - 0.9 * clipped) / free",
        "box: the mass left to free entries",
    ),
    ("rows", "bound = lower if v <= lower else upper", "bound = upper", "box: lower bounds count as upper ones"),
    ("rows", "cost += 0.0 if moves else price", "cost += 0.0 if moves else price + 0.01", "box: kappa too large"),
    ("rows", "cost += 0.0 if moves else price", "cost += 0.0 if moves else price - 0.01", "box: kappa too small"),
    ("rows", "value = upper if v >", "value = lower if v >", "box: entries fall to the other bound"),
    ("log_rows", "over >= under and p[j]", "p[j]", "box, on ln u: entries stop at upper bounds only"),
    ("log_rows", "p[j] *= left / total", "p[j] *= 0.99 * left / total", "box, on ln u: a part of the mass is lost"),
    ("log_rows", "log_s, log_s, mass, 0.0", "log_s, log_s, 1.01 * mass, 0.0", "box, on ln u: kappa is wrong"),
    ("log_rows", "max(lower, log_high[j] -", "max(lower, 1.0 + log_high[j] -", "box, on ln u: the least s too large"),
    ("rows", "next_a = (half +", "next_a = (0.9 * half +", "ball: a from a smaller radius"),
    ("rows", "next_b = (sums.center_b -", "next_b = (sums.center_b - 0.9 *", "ball: b from a smaller radius"),
    ("rows", "middle = low if low < c else c", "middle = low", "ball: b u is not cut at the centre"),
    ("rows", "half + sums.center_a, sums", "half + sums.center_a, 0.9 * sums", "ball: kappa with a part of B"),
    ("rows", "sums.center_a <= half:", "sums.center_a <= 2.0 * half:", "ball: taken for inside"),
    ("rows", "cost += pinned * (log_center[j] - finite)", "cost += pinned", "ball: kappa without its centre"),
    ("log_rows", "next_a = log(half + ", "next_a = log(0.9 * half + ", "ball, on ln u: a from a smaller radius"),
    ("log_rows", "max(below, min(edge,", "max(below, 1.0 + min(edge,", "ball, on ln u: b too large"),
    ("log_rows", "log_a, log_b, mass_a,", "log_a, log_b, 0.99 * mass_a,", "ball, on ln u: kappa is wrong"),
    ("log_rows", "excess += max(0.0,", "excess += 0.5 * max(0.0,", "ball, on ln u: b from another segment"),
    ("log_rows", "values[root] >= values[child]", "values[root] >= 0.0", "ball, on ln u: ratios out of order"),
    ("log_rows", "return target / mass if", "return 1.01 * target / mass if", "on ln u: masses corrected too far"),
    ("log_rows", "log_a = -log(s) - top", "log_a = 0.1 - log(s) - top", "inside, on ln u: a is wrong"),
    ("rows", "weight[j] * growth[j]", "weight[j]", "all sets: u without a part of beta"),
    ("rows", "False, a, a, 1.0, 0.0", "False, 0.99 * a, a, 1.0, 0.0", "inside: a part of the mass is lost"),
    ("rows", "kappa += center[j] * (log_center[j] - log_u[j])", "kappa += center[j]", "point: kappa without u"),
    ("rows", "p[j] = center[j]", "p[j] = 0.99 * center[j] + 0.01 * (j == 0)", "point: another row"),
    (
        "abreast",
        "s = (each(1.0) - clipped) /",
        "s = (each(1.0) - each(0.9) * clipped) /",
        "box, abreast: the mass left",
    ),
    ("abreast", "where(at_least(lower, v), lower, upper)", "upper", "box, abreast: lower bounds count as upper ones"),
    (
        "abreast",
        "upper, smaller(v, limit)",
        "lower, smaller(v, limit)",
        "box, abreast: entries fall to the other bound",
    ),
    ("abreast", "found.s, found.s, mass,", "found.s, found.s, each(0.99) * mass,", "box, abreast: kappa is wrong"),
    (
        "abreast",
        "found.mass_a / u_a",
        "(found.mass_a - each(0.1) * half) / u_a",
        "ball, abreast: a from a smaller radius",
    ),
    (
        "abreast",
        "found.mass_b / u_b",
        "(found.mass_b + each(0.1) * half) / u_b",
        "ball, abreast: b from a smaller radius",
    ),
    ("abreast", "larger(high, smaller(low, c))", "larger(high, low)", "ball, abreast: b u is not cut at the centre"),
    ("abreast", "found.mass_b, cost", "each(0.9) * found.mass_b, cost", "ball, abreast: kappa with a part of B"),
    ("abreast", "at_least(half, found.a", "at_least(half + half, found.a", "ball, abreast: taken for inside"),
    ("abreast", "d + j) * load(u + 4 * j)", "d + j)", "all sets, abreast: u without a part of beta"),
    ("exact", "log_mass[k] + w.mass_a[k] *", "log_mass[k] + 0.99 * w.mass_a[k] *", "all sets: kappa with a part of A"),
    ("weights", "< radius - MARGIN", "< 3.0 * radius", "rows taken for free that are not"),
    ("answer", "mass[j] += here * flow[j]", "mass[j] += 0.99 * here * flow[j]", "answer: mass lost on its way"),
    ("answer", "(w.offset[pair] - w.top[x])", "(w.offset[pair] - w.top[x] + 0.01)", "answer: too much on free pairs"),
    ("answer", "w.q[i] *= share[k]", "w.q[i] *= 0.99 * share[k]", "answer: q smaller than log_q"),
    ("answer", "(log_b if row[j] < low[j] else log_a)", "log_a", "answer: log_q of a ball with a for b"),
    ("answer", "top if row[j] == high[j] else log_a", "log_a", "answer: log_q of a box beyond its bound"),
)
"""(kernel, original code, planted error, description)."""


def edits_of(kernel: str, old: str, new: str) -> list[Edit]:
    """The edits of one error; for `rows`, also send short rows there, which normally go to `abreast`."""
    alone = (f"{KERNELS}/abreast.py", "if size > MOST or", "if size > 0 or")
    return [(f"{KERNELS}/{kernel}.py", old, new), *([alone] if kernel == "rows" else [])]


COMBINATIONS = list(product(SHAPES, KINDS, WEIGHTS))


def batch(number: int, size: int = 500) -> tuple[str, Counter[str]]:
    """Solve problems of one combination and count the outcomes."""
    problems, sk = drawn(number, size)
    answers = attack(problems, am.Projector(sk).project)
    counts = Counter(problems=size, refused=int(answers.refused.sum()), wrong=int(answers.wrong.sum()))
    return ", ".join(COMBINATIONS[number % len(COMBINATIONS)][1:]), counts


def drawn(number: int, size: int) -> tuple[Problems, am.Skeleton]:
    """Problems of one combination, and their skeleton."""
    shape, kind, weights = COMBINATIONS[number % len(COMBINATIONS)]
    sk = skeleton(shape)
    return draw(sk, kind, weights, size, np.random.default_rng([7, number])), sk


def large(console: Console) -> None:
    """Attack with 300 layers, and with layers of 2,000 states."""
    for shape, count in (("long", 150), ("wide", 38)):
        counts: Counter[str] = Counter()
        combinations = list(product(KINDS, WEIGHTS))
        for k in track(range(count), shape, console=console, transient=True):
            kind, weights = combinations[k % len(combinations)]
            sk = skeleton(shape, k)
            answers = attack(draw(sk, kind, weights, 1, np.random.default_rng([8, k])), am.Projector(sk).project)
            counts.update(problems=1, refused=int(answers.refused.sum()), wrong=int(answers.wrong.sum()))
        console.print(f"{shape}: {counts['problems']} problems, {counts['refused']} refused, {counts['wrong']} wrong")


def small(console: Console, total: int = 10**6, size: int = 500) -> None:
    """Attack with a million small problems."""
    table = Table(title="Small problems of every kind, judged by an independent oracle")
    for column in ("set, weights", "problems", "refused", "wrong"):
        table.add_column(column, justify="right")
    sums: dict[str, Counter[str]] = {}
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        done = pool.map(batch, range(total // size), chunksize=8)
        for name, counts in track(done, "attack", total=total // size, console=console, transient=True):
            sums.setdefault(name, Counter()).update(counts)
    sums["all"] = sum(sums.values(), Counter())
    for name, counts in sorted(sums.items(), key=lambda item: (item[0] == "all", item[0])):
        table.add_row(name, *(f"{counts[what]:,}" for what in ("problems", "refused", "wrong")))
    console.print(table, "claimed: none wrong\n")


def values(batches: int = 90, size: int = 60) -> NDArray[np.float64]:
    """For each problem: the value of its answer, its gap, whether it is solved, and which checks fail."""
    rows = []
    for number in range(batches):
        problems, sk = drawn(number, size)
        answers = attack(problems, am.Projector(sk).project)
        fields = (
            answers.verdict.value,
            answers.gap,
            answers.solved,
            answers.infeasible | answers.untold,
            answers.apart,
        )
        rows.append(np.transpose(fields))
    return np.concatenate(rows).astype(np.float64)


def planted(console: Console) -> None:
    """Plant errors in copies of the package: no answer may be worse than the right one by more than its own gap."""
    table = Table(title="Errors planted in the kernels that solve rows and write answers")
    for column in ("error", "problems", "refused by the certificate", "certified, q wrong", "log_q wrong"):
        table.add_column(column, justify="right")
    right = values()
    for kernel, old, new, words in track(MUTATIONS, "mutations", console=console, transient=True):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            environment = edited(folder, edits_of(kernel, old, new))
            command = [sys.executable, "-W", "ignore", "-m", "benchmarks.attack", name]
            subprocess.run(command, cwd=ROOT, env=environment, check=True)
            value, gap, solved, infeasible, apart = np.load(folder / "values.npy").T
        worse = ~(value - gap <= right[:, 0] + 1e-12 * np.abs(right[:, 0]))
        wrong = (solved == 1) & (worse | (infeasible == 1))
        counts = (right[:, 2] > solved, wrong, (apart == 1) & ~wrong)
        table.add_row(words, f"{len(right):,}", *(f"{int(which.sum()):,}" for which in counts))
    console.print(table, "claimed: no wrong q is certified; if nothing is refused, the solver corrects the error")
    console.print("log_q is checked to 1e-9, or to the rounding included in the gap\n")


def main(console: Console) -> None:
    small(console)
    large(console)
    planted(console)


if __name__ == "__main__":  # what `planted` runs, with the package of the folder
    assert Path(sys.argv[1]).resolve() in Path(am.__file__).resolve().parents
    np.save(Path(sys.argv[1]) / "values.npy", values())
