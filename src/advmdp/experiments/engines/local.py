"""The local engine, which plays the runs of an experiment in processes on this machine.

An engine is opened for a number of simultaneous runs.  It then receives runs with their folders, and yields
:class:`Event`s as they happen.  A run determines everything that it draws, so results do not depend on where, when or
alongside what it is played.

Processes are spawned, play many runs, and share the cores: compiled code and Polars in each process use their part.  (A
script that uses this must be guarded by ``if __name__ == "__main__"``, or every process would run it again.)  A process
that dies is replaced, and its run continues from its checkpoint; if the second process dies too, the run has failed.
Processes start when the engine is opened, and get ready while the spec is read and checked.  So that this can happen
early, this module imports the library only inside functions.
"""

import gc
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import Any, Literal, NamedTuple

from advmdp.core.errors import StorageError
from advmdp.core.threads import cores

SHARED = ("POLARS_MAX_THREADS",)
"""Threads that are divided among processes: results do not depend on their number."""
THREADS = (*SHARED, "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""All limits on threads.  The number of BLAS threads changes the last digits of sums, so it is always one."""
EVERY = 0.2
"""Seconds between two messages about progress."""
PATIENCE = 30.0
"""Seconds that a process has for its last checkpoint."""
LIVES = 2
"""How many processes may die playing one run before it has failed."""


class Event(NamedTuple):
    """What happened to a run: it began, made progress, finished, or failed, and why."""

    run: int
    kind: Literal["begun", "progress", "finished", "failed", "storage"]
    episodes: float = 0.0
    why: str = ""


class Task(NamedTuple):
    """A run with its number and its folder."""

    number: int
    run: str  # JSON
    folder: str
    checkpoint_seconds: float


Player = Callable[[Sequence[Task]], Generator[Event, None, None]]
"""Plays all tasks; close the iterator to stop."""
Engine = Callable[[int], AbstractContextManager[Player]]
"""Opens a player for a number of simultaneous tasks."""


def play_task(task: Task, show: Callable[[float], None]) -> Event:
    """Play the task in this process; an error is written to the run's folder and reported."""
    from advmdp.core.files import write_bytes
    from advmdp.experiments.runs import TRACEBACK, Run, make_folder, play_run
    from advmdp.experiments.store import lock

    folder = Path(task.folder)
    try:
        make_folder(folder)
        with lock(folder, wait=True):  # a process that outlived its parent may still be playing it
            play_run(Run.from_json(task.run), folder, show, task.checkpoint_seconds)
    except StorageError as error:
        return Event(task.number, "storage", why=f"{error.where}: {error.given}")
    except OSError as error:
        return Event(task.number, "storage", why=f"{error}")
    except Exception as error:  # whatever it is, the other runs continue
        text = traceback.format_exc()
        try:
            write_bytes(folder / TRACEBACK, text.encode("utf-8", "replace"))
        except StorageError as also:
            text += f"\n(and the traceback could not be written: {also})"
        return Event(task.number, "failed", why=f"{type(error).__name__}: {error}")
    return Event(task.number, "finished")


@dataclass
class _Worker:
    """A process, the pipe to it, and what it is doing."""

    process: BaseProcess
    pipe: Connection
    task: Task | None = None


@contextmanager
def processes(jobs: int) -> Iterator[Player]:
    """Open ``jobs`` processes; at first at most one per core, because there may be fewer runs."""
    workers = [_started(jobs) for _ in range(min(jobs, cores()))]
    try:
        yield partial(_played, workers, jobs)
    finally:
        _stop(workers)


def _played(workers: list[_Worker], jobs: int, tasks: Sequence[Task]) -> Generator[Event, None, None]:
    waiting = deque(tasks)
    deaths: dict[int, int] = {}
    try:
        while len(workers) < min(jobs, len(tasks)):
            workers.append(_started(jobs))
        while waiting or any(worker.task for worker in workers):
            for worker in workers:
                if worker.task is None and waiting:
                    worker.task = waiting.popleft()
                    with suppress(OSError):  # it died while idle, which is handled below
                        _say(worker.pipe, worker.task)
                    yield Event(worker.task.number, "begun")
            for ready in wait([worker.pipe for worker in workers if worker.task]):
                worker = next(one for one in workers if one.pipe is ready)
                yield from _heard(worker, workers, waiting, deaths)
    finally:
        _stop(workers)  # before the caller releases the folder


def _heard(worker: _Worker, workers: list[_Worker], waiting: deque[Task], deaths: dict[int, int]) -> Iterator[Event]:
    """Handle a message from a process, or its death."""
    from advmdp.core.files import write_bytes
    from advmdp.experiments.runs import TRACEBACK

    task = worker.task
    assert task is not None
    try:
        event = Event(*_hear(worker.pipe))
    except (EOFError, ConnectionError):
        worker.process.join()
        workers[workers.index(worker)] = _started(len(workers))
        deaths[task.number] = deaths.get(task.number, 0) + 1
        if deaths[task.number] < LIVES:
            waiting.appendleft(task)
            return
        code = worker.process.exitcode or 0
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        why = f"its process died {LIVES} times, the last time with {name}"
        with suppress(StorageError):
            write_bytes(Path(task.folder) / TRACEBACK, f"{why}\n".encode())
        yield Event(task.number, "failed", why=why)
        return
    if event.kind in ("finished", "failed", "storage"):
        worker.task = None
    yield event


def _started(jobs: int) -> _Worker:
    """Start one of ``jobs`` processes."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs,), daemon=True)
    with _shared_cores(jobs), _later():
        process.start()
    theirs.close()
    return _Worker(process, ours)


def _stop(workers: list[_Worker]) -> None:
    """Ask busy processes for a last checkpoint and wait; ask repeatedly, because compiled code may miss a signal."""
    until = time.monotonic() + PATIENCE
    for worker in workers:
        if worker.task is None:
            worker.process.kill()
    while time.monotonic() < until and (playing := [one.process for one in workers if one.process.is_alive()]):
        for process in playing:
            assert process.pid is not None
            os.kill(process.pid, signal.SIGINT)
        wait([process.sentinel for process in playing], timeout=1.0)
    for worker in workers:
        worker.process.kill()
        worker.process.join()


def _work(pipe: Connection) -> None:
    """The main loop of a process: play tasks until the parent is gone."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    said = 0.0

    def show(done: float) -> None:
        nonlocal said
        if time.monotonic() - said > EVERY or done >= horizon:  # the best fixed policy, which follows, may take long
            said = time.monotonic()
            _say(pipe, Event(task.number, "progress", done))

    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        with unswept():
            _get_ready()
        gc.freeze()  # also at exit
        while True:
            task = Task(*_hear(pipe))
            horizon = json.loads(task.run)["horizon"]
            _say(pipe, play_task(task, show))
    except (EOFError, ConnectionError, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.exit(0)


@contextmanager
def remembered() -> Iterator[Callable[[], None]]:
    """Remember Ctrl-C; the function this yields raises it again if it was swallowed.

    Native code, for example when it compiles or builds validators, may call Python and discard its exceptions.
    """
    asked = False

    def ask(before: Callable[[int, FrameType | None], Any], number: int, frame: FrameType | None) -> None:
        nonlocal asked
        try:
            before(number, frame)
        except KeyboardInterrupt:
            asked = True
            raise

    def stop_if_asked() -> None:
        if asked:
            raise KeyboardInterrupt

    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set signal handlers
        handlers = {}
    for number, before in handlers.items():
        if callable(before):
            signal.signal(number, partial(ask, before))
    try:
        yield stop_if_asked
    finally:
        for number, before in handlers.items():
            signal.signal(number, before)


@contextmanager
def unswept() -> Iterator[None]:
    """Pause garbage collection during imports, which stay anyway."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _get_ready() -> None:
    """Import the library and load its compiled code ahead of time, which takes about a second."""
    from advmdp.game.play import play
    from advmdp.learners.uc_o_reps import UCOREPS
    from advmdp.losses import Stochastic
    from advmdp.model.mdp import MDP

    mdp = MDP.random([1, 2, 1], 2, seed=0)
    play(mdp, Stochastic(mdp.skeleton), UCOREPS(mdp.skeleton, horizon=1), 1)


def _say(pipe: Connection, message: Task | Event) -> None:
    """Send a message as JSON, which cannot carry code."""
    pipe.send_bytes(json.dumps(message).encode())


def _hear(pipe: Connection) -> list[Any]:
    message: list[Any] = json.loads(pipe.recv_bytes())
    return message


@contextmanager
def _later() -> Iterator[None]:
    """Block Ctrl-C, here and in processes started here, until they can handle it; a pending one is delivered then."""
    resource_tracker.ensure_running()  # if it started with the first process, it would unblock signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _shared_cores(jobs: int) -> Iterator[None]:
    """Limit the threads of processes started here to their part of the cores."""
    part = str(max(1, cores() // jobs))
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update({name: part if name in SHARED else "1" for name in THREADS})
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
