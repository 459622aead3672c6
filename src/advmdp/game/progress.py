"""The progress of a game, shown as a bar on a terminal or passed to the caller's function."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def shown(
    progress: bool | Callable[[float], None], count: float, title: str = "playing"
) -> Iterator[Callable[[float], None]]:
    """The caller's function, or a bar on a terminal and nothing elsewhere."""
    if callable(progress):
        yield progress
        return
    if not (progress and sys.stderr.isatty()):
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=count)
        yield lambda done: bar.update(task, completed=done)
