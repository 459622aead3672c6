"""A spec runs no code of its own: modules that it names are imported only if the command line allows it.

The module here is a real one on the path; it leaves a file for each process that imports it.
"""

import os
import subprocess
import sys
from pathlib import Path

import gymnasium
import pytest

import advmdp as am
from advmdp.experiments.engines.local import Task, play_task
from advmdp.experiments.engines.ray import _play
from advmdp.experiments.runner import run_experiment
from advmdp.experiments.runs import MANIFEST, TRACEBACK, runs_of
from advmdp.experiments.spec import read_spec
from advmdp.model.gymnasium_tables import make_environment

MODULE = """
import os, pathlib
import gymnasium

pathlib.Path(__file__).with_name(f"imported-by-{os.getpid()}").touch()

class Side(gymnasium.Env):
    observation_space, action_space = gymnasium.spaces.Discrete(1), gymnasium.spaces.Discrete(2)
    P = {0: {0: [(1.0, 0, 0.0, False)], 1: [(1.0, 0, 1.0, False)]}}
    initial_state_distrib = [1.0]

gymnasium.register("Side-v0", entry_point="side_effects:Side")
"""
SPEC = """
horizons = [5]
world = {kind = "gymnasium", id = "side_effects:Side-v0", steps = 2}
learner = {name = "Uniform"}
"""
REFUSED = "worlds.0, env: 'side_effects:Side-v0', whose code is in the module side_effects; expected "


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "side_effects.py").write_text(MODULE)
    (tmp_path / "spec.toml").write_text(SPEC)
    return tmp_path


def imported(folder: Path) -> int:
    return len(list(folder.glob("imported-by-*")))


def said(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "advmdp", "run", "spec.toml", "-o", "out", *options]
    path = os.pathsep.join([str(folder), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": "400"}
    return subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "options", [["--dry-run"], [], ["--resume"], ["--engine", "ray"], ["--allow-import", "side"]], ids=" ".join
)
def test_a_spec_imports_nothing_by_itself(folder: Path, options: list[str]) -> None:
    done = said(folder, *options)
    assert done.returncode == 1
    assert REFUSED in done.stderr
    assert "--allow-import side_effects" in done.stderr
    assert imported(folder) == 0
    assert not list(folder.glob(f"out/runs/*/{MANIFEST}"))


@pytest.mark.slow
def test_what_the_command_line_allows_is_imported_here_and_in_the_process_that_plays(folder: Path) -> None:
    assert said(folder, "--allow-import", "side_effects", "--dry-run").returncode == 0
    assert imported(folder) == 1
    done = said(folder, "--allow-import", "other", "--allow-import", "side_effects")
    assert (done.returncode, imported(folder)) == (0, 3)
    assert "--allow-import side_effects" in said(folder, "--resume").stderr  # it is allowed for one command


@pytest.mark.parametrize("player", ["local", "ray"])
def test_worker_processes_check_the_permission_again(folder: Path, player: str) -> None:
    """A task that was sent without the permission, past what checks the spec."""
    sys.path.insert(0, str(folder))
    try:
        (run,) = runs_of(read_spec(folder / "spec.toml"))
        task = Task(0, run.to_json(), str(folder / "out" / "runs" / run.folder), 1.0)
        event = play_task(task, print) if player == "local" else _play(tuple(task), "", {}, None)[0]
    finally:
        sys.path.remove(str(folder))
    assert event.kind == "failed"
    assert "--allow-import side_effects" in event.why
    assert imported(folder) == 0
    assert player == "ray" or "InputError" in (Path(task.folder) / TRACEBACK).read_text()


def test_the_permission_is_not_part_of_a_runs_identity(folder: Path) -> None:
    spec = read_spec(folder / "spec.toml")
    (one,), (other,) = runs_of(spec), runs_of(spec, ["side_effects"])
    assert one.identity == other.identity


@pytest.mark.parametrize("name", ["Hidden-v0", "Hidden", "gymnasium:Hidden-v0"])
def test_a_class_that_is_registered_by_its_name_is_not_imported_either(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.syspath_prepend(folder)
    gymnasium.register("Hidden-v0", entry_point="side_effects:Side")
    try:
        with pytest.raises(am.InputError, match="--allow-import side_effects"):
            make_environment(name, {}, ())
    finally:
        del gymnasium.registry["Hidden-v0"]
    assert imported(folder) == 0


@pytest.mark.parametrize(
    "name", ["os:FrozenLake-v1", "gymnasium:os:FrozenLake-v1", ".os:FrozenLake-v1", "gymnasiums:FrozenLake-v1"]
)
def test_an_id_that_imitates_gymnasium_is_refused(name: str) -> None:
    with pytest.raises(am.InputError, match="--allow-import"):
        make_environment(name, {}, ())


@pytest.mark.parametrize("option", ["name", "id", "entry_point", "allow_import", "options", "desc"])
def test_options_reach_the_environment_and_nothing_else(folder: Path, option: str) -> None:
    lake = f'{{kind = "gymnasium", id = "FrozenLake-v1", steps = 2, options = {{{option} = "side_effects:Side-v0"}}}}'
    (folder / "spec.toml").write_text(SPEC.replace(SPEC.split("\n")[2], f"world = {lake}"))
    with pytest.raises(am.InputError, match="worlds.0, env: 'FrozenLake-v1', which Gymnasium cannot make"):
        run_experiment(read_spec(folder / "spec.toml"), folder / "out")
    assert imported(folder) == 0
