"""The examples run, and say what the documentation says they do."""

import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
from rich.console import Console

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_uc_o_reps_stays_below_the_baselines_where_the_docs_say_so() -> None:
    example = runpy.run_path(str(EXAMPLES / "regret_over_seeds.py"))
    found = example["regrets"](1500, 4, Console(quiet=True))
    baselines = ("Uniform", "FollowLeader", "ReplayLast")
    ours = [name for name, _ in found if name.startswith("UC-O-REPS")]
    for world in ("reacts", "alternates"):
        least = min(found[name, world].mean() for name in baselines)
        assert all(found[name, world].mean() < 0.6 * least for name in ours), world
    slow = {name: float(np.mean(found[name, "switches slowly"])) for name, _ in found}
    assert slow["ReplayLast"] == min(slow.values()) < 0  # where a baseline wins, as the docs say


def test_the_example_prints_its_table() -> None:
    command = [sys.executable, EXAMPLES / "regret_over_seeds.py", "--seeds", "1", "--episodes", "50"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Regret over 1 seeds of 50 episodes" in done.stdout
