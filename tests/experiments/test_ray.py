"""The Ray engine on a real cluster: a head without cores and two nodes of one core each, all on this machine.

The store of every experiment here must equal, file by file, the store of a single local process, whatever
was killed on the way.  The process to kill is found by the folder that it has locked, and must be in the middle of
its run: it has a checkpoint and no manifest.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from advmdp.core.errors import InputError
from advmdp.experiments.engines import ray as ray_engine
from advmdp.experiments.engines.local import Engine, Event, Player, Task
from advmdp.experiments.engines.ray import make_engine
from advmdp.experiments.runner import run_experiment
from advmdp.experiments.runs import CHECKPOINT, CURVE, FLOW, MANIFEST, TRACEBACK, runs_of
from advmdp.experiments.spec import Spec
from advmdp.experiments.store import Store

ray = pytest.importorskip("ray", reason="no Ray; to run them: pip install 'advmdp[ray]'")
# Ray leaves handles to its log files and processes to the collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.xdist_group("ray"),
    pytest.mark.slow,
]

OFTEN = 0.1
"""Seconds between checkpoints: a fraction of a run."""
WAIT = 120.0
"""Seconds until something that should happen has not."""
WORLD = {"kind": "random", "layers": (1, 4, 4, 1), "actions": 3}
SPEC = Spec.model_validate(
    {
        "worlds": [WORLD],
        "losses": [{"kind": "switching", "period": 50}],
        "learners": [{"name": "UCOREPS"}],
        "horizons": [100_000],
        "seeds": 4,
    }
)
"""Four runs of a second or two each."""
DRIVER = """
import sys
from advmdp.experiments.engines.ray import make_engine
from advmdp.experiments.runner import run_experiment
from advmdp.experiments.spec import Spec

if __name__ == "__main__":
    spec, out, address, often = sys.argv[1:]
    run_experiment(
        Spec.model_validate_json(spec), out, engine=make_engine(address, at_once=1), checkpoint_seconds=float(often)
    )
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[object]:
    from ray.cluster_utils import Cluster

    small = {"object_store_memory": 80 * 2**20, "include_dashboard": False}
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **small})
    for _ in range(2):
        made.add_node(num_cpus=1, **small)
    yield made
    made.shutdown()


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What one local process makes of the spec."""
    out = tmp_path_factory.mktemp("reference") / "out"
    assert run_experiment(SPEC, out, checkpoint_seconds=OFTEN).finished == 4
    return contents(out)


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def watched(engine: Engine, seen: list[Event]) -> Engine:
    @contextmanager
    def watching(jobs: int) -> Iterator[Player]:
        def seeing(tasks: Sequence[Task]) -> Generator[Event, None, None]:
            for event in play(tasks):
                seen.append(event)
                yield event

        with engine(jobs) as play:
            yield seeing

    return watching


def in_mid_run(root: Path) -> list[tuple[int, Path]]:
    """Ray's workers that hold a run which has a checkpoint and no manifest."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if not process.name.isdigit() or not (process / "cmdline").read_bytes().startswith(b"ray::"):
                continue
            for handle in (process / "fd").iterdir():
                folder = Path(os.readlink(handle))
                if folder.parent == root / "runs" and unfinished(folder):
                    found.append((int(process.name), folder))
        except OSError:  # it ended while we looked
            continue
    return found


def frozen_in_mid_run(root: Path, but: Sequence[tuple[int, Path]]) -> tuple[int, Path]:
    """A worker that is stopped in the middle of a run, so that it stays there until it is killed, and the run."""
    until = time.monotonic() + WAIT
    while time.monotonic() < until:
        for worker, folder in in_mid_run(root):
            if (worker, folder) not in but:
                os.kill(worker, signal.SIGSTOP)
                if unfinished(folder):
                    return worker, folder
                os.kill(worker, signal.SIGCONT)
        time.sleep(0.01)
    raise AssertionError("no worker was found in mid-run")


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rsplit(") ", 1)[1].split()[1])


def unfinished(folder: Path) -> bool:
    return (folder / CHECKPOINT).exists() and not (folder / MANIFEST).exists()


def soon(look: Callable[[], object]) -> None:
    until = time.monotonic() + WAIT
    while not look():
        assert time.monotonic() < until, "it did not come about"
        time.sleep(0.01)


def test_the_store_is_that_of_a_local_process(cluster, reference, tmp_path):
    seen: list[Event] = []
    summary = run_experiment(SPEC, tmp_path / "out", engine=watched(make_engine(cluster.address), seen))
    assert summary.good
    assert summary.finished == 4
    assert contents(tmp_path / "out") == reference
    assert not ray.is_initialized()  # it was not before
    for i in range(4):
        kinds = [event.kind for event in seen if event.run == i]
        assert (kinds[0], kinds[-1]) == ("begun", "finished")
        assert set(kinds[1:-1]) <= {"progress"}


