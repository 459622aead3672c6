"""The wheel works in an empty environment without a compiler, with either build of its kernels."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advmdp.core.cpu import runs_v3

ROOT = Path(__file__).parent.parent
GAME = """
import json
import advmdp as am
from advmdp.learners.kernels import episode
from advmdp.projection.kernels import solver

mdp = am.MDP.random([1, 5, 5, 5, 1], 3, seed=0)
sk = mdp.skeleton
learner = am.UCOREPS(sk, horizon=300, eta=0.3, confidence_scale=0.2)
game = am.play(mdp, am.losses.Adaptive(sk, seed=1), learner, episodes=300, seed=2)
files = [episode.__file__, solver.__file__]
print(json.dumps({"files": files, "regret": game.regret, "policy": learner.policy.tolist()}))
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("wheel"),
    pytest.mark.skipif(
        not shutil.which("make") or not shutil.which("gcc"),
        reason="no make or gcc to build it with; on Debian: apt-get install make gcc",
    ),
]


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel and what that asks for; built if it is older than the sources."""
    command = ["make", "dist", f"PYTHON={sys.executable}"]
    built = subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert built.returncode == 0, built.stdout
    folder = tmp_path_factory.mktemp("empty")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    (wheel,) = (ROOT / "dist").glob("*.whl")
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:"]
    run(folder, *install, f"--constraint={ROOT / 'constraints.txt'}", str(wheel))
    return folder


def run(folder: Path, *arguments: str, **variables: str) -> str:
    """Python of that environment, with nothing on the path but its own programs, far from the sources."""
    path = str(folder / "bin")
    assert shutil.which("cc", path=path) is shutil.which("gcc", path=path) is None
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "ADVMDP"))}
    done = subprocess.run(
        [folder / "bin" / "python", *arguments],
        env={**kept, **variables, "PATH": path}, cwd=folder, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout


def played(folder: Path, **variables: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(folder, "-c", GAME, **variables))
    return found


def test_both_builds_of_the_kernels_play_the_same_game(empty: Path) -> None:
    usual, fallback = played(empty), played(empty, ADVMDP_BASELINE="1")
    for file in usual["files"]:
        assert (Path(file).parent.name == "v3") == runs_v3()
    for file in fallback["files"]:
        assert Path(file).parent.name == "kernels"
    assert usual["regret"] == pytest.approx(fallback["regret"], abs=1e-9)
    assert np.allclose(usual["policy"], fallback["policy"], rtol=0.0, atol=1e-9)


def test_the_headers_are_installed(empty: Path) -> None:
    where = "import advmdp.projection.kernels as k; print(k.__path__[-1])"
    assert (Path(run(empty, "-c", where).strip()) / "solver.pxd").exists()


def test_the_demonstration_runs_without_extras(empty: Path) -> None:
    said = run(empty, "-m", "advmdp", "demo", "--episodes", "50", "--out", "demo", COLUMNS="200")
    assert "pip install 'advmdp[routing]'" in said
    assert (empty / "demo" / "report.html").exists()


@pytest.mark.parametrize(
    ("extra", "use"),
    [
        ("routing", "am.scenarios.make_scenario('routing')"),
        ("routing", "am.scenarios.make_scenario('bgp')"),
        ("plot", "am.plot.flow(sk, am.occupancy(mdp, am.uniform_policy(sk)))"),
        ("cvx", "am.CvxpyCriterion(lambda q, loss: q @ loss, lipschitz=1.0).value(sk, one, one)"),
        ("scipy", "import advmdp.verify.paper"),
        ("gym", "import advmdp.integrations.gymnasium"),
        ("ray", "from advmdp.experiments.engines.ray import make_engine; make_engine()"),
    ],
)
def test_missing_packages_are_named(empty: Path, extra: str, use: str) -> None:
    code = f"""
import numpy as np
import advmdp as am
mdp = am.MDP.random([1, 2, 1], 2, seed=0)
sk = mdp.skeleton
one = np.ones(sk.num_transitions)
try:
    {use}
except am.MissingPackageError as error:
    print(error)
"""
    assert f"pip install 'advmdp[{extra}]'" in run(empty, "-c", code)
