"""The losses, drawn again in blocks on each pass, or a sample of them in memory."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from advmdp.core.arrays import FloatArray, exact_floats
from advmdp.core.errors import InputError
from advmdp.core.streams import stream_key, uniforms
from advmdp.losses import Losses, Policies
from advmdp.planning.hindsight.polytope import Polytope

Progress = Callable[[float], object]

LONGEST, ENTRIES = 1024, 2**20
"""The most episodes in a block and, if it has more than one episode, the most numbers."""


class Blocks(Protocol):
    """A sequence that can be drawn repeatedly: ``block`` stacks the losses of episodes first, ..., stop - 1."""

    def block(self, first: int, stop: int, /) -> FloatArray: ...


@dataclass(frozen=True)
class Played:
    """An adaptive sequence as it was played: its losses against the policies of the game, by episode."""

    losses: Losses
    policies: Policies

    def block(self, first: int, stop: int, /) -> FloatArray:
        return self.losses.block(first, stop, self.policies)


class Source:
    """The sequence in checked blocks, with a callback for progress."""

    def __init__(self, polytope: Polytope, losses: Blocks, episodes: int, progress: Progress | None) -> None:
        if not callable(getattr(losses, "block", None)):
            raise InputError("losses", f"a {type(losses).__name__}", "an object with a method block(first, stop)")
        if getattr(losses, "memory", 0):
            raise InputError("losses", f"{losses!r}, which reacts to the policies", "Played(losses, policies)")
        self.losses, self.episodes, self.tell = losses, episodes, progress or _nobody
        n, self.shape = polytope.sk.num_transitions, np.shape(losses.block(0, 1))[1:]
        self.dimensions = int(np.prod(self.shape[1:]))
        if self.shape[:1] != (n,) or len(self.shape) > 2 or self.dimensions == 0:
            raise InputError("losses of episode 0", f"shape {self.shape}", f"({n},) or ({n}, d)")

    def limited(self, episodes: int, entries: int) -> int:
        """The number of episodes with at most this many entries, between 1 and ``episodes``."""
        return max(1, min(episodes, entries // int(np.prod(self.shape))))

    def block(self, first: int, stop: int) -> FloatArray:
        where = f"losses of episodes {first} to {stop - 1}"
        block = exact_floats(self.losses.block(first, stop), where, (stop - first, *self.shape))
        if not (block.min() >= 0.0 and block.max() <= 1.0):
            raise InputError(where, f"numbers from {block.min()} to {block.max()}", "numbers from 0 to 1")
        return block

    def blocks(self, first: int, stop: int, begun: float, share: float) -> Iterator[FloatArray]:
        """The blocks from first to stop; ``begun`` and ``share`` place this pass in the overall progress."""
        length = self.limited(LONGEST, ENTRIES)
        for begin in range(first, stop, length):
            end = min(begin + length, stop)
            yield self.block(begin, end)
            self.tell(begun + share * end / self.episodes)


def _nobody(fraction: float) -> None:
    """Ignore progress."""


@dataclass(frozen=True)
class Sample:
    """Some episodes of a sequence, in memory."""

    losses: FloatArray

    @classmethod
    def of(cls, source: Source, size: int) -> "Sample":
        """A random episode from each of ``size`` stretches of equal length; at random, so that no period is missed."""
        places = np.arange(size) + uniforms(stream_key(0, "hindsight", "sample"), 0, 1, size)[0]
        episodes = np.minimum(places * (source.episodes / size), source.episodes - 1).astype(np.int64).tolist()
        return cls(np.concatenate([source.block(t, t + 1) for t in episodes]))

    def block(self, first: int, stop: int, /) -> FloatArray:
        return self.losses[first:stop]
