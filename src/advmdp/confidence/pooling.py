"""Pooled priors, which transfer what was learned about some pairs to other pairs of the same kind.

Pairs of one kind have the same number of successors in the same roles.  For example, a packet "arrives" or "is lost" on
every link of a network.  If each pair has a label, pairs with the same label are of one kind, and their j-th
transitions correspond.  If the order of their transitions differs, give each transition a label that names its role;
pairs whose rows have the same labels are then of one kind.

Rows of one kind are modelled as draws from one distribution, with mean p and variance tau^2 summed over the entries.
With s^2 the variance of a single visit within a row, also summed over the entries,

    m = s^2 / tau^2        [= p (1 - p) / tau^2 - 1, for s^2 + tau^2 = p (1 - p)]

is the number of visits that the prior is worth: if rows are Dirichlet, the prior is Dirichlet(m p).  The method of
moments works without this assumption (Buhlmann & Straub 1970).  With N_i visits of pair i, n_ij of them to its j-th
successor, X_ij = n_ij / N_i, N = sum_i N_i, K visited pairs, and pbar_j = sum_i n_ij / N,

    within      s^2   = sum_ij N_i X_ij (1 - X_ij) / (N - K)
    between     B     = sum_ij N_i (X_ij - pbar_j)^2 / (K - 1),   n_0 = (N - sum_i N_i^2 / N) / (K - 1)

The first is an unbiased estimate of s^2, and (B - s^2) / n_0 is one of tau^2.  With few pairs the second is poor.  If
rows are alike it is negative half of the time, and the rows would count as identical although little is known.  We
therefore add the standard error of a mean square with K - 1 degrees of freedom, just as radii have one standard
deviation:

    tau^2 = max(0, B - s^2 + max(B, s^2) sqrt(2 / (K - 1))) / n_0

In simulations with Dirichlet rows, sets without this term covered as few as 54% of the rows in some settings.  With it,
they covered at least two thirds in all settings, like the sets of unpooled rows.

The prior of pair i uses the *other* pairs of its kind only, so that no visit counts twice.  Pair l counts as
w_l = N_l m / (N_l + m) visits, at most m however often it was visited: one row tells only so much about other rows.

    pooled_i    = sum over l != i of w_l X_l / W_i,                 W_i = sum over l != i of w_l
    1 / m_i     = 1 / m + 1 / W_i           [how far a row is from p, and how far the pooled estimate is from p]

So m_i is at most the number of visits of the other pairs.  It equals that number if rows do not differ at all; the
centre (n + m_i pooled_i) / (N_i + m_i) is then the mean over the kind.  A pair alone in its kind has m_i = 0.

tau^2 cannot be estimated if fewer than two pairs were visited, or none of them twice.  Then m = 1: the prior is worth
one visit, as much as the uniform prior of every row.  If each pair always led to the same successor, but different
pairs to different ones, m is almost 0 and an untried pair is unconstrained.
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
"""1 / m if the visits do not show how much rows differ."""
LEAST_STRENGTH = 1e-9
"""Used instead of m = 0 if rows differ but do not vary: so small that an untried pair is unconstrained."""


@dataclass(frozen=True, eq=False)
class Kinds:
    """A checked partition of the pairs into kinds."""

    labels: tuple[int, ...]
    """The label of each pair, or of each transition, as given."""
    kind: Ints
    """The kind of each pair, from 0."""
    slot: Ints
    """The index of each transition in vectors over the successors of all kinds."""
    kind_of_slot: Ints

    @classmethod
    def of(cls, sk: Skeleton, labels: ArrayLike) -> "Kinds":
        """Kinds from a label for each pair or each transition; see the module's docstring."""
        given = _checked(sk, labels)
        by_pair = len(given) == sk.num_pairs
        _, first, kind = np.unique(given, return_index=True, return_inverse=True) if by_pair else _by_roles(sk, given)
        widths = np.diff(sk.transition_ptr)
        if (odd := widths != widths[first][kind]).any():
            p = int(np.argmax(odd))
            other = int(first[kind[p]])
            expected = f"{widths[other]}, like {sk.where_pair(other)}, which is of the same kind"
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
        """For each pair, the pooled row of the others of its kind, and m_i, the visits that this row is worth."""
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
        """1 / m = tau^2 / s^2 of each kind: 0 if its rows are alike."""
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
    """The transitions, sorted by label within each pair."""
    return np.lexsort((labels, sk.over_transitions(np.arange(sk.num_pairs))))


def _by_roles(sk: Skeleton, labels: Ints) -> tuple[Ints, Ints, Ints]:
    """The kinds, the first pair of each, and the kind of each pair; pairs with the same labels are of one kind."""
    ordered = labels[_in_rows(sk, labels)]
    twice = np.flatnonzero((np.diff(ordered) == 0) & (np.diff(sk.over_transitions(np.arange(sk.num_pairs))) == 0))
    if len(twice):
        pair = int(np.searchsorted(sk.transition_ptr, twice[0], side="right")) - 1
        given = f"{ordered[twice[0]]} twice"
        raise InputError(f"kinds of the transitions of {sk.where_pair(pair)}", given, "a different label for each")
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
