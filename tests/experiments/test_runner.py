"""Experiments from spec to store: processes, kills, full disks, and the same bytes wherever runs are played."""

import ctypes
import gc
import inspect
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from importlib import import_module
from io import StringIO
from multiprocessing import active_children
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from rich.progress import Progress, ProgressColumn

import advmdp as am
from advmdp.experiments import runner
from advmdp.experiments.catalogue import GROUPS
from advmdp.experiments.catalogue import TABLES as TABLES_OF_KINDS
from advmdp.experiments.engines import local as engines
from advmdp.experiments.engines.local import THREADS, Event, Player, Task, play_task, processes
from advmdp.experiments.runner import _bars, estimate, run_experiment
from advmdp.experiments.runs import flow_frame, runs_of
from advmdp.experiments.spec import PARTS, checked_spec, read_spec
from advmdp.experiments.store import Store, lock
from advmdp.learners.registry import LEARNERS
from advmdp.scenarios import SCENARIOS
from tests.helpers.command_line import invoke
from tests.helpers.stores import GOOD, TABLES, files_of, spec_file


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A spec, and its store as one process made it, undisturbed."""
    folder = tmp_path_factory.mktemp("played")
    path = spec_file(folder)
    summary = run_experiment(read_spec(path), folder / "out")
    assert (summary.finished, summary.kept, summary.failed, summary.left_over) == (6, 0, {}, [])
    return path, folder / "out"


def test_two_processes_write_the_same_bytes(played: tuple[Path, Path], tmp_path: Path) -> None:
    path, out = played
    run_experiment(read_spec(path), tmp_path / "out", jobs=2)
    assert files_of(tmp_path / "out") == files_of(out)


def test_a_store_holds_what_play_gives(played: tuple[Path, Path]) -> None:
    path, out = played
    index = json.loads((out / "experiment.json").read_text())
    assert index["name"] == "a test"
    for run, entry in zip(runs_of(read_spec(path)), index["runs"], strict=True):
        folder = out / "runs" / entry["folder"]
        assert sorted(file.name for file in folder.iterdir()) == ["curve.parquet", "flow.parquet", "manifest.json"]
        mdp = am.MDP.random([1, 3, 3, 1], 2, seed=run.seed)
        losses = am.losses.Adaptive(mdp.skeleton, strength=0.8, seed=run.seed)
        learner = {
            "UCOREPS": lambda sk: am.UCOREPS(sk, 300, confidence_scale=0.2),
            "OSSP": lambda sk: am.OSSP(mdp, 300),  # noqa: B023
            "FPOP": lambda sk: am.FPOP(sk, 300, seed=run.seed),  # noqa: B023
        }[entry["learner"]](mdp.skeleton)
        game = am.play(mdp, losses, learner, 300, seed=run.seed)
        assert pl.read_parquet(folder / "curve.parquet").equals(game.curve)
        flow = pl.read_parquet(folder / "flow.parquet")
        assert np.array_equal(flow["q_best"], am.occupancy(mdp, game.comparator.policy))
        assert np.array_equal(flow["q_learned"], am.occupancy(mdp, learner.policy))
        manifest = json.loads((folder / "manifest.json").read_text())
        assert manifest["result"]["regret"] == game.regret
        assert manifest["identity"] == run.identity == entry["identity"]
        assert manifest["versions"]["numpy"] == np.__version__


def test_flows_keep_the_names_of_the_world() -> None:
    mdp = am.MDP.from_steps([("home", "bus", "work", 1.0), ("home", "walk", "work", 1.0)])
    game = am.play(mdp, am.losses.Stochastic(mdp.skeleton), am.Uniform(mdp.skeleton), 5)
    assert flow_frame(game)["name"].to_list() == ["home/bus/work", "home/walk/work"]
    plain = am.MDP.random([1, 2, 1], 2, seed=0)
    game = am.play(plain, am.losses.Stochastic(plain.skeleton), am.Uniform(plain.skeleton), 5)
    assert "name" not in flow_frame(game).columns


@pytest.mark.slow
def test_finished_runs_are_kept_and_changed_ones_are_new_runs(played: tuple[Path, Path], tmp_path: Path) -> None:
    path, _ = played
    out = tmp_path / "out"
    spec = read_spec(path)
    run_experiment(spec, out)
    before = {file: file.stat().st_mtime_ns for file in out.rglob("*.parquet")}
    with pytest.raises(am.InputError, match="it already holds an experiment; expected another folder, or --resume"):
        run_experiment(spec, out)
    again = run_experiment(spec, out, resume=True)
    assert (again.finished, again.kept) == (0, 6)
    changed = spec_file(tmp_path, GOOD.replace("confidence_scale = 0.2", "confidence_scale = 0.3"))
    other = run_experiment(read_spec(changed), out, resume=True)
    assert (other.finished, other.kept, len(other.left_over)) == (2, 4, 2)
    assert all(name.startswith("UCOREPS") for name in other.left_over)
    assert {file: file.stat().st_mtime_ns for file in before} == before


LONG = GOOD.replace("horizons = [300]", "horizons = [100000]").replace("layers = [1, 3, 3, 1]", "layers = [1, 5, 5, 1]")
ONE = LONG.partition('\n[[learners]]\nname = "OSSP"')[0].replace("seeds = 2", "seeds = 1").replace("100000", "400000")
"""One run of some seconds, so that there is time to stop it."""


def command(*arguments: object, **options: object) -> subprocess.Popen:
    line = [sys.executable, "-m", "advmdp", *map(str, arguments)]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def wait_for_checkpoint(out: Path, process: subprocess.Popen) -> None:
    """Until a run is in its middle, or all is over."""
    before = {path: path.stat().st_mtime_ns for path in out.rglob("checkpoint.npz")}
    while process.poll() is None:
        now = {path: path.stat().st_mtime_ns for path in out.rglob("checkpoint.npz")}
        if any(before.get(path) != when for path, when in now.items()):
            return
        time.sleep(0.01)


@pytest.mark.slow
def test_killed_at_random_moments_and_resumed_the_store_is_the_same(tmp_path: Path) -> None:
    """Ten times the whole group of processes dies at once, as when the power fails."""
    path, rng = spec_file(tmp_path, LONG), np.random.default_rng(0)
    run_experiment(read_spec(path), tmp_path / "undisturbed", jobs=2)
    out, in_the_middle = tmp_path / "out", 0
    for _ in range(10):
        process = command(
            "run", path, "-o", out, "-j", 2, "--resume", "--checkpoint-every", 0.02, start_new_session=True
        )
        wait_for_checkpoint(out, process)
        time.sleep(rng.uniform(0.0, 0.1))
        in_the_middle += process.poll() is None
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert in_the_middle == 10
    assert not all(Store(out).state(run) == "finished" for run in runs_of(read_spec(path)))
    last = command("run", path, "-o", out, "-j", 2, "--resume")
    last.communicate(timeout=300)
    assert last.returncode == 0
    assert files_of(out) == files_of(tmp_path / "undisturbed")


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_process_saves_and_says_how_to_resume(tmp_path: Path, stop: signal.Signals) -> None:
    """Right after its first checkpoint, when none is due yet."""
    path, out = spec_file(tmp_path, ONE), tmp_path / "out"
    process = command("run", path, "-o", out, "-j", 1, "--checkpoint-every", 0.5)
    wait_for_checkpoint(out, process)
    (checkpoint,) = out.rglob("checkpoint.npz")
    before = checkpoint.stat().st_mtime_ns
    process.send_signal(stop)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "add --resume to the command" in " ".join(errors.split())
    assert "Traceback" not in errors
    assert checkpoint.stat().st_mtime_ns > before
    assert run_experiment(read_spec(path), out, resume=True).good


def test_ctrl_c_works_during_compiled_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python cannot raise an error through a caller that is none of its own: it prints it, and goes on."""
    spec, swallowed = read_spec(spec_file(tmp_path)), []
    monkeypatch.setattr(sys, "unraisablehook", lambda error: swallowed.append(error.exc_type))
    called_back = ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGINT))
    monkeypatch.setattr(runner, "check", lambda spec, runs: called_back())
    with pytest.raises(KeyboardInterrupt):
        run_experiment(spec, tmp_path / "out")
    assert swallowed == [KeyboardInterrupt]
    assert not (tmp_path / "out").exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_no_more_processes_than_runs_or_cores_are_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    runs = runs_of(read_spec(spec_file(tmp_path)))[:3]
    tasks = [Task(i, run.to_json(), str(tmp_path / run.folder), 20.0) for i, run in enumerate(runs)]
    with processes(1000) as play_all:
        assert len(active_children()) == 2
        with closing(play_all(tasks)) as events:
            next(events)
            assert len(active_children()) == 3
    assert not active_children()


