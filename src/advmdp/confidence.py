"""Confidence sets: where the rows P(.|x, a) may lie.

Section 4.1 of the paper: Delta(M, i) is the set of occupancy measures whose induced rows lie in

    C(x, a) = { p : || p - Pbar(.|x, a) ||_1 <= epsilon(x, a) }                                        (3)

:class:`L1Ball` is this set.  :class:`Box` bounds each probability on its own, as empirical Bernstein bounds do.
:class:`Point` is known dynamics.  Tightness may differ from pair to pair: a radius of 2 or more, or a centre of zeros
(a pair never visited, see docs/errata.md, item 5), is no constraint; a radius of 0 is a point.

Where the sets come from: :class:`Counts` keeps the counters of Algorithm 2, N_i(x, a) and M_i(x'|x, a) up to the start
of epoch i and n_i, m_i within it.  :func:`l1_set` and :func:`bernstein_set` make of them

    Pbar = M / max(1, N),   epsilon(x, a) = sqrt(2 S ln(T|X||A|/delta) / max(1, N)),  S = |X_{k+1}| or fewer,
    epsilon(x'|x, a) = 2 sqrt(Pbar u / max(1, N-1)) + 14 u / (3 max(1, N-1)),  u = ln(T|X||A|/delta)

A set is a value.  What a projection needs of it is checked against the skeleton and worked out once, by
:meth:`RowSet.bounds`, and serves for as long as the set does, which for a learner is an epoch.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.arrays import FloatArray, exact_floats, floats, frozen, owned
from advmdp.compiled import compiled
from advmdp.errors import EmptySetError, InputError, ModelError
from advmdp.projection.types import RowSets
from advmdp.skeleton import Skeleton
from advmdp.tables import TOLERANCE

__all__ = ["Box", "Counts", "L1Ball", "Point", "RowSet", "bernstein_set", "count_path", "l1_set", "tally"]

Integers = NDArray[np.int64]

FREE = 2.0
"""A radius at which an L1 ball around a distribution holds every other distribution."""

SMALLEST = 1e-300
"""A radius below this is 0: half of it may be."""

ROUNDING = 1e-15
"""What rounding may do to a sum of bounds: lower bounds that sum to one but for this leave a single row."""


class RowSet(ABC):
    """A set C(x, a) for the row of every pair."""

    def __repr__(self) -> str:
        arrays = ", ".join(f"{name} of {len(array):,}" for name, array in vars(self).items())
        return f"{type(self).__name__}({arrays})"

    @abstractmethod
    def bounds(self, sk: Skeleton) -> RowSets:
        """Checked against the skeleton, and ready for the kernels."""

    @abstractmethod
    def some(self, sk: Skeleton) -> FloatArray:
        """Some row of the set for every pair, for pairs about which nothing else can be said."""

    @abstractmethod
    def moved_inside(self, sk: Skeleton, rows: FloatArray) -> FloatArray:
        """Rows of the set close to ``rows``, which need only be close to it and to distributions."""

    @abstractmethod
    def radii(self, sk: Skeleton) -> FloatArray:
        """How far, in L1 norm, rows of the set may be from its middle, pair by pair: 0 a point, 2 no constraint."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class L1Ball(RowSet):
    """Rows within ``radius[p]`` of ``center``, in L1 norm: the paper's confidence set (3)."""

    center: FloatArray
    radius: FloatArray

    def __init__(self, center: ArrayLike, radius: ArrayLike) -> None:
        object.__setattr__(self, "center", owned(floats(center, "center")))
        object.__setattr__(self, "radius", owned(floats(radius, "radius")))

    def bounds(self, sk: Skeleton) -> RowSets:
        center = exact_floats(self.center, "center", (sk.num_transitions,))
        radius = exact_floats(self.radius, "radius", (sk.num_pairs,))
        if not (radius >= 0.0).all():
            p = int(np.argmax(~(radius >= 0.0)))
            raise InputError(f"radius of {sk.where_pair(p)}", f"{radius[p]}", "0 or more")
        center, visited = _distributions(sk, center, "center", "1 (to nine digits), or all 0")
        radius = np.where(visited, np.where(radius < SMALLEST, 0.0, np.minimum(radius, FREE)), FREE)
        return _row_sets(False, bool((radius == 0.0).any()), radius, center, _NONE)

    def some(self, sk: Skeleton) -> FloatArray:
        widths = np.diff(sk.transition_ptr)
        totals = np.where(self._visited(sk), np.add.reduceat(self.center, sk.transition_ptr[:-1]), 1.0)
        center = self.center / sk.over_transitions(totals)
        return np.where(sk.over_transitions(self._visited(sk)), center, sk.over_transitions(1.0 / widths))

    def moved_inside(self, sk: Skeleton, rows: FloatArray) -> FloatArray:
        p, center = _normalised(sk, rows), self.some(sk)
        distance = np.add.reduceat(np.abs(p - center), sk.transition_ptr[:-1])
        beyond = distance > np.maximum(self.radii(sk), SMALLEST)
        keep = np.where(beyond, self.radii(sk) / np.where(beyond, distance, 1.0), 1.0)
        return center + sk.over_transitions(keep) * (p - center)

    def radii(self, sk: Skeleton) -> FloatArray:
        return np.where(self._visited(sk), np.minimum(self.radius, FREE), FREE)

    def _visited(self, sk: Skeleton) -> NDArray[np.bool_]:
        """Pairs with a centre: the others are free, whatever their radius."""
        return np.add.reduceat(self.center, sk.transition_ptr[:-1]) > 0.0


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Box(RowSet):
    """Rows between ``lower`` and ``upper``, entry by entry."""

    lower: FloatArray
    upper: FloatArray

    def __init__(self, lower: ArrayLike, upper: ArrayLike) -> None:
        object.__setattr__(self, "lower", owned(floats(lower, "lower")))
        object.__setattr__(self, "upper", owned(floats(upper, "upper")))

    def bounds(self, sk: Skeleton) -> RowSets:
        lower = exact_floats(self.lower, "lower", (sk.num_transitions,))
        upper = exact_floats(self.upper, "upper", (sk.num_transitions,))
        if (bad := ~((lower >= 0.0) & (lower <= upper))).any():
            i = int(np.argmax(bad))
            given = f"lower {lower[i]}, upper {upper[i]}"
            raise InputError(f"box at {sk.where_transition(i)}", given, "0 <= lower <= upper")
        first = sk.transition_ptr[:-1]
        lower, upper = lower.copy(), np.minimum(upper, 1.0)
        least, most = np.add.reduceat(lower, first), np.add.reduceat(upper, first)
        if (empty := (least > 1.0 + TOLERANCE) | (most < 1.0 - TOLERANCE)).any():
            p = int(np.argmax(empty))
            given = f"lower bounds that sum to {least[p]:.12g} and upper bounds that sum to {most[p]:.12g}"
            raise EmptySetError(f"box of {sk.where_pair(p)}", given, "sums on either side of 1")
        upper = upper / sk.over_transitions(np.minimum(most, 1.0))  # which may miss one by rounding
        # Lower bounds that sum to one leave a single row. Any other box is taken as it is, however thin.
        single = least >= 1.0 - ROUNDING
        row = lower / sk.over_transitions(np.where(single, least, 1.0))
        lower = np.where(sk.over_transitions(single), row, lower)
        upper = np.where(sk.over_transitions(single), row, np.maximum(upper, lower))
        free = np.logical_and.reduceat((lower <= 0.0) & (upper >= 1.0), first)
        point = np.logical_and.reduceat(lower == upper, first)
        radius = np.where(point, 0.0, np.where(free, FREE, 1.0))
        blocking = bool((upper == 0.0).any() or point.any())
        return _row_sets(True, blocking, radius, lower, upper)

    def some(self, sk: Skeleton) -> FloatArray:
        first = sk.transition_ptr[:-1]
        room = np.minimum(self.upper, 1.0) - self.lower
        missing, total = 1.0 - np.add.reduceat(self.lower, first), np.add.reduceat(room, first)
        return self.lower + room * sk.over_transitions(missing / np.where(total > 0.0, total, 1.0))

    def moved_inside(self, sk: Skeleton, rows: FloatArray) -> FloatArray:
        first, upper = sk.transition_ptr[:-1], np.minimum(self.upper, 1.0)
        p = np.clip(rows, self.lower, upper)
        missing = sk.over_transitions(1.0 - np.add.reduceat(p, first))
        room = np.where(missing > 0.0, upper - p, p - self.lower) * (rows > 0.0)
        total = sk.over_transitions(np.add.reduceat(room, first))
        moved: FloatArray = p + missing * np.divide(room, total, where=total > 0.0, out=np.zeros_like(p))
        return np.clip(moved, self.lower, upper)

    def radii(self, sk: Skeleton) -> FloatArray:
        """Half the widths summed: what they allow at most."""
        return np.minimum(np.add.reduceat(self.upper - self.lower, sk.transition_ptr[:-1]) / 2.0, FREE)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Point(RowSet):
    """Known dynamics: every row is the one given."""

    transition: FloatArray

    def __init__(self, transition: ArrayLike) -> None:
        object.__setattr__(self, "transition", owned(floats(transition, "transition")))

    def bounds(self, sk: Skeleton) -> RowSets:
        given = exact_floats(self.transition, "transition", (sk.num_transitions,))
        rows, known = _distributions(sk, given, "transition", "1 (to nine digits)")
        if not known.all():
            where = sk.where_pair(int(np.argmin(known)))
            raise ModelError("rows sum to one", where, "a row of zeros", "a distribution")
        return _row_sets(False, True, np.zeros(sk.num_pairs), rows, _NONE)

    def some(self, sk: Skeleton) -> FloatArray:
        return _normalised(sk, self.transition)

    def moved_inside(self, sk: Skeleton, rows: FloatArray) -> FloatArray:
        return self.some(sk)

    def radii(self, sk: Skeleton) -> FloatArray:
        return np.zeros(sk.num_pairs)


