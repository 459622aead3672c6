"""Recent counts: estimates for worlds that drift, over a window or discounted, and how far they may be off.

In episode t the rows are P_t, and |P_t(.|x, a) - P_{t-1}(.|x, a)|_1 <= drift.  With weights w for the visits of (x, a)
in the last W episodes (a window: w = 1; a discount: w = discount^age),

    Pbar = sum w 1[x'] / N,   N = sum w,   V = sum w^2,   |E[Pbar] - P_t|_1 <= drift (mean age of the visits until t).

What is left is a sum of bounded martingale differences.  By Azuma's inequality for each of the 2^S - 2 sets of
successors, Weissman's radius holds with N^2 / V for N, if the logarithm has enough in the place of T:

    window      min(T, W) max(1, T - W + 1): numbers of visits, times first episodes of a window; T itself for W >= T.
    discount    T J, J = 1 + ceil(log2(1 / (1 - discount^2))): V is random, and may lie in any of J octaves above 1.
                Within an octave one exponent serves all V; that costs 2^(1/4) + 2^(-1/4) instead of 2 in the radius,
                so V counts as 1.031 max(1, V).

An epoch ends after W / 10 episodes at the latest (for a discount, W = 1 / (1 - discount)) as soon as drift or weights
make its set age, and the radius includes the drift until then.  A window as long as the game, without drift, changes
nothing, to the bit.
"""

from math import ceil, log, log2

import numpy as np
from numpy.typing import NDArray

from advmdp.confidence.counts import Counts
from advmdp.confidence.pooling import Kinds
from advmdp.confidence.radii import confidence_set
from advmdp.confidence.sets import L1Ball, RowSet
from advmdp.core.arrays import MOST, FloatArray, fraction, integers, is_number, whole
from advmdp.core.errors import InputError
from advmdp.model.skeleton import Skeleton

Ints = NDArray[np.int64]
PATHS, CLOCK = "recent_paths", "recent_clock"
"""The names of the arrays of a state."""
DRIFTING = ("l1", "weissman", "pointwise")
"""Sets whose radius is proven for rows that change, and the one that promises nothing."""
FORGOTTEN = 1e-16
"""Visits that weigh less are left out."""
REFRESH = 10
"""A set ages by at most this part of the window."""
OCTAVE = ((2.0**0.25 + 2.0**-0.25) / 2.0) ** 2
"""What a range of 2 for V costs."""


