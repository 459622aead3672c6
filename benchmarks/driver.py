"""Measures the cost of sharing one episode loop among all compiled learners: two virtual calls per episode.

In a copy of the package, the three rules measured here have their own loops, which call `see` and `learn`
directly. Both packages are built with the same flags, and play the same episodes alternately.

Goal: the shared loop takes less than 5% more.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import advmdp as am
from advmdp.core.streams import stream_key, uniforms
from advmdp.learners.episode import make_block
from advmdp.learners.registry import make_learner
from benchmarks.projection import SIZES, dense
from tests.helpers.builds import ROOT, copied, rebuild

LEARNERS = ("Uniform", "ReplayLast", "UCOREPS")
RULES = {"episode": "Rule", "planners": "Respond", "mirror_descent": "Descent"}
FOLDER = "learners/kernels"
IMPORTS = (
    "import cython\nfrom cython.cimports.advmdp.learners.kernels.episode import NEW_EPOCH, Block, enter\n"
    "from cython.cimports.advmdp.model.kernels.world import Dynamics\n"
)
EPISODES, ROUNDS = 1000, 7


def main(console: Console) -> None:
    table = Table(title="One loop for all learners at 5x5x4: CPU time of an episode")
    for column in ("learner", "virtual calls", "direct calls", "virtual / direct"):
        table.add_column(column, justify="right")
    with tempfile.TemporaryDirectory() as name:
        sources = {direct: package(Path(name) / str(direct), direct) for direct in (False, True)}
        found = {direct: [] for direct in sources}
        for turn in range(2 * ROUNDS):
            direct = bool((turn + turn // 2) % 2)  # each comes first equally often
            found[direct].append(measured(sources[direct]))
    ours, theirs = (np.min(found[direct], axis=0) for direct in (False, True))
    for learner, one, other in zip(LEARNERS, ours, theirs, strict=True):
        table.add_row(learner, f"{one * 1e6:.2f} us", f"{other * 1e6:.2f} us", f"{one / other:.3f}")
    console.print(table, "goal: less than 1.05\n")


def package(folder: Path, direct: bool) -> Path:
    """Copy the package and rebuild its rules, with direct calls or unchanged."""
    folder.mkdir()
    source = copied(folder)
    loop = source.joinpath("advmdp", FOLDER, "episode.py").read_text()
    loop = loop[loop.index("    def play(") : loop.index("def enter(")].rstrip() + "\n"
    for module, rule in RULES.items() if direct else ():
        path = source / "advmdp" / FOLDER / f"{module}.py"
        own = loop.replace("self.see(", f"{rule}.see(self, ").replace("self.learn(", f"{rule}.learn(self, ")
        path.write_text(with_loop(path.read_text(), rule, loop, own))
    rebuild(folder, [f"{FOLDER}/{module}.py" for module in RULES])
    return source


def with_loop(text: str, rule: str, loop: str, own: str) -> str:
    """The text of a module in which a rule has its own loop."""
    if loop in text:
        return text.replace(loop, own)
    begin = text.index(f"class {rule}(")
    end = text.index("\n\n\n", begin)
    return text[:begin].replace("import cython\n", IMPORTS, 1) + text[begin:end] + "\n\n" + own + text[end:]


def measured(source: Path) -> list[float]:
    """CPU seconds per episode for every learner, in a new process with a package."""
    path = f"import sys; sys.path[:0] = {[str(source), str(ROOT)]!r}; "
    code = path + "import json, benchmarks.driver as d; print(json.dumps(d.times()))"
    return json.loads(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def times() -> list[float]:
    """The best CPU seconds per episode for every learner, without drawing losses."""
    mdp = dense(*SIZES["5x5x4"])
    sk, losses = mdp.skeleton, am.losses.Stochastic(mdp.skeleton, noise=0.5)
    drawn, given = (
        uniforms(stream_key(1, "world", "trajectories"), 0, EPISODES, 2 * sk.num_layers),
        losses.block(0, EPISODES),
    )
    found = []
    for name in LEARNERS:
        best = np.inf
        for _ in range(5):
            learner = make_learner(name, mdp, offered={"horizon": 10**5})
            block = make_block(sk, given, learner.criterion.terms, np.zeros((sk.num_transitions, 1)), drawn)
            begin = time.process_time()
            learner.play_block(mdp.dynamics, block)
            best = min(best, (time.process_time() - begin) / EPISODES)
        found.append(best)
    return found
