"""The base class of loss sequences: pure functions of the episode and, if they react, of past policies."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

from numpy.typing import ArrayLike

from advmdp.core.arrays import LARGEST, FloatArray, expect, real, whole
from advmdp.core.errors import InputError
from advmdp.losses.kernels.reaction import Reaction
from advmdp.model.mdp import MDP
from advmdp.model.skeleton import Skeleton


@dataclass(frozen=True)
class Units:
    """The units of a problem: what its losses are worth.

    Attributes
    ----------
    name
        The name of the unit, such as "money" or "ms".
    scale
        What one unit of loss is worth, a positive number.
    offset
        What an episode costs besides.

    Raises
    ------
    InputError
        If the name is empty, or a number is not finite or ``scale`` not positive.

    Examples
    --------
    >>> import advmdp as am
    >>> am.losses.Units("money", scale=20.0, offset=-5.0).cost(3.0, episodes=2)
    50.0
    """

    name: str
    scale: float
    offset: float

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InputError("units", f"the name {self.name!r}", "a name, such as 'money'")
        if not 0.0 < real(self.scale) <= LARGEST:
            raise InputError("units", f"a scale of {self.scale!r}", "a positive number")
        if not abs(real(self.offset)) <= LARGEST:
            raise InputError("units", f"an offset of {self.offset!r}", "a finite number")

    def cost(self, loss: float, episodes: int = 1) -> float:
        """Convert a loss to a cost. A difference of losses, such as regret, is worth ``scale`` times itself.

        Parameters
        ----------
        loss
            A loss, summed over episodes.
        episodes
            The number of episodes.

        Returns
        -------
        float
            The cost.
        """
        return self.scale * loss + self.offset * episodes

    def shown(self, loss: float, episodes: int = 0, *, sign: str = "") -> str:
        """Format a loss as a cost with its unit; without ``episodes`` it is a difference of losses.

        Parameters
        ----------
        loss
            A loss, summed over episodes.
        episodes
            The number of episodes.
        sign
            "+" to show the sign of positive numbers too.

        Returns
        -------
        str
            The cost with two decimals, and the unit unless it is plain loss.
        """
        return f"{self.cost(loss, episodes):{sign},.2f}{'' if self.name == LOSS.name else f' {self.name}'}"


LOSS = Units("loss", 1.0, 0.0)
"""The units of losses without units of their own."""


class Policies(Protocol):
    """The policies played so far, by episode.

    A list, an array with one row for each episode, or a dictionary that holds only the last few.
    """

    def __getitem__(self, t: int, /) -> ArrayLike: ...


class Losses(ABC):
    """A sequence of losses, one for each episode.

    It is a pure function of the episode, and of past policies if it reacts to them. Subclasses define ``_block``. For
    losses of your own, :class:`losses.FromFunction` and :class:`losses.Replay` are usually enough.

    Parameters
    ----------
    skeleton
        The skeleton.
    dimensions
        The number d of losses at once: a loss is then (n, d). By default it is (n,).

    Examples
    --------
    >>> import advmdp as am
    >>> losses = am.losses.Stochastic(am.Skeleton.dense([1, 2, 1], actions=2), seed=0)
    >>> losses.at(3).shape, losses.block(0, 10).shape
    ((8,), (10, 8))
    """

    memory: int = 0
    """How many of the last policies the loss of an episode depends on; 0 if all losses are fixed in advance."""
    episodes: int | None = None
    """The number of episodes; None for an endless sequence."""
    units: Units = LOSS
    """What the losses are worth; scenarios and Gymnasium environments set it."""

    def __init__(self, skeleton: Skeleton, dimensions: int | None = None) -> None:
        self.skeleton = expect(Skeleton, skeleton, "skeleton")
        self.dimensions = None if dimensions is None else whole("dimensions", dimensions, 1)
        n = skeleton.num_transitions
        self.shape: tuple[int, ...] = (n,) if self.dimensions is None else (n, self.dimensions)

    def at(self, t: int, policies: Policies | None = None) -> FloatArray:
        """Return the loss of one episode.

        Parameters
        ----------
        t
            The episode, counted from 0.
        policies
            The policies played so far; only losses that react need them.

        Returns
        -------
        numpy.ndarray
            (n,), or (n, d).
        """
        episode = whole("episode", t, 0)
        return self.block(episode, episode + 1, policies).reshape(self.shape)

    def block(self, first: int, stop: int, policies: Policies | None = None) -> FloatArray:
        """Return the losses of consecutive episodes.

        Parameters
        ----------
        first
            The first episode.
        stop
            The episode after the last one.
        policies
            The policies played so far; only losses that react need them.

        Returns
        -------
        numpy.ndarray
            (stop - first, n), or (stop - first, n, d).

        Raises
        ------
        InputError
            If the episodes do not ascend, or exceed the length of the sequence.
        """
        begin, end = whole("episode", first, 0), whole("episode", stop, 0)
        if begin > end or (self.episodes is not None and end > self.episodes):
            expected = "first <= stop" if self.episodes is None else f"first <= stop <= {self.episodes}"
            raise InputError("episodes", f"first {begin}, stop {end}", expected)
        return self._block(begin, end, policies).reshape(end - begin, *self.shape)

    def reaction(self, first: int, stop: int, policies: Policies) -> Reaction | None:
        """Prepare to react inside compiled code, while a block of episodes is played.

        Parameters
        ----------
        first
            The first episode of the block.
        stop
            The episode after the last one.
        policies
            The policies played before the block.

        Returns
        -------
        Reaction or None
            None if the losses do not react, or react in Python only.
        """
        return None

    def linear_reaction(self, mdp: MDP, episodes: int) -> tuple[ArrayLike, ArrayLike] | None:
        """Declare how losses that react linearly to past occupancy measures add up.

        With this, :meth:`advmdp.Game.best_fixed_policy` can prove a bound.

        Parameters
        ----------
        mdp
            The world.
        episodes
            The number of episodes.

        Returns
        -------
        tuple or None
            Arrays a, (num_pairs,), and B, (num_pairs, num_pairs): a fixed policy that visits the pairs with
            probabilities x pays <a, x> + <x, B x> in all. None if the losses are of another kind.
        """
        return None

    def __repr__(self) -> str:
        told = {k: v for k, v in vars(self).items() if isinstance(v, int | float) and not k.startswith("_")}
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in told.items())})"

    @abstractmethod
    def _block(self, first: int, stop: int, policies: Policies | None) -> FloatArray:
        """The losses of the block, in any shape with the entries in order; ``first`` and ``stop`` are checked."""