def test_ctrl_c_right_after_a_process_starts_ends_it_quietly(capfd: pytest.CaptureFixture[str]) -> None:
    """Right after it is started, it could not even be ready to listen."""
    worker = engines._started(1)
    assert worker.process.pid is not None
    os.kill(worker.process.pid, signal.SIGINT)
    worker.process.join(60)
    assert (worker.process.exitcode, capfd.readouterr().err) == (0, "")


def test_ctrl_c_while_a_process_is_started_is_not_lost() -> None:
    with pytest.raises(KeyboardInterrupt), engines._later():
        signal.raise_signal(signal.SIGINT)


@pytest.mark.slow
def test_a_dead_process_is_replaced_and_its_run_resumed(tmp_path: Path) -> None:
    path, out = spec_file(tmp_path, ONE), tmp_path / "out"
    process = command("run", path, "-o", out, "-j", 1, "--checkpoint-every", 0.05)
    wait_for_checkpoint(out, process)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    victim = next(int(pid) for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes())
    os.kill(victim, signal.SIGKILL)
    _, errors = process.communicate(timeout=300)
    assert (process.returncode, "1 run played" in errors) == (0, True), errors


def test_a_run_that_kills_two_processes_has_failed(tmp_path: Path) -> None:
    (run, *_) = runs_of(read_spec(spec_file(tmp_path, ONE)))
    folder, killed, said = tmp_path / "run", 0, []
    with processes(1) as play_all:
        for event in play_all([Task(0, run.to_json(), str(folder), 20.0)]):
            said.append(event.kind)
            if event.kind == "progress":
                (victim,) = active_children()
                assert victim.pid is not None
                os.kill(victim.pid, signal.SIGKILL)
                victim.join()
                killed += 1
    assert killed == said.count("begun") == 2
    assert event == Event(0, "failed", why="its process died 2 times, the last time with SIGKILL")
    assert (folder / "traceback.txt").read_text() == f"{event.why}\n"


