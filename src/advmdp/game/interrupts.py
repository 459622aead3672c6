"""Interrupts that wait until a game can be saved."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def patient() -> Iterator[Callable[[], bool]]:
    """Ctrl-C waits until it is asked for: an episode half entered in the ledger must not be saved."""
    asked = False

    def ask(number: int, frame: object) -> None:
        nonlocal asked
        asked = True

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False  # only the main thread is ever interrupted
        return
    before = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)
