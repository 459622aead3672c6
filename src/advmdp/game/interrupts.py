"""Interrupts that wait until a game can be saved."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def patient() -> Iterator[Callable[[], bool]]:
    """Delay Ctrl-C: it only sets a flag, so that no game is saved with an episode half entered in the ledger."""
    asked = False

    def ask(number: int, frame: object) -> None:
        nonlocal asked
        asked = True

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False  # Python interrupts the main thread only
        return
    before = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)
