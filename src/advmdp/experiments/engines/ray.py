"""The Ray engine, which plays the runs of an experiment on a Ray cluster, given by its address or started here.

A run is a task for one core, and its compiled code uses one thread.  If the worker can see the store's folder, it plays
directly into it, so that checkpoints survive workers and nodes.  Otherwise it plays in a folder of its own and sends
back the finished files, which the driver writes.  Files named in a spec are sent to workers that lack them.

We resubmit tasks that are lost with their worker or node ourselves.  Ray does not tell the two cases apart: it would
either give up on a run whose nodes are taken away, or retry for ever a run that kills its process.  Here a lost node
does not count, and a run has failed once several workers have died playing it.  The driver keeps no state outside the
store: if it dies, Ray ends its tasks, and the next driver continues from the checkpoints.

An actor collects progress.  It is only for display: no run waits for it or fails with it.
"""

import hashlib
import json
import logging
import os
import shutil
import signal
import socket
import tempfile
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from advmdp import __version__
from advmdp.core.errors import InputError, MissingPackageError, StorageError
from advmdp.core.files import write_bytes
from advmdp.experiments.engines.local import THREADS, Engine, Event, Task, play_task
from advmdp.experiments.runs import CURVE, FLOW, MANIFEST, TRACEBACK, Run, make_folder, tidy
from advmdp.experiments.spec import FilePart
from advmdp.experiments.store import INDEX, lock

LIVES = 5
"""How many workers may die playing one run; more than two, because a dying node can look like a dying worker."""
WINDOW = 200
"""The least number of runs submitted to Ray at once.  Polling takes time for each of them, but a cluster only grows if
tasks are waiting."""
EVERY = 0.5
"""Seconds between polls of the progress."""
PATIENCE = 20.0
"""Seconds for the last checkpoints when a run is stopped."""
STORE = 100 * 2**20
"""Bytes of shared memory for a cluster that we start: results are small."""
EXPECTED = "the address of a running Ray cluster"
SENT = (CURVE, FLOW, TRACEBACK, MANIFEST)
"""Files that a remote worker sends back, in the order of writing: a manifest means finished."""


def make_engine(address: str | None = None, at_once: int | None = None) -> Engine:
    """The engine for the cluster at ``address``; without an address, for a local cluster with a core for each job.

    A given cluster plays as many runs at once as it has cores, whatever the number of jobs, unless ``at_once`` is
    smaller.  If the process is already connected to a cluster, that one is used.
    """
    if find_spec("ray") is None:
        raise MissingPackageError("ray", "ray")
    if address is not None:
        _check_address(address)

    def played(jobs: int, tasks: Sequence[Task]) -> Generator[Event, None, None]:
        if tasks:
            with _connected(address, jobs) as ray:
                most = max(WINDOW, 4 * int(ray.cluster_resources().get("CPU", 0)))
                yield from _Driver(ray, tasks, at_once or most).events()

    return lambda jobs: nullcontext(partial(played, jobs))


def _check_address(address: str) -> None:
    """Check that something listens at the address: Ray itself would retry for minutes, with messages."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdigit() and address not in ("auto", "local"):
        raise InputError("--address", f"{address!r}", f"{EXPECTED}: HOST:PORT, or auto")
    if port.isdigit():
        try:
            socket.create_connection((host, int(port)), timeout=PATIENCE).close()
        except (OSError, OverflowError) as error:
            raise InputError("--address", f"{address} ({error})", EXPECTED) from None


@contextmanager
def _connected(address: str | None, jobs: int) -> Iterator[Any]:
    """Connect to Ray, with its messages suppressed; disconnect at the end unless it was connected before."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    if ray.is_initialized():
        yield ray
        return
    own = address in (None, "local")
    ours = {"num_cpus": jobs, "include_dashboard": False, "object_store_memory": STORE}
    on_sigterm = signal.getsignal(signal.SIGTERM)
    try:
        with _only_here() if own else nullcontext():
            ray.init(
                address=address or "local", log_to_driver=False, logging_level=logging.CRITICAL,
                **(ours if own else {}),
            )  # fmt: skip
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError("--address", f"{address} ({error})", EXPECTED) from None
    if callable(on_sigterm) and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, on_sigterm)  # Ray has replaced it by a handler that saves nothing
    try:
        with _silenced():
            yield ray
    finally:
        ray.shutdown()


@contextmanager
def _only_here() -> Iterator[None]:
    """Make a cluster started here listen on the loopback address only: anyone who reaches Ray's ports can run code.

    Ray replaces 127.0.0.1 by the network address, unless clusters are disabled on this system.  It reads that setting
    from the environment and caches it.
    """
    from ray._private import ray_constants

    name, before = ray_constants.ENABLE_RAY_CLUSTERS_ENV_VAR, ray_constants.ENABLE_RAY_CLUSTER
    said = os.environ.get(name)
    os.environ[name], ray_constants.ENABLE_RAY_CLUSTER = "0", False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before
        os.environ.pop(name)
        if said is not None:
            os.environ[name] = said