def test_killed_workers_and_nodes_do_not_change_the_store(cluster, reference, tmp_path, capfd):
    """Everything completes, nothing is lost or counted twice, and Ray says nothing of it on the terminal."""
    out = tmp_path / "out"
    seen: list[Event] = []
    killed: list[tuple[int, Path]] = []

    def kill() -> None:
        worker, folder = frozen_in_mid_run(out, killed)
        os.kill(worker, signal.SIGKILL)
        killed.append((worker, folder))
        worker, folder = frozen_in_mid_run(out, killed)
        raylet = parent(worker)
        (node,) = [one for one in cluster.worker_nodes if one.all_processes["raylet"][0].process.pid == raylet]
        cluster.remove_node(node, allow_graceful=False)
        os.kill(worker, signal.SIGKILL)  # it goes with its node; frozen, it could not see that by itself
        killed.append((worker, folder))

    killer = threading.Thread(target=kill)
    killer.start()
    engine = watched(make_engine(cluster.address), seen)
    summary = run_experiment(SPEC, out, engine=engine, checkpoint_seconds=OFTEN)
    killer.join()
    assert capfd.readouterr() == ("", "")
    cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20)
    assert len(killed) == 2
    assert (summary.finished, summary.failed) == (4, {})
    assert Counter(event.run for event in seen if event.kind == "finished") == dict.fromkeys(range(4), 1)
    assert contents(out) == reference


