"""Progress of a game: a bar on a terminal, or a function of the caller."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def shown(
    progress: bool | Callable[[float], None], count: float, title: str = "playing"
) -> Iterator[Callable[[float], None]]:
    """A progress bar on a terminal, nothing elsewhere; or the caller's own."""
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
