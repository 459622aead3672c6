"""A guard against starting threads in a forked process whose parent had already used threads.

GNU OpenMP keeps its threads for the next loop.  A fork copies its records of the threads but not the threads
themselves, so the child would wait for them for ever, or crash.
"""

import os

from advmdp.core.errors import AdvMDPError

_started = _left_behind = False


def _note_fork() -> None:
    global _left_behind  # noqa: PLW0603 (of the whole process)
    _left_behind = _left_behind or _started


os.register_at_fork(after_in_child=_note_fork)


def check_threads() -> None:
    """Record that this process starts threads; raise if its parent had started some before the fork."""
    global _started  # noqa: PLW0603 (of the whole process)
    if _left_behind:
        given = "threads: this process was forked from one that had already used threads, which a fork does not copy"
        raise AdvMDPError(f"{given}; expected threads=1, or a process started by 'spawn'")
    _started = True