@contextmanager
def _silenced() -> Iterator[None]:
    """Suppress Ray's reports of dead nodes on standard output: they are expected, and no setting turns them off."""
    from ray._private import worker

    said = getattr(worker, "print_to_stdstream", None)
    if said is None:  # another version of Ray: leave its messages
        yield
        return
    worker.print_to_stdstream = lambda *given, **named: None
    try:
        yield
    finally:
        worker.print_to_stdstream = said


class _Answer(NamedTuple):
    """A worker's answer about a task: the outcome, its files if it played elsewhere, and files that it lacks."""

    event: Event
    files: Mapping[str, bytes] = {}
    lacks: Sequence[str] = ()


def _failed(task: Task, why: str, text: str) -> _Answer:
    return _Answer(Event(task.number, "failed", why=why), {TRACEBACK: text.encode()})


class _Driver:
    """One experiment on a cluster: tasks to submit, tasks submitted, and their outcomes."""

    def __init__(self, ray: Any, tasks: Sequence[Task], at_once: int) -> None:
        self.ray = ray
        self.at_once = at_once
        # Workers have another working directory.
        self.waiting = deque(task._replace(folder=os.path.abspath(task.folder)) for task in tasks)
        self.out: dict[Any, Task] = {}
        self.sent: dict[str, Any] = {}
        self.deaths: dict[int, int] = {}
        self.begun: set[int] = set()
        self.token = _token(Path(self.waiting[0].folder))
        self.remote = ray.remote(
            num_cpus=1, max_retries=0, runtime_env={"env_vars": dict.fromkeys(THREADS, "1")}
        )(_play)  # fmt: skip
        self.board = ray.remote(num_cpus=0, max_restarts=-1)(Board).remote()
        self.asked: Any = None
        self.looked = time.monotonic()

    def events(self) -> Iterator[Event]:
        """Yield events until all tasks are done; close the iterator to stop."""
        try:
            while self.waiting or self.out:
                while self.waiting and len(self.out) < self.at_once:
                    task = self.waiting.popleft()
                    self.out[self.remote.remote(tuple(task), self.token, self.sent, self.board)] = task
                refs = list(self.out)
                self.ray.wait(refs, num_returns=1, timeout=EVERY, fetch_local=False)
                for ref in self.ray.wait(refs, num_returns=len(refs), timeout=0, fetch_local=False)[0]:
                    yield from self._heard(ref, self.out.pop(ref))
                yield from self._progress()
        finally:
            self._stop()

    def _heard(self, ref: Any, task: Task) -> Iterator[Event]:
        """Handle the outcome of a task, or submit it again."""
        failure = self.ray.exceptions
        try:
            event, files, lacks = self.ray.get(ref)
        except (failure.NodeDiedError, failure.ObjectLostError):
            self.waiting.appendleft(task)
            return
        except (failure.WorkerCrashedError, failure.OutOfMemoryError) as error:
            deaths = self.deaths[task.number] = self.deaths.get(task.number, 0) + 1
            if deaths < LIVES:
                self.waiting.appendleft(task)
                return
            why = f"its process died {LIVES} times, the last time with {_first_line(error)}"
            event, files, lacks = _failed(task, why, f"{error}")
        except failure.RayError as error:  # no worker could start it
            event, files, lacks = _failed(task, f"Ray: {_first_line(error)}", f"{error}")
        if lacks:
            try:
                self.sent.update({name: self.ray.put(Path(name).read_bytes()) for name in lacks})
                self.waiting.appendleft(task)
                return
            except OSError as error:
                event, files, lacks = _failed(task, f"{error}", f"{error}")
        yield from self._begin(task.number)
        yield _kept(Event(*event), task, files)

    def _begin(self, number: int) -> Iterator[Event]:
        if number not in self.begun:
            self.begun.add(number)
            yield Event(number, "begun")

    def _progress(self) -> Iterator[Event]:
        """Yield the progress on the board; nothing if it has died, because Ray restarts it."""
        if self.asked is None and time.monotonic() - self.looked > EVERY:
            self.asked = self.board.take.remote()
        if self.asked is None or not self.ray.wait([self.asked], timeout=0)[0]:
            return
        asked, self.asked, self.looked = self.asked, None, time.monotonic()
        try:
            told = self.ray.get(asked)
        except self.ray.exceptions.RayError:
            return
        playing = {task.number for task in self.out.values()}
        for number, done in told.items():
            if number in playing:
                yield from self._begin(number)
                yield Event(number, "progress", done)

    def _stop(self) -> None:
        """Ask running tasks for a last checkpoint, and wait for it."""
        refs = list(self.out)
        for force in (False, True):
            for ref in refs:
                with suppress(Exception):  # it may have ended, or the cluster may be gone
                    self.ray.cancel(ref, force=force)
            if refs:
                refs = self.ray.wait(refs, num_returns=len(refs), timeout=PATIENCE, fetch_local=False)[1]
        with suppress(Exception):
            self.ray.kill(self.board)


