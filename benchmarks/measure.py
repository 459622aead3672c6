"""Measures time, as the best of several repeats, and peak memory."""

import time
import tracemalloc
from collections.abc import Callable

__all__ = ["best_time", "peak_bytes"]


def best_time(work: Callable[[], object], budget: float = 1.0, least: int = 3) -> float:
    """The best time of a call, in seconds.  Short calls are timed in batches, so that the clock costs little."""
    work()
    start = time.perf_counter()
    work()
    once = max(time.perf_counter() - start, 1e-9)
    batch = max(1, int(2e-3 / once))
    repeats = max(least, int(budget / (once * batch)))
    best = float("inf")
    for _ in range(min(repeats, 200)):
        start = time.perf_counter()
        for _ in range(batch):
            work()
        best = min(best, (time.perf_counter() - start) / batch)
    return best


def peak_bytes(work: Callable[[], object]) -> int:
    """The peak memory that ``work`` allocates, in bytes."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