class Counts:
    """The counters of Algorithm 2: N_i, M_i (``visits``, ``seen``) before the epoch, n_i, m_i (``new_...``) in it."""

    def __init__(self, sk: Skeleton) -> None:
        self.epoch = 1
        self.visits, self.new_visits = np.zeros(sk.num_pairs, np.int64), np.zeros(sk.num_pairs, np.int64)
        self.seen, self.new_seen = np.zeros(sk.num_transitions, np.int64), np.zeros(sk.num_transitions, np.int64)

    def next_epoch(self) -> None:
        """What was counted in the epoch joins the totals."""
        self.epoch += 1
        for old, new in ((self.visits, self.new_visits), (self.seen, self.new_seen)):
            np.add(old, new, out=old)
            new[:] = 0

    def center(self, sk: Skeleton) -> FloatArray:
        """Pbar, a row of zeros where a pair was never visited."""
        visits: FloatArray = np.maximum(1.0, self.visits)
        return np.divide(self.seen, sk.over_transitions(visits))


@compiled
def count_path(
    visits: Integers, new_visits: Integers, new_seen: Integers, pairs: Integers, transitions: Integers
) -> bool:
    """Count the pairs and transitions of a trajectory; whether one of its pairs has doubled its visits."""
    over = False
    for k in range(len(pairs)):
        new_visits[pairs[k]] += 1
        new_seen[transitions[k]] += 1
        over = over or new_visits[pairs[k]] >= max(1, visits[pairs[k]])
    return over