def _kept(event: Event, task: Task, files: Mapping[str, bytes]) -> Event:
    """Write the files that a remote worker has sent; return the event, or a storage error."""
    folder = Path(task.folder)
    if not files:
        return event
    try:
        make_folder(folder)
        with lock(folder, wait=True):
            for name in SENT:
                if name in files and not (folder / MANIFEST).exists():
                    write_bytes(folder / name, files[name])
            if event.kind == "finished":
                tidy(folder)
    except (StorageError, OSError) as error:
        return Event(task.number, "storage", why=f"{error}")
    return event


class Board:
    """An actor that collects the progress of runs since the last poll."""

    def __init__(self) -> None:
        self.news: dict[int, float] = {}

    def tell(self, number: int, done: float) -> None:
        """Record the progress of a run."""
        self.news[number] = done

    def take(self) -> dict[int, float]:
        """Return and clear what was recorded since the last call."""
        news, self.news = self.news, {}
        return news


def _play(given: tuple[Any, ...], token: str, sent: Mapping[str, Any], board: Any) -> tuple[Any, ...]:
    """Play a task on a worker."""
    task = Task(*given)
    with tempfile.TemporaryDirectory(prefix="advmdp-") as scratch:
        try:
            run = Run.from_json(task.run)
            if run.folder != Path(task.folder).name:
                raise InputError("--engine ray", f"advmdp {__version__} on a worker", "the same version as here")
            run = _with_files(run, sent, Path(scratch))
        except _Lacking as lacking:
            return tuple(_Answer(Event(task.number, "failed"), lacks=lacking.args))
        except Exception as error:
            return tuple(_failed(task, f"{type(error).__name__}: {error}", traceback.format_exc()))
        task = task._replace(run=run.to_json())
        if _token(Path(task.folder)) == token:
            return tuple(_Answer(play_task(task, _teller(board, task.number))))
        return tuple(_elsewhere(task, token, _teller(board, task.number)))


def _teller(board: Any, number: int) -> Callable[[float], None]:
    """A function that reports progress now and then, and never waits for an answer."""
    told = 0.0

    def show(done: float) -> None:
        nonlocal told
        if time.monotonic() - told > EVERY:
            told = time.monotonic()
            with suppress(Exception):
                board.tell.remote(number, done)

    show(0.0)
    return show


def _token(folder: Path) -> str:
    """A token that is equal on two machines if they share the run's store: the identity of its index on disk.

    Another folder of the same name, or a copy, has another token.  If a shared folder looks different on two machines,
    or is not writable, files are sent although they need not be, which is correct too.
    """
    index = folder.parent.parent / INDEX
    try:
        about, content = index.stat(), index.read_bytes()
    except OSError:
        return "nowhere"
    able = os.access(index.parent, os.W_OK)
    return json.dumps([about.st_ino, about.st_mtime_ns, hashlib.sha256(content).hexdigest(), able])


def _elsewhere(task: Task, token: str, show: Callable[[float], None]) -> _Answer:
    """Play in a folder that the next worker on this node would find again, and return the files."""
    name = f"advmdp-{os.getuid()}-{hashlib.sha256(f'{token} {task.folder}'.encode()).hexdigest()[:16]}"
    folder = Path(tempfile.gettempdir()) / name
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.lstat().st_uid != os.getuid() or folder.is_symlink():
            raise InputError(f"{folder}", "a folder of another user", "a folder that can be used")
    except (OSError, InputError) as error:
        return _failed(task, f"{error}", traceback.format_exc())
    event = play_task(task._replace(folder=str(folder)), show)
    files = {name: (folder / name).read_bytes() for name in SENT if (folder / name).exists()}
    shutil.rmtree(folder, ignore_errors=True)
    return _Answer(event, files)


class _Lacking(Exception):  # noqa: N818 (not an error: it requests files)
    """Files are missing here; its arguments are their names."""


def _with_files(run: Run, sent: Mapping[str, Any], scratch: Path) -> Run:
    """The run with its local files, or with the files that were sent where local ones are missing."""
    parts: dict[str, Any] = {}
    lacks = []
    for name, part in (("world", run.world), ("losses", run.losses)):
        if not isinstance(part, FilePart) or part.file is None or _is_here(part.file, part.digest):
            continue
        if part.file not in sent:
            lacks.append(part.file)
            continue
        import ray

        path = scratch / f"{name}{Path(part.file).suffix}"
        path.write_bytes(ray.get(sent[part.file]))
        parts[name] = part.model_copy(update={"file": str(path)})
        if not _is_here(str(path), part.digest):
            raise InputError(part.file, "changed since the spec was read", "the same file")
    if lacks:
        raise _Lacking(*lacks)
    return replace(run, **parts)


def _is_here(file: str, digest: str) -> bool:
    """Whether the file exists here with the contents that it had when the spec was read."""
    try:
        content = Path(file).read_bytes()
    except OSError:
        return False
    return digest in ("", hashlib.sha256(content).hexdigest())


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".split("\n", maxsplit=1)[0]