def test_a_run_that_kills_its_workers_fails(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(ray_engine, "LIVES", 2)
    out, killed = tmp_path / "out", []

    def kill() -> None:
        for _ in range(2):
            killed.append(frozen_in_mid_run(out, killed))
            os.kill(killed[-1][0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    spec = SPEC.model_copy(update={"seeds": (0,)})
    summary = run_experiment(spec, out, engine=make_engine(cluster.address), checkpoint_seconds=OFTEN)
    killer.join()
    (run,) = runs_of(spec)
    assert summary.failed.keys() == {run.folder}
    assert "its process died 2 times" in summary.failed[run.folder]
    assert Store(out).state(run) == "failed"


def test_a_killed_driver_can_be_replaced(cluster, reference, tmp_path):
    out = tmp_path / "out"
    (tmp_path / "driver.py").write_text(DRIVER)
    command = [sys.executable, tmp_path / "driver.py", SPEC.model_dump_json(), out, cluster.address, str(OFTEN)]
    driver = subprocess.Popen(command)
    try:
        soon(lambda: list(out.glob(f"runs/*/{MANIFEST}")) and in_mid_run(out))
        assert driver.poll() is None
    finally:
        driver.kill()
        driver.wait()
    done = {path: path.stat().st_mtime_ns for path in out.glob(f"runs/*/{MANIFEST}")}
    assert 1 <= len(done) < 4
    assert any(unfinished(folder) for folder in (out / "runs").iterdir())
    summary = run_experiment(SPEC, out, resume=True, engine=make_engine(cluster.address), checkpoint_seconds=OFTEN)
    assert summary.good
    assert summary.finished + summary.kept == 4
    assert summary.kept >= len(done)
    assert all(path.stat().st_mtime_ns == when for path, when in done.items())  # what was finished was not touched
    assert contents(out) == reference


def test_files_are_sent_and_a_run_that_fails_does_not_stop_the_others(cluster, tmp_path, monkeypatch):
    """Files are named relative to our working directory, which is not that of the workers; one is spoilt on the way."""
    monkeypatch.chdir(tmp_path)
    columns = [f"{state}/{action}" for state in range(3) for action in range(2)]
    losses = []
    for i, name in enumerate(("spoilt.csv", "rows.csv")):
        rows = np.random.default_rng(i).random((10, 6))
        np.savetxt(name, rows, delimiter=",", header=",".join(columns), comments="")
        losses.append({"kind": "replay", "file": name, "digest": sha256(Path(name).read_bytes()).hexdigest()})
    table = {"worlds": [{"kind": "random", "layers": (1, 2, 1), "actions": 2}], "learners": [{"name": "OREPS"}]}
    spec = Spec.model_validate({**table, "losses": losses, "horizons": [10], "seeds": 2})

    @contextmanager
    def spoiling(jobs: int) -> Iterator[Player]:
        def spoilt(tasks: Sequence[Task]) -> Generator[Event, None, None]:
            Path("spoilt.csv").write_text("")
            yield from play(tasks)

        with make_engine(cluster.address)(jobs) as play:
            yield spoilt

    assert run_experiment(spec, "local").good
    summary = run_experiment(spec, "ray", engine=spoiling)
    assert (summary.finished, len(summary.failed)) == (2, 2)
    assert all("changed since the spec was read" in why for why in summary.failed.values())
    for run in runs_of(spec):
        folder, failed = Store("ray").folder(run), run.losses.file == "spoilt.csv"
        assert (folder / TRACEBACK).exists() == failed
        for name in (CURVE, FLOW, MANIFEST):
            assert (folder / name).exists() != failed
            if not failed:
                assert (folder / name).read_bytes() == (Store("local").folder(run) / name).read_bytes()


def test_workers_may_have_no_access_to_the_folder(cluster, reference, tmp_path, monkeypatch):
    """They play elsewhere and send the files."""
    sent = []
    kept = ray_engine._kept
    monkeypatch.setattr(ray_engine, "_token", lambda folder: f"another machine {tmp_path}")
    monkeypatch.setattr(ray_engine, "_kept", lambda *given: (sent.append(sorted(given[2])), kept(*given))[1])
    summary = run_experiment(SPEC, tmp_path / "out", engine=make_engine(cluster.address), checkpoint_seconds=OFTEN)
    assert summary.finished == 4
    assert sent == [[CURVE, FLOW, MANIFEST]] * 4
    assert contents(tmp_path / "out") == reference


def test_a_stopped_experiment_leaves_checkpoints(cluster, reference, tmp_path):
    """As a local one does: workers are asked to save and end, and what is stopped can be taken up."""

    @contextmanager
    def stopping(jobs: int) -> Iterator[Player]:
        def stopped(tasks: Sequence[Task]) -> Generator[Event, None, None]:
            with closing(play(tasks)) as events:
                for event in events:
                    yield event
                    if event.kind == "progress" and event.episodes > 0:
                        break
            raise KeyboardInterrupt

        with make_engine(cluster.address, at_once=2)(jobs) as play:
            yield stopped

    with pytest.raises(KeyboardInterrupt):
        run_experiment(SPEC, tmp_path / "out", engine=stopping, checkpoint_seconds=1e6)
    store = Store(tmp_path / "out")
    assert "interrupted" in [store.state(run) for run in runs_of(SPEC)]
    assert not in_mid_run(tmp_path / "out")
    assert run_experiment(SPEC, tmp_path / "out", resume=True).good
    assert contents(tmp_path / "out") == reference


def test_a_worker_with_another_version_does_not_play(tmp_path):
    """There the identity of the run, and so the name of its folder, is another."""
    task = Task(7, runs_of(SPEC)[0].to_json(), str(tmp_path / "runs" / "another"), 1.0)
    event, files, _ = ray_engine._play(tuple(task), "token", {}, None)
    assert (event.run, event.kind) == (7, "failed")
    assert "on a worker; expected the same version as here" in event.why
    assert list(files) == [TRACEBACK]


def test_without_ray_the_error_names_the_extra(monkeypatch):
    monkeypatch.setattr(ray_engine, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'advmdp\[ray\]'"):
        make_engine()


@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.0.0.1:99999", "nowhere"])
def test_an_address_without_a_cluster_is_an_error(address, tmp_path):
    with pytest.raises(InputError, match="the address of a running Ray cluster"):
        run_experiment(SPEC, tmp_path / "out", engine=make_engine(address))
    assert not (tmp_path / "out").exists()


def test_sigterm_still_works_under_ray(cluster):
    """Its own answer would end the process on the spot, with no checkpoint and a dump of the stack."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with ray_engine._connected(cluster.address, 1), pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_threads_and_index(cluster, tmp_path):
    """Workers are told to use one thread, and a store is known by its index."""
    asked = {"env_vars": dict.fromkeys(ray_engine.THREADS, "1")}
    with ray_engine._connected(cluster.address, 1) as connected:
        told = connected.remote(num_cpus=1, runtime_env=asked)(_threads).remote()
        assert connected.get(told) == ["1"] * len(ray_engine.THREADS)
    (tmp_path / "experiment.json").write_text(json.dumps({}))
    assert ray_engine._token(tmp_path / "runs" / "one") != ray_engine._token(tmp_path / "runs" / "one" / "deeper")


def _threads() -> list[str]:
    from advmdp.experiments.engines.local import THREADS

    return [os.environ[name] for name in THREADS]


def listening() -> dict[str, str]:
    """By address and port, which of this process and those that come from it listen there."""
    sockets = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == "0A":
                sockets[f"socket:[{inode}]"] = local
    found = {}
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and comes_from_here(int(process.name)):
                for handle in (process / "fd").iterdir():
                    if (where := os.readlink(handle)) in sockets:
                        found[sockets[where]] = (process / "comm").read_text().strip()
        except OSError:  # it ended while we looked
            continue
    return found


def comes_from_here(process: int) -> bool:
    while process > 1 and process != os.getpid():
        process = parent(process)
    return process == os.getpid()


LOOPBACK = ("0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000")
"""127.0.0.1, and the same as an address of IPv6, and ::1, as /proc writes them."""


@pytest.mark.parametrize("address", [None, "local"])
def test_a_cluster_of_our_own_listens_on_this_machine_alone(tmp_path, address):
    before, seen = listening(), {}

    class Looking(list[Event]):
        def append(self, event: Event) -> None:
            seen.update({place: who for place, who in listening().items() if place not in before})

    spec = SPEC.model_copy(update={"seeds": (0,), "horizons": (1000,)})
    assert run_experiment(spec, tmp_path / "out", engine=watched(make_engine(address), Looking())).good
    assert {"gcs_server", "raylet"} <= set(seen.values())
    assert any(who.startswith("ray::") for who in seen.values())  # a worker
    assert {place: who for place, who in seen.items() if place.split(":")[0] not in LOOPBACK} == {}
    assert "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER" not in os.environ
