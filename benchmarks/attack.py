"""An attack on the projection: hard problems, each answer judged by Frank-Wolfe gaps in long double."""

import os
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from shutil import copytree, ignore_patterns

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

import advmdp as am
from tests.helpers.hard_problems import KINDS, SHAPES, WEIGHTS, Problems, attack, draw, skeleton

MUTATIONS = (
    ("box.py", "s, (1.0 - clipped) / free", "s, (1.0 - 0.9 * clipped) / free", "box: the mass left to free entries"),
    ("box.py", "bound = lower if v <= lower else upper", "bound = upper", "box: lower bounds count as upper ones"),
    ("box.py", "cost + mass * log_s, log_s", "cost + mass * log_s + 0.01, log_s", "box: kappa too large"),
    ("box.py", "cost + mass * log_s, log_s", "cost + mass * log_s - 0.01, log_s", "box: kappa too small"),
    ("box.py", "over >= under and p[j]", "p[j]", "box, on ln u: entries stop at upper bounds only"),
    ("box.py", "p[j] *= left / total", "p[j] *= 0.99 * left / total", "box, on ln u: a part of the mass is lost"),
    ("box.py", "kappa + mass * log_s, log_s", "kappa + 1.01 * mass * log_s, log_s", "box, on ln u: kappa is wrong"),
    ("box.py", "(lower, log_high[j] -", "(lower, 1.0 + log_high[j] -", "box, on ln u: the least s is too large"),
    ("ball.py", "next_a = (half +", "next_a = (0.9 * half +", "ball: a from a smaller radius"),
    ("ball.py", "next_b = (center_b - half)", "next_b = (center_b - 0.9 * half)", "ball: b from a smaller radius"),
    ("ball.py", "middle = low if low < c else c", "middle = low", "ball: b u is not cut at the centre"),
    ("ball.py", "mass_b * log_b, log_a", "0.9 * mass_b * log_b, log_a", "ball: kappa with a part of B"),
    ("ball.py", "a * u_a - center_a <= half", "a * u_a - center_a <= 2.0 * half", "ball: taken for inside"),
    ("ball.py", "next_a = np.log(half + ", "next_a = np.log(0.9 * half + ", "ball, on ln u: a from a smaller radius"),
    (
        "ball.py",
        "return float(max(below, min(edge,",
        "return float(max(below, 1.0 + min(edge,",
        "ball, on ln u: b too large",
    ),
    ("ball.py", "kappa += mass_a * log_a +", "kappa += 0.99 * mass_a * log_a +", "ball, on ln u: kappa is wrong"),
    ("ball.py", "excess += max(0.0,", "excess += 0.5 * max(0.0,", "ball, on ln u: b from another segment"),
    ("rows.py", "return target / mass if", "return 1.01 * target / mass if", "on ln u: masses corrected too far"),
    ("rows.py", "weight[at + j] * growth[there + j]", "weight[at + j]", "all sets: u without a part of beta"),
    ("rows.py", "scale = 1.0 / s", "scale = 0.99 / s", "inside: a part of the mass is lost"),
    ("rows.py", "log_a = -np.log(s) - top", "log_a = 0.1 - np.log(s) - top", "inside, on ln u: a is wrong"),
    ("rows.py", "(log_center[i] - log_u[i - begin])", "log_center[i]", "point: kappa without u"),
    ("rows.py", "p[i] = center[i]", "p[i] = 0.99 * center[i] + 0.01 * (i == begin)", "point: another row"),
    ("weights.py", "< radius - MARGIN", "< 3.0 * radius", "rows taken for free that are not"),
)
"""File, what stands there, what is planted, in words."""


COMBINATIONS = list(product(SHAPES, KINDS, WEIGHTS))


def batch(number: int, size: int = 500) -> tuple[str, Counter[str]]:
    """Problems of the combination with that number, and how they went."""
    problems, sk = drawn(number, size)
    answers = attack(problems, am.Projector(sk).project)
    counts = Counter(problems=size, refused=int(answers.refused.sum()), wrong=int(answers.wrong.sum()))
    return ", ".join(COMBINATIONS[number % len(COMBINATIONS)][1:]), counts


def drawn(number: int, size: int) -> tuple[Problems, am.Skeleton]:
    """Problems of the combination with that number, and their skeleton."""
    shape, kind, weights = COMBINATIONS[number % len(COMBINATIONS)]
    sk = skeleton(shape)
    return draw(sk, kind, weights, size, np.random.default_rng([7, number])), sk


def large(console: Console) -> None:
    """300 layers, and layers of 2,000 states."""
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
    """A million small problems."""
    table = Table(title="Small problems of every kind, judged by an oracle of their own")
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


def values(out: Path | None = None, batches: int = 90, size: int = 60) -> NDArray[np.float64]:
    """A row for each problem: the value of its answer, its gap, whether there is one, and whether it is infeasible."""
    rows = []
    for number in range(batches):
        problems, sk = drawn(number, size)
        answers = attack(problems, am.Projector(sk).project)
        rows.append(np.transpose([answers.verdict.value, answers.gap, answers.solved, answers.infeasible]))
    found = np.concatenate(rows).astype(np.float64)
    if out is not None:
        np.save(out, found)
    return found


def planted(console: Console) -> None:
    """Errors planted in a copy of the package: no answer may be worse than the right one by more than its own gap."""
    table = Table(title="Errors planted in the row solvers")
    for column in ("error", "problems", "refused by the certificate", "wrong, yet certified"):
        table.add_column(column, justify="right")
    package, right = Path(am.__file__).parent, values()
    for file, old, new, words in track(MUTATIONS, "mutations", console=console, transient=True):
        with tempfile.TemporaryDirectory() as folder:
            copytree(package, Path(folder) / "advmdp", ignore=ignore_patterns("__pycache__"))
            path = Path(folder) / "advmdp" / "projection" / "kernels" / file
            text = path.read_text()
            assert text.count(old) == 1, f"{file}: {old!r} is not there once"
            path.write_text(text.replace(old, new))
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join([folder, str(Path.cwd())])}
            command = [sys.executable, "-W", "ignore", "-m", "benchmarks.attack", f"{folder}/values.npy"]
            subprocess.run(command, env=environment, check=True)
            value, gap, solved, infeasible = np.load(f"{folder}/values.npy").T
        wrong = (solved == 1) & (~(value - gap <= right[:, 0] + 1e-12 * np.abs(right[:, 0])) | (infeasible == 1))
        table.add_row(words, f"{len(right):,}", f"{int((right[:, 2] > solved).sum()):,}", f"{int(wrong.sum()):,}")
    console.print(
        table, "claimed: none wrong and certified; where nothing is refused, the solver mends the error itself\n"
    )


def main(console: Console) -> None:
    small(console)
    large(console)
    planted(console)


if __name__ == "__main__":  # what `planted` runs
    values(Path(sys.argv[1]))