class Recent:
    """The paths of the last episodes, each of which is a row of transitions, -1 for steps that are not known."""

    def __init__(self, sk: Skeleton, window: int | None, discount: float | None, drift: float) -> None:
        self.sk, self.window, self.discount, self.drift = sk, window, discount, drift
        self.typical = float(window) if window is not None else 1.0 / (1.0 - (discount or 0.0))
        self.kept = window if window is not None else ceil(log(FORGOTTEN) / log(discount or 0.0))
        self.cap = max(1, int(self.typical) // REFRESH)
        self.chunks: list[Ints] = [np.empty((0, sk.num_steps), np.int64)]
        self.clock = self.since = 0
        self._estimate()

    def add(self, paths: Ints) -> None:
        """Count paths, a row each."""
        self.chunks.append(paths.copy())
        self.clock, self.since = self.clock + len(paths), self.since + len(paths)

    @property
    def ages(self) -> bool:
        """Whether an old visit says less than a new one."""
        return self.drift > 0.0 or self.discount is not None

    @property
    def left(self) -> int:
        """After how many more episodes the epoch ends at the latest; -1 for never."""
        return max(1, self.cap - self.since, 0 if self.ages else self.kept + 1 - self.clock)

    def recount(self, counts: Counts) -> None:
        """Begin the next epoch with what was counted in the last episodes."""
        self.since = 0
        self.chunks = [np.concatenate(self.chunks)[-self.kept :]]
        self._estimate()
        counts.epoch += 1
        taken = self.chunks[0][self.chunks[0] >= 0]
        counts.seen[:] = np.bincount(taken, minlength=self.sk.num_transitions)
        counts.visits[:] = np.add.reduceat(counts.seen, self.sk.transition_ptr[:-1])
        counts.new_visits[:] = counts.new_seen[:] = 0

    def _estimate(self) -> None:
        """N, V, the weights of transitions and the ages of pairs, as the epoch begins."""
        sk, paths = self.sk, np.concatenate(self.chunks)
        paths = paths[: len(paths) - self.since][-self.kept :]
        ages = np.repeat(np.arange(len(paths), 0, -1.0), sk.num_steps)
        taken, known = paths.ravel(), paths.ravel() >= 0
        taken, ages = taken[known], ages[known]
        weights = np.ones(len(taken)) if self.discount is None else self.discount ** (ages - 1.0)

        def over_pairs(values: FloatArray) -> FloatArray:
            summed = np.bincount(taken, values, minlength=sk.num_transitions)
            return np.add.reduceat(summed, sk.transition_ptr[:-1])

        self.total, self.squares = over_pairs(weights), over_pairs(weights * weights)
        self.seen = np.bincount(taken, weights, minlength=sk.num_transitions)
        self.age = over_pairs(weights * ages) / np.where(self.total > 0.0, self.total, 1.0)

    def confidence_set(
        self,
        name: str,
        counts: Counts,
        horizon: int | None,
        delta: float,
        scale: float,
        kinds: Kinds | None,
        possible: bool,
    ) -> RowSet:
        """The set of that name for all episodes of the epoch; see :func:`advmdp.confidence.confidence_set`."""
        sk, known = self.sk, counts
        if self.discount is not None:
            share = self.total / (OCTAVE * np.maximum(1.0, self.squares))
            share = np.where(self.total * share < 1.0, 0.0, share)  # less than one visit says nothing
            known = Counts(sk)
            known.visits, known.seen = self.total * share, self.seen * sk.over_transitions(share)  # type: ignore[assignment]
        times = None if self._is_whole(horizon) else self._times(counts, horizon)
        made = confidence_set(name, sk, known, horizon, delta, scale, kinds, possible, times)
        if self.drift > 0.0 and isinstance(made, L1Ball):
            made = L1Ball(made.center, made.radius + self.drift * (self.age + self.cap - 1.0))
        return made

    def _is_whole(self, horizon: int | None) -> bool:
        """Whether the window has all episodes so far, and will have all of the game."""
        return self.window is not None and self.window >= (self.clock - self.since if horizon is None else horizon)

    def _times(self, counts: Counts, horizon: int | None) -> FloatArray | float:
        """What the logarithm has in the place of T."""
        begun = max(1, self.clock - self.since)
        if self.discount is not None:
            octaves = 1.0 + ceil(log2(1.0 / (1.0 - self.discount**2)))
            return octaves * (begun * (begun + 1.0) if horizon is None else horizon)
        if horizon is not None:
            return float(min(horizon, self.kept)) * max(1, horizon - self.kept + 1)
        visits, start = np.maximum(1.0, counts.visits), begun - self.kept + 1.0
        return visits * (visits + 1.0) * (start * (start - 1.0) if start > 1.0 else 1.0)

    def state(self) -> dict[str, Ints]:
        """As arrays."""
        return {PATHS: np.concatenate(self.chunks), CLOCK: np.array([self.clock, self.since])}

    def restore(self, paths: NDArray[np.generic], clock: NDArray[np.generic]) -> None:
        """Take over what :meth:`state` gave, checked."""
        steps, n = self.sk.num_steps, self.sk.num_transitions
        fits = paths.dtype == np.int64 and paths.ndim == 2 and paths.shape[1] == steps
        at = integers(clock, CLOCK).tolist()
        if not fits or (paths.size and not (paths.min() >= -1 and paths.max() < n)):
            raise InputError(PATHS, f"an array of shape {paths.shape}", f"paths of {steps} transitions below {n}")
        if len(at) != 2 or not 0 <= at[1] <= len(paths) <= at[0] <= MOST:
            raise InputError(CLOCK, f"{at}", f"how many paths were counted, {len(paths)} or more, and since when")
        self.chunks, (self.clock, self.since) = [paths.astype(np.int64)], at
        self._estimate()


def recent_counts(
    sk: Skeleton, window: int | None, discount: float | None, drift: float, confidence: str, kinds: Kinds | None
) -> Recent | None:
    """The recent counts that these parameters of a learner ask for; none if they ask for nothing."""
    if not is_number(drift) or not 0.0 <= drift <= 2.0:
        raise InputError("drift", f"{drift!r}", "a number from 0 to 2, the most that a row changes per episode")
    if window is None and discount is None:
        if drift > 0.0:
            raise InputError("drift", f"{drift:g}, without a window or a discount", "one of them as well")
        return None
    if window is not None and discount is not None:
        raise InputError("window", "both a window and a discount", "one of them")
    if window is not None:
        whole("window", window, 1, MOST)
    elif not 0.0 < fraction("discount", 0.0 if discount is None else discount) < 1.0:
        raise InputError("discount", f"{discount!r}", "a number above 0 and below 1")
    if (drift > 0.0 or discount is not None) and confidence not in DRIFTING:
        raise InputError("confidence", f"{confidence!r} with drift or a discount", f"one of {', '.join(DRIFTING)}")
    if kinds is not None and discount is not None:
        raise InputError("kinds", "labels, with a discount", "a window, or no kinds")
    return Recent(sk, window, discount, float(drift))
