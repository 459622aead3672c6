"""Threads and forks: a process that was forked from one with threads at work must not start any.

GNU OpenMP keeps its threads for the next loop. A fork copies its records of them but not the threads, and the child
would wait for them for ever, or end.
"""

import os

from advmdp.core.errors import AdvMDPError

_started = _left_behind = False


def _note_fork() -> None:
    global _left_behind  # noqa: PLW0603 (of the whole process)
    _left_behind = _left_behind or _started


os.register_at_fork(after_in_child=_note_fork)


def check_threads() -> None:
    """Note that this process starts threads; refuse in one that was forked after its parent started some."""
    global _started  # noqa: PLW0603 (of the whole process)
    if _left_behind:
        given = "threads: this process was forked from one that had threads at work, which a fork leaves behind"
        raise AdvMDPError(f"{given}; expected threads=1, or processes that are started by 'spawn'")
    _started = True