def test_a_run_waits_for_another_process_that_still_plays_it(tmp_path: Path) -> None:
    (run, *_) = runs_of(read_spec(spec_file(tmp_path)))
    order: list[str] = []
    task = Task(0, run.to_json(), str(tmp_path), 20.0)
    player = threading.Thread(target=lambda: order.append(play_task(task, lambda done: None).kind))
    with lock(tmp_path):
        player.start()
        player.join(1.0)  # which a run without a lock would have ended by
        order.append("let go")
    player.join()
    assert order == ["let go", "finished"]


def test_a_progress_bar_lasts_as_long_as_its_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made: list[Progress] = []

    class Kept(Progress):
        def __init__(self, *columns: ProgressColumn, **options: Any) -> None:
            super().__init__(*columns, **options)
            made.append(self)

    monkeypatch.setattr("advmdp.experiments.runner.Progress", Kept)
    runs = runs_of(read_spec(spec_file(tmp_path)))
    with _bars(Console(force_terminal=True, file=StringIO()), runs, range(len(runs))) as show:
        shown = []
        for event in (Event(1, "begun"), Event(1, "progress", 150.0), Event(0, "begun"), Event(1, "finished")):
            show(event)
            shown.append([(task.description, task.completed) for task in made[0].tasks])
    name, other = (f"{run.learner.shown}, seed {run.seed}" for run in (runs[1], runs[0]))
    assert shown == [
        [("all runs", 0), (name, 0)],
        [("all runs", 0), (name, 150.0)],
        [("all runs", 0), (name, 150.0), (other, 0)],
        [("all runs", 1), (other, 0)],
    ]


