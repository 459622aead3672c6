"""Threads and forks: a guard against threads that a fork left behind, and a lock that a forked process finds open.

GNU OpenMP keeps its threads for the next loop.  A fork copies its records of the threads but not the threads
themselves, so the child would wait for them for ever, or crash.
"""

import os
import re
from threading import Lock

from advmdp.core.errors import AdvMDPError

_started = _left_behind = False
_forks = 0
_renewal = Lock()


def _note_fork() -> None:
    global _left_behind, _forks, _renewal  # noqa: PLW0603 (of the whole process)
    _left_behind = _left_behind or _started
    _forks += 1
    _renewal = Lock()


os.register_at_fork(after_in_child=_note_fork)


def cores() -> int:
    """How many cores this process may use."""
    available = getattr(os, "sched_getaffinity", None)
    return len(available(0)) if available else os.cpu_count() or 1


def threads_to_use() -> int:
    """How many threads help if nobody said how many: one for each core, but not more than OMP_NUM_THREADS.

    One in a process that may not start threads. The processes of an experiment have ``OMP_NUM_THREADS=1``, since they
    share the cores already.
    """
    limit = re.match(r"\s*([1-9]\d*)", os.environ.get("OMP_NUM_THREADS", ""))
    return 1 if left_behind() else min([cores(), *([int(limit[1])] if limit else [])])


def left_behind() -> bool:
    """Whether this process was forked from one that had used threads, so that it may not start any."""
    return _left_behind


def check_threads() -> None:
    """Record that this process starts threads; raise if its parent had started some before the fork."""
    global _started  # noqa: PLW0603 (of the whole process)
    if _left_behind:
        given = "threads: this process was forked from one that had already used threads, which a fork does not copy"
        raise AdvMDPError(f"{given}; expected threads=1, or a process started by 'spawn'")
    _started = True


class ForkLock:
    """A lock for memory that is filled anew by whoever holds it.

    A fork copies a lock that another thread holds, but not the thread, so nobody would ever open it in the child.
    """

    def __init__(self) -> None:
        self._lock, self._fork = Lock(), _forks

    def __enter__(self) -> None:
        if self._fork != _forks:
            with _renewal:
                if self._fork != _forks:
                    self._lock, self._fork = Lock(), _forks
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()
