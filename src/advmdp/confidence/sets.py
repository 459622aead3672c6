"""Confidence sets: the rows P(.|x, a) that are consistent with the counts.

Section 4.1 of the paper: Delta(M, i) is the set of occupancy measures whose induced rows lie in

    C(x, a) = { p : || p - Pbar(.|x, a) ||_1 <= epsilon(x, a) }                                        (3)

:class:`L1Ball` is this set.  :class:`Box` bounds each probability separately, as empirical Bernstein bounds do.
:class:`Point` is known dynamics.  Radii may differ from pair to pair: a radius of 2 or more, or a centre of zeros (a
pair never visited, see docs/errata.md, item 5), is no constraint; a radius of 0 is a point.

A set is immutable.  :meth:`RowSet.bounds` checks it against a skeleton and computes what a projection needs
(:class:`RowSets`).  This is done once per set; a learner keeps a set for an epoch.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.core.arrays import FloatArray, exact_floats, floats, frozen, owned
from advmdp.core.errors import EmptySetError, InputError, ModelError
from advmdp.model.skeleton import Skeleton
from advmdp.model.tables import TOLERANCE

FREE = 2.0
"""At this radius an L1 ball around a distribution contains every other distribution."""

SMALLEST = 1e-300
"""A radius below this counts as 0, because half of it may underflow."""

ROUNDING = 1e-15
"""The rounding error allowed in a sum of bounds: lower bounds that sum to one within it leave a single row."""


class RowSets(NamedTuple):
    """C(x,a) for every pair, as kernels read it. `low` is the centre of an L1 ball or the lower bound of a box.

    Logarithms of zero are stored as zero: they are only ever multiplied by that zero. A radius of 2 or more means that
    the pair is unconstrained, a radius of 0 that the set is a single point, for boxes too.
    """

    is_box: bool
    blocking: bool  # whether some set forces an entry to zero
    radius: FloatArray
    low: FloatArray
    high: FloatArray
    log_low: FloatArray
    log_high: FloatArray


class RowSet(ABC):
    """A set C(x, a) for the row of every pair."""

    def __repr__(self) -> str:
        arrays = ", ".join(f"{name} of {len(array):,}" for name, array in vars(self).items())
        return f"{type(self).__name__}({arrays})"

    @abstractmethod
    def bounds(self, sk: Skeleton) -> RowSets:
        """Check the set against a skeleton, and prepare it for the kernels.

        Parameters
        ----------
        sk
            The skeleton.

        Returns
        -------
        RowSets
            What the kernels read.

        Raises
        ------
        InputError
            If an array does not fit, or if the set of a pair is empty.
        """

    @abstractmethod
    def some(self, sk: Skeleton) -> FloatArray:
        """Choose some row of the set for every pair.

        Parameters
        ----------
        sk
            The skeleton.

        Returns
        -------
        numpy.ndarray
            Rows, over transitions.
        """

    @abstractmethod
    def moved_inside(self, sk: Skeleton, rows: FloatArray) -> FloatArray:
        """Move rows that are close to the set into it.

        Parameters
        ----------
        sk
            The skeleton.
        rows
            Rows, over transitions, that are almost distributions and almost in the set.

        Returns
        -------
        numpy.ndarray
            Rows of the set close to them.
        """

    @abstractmethod
    def radii(self, sk: Skeleton) -> FloatArray:
        """Compute the largest distance of a row from the middle of the set, in L1 norm, for each pair.

        Parameters
        ----------
        sk
            The skeleton.

        Returns
        -------
        numpy.ndarray
            One radius for each pair: 0 is a single row, 2 no constraint.
        """


@dataclass(frozen=True, init=False, eq=False, repr=False)
class L1Ball(RowSet):
    """Rows within a distance of a centre, in L1 norm: the confidence set (3) of the paper.

    Parameters
    ----------
    center
        The centre of each row, over transitions. A row of zeros, for a pair never visited, means no constraint.
    radius
        The radius of each pair. From 2 on there is no constraint; 0 is a single row.

    Examples
    --------
    >>> import numpy as np
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> am.L1Ball(mdp.transition, np.full(mdp.skeleton.num_pairs, 0.1))
    L1Ball(center of 12, radius of 8)
    """

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
        # A pair with one successor has only one row, so it needs no constraint, and a point would slow the projection.
        radius = np.where((radius == 0.0) & (np.diff(sk.transition_ptr) == 1), FREE, radius)
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
        """Pairs with a centre; the others are unconstrained, whatever their radius."""
        return np.add.reduceat(self.center, sk.transition_ptr[:-1]) > 0.0


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Box(RowSet):
    """Rows between a lower and an upper bound, entry by entry.

    Parameters
    ----------
    lower
        The smallest probability of each transition.
    upper
        The largest probability of each transition.

    Examples
    --------
    >>> import numpy as np
    >>> import advmdp as am
    >>> sk = am.Skeleton.dense([1, 3, 1], actions=2)
    >>> am.Box(np.zeros(sk.num_transitions), np.ones(sk.num_transitions))  # no constraint
    Box(lower of 12, upper of 12)
    """

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
        upper = upper / sk.over_transitions(np.minimum(most, 1.0))  # the sum may fall short of one by rounding
        # Lower bounds that sum to one leave a single row. Any other box is used as it is, however thin.
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
        return np.minimum(np.add.reduceat(self.upper - self.lower, sk.transition_ptr[:-1]) / 2.0, FREE)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Point(RowSet):
    """Known dynamics: a single row for each pair.

    Parameters
    ----------
    transition
        The probability of each transition.

    Examples
    --------
    >>> import advmdp as am
    >>> am.Point(am.MDP.random([1, 3, 1], actions=2, seed=0).transition)
    Point(transition of 12)
    """

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


_NONE = np.empty(0)


def _normalised(sk: Skeleton, rows: FloatArray) -> FloatArray:
    """The rows divided by their sums."""
    quotient: FloatArray = rows / sk.over_transitions(np.add.reduceat(rows, sk.transition_ptr[:-1]))
    return quotient


def _distributions(sk: Skeleton, rows: FloatArray, name: str, expected: str) -> tuple[FloatArray, NDArray[np.bool_]]:
    """The rows, each normalised or all zero, and which of them are not zero."""
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
    if misses.max() > np.finfo(float).eps:  # larger errors would accumulate over hundreds of layers
        rows = rows / sk.over_transitions(np.where(visited, totals, 1.0))
    return rows, visited


def _row_sets(is_box: bool, blocking: bool, radius: FloatArray, low: FloatArray, high: FloatArray) -> RowSets:
    """Add the logarithms, and make all arrays read-only: kernels are compiled for one kind of array only."""
    logs = [np.log(bound, where=bound > 0.0, out=np.zeros_like(bound)) for bound in (low, high)]
    return RowSets(is_box, blocking, *(frozen(array) for array in (radius, low, high, *logs)))
