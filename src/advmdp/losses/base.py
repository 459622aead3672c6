"""The base class of loss sequences: pure functions of the episode and, if they react, of past policies."""

from abc import ABC, abstractmethod
from typing import Protocol

from numpy.typing import ArrayLike

from advmdp.core.arrays import FloatArray, expect, whole
from advmdp.core.errors import InputError
from advmdp.losses.kernels.reaction import Reaction
from advmdp.model.mdp import MDP
from advmdp.model.skeleton import Skeleton


class Policies(Protocol):
    """The policies played, by episode: a list, an array of rows, or a dictionary that holds only the last few."""

    def __getitem__(self, t: int, /) -> ArrayLike: ...


class Losses(ABC):
    """A sequence of losses over a skeleton.  Subclasses say what it is in :meth:`_block`."""

    memory: int = 0
    """How many of the last policies the loss of an episode depends on; 0 if all losses are fixed in advance."""
    episodes: int | None = None
    """The number of episodes; None for an endless sequence."""

    def __init__(self, skeleton: Skeleton, dimensions: int | None = None) -> None:
        self.skeleton = expect(Skeleton, skeleton, "skeleton")
        self.dimensions = None if dimensions is None else whole("dimensions", dimensions, 1)
        n = skeleton.num_transitions
        self.shape: tuple[int, ...] = (n,) if self.dimensions is None else (n, self.dimensions)

    def at(self, t: int, policies: Policies | None = None) -> FloatArray:
        """The loss of episode t, counted from 0; an adaptive one is told the policies played, by episode."""
        episode = whole("episode", t, 0)
        return self.block(episode, episode + 1, policies).reshape(self.shape)

    def block(self, first: int, stop: int, policies: Policies | None = None) -> FloatArray:
        """The losses of episodes first, ..., stop - 1, stacked."""
        begin, end = whole("episode", first, 0), whole("episode", stop, 0)
        if begin > end or (self.episodes is not None and end > self.episodes):
            expected = "first <= stop" if self.episodes is None else f"first <= stop <= {self.episodes}"
            raise InputError("episodes", f"first {begin}, stop {end}", expected)
        return self._block(begin, end, policies).reshape(end - begin, *self.shape)

    def reaction(self, first: int, stop: int, policies: Policies) -> Reaction | None:
        """For a block that is to be played in compiled code: how to answer; None where all is known in advance."""
        return None

    def linear_reaction(self, mdp: MDP, episodes: int) -> tuple[ArrayLike, ArrayLike] | None:
        """(a, B) where a fixed policy with visits x of the pairs pays <a, x> + <x, B x> in so many episodes; else None.

        For losses of your own that react linearly to past occupancy measures: :meth:`advmdp.Game.best_fixed_policy`
        then has a bound.  a is (num_pairs,), B is (num_pairs, num_pairs).
        """
        return None

    def __repr__(self) -> str:
        told = {k: v for k, v in vars(self).items() if isinstance(v, int | float) and not k.startswith("_")}
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in told.items())})"

    @abstractmethod
    def _block(self, first: int, stop: int, policies: Policies | None) -> FloatArray:
        """The losses of the block, in any shape with the entries in order; ``first`` and ``stop`` are checked."""
