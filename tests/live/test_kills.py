"""Kill -9 at random moments, between calls and inside them: nothing acknowledged is lost, nothing is counted twice."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import ROOT


def survive(folder: Path, learner: str, kills: int, seed: int) -> dict:
    command = [sys.executable, "-m", "tests.helpers.kills", folder, learner, str(kills), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert sum(found["kills"].values()) == kills
    return found


def test_an_agent_survives_kills(tmp_path: Path) -> None:
    survive(tmp_path, "UCOREPS", 12, 0)


@pytest.mark.slow
@pytest.mark.parametrize(("learner", "kills"), [("SelfTuning", 80), ("UCOREPS", 60), ("UOBREPS", 60)])
def test_an_agent_survives_two_hundred_kills(tmp_path: Path, learner: str, kills: int) -> None:
    """See :mod:`tests.helpers.kills`, which checks the state bit for bit after every kill."""
    found = survive(tmp_path, learner, kills, 1)
    assert found["kills"]["from outside"] > kills // 4
    assert all(count > 0 for count in found["kills"].values())  # every place
    assert found["operations"] > kills
    assert found["unacknowledged"] > 0  # some died between the commit and the answer
