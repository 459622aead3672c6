"""Generated losses that do not react: stochastic, switching, seasonal, drifting, functions of the episode.

The seeded sequences share one construction: a mean m_t(x, a, x'), which each class moves in its own way, and noise,

    l_t = m_t + noise * (2 u_t - 1) * min(m_t, 1 - m_t),        u_t uniform in [0, 1), independent over t and entries,

which keeps the mean exact and the loss inside [0, 1] for any ``noise`` between 0 and 1.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.core.arrays import MOST, FloatArray, exact_floats, floats, fraction, owned, whole
from advmdp.core.errors import InputError
from advmdp.core.streams import Key, place, stream_key, uniforms
from advmdp.losses.base import Losses, Policies
from advmdp.losses.kernels.noise import add_noise
from advmdp.model.by_name import ByName, loss_vector
from advmdp.model.skeleton import Skeleton

ENTRIES = 2**19
"""How many numbers are drawn at once: 4 MB."""


class Noisy(Losses):
    """Noise around means, which subclasses define in :meth:`_means`."""

    def __init__(self, skeleton: Skeleton, dimensions: int | None, noise: float, seed: int) -> None:
        super().__init__(skeleton, dimensions)
        self.noise = fraction("noise", noise)
        self.seed = whole("seed", seed, 0)
        self._noise_key = stream_key(seed, "adversary", "noise")

    @abstractmethod
    def _means(self, first: int, stop: int, policies: Policies | None) -> tuple[FloatArray, NDArray[np.int64]]:
        """The distinct means of the block, one row each, in any shape, and for each episode the index of its row."""

    def expected(self, first: int, stop: int, policies: Policies | None = None) -> FloatArray:
        """Compute the means of a block of episodes.

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
        """
        rows, which = self._means(first, stop, policies)
        return rows.reshape(-1, *self.shape)[which]

    def _block(self, first: int, stop: int, policies: Policies | None) -> FloatArray:
        width = math.prod(self.shape)
        rows, which = self._means(first, stop, policies)
        losses = np.empty((stop - first, width))
        add_noise(self._noise_key, place(first, width), rows.reshape(-1, width), which, self.noise, losses)
        return losses

    def noise_sums(self, first: int, stop: int) -> FloatArray:
        """Add up the noise of a block of episodes.

        Times min(m, 1 - m) it is what noise adds to the sum of the losses if the mean m does not change.

        Parameters
        ----------
        first
            The first episode.
        stop
            The episode after the last one.

        Returns
        -------
        numpy.ndarray
            The sum of noise (2 u - 1) over the episodes, (n,) or (n, d).
        """
        width, total = math.prod(self.shape), np.zeros(math.prod(self.shape))
        middle, length = np.full((1, width), 0.5), max(1, ENTRIES // width)
        for begin in range(first, stop, length):
            drawn = np.empty((min(length, stop - begin), width))
            which = np.zeros(len(drawn), np.int64)
            add_noise(self._noise_key, place(begin, width), middle, which, self.noise, drawn)
            total += 2.0 * (drawn - 0.5).sum(axis=0)
        return total.reshape(self.shape)

    def _drawn_means(self, *purpose: str) -> FloatArray:
        """One uniform mean for each pair (and dimension), the same for all its successors."""
        pairs = self.skeleton.num_pairs * (self.dimensions or 1)
        drawn = uniforms(stream_key(self.seed, "adversary", *purpose), 0, 1, pairs)
        return self._over_transitions(drawn.reshape(self.skeleton.num_pairs, -1))

    def _over_transitions(self, pairs: FloatArray) -> FloatArray:
        return self.skeleton.over_transitions(pairs).reshape(self.shape)


class Stochastic(Noisy):
    """Independent draws around fixed means.

    This is the setting of UCRL2 and UCBVI.

    Parameters
    ----------
    skeleton
        The skeleton.
    seed
        Fixes the means and the noise.
    means
        The means, over transitions or over pairs, with a last axis of length d if ``dimensions=d``. By default they are
        drawn uniformly, one for each pair.
    noise
        The size of the noise, from 0 to 1. Losses stay in [0, 1] and keep their means.
    dimensions
        The number d of losses at once; one by default.

    Raises
    ------
    InputError
        If a mean is outside [0, 1], or if shapes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> import advmdp as am
    >>> sk = am.Skeleton.dense([1, 1], actions=2)
    >>> losses = am.losses.Stochastic(sk, means=[0.2, 0.8], noise=0.0)
    >>> losses.at(0)
    array([0.2, 0.8])
    """

    def __init__(
        self,
        skeleton: Skeleton,
        seed: int = 0,
        means: ArrayLike | None = None,
        noise: float = 1.0,
        dimensions: int | None = None,
    ) -> None:
        super().__init__(skeleton, dimensions, noise, seed)
        self.means = owned(self._drawn_means("means") if means is None else self._given_means(means))

    def _means(self, first: int, stop: int, policies: Policies | None) -> tuple[FloatArray, NDArray[np.int64]]:
        return self.means, np.zeros(stop - first, np.int64)

    def _given_means(self, means: ArrayLike) -> FloatArray:
        sk = self.skeleton
        given = floats(means, "means")
        if given.shape == (sk.num_pairs, *self.shape[1:]):
            given = self._over_transitions(given)
        if given.shape != self.shape:
            expected = f"{self.shape}, or ({sk.num_pairs}, ...) for one mean per pair"
            raise InputError("means", f"shape {given.shape}", expected)
        if not ((given >= 0.0) & (given <= 1.0)).all():
            i = int(np.argmax(~((given >= 0.0) & (given <= 1.0))))
            where = sk.where_transition(i // (self.dimensions or 1))
            raise InputError(f"means at {where}", f"{given.flat[i]}", "a number from 0 to 1")
        return given


class Switching(Noisy):
    """The good action of each state changes from time to time.

    In each period one action of each state is good, with mean loss (1 - gap) / 2. All others have (1 + gap) / 2. Then
    it is the turn of the next action. With period 1 and two contexts, the best action of one episode is the worst of
    the next.

    Parameters
    ----------
    skeleton
        The skeleton.
    period
        The number of episodes between changes.
    seed
        Fixes the order of the actions and the noise.
    contexts
        How many actions of a state take turns; all, if it has fewer.
    gap
        The difference between good and bad actions, from 0 to 1.
    noise
        The size of the noise, from 0 to 1.
    dimensions
        The number d of losses at once; one by default.

    Examples
    --------
    >>> import advmdp as am
    >>> losses = am.losses.Switching(am.Skeleton.dense([1, 1], actions=2), period=10, noise=0.0)
    >>> bool(losses.at(0)[0] == losses.at(10)[1])
    True
    """

    def __init__(
        self,
        skeleton: Skeleton,
        period: int,
        seed: int = 0,
        contexts: int = 2,
        gap: float = 0.8,
        noise: float = 0.5,
        dimensions: int | None = None,
    ) -> None:
        super().__init__(skeleton, dimensions, noise, seed)
        self.period = whole("period", period, 1, MOST)
        self.contexts = whole("contexts", contexts, 2)
        self.gap = fraction("gap", gap)
        columns = self.dimensions or 1
        drawn = uniforms(stream_key(seed, "adversary", "order"), 0, columns, skeleton.num_pairs)
        state = skeleton.state_of_pair
        place = np.empty((skeleton.num_pairs, columns), np.int64)
        for j in range(columns):
            place[np.lexsort((drawn[j], state)), j] = np.arange(skeleton.num_pairs) - skeleton.pair_ptr[state]
        self._place = place
        # States with fewer than ``contexts`` actions have shorter cycles; the means repeat after a common multiple.
        turns = np.minimum(self.contexts, np.diff(skeleton.pair_ptr)[state])
        self._turns, self._group = np.unique(turns, return_inverse=True)
        self._cycle = math.lcm(*map(int, self._turns))

    def _means(self, first: int, stop: int, policies: Policies | None) -> tuple[FloatArray, NDArray[np.int64]]:
        origin, begun = divmod(first, self.period)
        period = (begun + np.arange(stop - first)) // self.period
        phases = [(origin + k) % self._cycle for k in range(int(period.max(initial=-1)) + 1)]
        distinct = {phase: row for row, phase in enumerate(dict.fromkeys(phases))}
        means = np.array([self._means_of(phase) for phase in distinct])
        return means, np.array([distinct[phase] for phase in phases], dtype=np.int64)[period]

    def _means_of(self, phase: int) -> FloatArray:
        """The means in a phase, in which action ``phase`` (modulo the state's turns) is the good one in each state."""
        turn = np.array([phase % int(turns) for turns in self._turns])[self._group]
        return self._over_transitions(np.where(self._place == turn[:, None], 1.0 - self.gap, 1.0 + self.gap) / 2.0)


class Seasonal(Noisy):
    """Means that repeat, such as the days of a week.

    Parameters
    ----------
    skeleton
        The skeleton.
    period
        The number of episodes after which the means repeat.
    seed
        Fixes the means and the noise.
    seasons
        How many parts of equal length the period has, each with its own means; one for each episode by default.
    noise
        The size of the noise, from 0 to 1.
    dimensions
        The number d of losses at once; one by default.

    Raises
    ------
    InputError
        If there are more seasons than episodes in a period.

    Examples
    --------
    >>> import numpy as np
    >>> import advmdp as am
    >>> losses = am.losses.Seasonal(am.Skeleton.dense([1, 1], actions=2), period=7, noise=0.0)
    >>> np.array_equal(losses.at(2), losses.at(9))
    True
    """

    def __init__(
        self,
        skeleton: Skeleton,
        period: int = 7,
        seed: int = 0,
        seasons: int | None = None,
        noise: float = 0.5,
        dimensions: int | None = None,
    ) -> None:
        super().__init__(skeleton, dimensions, noise, seed)
        self.period = whole("period", period, 1, 2**31)
        self.seasons = self.period if seasons is None else whole("seasons", seasons, 1, self.period)
        self._season_key = stream_key(seed, "adversary", "seasons")

    def _means(self, first: int, stop: int, policies: Policies | None) -> tuple[FloatArray, NDArray[np.int64]]:
        phase = (first % self.period + np.arange(stop - first)) % self.period
        seasons, which = np.unique(phase * self.seasons // self.period, return_inverse=True)
        sk, d = self.skeleton, self.dimensions or 1
        drawn = [uniforms(self._season_key, season, 1, sk.num_pairs * d) for season in seasons.tolist()]
        return np.array([self._over_transitions(row.reshape(sk.num_pairs, d)) for row in drawn]), which


def drift(key: Key, period: int, width: int, first: int, stop: int) -> FloatArray:
    """Draw numbers in [0, 1) that move smoothly from episode to episode.

    Between two random values k and k' they are k + s (k' - k) with s = u^2 (3 - 2u), where u is the elapsed fraction
    of the period.

    Parameters
    ----------
    key
        The key of a random stream.
    period
        The number of episodes between the random values.
    width
        How many numbers there are for each episode.
    first
        The first episode.
    stop
        The episode after the last one.

    Returns
    -------
    numpy.ndarray
        (stop - first, width).

    Examples
    --------
    >>> import advmdp as am
    >>> from advmdp.core.streams import stream_key
    >>> am.losses.drift(stream_key(0, "example"), period=10, width=3, first=0, stop=5).shape
    (5, 3)
    """
    origin, begun = divmod(first, period)
    knot, passed = np.divmod(begun + np.arange(stop - first), period)
    knots = uniforms(key, origin, stop // period - origin + 2, width)
    u = (passed / period)[:, None]
    before: FloatArray = knots[knot]
    moved: FloatArray = before + u * u * (3.0 - 2.0 * u) * (knots[knot + 1] - before)
    return moved


class Drifting(Noisy):
    """Means that move smoothly and do not repeat.

    Each pair has a uniform random value every ``period`` episodes, and moves between them along a smooth curve. From
    one episode to the next a mean moves by at most 1.5 / period.

    Parameters
    ----------
    skeleton
        The skeleton.
    period
        The number of episodes between the random values.
    seed
        Fixes the means and the noise.
    noise
        The size of the noise, from 0 to 1.
    dimensions
        The number d of losses at once; one by default.

    Examples
    --------
    >>> import numpy as np
    >>> import advmdp as am
    >>> losses = am.losses.Drifting(am.Skeleton.dense([1, 1], actions=2), period=100)
    >>> bool(np.abs(losses.at(1) - losses.at(0)).max() <= 0.015)
    True
    """

    def __init__(
        self, skeleton: Skeleton, period: int = 1000, seed: int = 0, noise: float = 0.0, dimensions: int | None = None
    ) -> None:
        super().__init__(skeleton, dimensions, noise, seed)
        self.period = whole("period", period, 1, MOST)
        self._knot_key = stream_key(seed, "adversary", "knots")

    def _means(self, first: int, stop: int, policies: Policies | None) -> tuple[FloatArray, NDArray[np.int64]]:
        pairs = self.skeleton.num_pairs
        means = drift(self._knot_key, self.period, pairs * (self.dimensions or 1), first, stop)
        widths = np.diff(self.skeleton.transition_ptr)
        by_pair = means.reshape(stop - first, pairs, self.dimensions or 1)
        return np.repeat(by_pair, widths, axis=1), np.arange(stop - first)


class FromFunction(Losses):
    """Losses given by a function of the episode.

    Parameters
    ----------
    skeleton
        The skeleton.
    function
        ``function(t)`` returns the loss of episode t, (n,) or (n, d), in [0, 1]; or, for one loss, {(state, action):
        cost}. It must return the same numbers when it is called again, since a game asks more than once.
    dimensions
        The number d of losses at once; one by default.

    Raises
    ------
    InputError
        If ``function`` cannot be called.

    Examples
    --------
    >>> import numpy as np
    >>> import advmdp as am
    >>> sk = am.Skeleton.dense([1, 1], actions=2)
    >>> losses = am.losses.FromFunction(sk, lambda t: [0.0, 1.0] if t % 2 else [1.0, 0.0])
    >>> losses.block(0, 3).tolist()
    [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    """

    def __init__(self, skeleton: Skeleton, function: Callable[[int], ByName], dimensions: int | None = None) -> None:
        super().__init__(skeleton, dimensions)
        if not callable(function):
            raise InputError("function", f"{function!r}", "a function from an episode to its loss")
        self.function = function

    def _block(self, first: int, stop: int, policies: Policies | None) -> FloatArray:
        return np.array([self._loss(t) for t in range(first, stop)])

    def _loss(self, t: int) -> FloatArray:
        made = self.function(t)
        found = loss_vector(self.skeleton, made) if isinstance(made, Mapping) else made
        return exact_floats(found, f"loss of episode {t}", self.shape)
