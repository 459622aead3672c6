"""Measures start-up: the command line compared with an empty Python, the first projection of a process, and the demo.

Claims: ``advmdp --help`` takes at most 10 times, and ``advmdp list`` at most 25 times, as long as ``python -c pass``;
the first projection of a process costs at most 0.5 s of CPU, imports included; on two idle cores the demo, once
installed, takes at most 20 s, and 8 s if its runs are there already.  Short processes alternate, so that a slow moment
of the machine affects all of them.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

REPEATS = 20
PROGRAM = str(Path(sys.executable).with_name("advmdp"))
PROJECTION = """
import numpy as np
import advmdp as am

sk = am.Skeleton.dense([1, 5, 5, 5, 5, 1], 4)
rng = np.random.default_rng(0)
center = np.concatenate([rng.dirichlet(np.ones(width)) for width in np.diff(sk.transition_ptr)])
am.project(sk, -rng.random(sk.num_transitions), am.L1Ball(center, np.full(sk.num_pairs, 0.3)))
"""
NOTHING, HELP, LIST, FIRST = "python -c pass", "advmdp --help", "advmdp list", "first projection"
LINES: dict[str, list[str]] = {
    NOTHING: [sys.executable, "-c", "pass"],
    "import advmdp": [sys.executable, "-c", "import advmdp"],
    HELP: [PROGRAM, "--help"],
    LIST: [PROGRAM, "list"],
    "advmdp list learners": [PROGRAM, "list", "learners"],
    "import numpy": [sys.executable, "-c", "import numpy"],
    FIRST: [sys.executable, "-c", PROJECTION],
}
MOST = {HELP: 10.0, LIST: 25.0}
"""The largest allowed ratio to the empty Python."""
MOST_CPU = 0.5
"""The most CPU seconds that the first projection may take."""
DEMOS, MOST_DEMO, MOST_AGAIN = 3, 20.0, 8.0
"""How often the demo is run, each time in a new folder and then once more in the same one, and the most seconds."""


class Cost(NamedTuple):
    """Seconds of one process: wall-clock time and CPU time (user and system)."""

    wall: float
    cpu: float


def cost(line: list[str]) -> Cost:
    """Measure a whole process; byte code is cached on disk, as it is for users."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    process = subprocess.Popen(line, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, line)
    return Cost(wall, used.ru_utime + used.ru_stime)


def main(console: Console) -> None:
    for line in LINES.values():
        cost(line)  # fills the cache of byte code
    rounds = [{name: cost(line) for name, line in LINES.items()} for _ in range(REPEATS)]
    costs = {name: [one[name] for one in rounds] for name in LINES}
    console.print(_table(costs))
    for name, most in MOST.items():
        ratios = [_best(costs[name], i) / _best(costs[NOTHING], i) for i in range(2)]
        _say(console, f"{name}: at most {most:g} times {NOTHING}, in wall-clock and CPU time", max(ratios) <= most)
    cpu = _best(costs[FIRST], 1)
    _say(console, f"{FIRST}: at most {MOST_CPU:g} s of CPU ({cpu:.2f} s)", cpu <= MOST_CPU)
    demo(console)


def demo(console: Console) -> None:
    """What ``make demo`` runs once everything is installed: in a new folder, and once more in the same one."""
    first, again = [], []
    for _ in range(DEMOS):
        with tempfile.TemporaryDirectory() as folder:
            line = [PROGRAM, "demo", "--out", str(Path(folder) / "demo")]
            first.append(cost(line))
            again.append(cost(line))
    for what, costs, most in (("in a new folder", first, MOST_DEMO), ("once more", again, MOST_AGAIN)):
        wall, cpu = _best(costs, 0), _best(costs, 1)
        console.print(f"advmdp demo {what}, best of {DEMOS}: {wall:.1f} s ({cpu:.1f} s of CPU)", highlight=False)
        _say(console, f"advmdp demo {what}: at most {most:g} s on two idle cores", wall <= most)


def _table(costs: dict[str, list[Cost]]) -> Table:
    table = Table(title=f"Milliseconds per process, {REPEATS} repeats, and ratios to {NOTHING}")
    table.add_column("process")
    for column in ("wall, best", "median", "CPU, best", "median", "ratio, wall", "ratio, CPU"):
        table.add_column(column, justify="right")
    for name, found in costs.items():
        row = [1e3 * value for i in range(2) for value in (_best(found, i), median(one[i] for one in found))]
        times = [_best(found, i) / _best(costs[NOTHING], i) for i in range(2)]
        table.add_row(name, *(f"{value:.1f}" for value in row), *(f"{value:.1f}x" for value in times))
    return table


def _best(costs: list[Cost], which: int) -> float:
    return min(one[which] for one in costs)


def _say(console: Console, claim: str, met: bool) -> None:
    console.print(f"claimed: {claim}: {'met' if met else 'NOT met in this run'}", highlight=False)
