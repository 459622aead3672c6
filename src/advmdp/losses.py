"""Loss sequences: what the adversary plays, l_1, l_2, ..., with every loss in [0, 1] (Section 2 of the paper).

A sequence is a pure function: ``at(t)`` depends on the seed and t alone, and for :class:`Adaptive` also on the policies
played before t.  So any episode can be drawn again, in any order, one at a time or as a block, with the same bytes, and
a sequence of any length takes no memory.  Episodes are counted from 0, as Python does: ``at(t)`` is the paper's
l_{t+1}.  A loss is a vector over transitions, (n,), or with ``dimensions=d`` a matrix (n, d) of d losses at once.

The seeded sequences share one construction: a mean m_t(x, a, x') that moves in a way of its own, and noise around it,

    l_t = m_t + noise * (2 u_t - 1) * min(m_t, 1 - m_t),        u_t uniform in [0, 1), independent over t and entries,

which keeps the mean exact and the loss inside [0, 1] for any ``noise`` between 0 and 1.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from os import PathLike, fspath
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.arrays import FloatArray, exact_floats, expect, floats, fraction, frozen, owned, whole
from advmdp.compiled import compiled
from advmdp.errors import InputError
from advmdp.policy import checked_policy, uniform_policy
from advmdp.replay import read_array, read_file, rescaling
from advmdp.skeleton import Skeleton
from advmdp.streams import WORDS, Key, counts_of, philox, place, stream_key, to_uniform, uniforms

__all__ = [
    "Adaptive",
    "Drifting",
    "FromFunction",
    "Losses",
    "Reaction",
    "Replay",
    "Stochastic",
    "Switching",
    "no_reaction",
    "react",
]


class Policies(Protocol):
    """The policies played, by episode: a list, an array of rows, or a dictionary that holds only the last few."""

    def __getitem__(self, t: int, /) -> ArrayLike: ...


class Reaction(NamedTuple):
    """What an adaptive adversary needs to answer in compiled code, episode by episode of a block."""

    base: FloatArray  # (n, d)
    strength: float
    noise: float
    key: Key
    start: Key  # where the noise of the block begins
    before: FloatArray  # the policies of the last episodes before the block; the uniform one where there are none
    played: int  # how many these are, at most ``memory``
    memory: int
    policies: FloatArray  # (B, pairs): those of the block, as they are played
    losses: FloatArray  # (B, n, d): the answers


class Losses(ABC):
    """A sequence of losses over a skeleton.  Subclasses say what it is in :meth:`_block`."""

    memory: int = 0
    """How many of the last policies the loss of an episode depends on; 0 for an adversary that chose all in advance."""
    episodes: int | None = None
    """How many episodes there are, where the sequence ends."""

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
            expected = "an ascent" if self.episodes is None else f"an ascent up to {self.episodes}"
            raise InputError("episodes", f"{begin} to {end}", expected)
        return self._block(begin, end, policies).reshape(end - begin, *self.shape)

    def reaction(self, first: int, stop: int, policies: Policies) -> Reaction | None:
        """For a block that is to be played in compiled code: how to answer; None where all is known in advance."""
        return None

    def __repr__(self) -> str:
        told = {k: v for k, v in vars(self).items() if isinstance(v, int | float) and not k.startswith("_")}
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in told.items())})"

    @abstractmethod
    def _block(self, first: int, stop: int, policies: Policies | None) -> FloatArray:
        """The losses of the block, in any shape that has their entries in order; the bounds are checked."""


class Noisy(Losses):
    """Means that subclasses give in :meth:`expected`, with noise around them."""

    def __init__(self, skeleton: Skeleton, dimensions: int | None, noise: float, seed: int) -> None:
        super().__init__(skeleton, dimensions)
        self.noise = fraction("noise", noise)
        self.seed = whole("seed", seed, 0)
        self._noise_key = stream_key(seed, "adversary", "noise")

    @abstractmethod
    def _means(self, first: int, stop: int, policies: Policies | None) -> tuple[FloatArray, NDArray[np.int64]]:
        """The distinct means of the block, a row each in any shape, and for each episode which is its."""

    def expected(self, first: int, stop: int, policies: Policies | None = None) -> FloatArray:
        """The means m_t of the block, of shape (stop - first, *shape)."""
        rows, which = self._means(first, stop, policies)
        return rows.reshape(-1, *self.shape)[which]

    def _block(self, first: int, stop: int, policies: Policies | None) -> FloatArray:
        width = math.prod(self.shape)
        rows, which = self._means(first, stop, policies)
        losses = np.empty((stop - first, width))
        _add_noise(self._noise_key, place(first, width), rows.reshape(-1, width), which, self.noise, losses)
        return losses

    def _drawn_means(self, *purpose: str) -> FloatArray:
        """One uniform mean for each pair (and dimension), the same for all its successors."""
        pairs = self.skeleton.num_pairs * (self.dimensions or 1)
        drawn = uniforms(stream_key(self.seed, "adversary", *purpose), 0, 1, pairs)
        return self._over_transitions(drawn.reshape(self.skeleton.num_pairs, -1))

    def _over_transitions(self, pairs: FloatArray) -> FloatArray:
        return self.skeleton.over_transitions(pairs).reshape(self.shape)


class Stochastic(Noisy):
    """Independent losses around fixed means: the world of UCRL2 and its kin.

    ``means`` is over transitions or over pairs, with a last axis of d where ``dimensions=d``; by default they are drawn
    uniformly, one for each pair.
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
            expected = f"{self.shape}, or ({sk.num_pairs}, ...) for one mean a pair"
            raise InputError("means", f"shape {given.shape}", expected)
        if not ((given >= 0.0) & (given <= 1.0)).all():
            i = int(np.argmax(~((given >= 0.0) & (given <= 1.0))))
            where = sk.where_transition(i // (self.dimensions or 1))
            raise InputError(f"means at {where}", f"{given.flat[i]}", "a number from 0 to 1")
        return given


class Switching(Noisy):
    """The best policy changes every ``period`` episodes, in every state that has a choice.

    Each state has an order of its actions, drawn from the seed (one for each dimension), and goes round among the first
    ``contexts`` of them (or all, where there are fewer).  One is good for a period, with mean loss (1 - gap) / 2, while
    every other action of the state has (1 + gap) / 2; then it is the turn of the next.  So the best policy of a period
    takes the good action everywhere.  With period 1 and two contexts yesterday's best is today's worst.
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
        self.period = whole("period", period, 1)
        self.contexts = whole("contexts", contexts, 2)
        self.gap = fraction("gap", gap)
        columns = self.dimensions or 1
        drawn = uniforms(stream_key(seed, "adversary", "order"), 0, columns, skeleton.num_pairs)
        state = skeleton.state_of_pair
        place = np.empty((skeleton.num_pairs, columns), np.int64)
        for j in range(columns):
            place[np.lexsort((drawn[j], state)), j] = np.arange(skeleton.num_pairs) - skeleton.pair_ptr[state]
        self._place = place
        # Few states take other numbers of turns than ``contexts``; the means repeat when all have come round.
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
        """The means while each state's action number ``phase`` (going round) is the good one."""
        turn = np.array([phase % int(turns) for turns in self._turns])[self._group]
        return self._over_transitions(np.where(self._place == turn[:, None], 1.0 - self.gap, 1.0 + self.gap) / 2.0)


class Drifting(Noisy):
    """Means that move smoothly and never repeat: random knots every ``period`` episodes, joined by smooth curves.

    Between knots k and k' the mean is k + s (k' - k) with s = u^2 (3 - 2u), u the fraction of the period gone by; from
    one episode to the next it moves by at most 1.5 / period.  Knots are uniform, one for each pair.
    """

    def __init__(
        self, skeleton: Skeleton, period: int = 1000, seed: int = 0, noise: float = 0.0, dimensions: int | None = None
    ) -> None:
        super().__init__(skeleton, dimensions, noise, seed)
        self.period = whole("period", period, 1)
        self._knot_key = stream_key(seed, "adversary", "knots")

    def _means(self, first: int, stop: int, policies: Policies | None) -> tuple[FloatArray, NDArray[np.int64]]:
        pairs = self.skeleton.num_pairs
        origin, begun = divmod(first, self.period)
        knot, passed = np.divmod(begun + np.arange(stop - first), self.period)
        knots = uniforms(self._knot_key, origin, stop // self.period - origin + 2, pairs * (self.dimensions or 1))
        u = (passed / self.period)[:, None]
        before, after = knots[knot], knots[knot + 1]
        means = before + u * u * (3.0 - 2.0 * u) * (after - before)
        widths = np.diff(self.skeleton.transition_ptr)
        by_pair = means.reshape(stop - first, pairs, self.dimensions or 1)
        return np.repeat(by_pair, widths, axis=1), np.arange(stop - first)


class Adaptive(Noisy):
    """Punishes what the learner prefers: the more likely it was to take an action, the more that action costs now.

    With p_t(x, a) the mean of the last ``memory`` policies before t (uniform before the first episode), the mean is

        m_t(x, a) = (1 - strength) * base(x, a) + strength * p_t(x, a),        base drawn uniformly for each pair.

    It never sees the policy of the episode itself.  ``at`` and ``block`` read the policies from what they are handed:
    ``policies[s]`` is the policy played in episode s, for the last ``memory`` before each episode asked for.
    """

    def __init__(
        self,
        skeleton: Skeleton,
        seed: int = 0,
        strength: float = 0.5,
        memory: int = 1,
        noise: float = 0.5,
        dimensions: int | None = None,
    ) -> None:
        super().__init__(skeleton, dimensions, noise, seed)
        self.strength = fraction("strength", strength)
        self.memory = whole("memory", memory, 1)
        self.base = owned(self._drawn_means("base"))

    def _means(self, first: int, stop: int, policies: Policies | None) -> tuple[FloatArray, NDArray[np.int64]]:
        means = np.empty((stop - first, *self.shape))
        for row, t in enumerate(range(first, stop)):
            preferred = self.skeleton.over_transitions(self._preferred(t, policies))
            means[row] = ((1.0 - self.strength) * self.base.T + self.strength * preferred).T
        return means, np.arange(stop - first)

    def reaction(self, first: int, stop: int, policies: Policies) -> Reaction:
        sk, d = self.skeleton, self.dimensions or 1
        before = [checked_policy(sk, policies[s]) for s in range(max(0, first - self.memory), first)]
        return Reaction(
            self.base.reshape(-1, d), self.strength, self.noise, self._noise_key, place(first, sk.num_transitions * d),
            np.array(before or [uniform_policy(sk)]), len(before), self.memory,
            np.empty((stop - first, sk.num_pairs)), np.empty((stop - first, sk.num_transitions, d)),
        )  # fmt: skip

    def _preferred(self, t: int, policies: Policies | None) -> FloatArray:
        """p_t: the mean of the last policies before t."""
        past = range(max(0, t - self.memory), t)
        if not past:
            return uniform_policy(self.skeleton)
        total = np.zeros(self.skeleton.num_pairs)
        for s in past:
            if policies is None:
                raise InputError("policies", "none", f"those of episodes {past.start} to {t - 1}, by episode")
            try:
                policy = policies[s]
            except (LookupError, TypeError):
                raise InputError("policies", f"nothing for episode {s}", "the policy played in it") from None
            total += checked_policy(self.skeleton, policy)
        return total / len(past)


class FromFunction(Losses):
    """Losses of one's own: ``function(t)`` is the loss of episode t, (n,), or (n, d) with ``dimensions=d``, in [0, 1].

    It must be pure: asked for the same episode again it gives the same numbers, for a game is drawn more than once.
    """

    def __init__(self, skeleton: Skeleton, function: Callable[[int], ArrayLike], dimensions: int | None = None) -> None:
        super().__init__(skeleton, dimensions)
        if not callable(function):
            raise InputError("function", f"{function!r}", "a function from an episode to its loss")
        self.function = function

    def _block(self, first: int, stop: int, policies: Policies | None) -> FloatArray:
        rows = [exact_floats(self.function(t), f"loss of episode {t}", self.shape) for t in range(first, stop)]
        return np.array(rows)


class Replay(Losses):
    """Recorded losses: one row an episode, from an array (memory-mapped or not) or a CSV or Parquet file.

    A row has one number for each transition in order, or one for each pair, which then holds for all its successors;
    with ``dimensions=d`` it has d side by side for each (an array may have them as a last axis).

    A file has a header line.  Where its names are those of ``Skeleton.pair_label`` or ``transition_label`` ("home/bus",
    with d losses "home/bus:0", "home/bus:1", ...) columns are found by name, else they count by their place.  A file is
    read once, when the sequence is made, and may be larger than memory (see :mod:`advmdp.replay`).

    Losses must lie in [0, 1].  Raw costs c are mapped by ``rescale=(low, high)`` to (c - low) / (high - low), or by
    ``rescale="range"`` with the least and the greatest cost of the whole recording.  One affine map for all entries
    keeps every comparison between policies: regret in losses times (high - low) is regret in costs.
    """

    def __init__(
        self,
        skeleton: Skeleton,
        source: ArrayLike | str | PathLike[str],
        dimensions: int | None = None,
        rescale: tuple[float, float] | Literal["range"] | None = None,
    ) -> None:
        super().__init__(skeleton, dimensions)
        d = self.dimensions or 1
        owners = (skeleton.num_transitions, skeleton.num_pairs)
        if isinstance(source, str | PathLike):
            recording = read_file(fspath(source), self._labels())
        else:
            several = {(n,) for n in owners} if self.dimensions is None else {(n, d) for n in owners}
            recording = read_array(source, several | {(n * d,) for n in owners})
        if recording.width not in {n * d for n in owners}:
            expected = f"{owners[0] * d} (one a transition) or {owners[1] * d} (one a pair), separated by commas"
            raise InputError(recording.name, f"{recording.width} columns", expected)
        self.low, self.high = rescaling(recording, rescale)
        self.episodes = len(recording.rows)
        self._recording = recording
        self._by_pair = recording.width == owners[1] * d

    def _labels(self) -> list[list[str]]:
        """What the columns of a file may be called, by pairs or by transitions."""
        sk = self.skeleton
        pairs = [sk.pair_label(p) for p in range(sk.num_pairs)]
        transitions = [sk.transition_label(i) for i in range(sk.num_transitions)]
        if self.dimensions is None:
            return [pairs, transitions]
        return [[f"{label}:{j}" for label in names for j in range(self.dimensions)] for names in (pairs, transitions)]

    def _block(self, first: int, stop: int, policies: Policies | None) -> FloatArray:
        losses = (self._recording.read(first, stop) - self.low) / (self.high - self.low)
        if not self._by_pair:
            return losses
        pairs = losses.reshape(stop - first, self.skeleton.num_pairs, self.dimensions or 1)
        return np.repeat(pairs, np.diff(self.skeleton.transition_ptr), axis=1)


@compiled
def _add_noise(
    key: Key, start: Key, means: FloatArray, which: NDArray[np.int64], noise: float, losses: FloatArray
) -> None:
    """losses[b] = the mean of episode b of the block, with noise around it, drawn as it is needed."""
    count, width = losses.shape
    counts = counts_of(width)
    last = width - width % WORDS
    for b in range(count):
        row = which[b]
        if noise == 0.0:
            losses[b] = means[row]
            continue
        for j in range(0, last, WORDS):
            one, two, three, four = philox(key, start, b * counts + j // WORDS)
            losses[b, j] = _noisy(means[row, j], noise, one)
            losses[b, j + 1] = _noisy(means[row, j + 1], noise, two)
            losses[b, j + 2] = _noisy(means[row, j + 2], noise, three)
            losses[b, j + 3] = _noisy(means[row, j + 3], noise, four)
        words = philox(key, start, b * counts + last // WORDS)
        for j in range(last, width):
            losses[b, j] = _noisy(means[row, j], noise, words[j - last])


@compiled
def _noisy(mean: float, noise: float, word: np.uint64) -> float:
    """m + noise (2 u - 1) min(m, 1 - m)."""
    return mean + noise * (2.0 * to_uniform(word) - 1.0) * min(mean, 1.0 - mean)


def no_reaction() -> Reaction:
    """For losses that were there before the policies."""
    none, key = np.empty((0, 0)), np.zeros(2, np.uint64)
    return Reaction(frozen(none), 0.0, 0.0, key, key, none, 0, 0, none, np.empty((0, 0, 0)))


@compiled
def react(reaction: Reaction, b: int, policy: FloatArray, transition_ptr: NDArray[np.int64]) -> None:
    """Write the loss of episode b of the block, as :class:`Adaptive` does, and then take down its policy."""
    past = min(reaction.memory, reaction.played + b)
    losses, base = reaction.losses[b], reaction.base
    width = base.size
    counts = counts_of(width)
    words = philox(reaction.key, reaction.start, b * counts)
    for p in range(len(policy)):
        preferred = _preference(reaction, b, past, p)
        for i in range(transition_ptr[p], transition_ptr[p + 1]):
            for j in range(base.shape[1]):
                k = i * base.shape[1] + j
                if k % WORDS == 0:
                    words = philox(reaction.key, reaction.start, b * counts + k // WORDS)
                mean = (1.0 - reaction.strength) * base[i, j] + reaction.strength * preferred
                losses[i, j] = _noisy(mean, reaction.noise, words[k % WORDS]) if reaction.noise > 0.0 else mean
    reaction.policies[b] = policy


@compiled
def _preference(reaction: Reaction, b: int, past: int, p: int) -> float:
    """p_t(x, a): the mean of the last ``past`` policies, or the uniform one if there are none."""
    if past == 0:
        return float(reaction.before[0, p])
    total = 0.0
    for s in range(b - past, b):
        total += reaction.policies[s, p] if s >= 0 else reaction.before[len(reaction.before) + s, p]
    return total / past
