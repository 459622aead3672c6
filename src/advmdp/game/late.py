"""Losses that are revealed late: when each of a game is due, and those that are still to come.

The loss of episode t is revealed after episode t + d_t, in the order of the episodes where several are due.  The path
of an episode is counted at once.  With d_t = 0 the learner is told all that it is told without delays, and learns the
same to the bit.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.core.arrays import MOST, FloatArray, frozen, integers, whole
from advmdp.core.errors import InputError
from advmdp.learners.base import Learner
from advmdp.model.mdp import Trajectory

Delay = int | ArrayLike | Callable[[int], int]


class Waiting(NamedTuple):
    """An episode whose loss is to come: when, its number with the learner, its path, and what will be shown."""

    due: int
    number: int
    path: NDArray[np.int64]
    seen: FloatArray


class LateLosses:
    """What a delayed game has yet to reveal."""

    def __init__(self, delay: Delay) -> None:
        self._delay = delay if callable(delay) else _delays(delay)
        self.waiting: list[Waiting] = []

    @property
    def last(self) -> int | None:
        """How many delays are given, where their number is limited."""
        return len(self._delay) if isinstance(self._delay, np.ndarray) else None

    def of(self, t: int) -> int:
        """The delay of episode t."""
        if callable(self._delay):
            return whole(f"delay of episode {t}", self._delay(t), 0, MOST)
        return int(self._delay[t]) if isinstance(self._delay, np.ndarray) else self._delay

    def reveal(self, learner: Learner, t: int, number: int, path: Trajectory, seen: FloatArray) -> None:
        """Count episode t, whose number with the learner is ``number``, and tell the losses that are due after it."""
        learner.count(path.transitions)
        self.waiting.append(Waiting(t + self.of(t), number, path.transitions, frozen(seen)))
        due = [one for one in self.waiting if one.due <= t]
        self.waiting = [one for one in self.waiting if one.due > t]
        for one in due:
            learner.learn(one.seen, episode=one.number, trajectory=one.path)

    def state(self) -> dict[str, NDArray[Any]]:
        """As arrays, for a checkpoint."""
        waiting = self.waiting
        return {
            "late_due": np.array([(one.due, one.number) for one in waiting], np.int64).reshape(-1, 2),
            "late_paths": np.array([one.path for one in waiting], np.int64),
            "late_losses": np.array([one.seen for one in waiting], np.float64),
        }

    def restore(self, arrays: dict[str, NDArray[Any]], learner: Learner) -> None:
        """Take over what :meth:`state` gave; the episodes must be those that are open."""
        due = integers(arrays["late_due"].ravel(), "late_due").reshape(-1, 2)
        if due[:, 1].tolist() != learner.outstanding[-len(due) :][: len(due)]:
            raise InputError("late_due", f"episodes {due[:, 1]}", f"the open ones, {learner.outstanding}")
        rows = zip(due.tolist(), arrays["late_paths"], arrays["late_losses"], strict=True)
        self.waiting = [Waiting(int(d), int(n), path, frozen(seen)) for (d, n), path, seen in rows]


def _delays(delay: int | ArrayLike) -> int | NDArray[np.int64]:
    """One delay for all episodes, or one for each."""
    if np.ndim(delay) == 0:
        return whole("delay", delay, 0, MOST)  # type: ignore[arg-type]
    delays = integers(delay, "delay")
    if delays.size and delays.min() < 0:
        raise InputError("delay", f"{delays.min()} for episode {int(delays.argmin())}", "0 or more episodes")
    return delays
