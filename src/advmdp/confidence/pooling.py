"""Pooled priors: what pairs of one kind say about each other.

Pairs of one kind have the same number of successors in the same roles, as "arrives" and "is lost" are for all links of
a network.  A label for each pair says that the j-th transitions of pairs with the same label correspond.  Where their
order differs, a label for each transition names its role; pairs whose rows have the same labels are of one kind.  Rows
of one kind are taken for draws of one distribution, of mean p and variance tau^2 summed over the entries.  With s^2 the
variance of a single visit within a row, summed as well,

    m = s^2 / tau^2        [= p (1 - p) / tau^2 - 1, for s^2 + tau^2 = p (1 - p)]

says how many visits what is known of the kind is worth: if rows are Dirichlet, it is Dirichlet(m p).  The method of
moments needs no such law (Buhlmann & Straub 1970).  With N_i visits of pair i, n_ij of them to its j-th successor,
X_ij = n_ij / N_i, N = sum_i N_i, K pairs visited, and pbar_j = sum_i n_ij / N,

    within      s^2   = sum_ij N_i X_ij (1 - X_ij) / (N - K)
    between     B     = sum_ij N_i (X_ij - pbar_j)^2 / (K - 1),   n_0 = (N - sum_i N_i^2 / N) / (K - 1)

s^2 is unbiased, and so is (B - s^2) / n_0 of tau^2.  Of few pairs that is a poor estimate, and below 0 half of the time
where rows are alike: they would be taken for one row because nothing is known.  So the standard error of a mean square
of K - 1 degrees goes on top, as radii have one standard deviation, and

    tau^2 = max(0, B - s^2 + max(B, s^2) sqrt(2 / (K - 1))) / n_0

In simulations with Dirichlet rows, sets without it held as few as 54% of the rows in some settings; with it, at least
two thirds in all of them, as the sets of rows by themselves do.

Pair i is told of the *other* pairs of its kind only, so that no visit counts twice.  Pair l counts as
w_l = N_l m / (N_l + m) visits, no more than m however often it was visited: a row says no more of other rows.

    pooled_i    = sum over l != i of w_l X_l / W_i,                 W_i = sum over l != i of w_l
    1 / m_i     = 1 / m + 1 / W_i           [how far a row is from p, and how far the pooled estimate is from p]

Hence m_i is below the visits of the other pairs, and it is their number where rows do not differ at all: the pair's
centre (n + m_i pooled_i) / (N_i + m_i) is then the mean over the kind.  A pair alone in its kind has m_i = 0.

tau^2 cannot be estimated when fewer than two pairs were visited, or none of them twice.  Then m = 1: what is known of
the kind is worth one visit, as much as the uniform prior of every row.  Where visits of a pair never differed, and
pairs did, m is next to 0, and an untried pair is free.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.confidence.counts import Counts
from advmdp.core.arrays import FloatArray, integers
from advmdp.core.errors import InputError
from advmdp.model.skeleton import Skeleton

Ints = NDArray[np.int64]
NOT_KNOWN = 1.0
"""1 / m where visits do not say how much rows differ."""
LEAST_STRENGTH = 1e-9
"""What stands for m = 0 where rows differ and do not vary: so little that an untried pair is free."""


@dataclass(frozen=True, eq=False)
class Kinds:
    """Pairs of one kind, checked."""

    labels: tuple[int, ...]
    """The label of each pair, or of each transition, as given."""
    kind: Ints
    """The kind of each pair, from 0."""
    slot: Ints
    """The place of each transition in vectors over the successors of kinds."""
    kind_of_slot: Ints

    @classmethod
    def of(cls, sk: Skeleton, labels: ArrayLike) -> "Kinds":
        """From a label for each pair or for each transition; see the head of this module."""
        given = _checked(sk, labels)
        by_pair = len(given) == sk.num_pairs
        _, first, kind = np.unique(given, return_index=True, return_inverse=True) if by_pair else _by_roles(sk, given)
        widths = np.diff(sk.transition_ptr)
        if (odd := widths != widths[first][kind]).any():
            p = int(np.argmax(odd))
            other = int(first[kind[p]])
            expected = f"{widths[other]}, as {sk.where_pair(other)}, which is of the same kind, has"
            raise InputError(f"kind {given[p]} of {sk.where_pair(p)}", f"{widths[p]} successors", expected)
        starts = np.concatenate([[0], np.cumsum(widths[first])])
        role = np.arange(sk.num_transitions) - sk.over_transitions(sk.transition_ptr[:-1])
        if not by_pair:
            order, ranks = _in_rows(sk, given), role
            role = np.empty_like(ranks)
            role[order] = ranks
        slot = sk.over_transitions(starts[kind]) + role
        return cls(tuple(given.tolist()), kind, slot, np.repeat(np.arange(len(first)), widths[first]))

    def prior(self, sk: Skeleton, counts: Counts) -> tuple[FloatArray, FloatArray]:
        """For each pair the pooled estimate of the others of its kind, a row, and m_i, the visits that it is worth."""
        visits, rows = counts.visits.astype(np.float64), counts.center(sk)
        differ = self._differences(sk, visits, rows)[self.kind]
        worth = visits / (1.0 + visits * differ)  # w
        others = np.maximum(0.0, self._over_kinds(worth)[self.kind] - worth)  # W
        weighed = sk.over_transitions(worth) * rows
        pooled = np.maximum(0.0, _sums(self.slot, weighed)[self.slot] - weighed)
        total = np.add.reduceat(pooled, sk.transition_ptr[:-1])
        pooled /= sk.over_transitions(np.where(total > 0.0, total, 1.0))
        return pooled, others / (1.0 + others * differ)

    def _differences(self, sk: Skeleton, visits: FloatArray, rows: FloatArray) -> FloatArray:
        """1 / m = tau^2 / s^2 of each kind: 0 where its rows are alike."""
        total, tried = self._over_kinds(visits), self._over_kinds(visits > 0)
        known = (tried >= 2) & (total > tried)
        degrees, all_visits = np.where(known, tried - 1.0, 1.0), np.maximum(1.0, total)
        over = sk.over_transitions(visits)
        mean = _sums(self.slot, over * rows) / all_visits[self.kind_of_slot]
        within = self._over_slots(over * rows * (1.0 - rows)) / np.where(known, total - tried, 1.0)
        between = self._over_slots(over * (rows - mean[self.slot]) ** 2) / degrees
        per_pair = (total - self._over_kinds(visits**2) / all_visits) / degrees  # n_0
        error = np.maximum(between, within) * np.sqrt(2.0 / degrees)
        tau = np.maximum(0.0, between - within + error) / np.where(known, per_pair, 1.0)
        ratio = np.divide(tau, np.maximum(within, LEAST_STRENGTH * tau), where=tau > 0.0, out=np.zeros_like(tau))
        return np.where(known, ratio, NOT_KNOWN)

    def _over_kinds(self, values: NDArray[np.generic]) -> FloatArray:
        """Sums over the pairs of each kind."""
        return _sums(self.kind, values)

    def _over_slots(self, values: FloatArray) -> FloatArray:
        """Sums over the transitions of each kind."""
        return _sums(self.kind_of_slot, _sums(self.slot, values))


def _sums(places: Ints, values: NDArray[np.generic]) -> FloatArray:
    """The sum of the values at each place."""
    return np.bincount(places, values).astype(np.float64, copy=False)


def _in_rows(sk: Skeleton, labels: Ints) -> Ints:
    """The transitions, those of each pair in the order of their labels."""
    return np.lexsort((labels, sk.over_transitions(np.arange(sk.num_pairs))))


def _by_roles(sk: Skeleton, labels: Ints) -> tuple[Ints, Ints, Ints]:
    """Kinds, the first pair of each, and the kind of each pair: pairs whose transitions have the same labels."""
    ordered = labels[_in_rows(sk, labels)]
    twice = np.flatnonzero((np.diff(ordered) == 0) & (np.diff(sk.over_transitions(np.arange(sk.num_pairs))) == 0))
    if len(twice):
        pair = int(np.searchsorted(sk.transition_ptr, twice[0], side="right")) - 1
        given = f"{ordered[twice[0]]} twice"
        raise InputError(f"kinds of the transitions of {sk.where_pair(pair)}", given, "a label of its own for each")
    numbers: dict[bytes, int] = {}
    rows = [ordered[a:b].tobytes() for a, b in pairwise(sk.transition_ptr.tolist())]
    kind = np.array([numbers.setdefault(row, len(numbers)) for row in rows], np.int64)
    found, first = np.unique(kind, return_index=True)
    return found, first, kind


def _checked(sk: Skeleton, labels: ArrayLike) -> Ints:
    """A whole number for each pair, or for each transition."""
    if isinstance(labels, list | tuple):
        by_pair = len(labels) != sk.num_transitions
        for p, label in enumerate(labels[: sk.num_pairs if by_pair else None]):
            if isinstance(label, bool) or not isinstance(label, int | np.integer):
                where = f"kind of {sk.where_pair(p)}" if by_pair else f"kind of transition {p}"
                raise InputError(where, f"{label!r}", "a whole number, the label of its kind")
    given = integers(labels, "kinds")
    if len(given) not in (sk.num_pairs, sk.num_transitions):
        expected = f"{sk.num_pairs}, one for each pair, or {sk.num_transitions}, one for each transition"
        raise InputError("kinds", f"{len(given)} labels", expected)
    return given