FAILING = GOOD.replace('kind = "adaptive"\nstrength = 0.8', 'kind = "replay"\nfile = "record.csv"')


def recorded(folder: Path, episodes: int) -> None:
    rows = np.random.default_rng(0).random((episodes, am.Skeleton.dense([1, 3, 3, 1], 2).num_pairs))
    pl.DataFrame(rows).write_csv(folder / "record.csv")


def test_a_failed_run_keeps_its_traceback_and_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is spoilt when all has been tried out and nothing has been played."""

    @contextmanager
    def spoiling(jobs: int) -> Iterator[Player]:
        def spoilt(tasks: Sequence[Task]) -> Generator[Event, None, None]:
            (tmp_path / "record.csv").write_text("")
            yield from play(tasks)

        with processes(jobs) as play:
            yield spoilt

    recorded(tmp_path, 300)
    path = spec_file(tmp_path, f'{FAILING}\n[[losses]]\nkind = "stochastic"\n')
    spec, out = read_spec(path), tmp_path / "out"
    monkeypatch.setattr("advmdp.experiments.engines.local.processes", spoiling)
    frozen = gc.get_freeze_count()
    done = invoke("run", str(path), "-o", str(out))
    assert gc.get_freeze_count() == frozen  # the command ends, but not its process
    assert done.exit_code == 1
    assert done.stderr.count("failed: ") == 6
    assert "6 runs played" in done.stderr
    assert "changed since the spec was read" in done.stderr.replace("\n", " ")
    for run in runs_of(spec):
        expected = "failed" if run.losses.kind == "replay" else "finished"
        assert Store(out).state(run) == expected
        if expected == "failed":
            assert "InputError" in (Store(out).folder(run) / "traceback.txt").read_text()
    recorded(tmp_path, 300)
    fast = run_experiment(spec, tmp_path / "fast", fail_fast=True, engine=spoiling)
    assert (len(fast.failed), fast.finished, fast.unfinished) == (1, 0, 12)
    recorded(tmp_path, 300)
    mended = run_experiment(spec, out, resume=True)
    assert (mended.good, mended.kept, mended.finished) == (True, 6, 6)
    assert not list(out.rglob("traceback.txt"))


def test_a_spec_that_does_not_fit_leaves_no_process_behind(tmp_path: Path) -> None:
    """They start while it is tried out, and are gone when it is refused."""
    spec = checked_spec({**TABLES, "learners": [{"name": "UCOREPS", "eta": -1.0}]}, "spec.toml", tmp_path)
    with pytest.raises(am.InputError, match="eta"):
        run_experiment(spec, tmp_path / "out")
    assert not active_children()


def test_a_folder_that_can_not_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(am.InputError, match="a folder that can be made"):
        run_experiment(read_spec(spec_file(tmp_path)), tmp_path / "file" / "out")


@pytest.mark.slow
def test_a_full_disk_is_a_clear_error_that_loses_nothing(tmp_path: Path) -> None:
    """A file system of its own, with room for some of the runs."""
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=120k", "tmpfs", str(small)], check=False)
    if mounted.returncode != 0:
        pytest.skip("no permission to mount a small file system; to run it: become root")
    try:
        path = spec_file(tmp_path, GOOD.replace("seeds = 2", "seeds = 12"))
        process = command("run", path, "-o", small / "out")
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 1
        assert "No space left on device" in errors.replace("\n", " ")
        assert "Traceback" not in errors
        states = [Store(small / "out").state(run) for run in runs_of(read_spec(path))]
        assert "finished" in states
        for manifest in (small / "out").rglob("manifest.json"):
            assert json.loads(manifest.read_text())["result"]["episode"] == 300
            assert len(pl.read_parquet(manifest.with_name("curve.parquet"))) > 0
        subprocess.run(["mount", "-o", "remount,size=5m", str(small)], check=True)
        assert run_experiment(read_spec(path), small / "out", resume=True).good
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_one_folder_has_one_process_at_a_time(tmp_path: Path) -> None:
    path, out = spec_file(tmp_path), tmp_path / "out"
    out.mkdir()
    with Store(out).locked(), pytest.raises(am.InputError, match="another process is running this experiment"):
        run_experiment(read_spec(path), out)


def test_the_same_run_under_two_labels_is_refused(tmp_path: Path) -> None:
    text = GOOD.replace('name = "FPOP"\nlabel = "perturbed"', 'name = "OSSP"\nlabel = "again"')
    with pytest.raises(am.InputError, match="'OSSP' in .* and 'again' in worlds.0 with losses.0 are the same run"):
        run_experiment(read_spec(spec_file(tmp_path, text)), tmp_path / "out")


def test_both_of_two_identical_runs_are_named(tmp_path: Path) -> None:
    table = TABLES | {"worlds": TABLES["worlds"] * 2, "losses": TABLES["losses"] * 2}
    with pytest.raises(am.InputError, match=r"worlds.0 with losses.0 and 'UCOREPS' in worlds.0 with losses.1 are"):
        run_experiment(checked_spec(table, "spec.toml", tmp_path), tmp_path / "out")


def test_a_world_too_large_for_memory_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_large(*given: object) -> None:
        raise MemoryError

    monkeypatch.setattr(am.MDP, "random", too_large)
    table = TABLES | {"worlds": [{"kind": "random", "layers": [1, 77, 1], "actions": 2}]}
    with pytest.raises(am.InputError, match="spec.toml, worlds.0: too large for memory; expected a smaller"):
        run_experiment(checked_spec(table, "spec.toml", tmp_path), tmp_path / "out")


def test_a_file_that_changes_after_the_spec_was_read_is_refused(tmp_path: Path) -> None:
    recorded(tmp_path, 300)
    spec = read_spec(spec_file(tmp_path, FAILING))
    recorded(tmp_path, 301)
    with pytest.raises(am.InputError, match="changed since the spec was read"):
        run_experiment(spec, tmp_path / "out")


def test_a_damaged_checkpoint_is_ignored(played: tuple[Path, Path], tmp_path: Path) -> None:
    path, reference = played
    run = runs_of(read_spec(path))[0]
    folder = Store(tmp_path / "out").folder(run)
    folder.mkdir(parents=True)
    (folder / "checkpoint.npz").write_bytes(b"PK half of a zip")
    assert run_experiment(read_spec(path), tmp_path / "out").good
    assert files_of(tmp_path / "out") == files_of(reference)


def test_leftovers_of_a_kill_are_removed_from_finished_runs(played: tuple[Path, Path], tmp_path: Path) -> None:
    path, reference = played
    out = tmp_path / "out"
    copytree(reference, out)
    (Store(out).folder(runs_of(read_spec(path))[0]) / ".curve.parquet.77.part").write_text("half")
    run_experiment(read_spec(path), out, resume=True)
    assert files_of(out) == files_of(reference)


def test_processes_share_the_cores_and_sum_with_one_thread() -> None:
    """How many threads a sum is divided between shows in its last digits, so it may not depend on -j."""
    with processes(2):
        for child in active_children():
            while child.is_alive() and b"spawn_main" not in Path(f"/proc/{child.pid}/cmdline").read_bytes():
                time.sleep(0.01)  # it is still a copy of this process
            words = Path(f"/proc/{child.pid}/environ").read_text().split("\0")
            told = dict(word.split("=", 1) for word in words if "=" in word)
            part = str(max(1, len(os.sched_getaffinity(0)) // 2))
            assert [told[name] for name in THREADS] == [part, "1", "1", "1"]
    assert not active_children()


@pytest.mark.slow
def test_large_worlds_have_the_same_bytes_with_one_process_and_two(tmp_path: Path) -> None:
    table = {
        "worlds": [{"kind": "random", "layers": [1, 90, 90, 1], "actions": 6}],
        "losses": [{"kind": "stochastic"}],
        "criterion": {"kind": "risk", "alpha": 0.5, "c": 2.0},
        "learners": [{"name": "OREPS"}],
        "horizons": [10],
        "seeds": 2,
    }
    spec = checked_spec(table, "spec.toml", tmp_path)
    for jobs in (1, 2):
        assert run_experiment(spec, tmp_path / f"j{jobs}", jobs=jobs).good
    assert files_of(tmp_path / "j1") == files_of(tmp_path / "j2")


def test_a_bar_for_each_run_and_one_for_all_are_shown_on_a_terminal(tmp_path: Path) -> None:
    said = StringIO()
    console = Console(file=said, force_terminal=True, width=100)
    run_experiment(read_spec(spec_file(tmp_path)), tmp_path / "out", console=console)
    for words in ("all runs", "UCOREPS, seed 0", "perturbed, seed 1", "6 of 6"):
        assert words in said.getvalue()


def test_a_second_process_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    path, out = spec_file(tmp_path), tmp_path / "out"
    run_experiment(read_spec(path), out)
    before = files_of(out)
    changed = spec_file(tmp_path, GOOD.replace("seeds = 2", "seeds = 3"))
    with Store(out).locked(), pytest.raises(am.InputError, match="another process"):
        run_experiment(read_spec(changed), out, resume=True)
    assert files_of(out) == before


# The command line


def test_a_dry_run_says_what_would_run_and_plays_nothing(tmp_path: Path) -> None:
    path = spec_file(tmp_path)
    process = command("run", path, "-o", tmp_path / "out", "-j", 2, "--dry-run")
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "6 runs to play" in said
    assert "MB of disk" in said.replace("\n", " ")
    assert not (tmp_path / "out").exists()
    guess = estimate(runs_of(read_spec(path)))
    assert guess.runs == 6
    assert 0 < guess.seconds < 60


def test_the_estimated_disk_space_is_about_right(played: tuple[Path, Path]) -> None:
    path, out = played
    size = sum(len(content) for content in files_of(out).values())
    assert 0.4 < estimate(runs_of(read_spec(path))).bytes / size < 2.5


def test_without_a_terminal_only_the_summary_is_printed(tmp_path: Path) -> None:
    process = command("run", spec_file(tmp_path), "-o", tmp_path / "out")
    said, errors = process.communicate(timeout=120)
    assert said == ""
    assert errors.strip().splitlines()[0].startswith("6 runs played")


def test_the_list_shows_the_first_lines_of_the_docstrings() -> None:
    """It stands beside them, so that no one who reads it waits for them to be imported."""
    parts = {group: PARTS[table] for group, table in TABLES_OF_KINDS.items()}
    modules = {name: import_module(module) for name, module in SCENARIOS.items()}
    things: dict[str, dict[str, object]] = {"learners": {**LEARNERS}, "scenarios": modules, **parts}
    said = {
        group: {
            name: (inspect.getdoc(thing) or "").split("\n")[0].rstrip(".").replace("``", "")
            for name, thing in all_.items()
        }
        for group, all_ in things.items()
    }
    assert said == GROUPS
    for group, lines in said.items():
        assert list(lines) == list(GROUPS[group])


def test_the_list_names_everything() -> None:
    said, _ = command("list").communicate(timeout=60)
    for name in ("UCOREPS", "UOBREPS", "time-expanded", "gymnasium", "battery", "replay", "worst-case"):
        assert name in said
    for group in GROUPS:
        said, _ = command("list", group).communicate(timeout=60)
        for name in GROUPS[group]:
            assert name in said
    wrong = command("list", "cheese")
    expected = "'cheese'; expected one of learners, worlds, scenarios, losses, criteria"
    assert expected in wrong.communicate(timeout=60)[1]
    assert wrong.returncode == 2