@compiled
def tally(
    transition_ptr: Integers, visits: Integers, seen: Integers, estimate: FloatArray, pairs: Integers,
    transitions: Integers,
) -> None:  # fmt: skip
    """Count a trajectory, and bring Pbar up to date at once, for learners without epochs."""
    for k in range(len(pairs)):
        p = pairs[k]
        visits[p] += 1
        seen[transitions[k]] += 1
        for i in range(transition_ptr[p], transition_ptr[p + 1]):
            estimate[i] = seen[i] / visits[p]


def l1_set(sk: Skeleton, counts: Counts, log_term: FloatArray | float, scale: float, possible: bool) -> L1Ball:
    """The set of Section 4.1, radii times ``scale``; S counts the ``possible`` successors or the whole next layer."""
    over = np.diff(sk.transition_ptr) if possible else np.repeat(sk.layer_sizes[1:], np.diff(sk.layer_pair_ptr))
    radius = scale * np.sqrt(2.0 * over * log_term / np.maximum(1, counts.visits))
    return L1Ball(counts.center(sk), radius)


def bernstein_set(sk: Skeleton, counts: Counts, log_term: FloatArray | float, scale: float) -> Box:
    """Empirical Bernstein bounds on each probability on its own, their widths times ``scale``."""
    center, fewer = counts.center(sk), np.maximum(1, counts.visits - 1)
    u = sk.over_transitions(np.broadcast_to(log_term, fewer.shape) / fewer)
    width = scale * (2.0 * np.sqrt(center * u) + 14.0 / 3.0 * u)
    width = np.where(sk.over_transitions(counts.visits == 0), 1.0, width)
    return Box(np.maximum(0.0, center - width), np.minimum(1.0, center + width))


_NONE = np.empty(0)


def _normalised(sk: Skeleton, rows: FloatArray) -> FloatArray:
    """The rows divided by their sums."""
    quotient: FloatArray = rows / sk.over_transitions(np.add.reduceat(rows, sk.transition_ptr[:-1]))
    return quotient


def _distributions(sk: Skeleton, rows: FloatArray, name: str, expected: str) -> tuple[FloatArray, NDArray[np.bool_]]:
    """The rows, freed of rounding, each a distribution or all zero, and which of them are not zero."""
    if (bad := ~(rows >= 0.0)).any():
        i = int(np.argmax(bad))
        raise InputError(f"{name} at {sk.where_transition(i)}", f"{rows[i]}", "a number from 0 to 1")
    totals: FloatArray = np.add.reduceat(rows, sk.transition_ptr[:-1])
    visited = totals > 0.0
    misses = np.where(visited, np.abs(totals - 1.0), 0.0)
    if (bad := ~(misses <= TOLERANCE)).any():
        p = int(np.argmax(bad))
        where = f"{name} of {sk.where_pair(p)}"
        raise ModelError("rows sum to one", where, f"a sum of {totals[p]:.12g}", expected)
    if misses.max() > np.finfo(float).eps:  # over hundreds of layers more would add up
        rows = rows / sk.over_transitions(np.where(visited, totals, 1.0))
    return rows, visited


def _row_sets(is_box: bool, blocking: bool, radius: FloatArray, low: FloatArray, high: FloatArray) -> RowSets:
    """With logarithms, and all arrays read-only: kernels are compiled for one kind of array, not for every mixture."""
    logs = [np.log(bound, where=bound > 0.0, out=np.zeros_like(bound)) for bound in (low, high)]
    return RowSets(is_box, blocking, *(frozen(array) for array in (radius, low, high, *logs)))
