"""Confidence sets from counters: how far the estimates may be from the truth.

Pbar = M / max(1, N), S is the number of possible successors, and u = ln(T|X||A|/delta), where N (N + 1) replaces T if
there is no horizon.

"l1", the paper's (Lemma 4.1).  |P - Pbar|_1 <= epsilon for all pairs and N, with probability 1 - delta:

    epsilon = sqrt(2 S u / max(1, N)),  S = |X_{k+1}|, or the number of possible successors

"weissman" is tighter, with the same probability.  For sets A of successors, |P - Pbar|_1 = 2 max_A (P(A) - Pbar(A)).
Hoeffding's inequality for each of the 2^S - 2 sets that matter gives P[|P - Pbar|_1 >= e] <= (2^S - 2) exp(-N e^2 / 2)
(Weissman et al. 2003).  The paper's radius solves this crudely.  Solved exactly,

    epsilon = sqrt(2 b),   b = (ln(2^S - 2) + u) / N,   0 for S = 1

It is never above the paper's: S u - ln(2^S - 2) - u >= 0 is u >= ln(2^S - 2) / (S - 1), which is at most ln(6) / 2 (at
S = 3), and u > ln 4, since |X| >= 4 if a pair has two successors.  The centre is the same, so the set is contained in
the paper's set, and every theorem about the latter holds for it.

"chernoff", tighter again, with the same probability: Chernoff's inequality for each of the same sets, for all times
at once.  Of a pair's first N successors n are in A.  Krichevsky and Trofimov's mixture KT of all coins gives what was
seen a probability of at least (n/N)^n (1 - n/N)^(N - n) / (2 sqrt(N)).  KT over the true probability is a martingale
of mean 1: it ever exceeds 1/d with probability at most d (Ville), and its logarithm is at least
N kl(Pbar(A), P(A)) - ln(2 sqrt(N)).  A and its complement have the same kl, so there are (2^S - 2) / 2 such sets; with
m pairs that have two successors or more, P is in all sets of all times with probability 1 - delta if

    kl(Pbar(A), P(A)) <= b,   b = (ln(2^S - 2) + ln(m sqrt(N)/delta)) / N

This has sqrt(N) where the others have T or N (N + 1), and only pairs that need it.  With U(x) >= x the solution of
kl(x, U) = b, P(A) <= U(Pbar(A)) for all A, so

    epsilon = 2 max_A U(Pbar(A)) - Pbar(A)  <=  2 max of U(x) - x over x in [0, r],   r = min(1/2, 1 - max Pbar)

because no A has Pbar(A) between 1 - max Pbar and max Pbar, and U(x) - x is larger at x than at 1 - x for x <= 1/2.
(The derivative of kl(x, x + t) with respect to t is t / ((x + t)(1 - x - t)), which is no smaller at 1 - x.)  U is
concave, because kl is jointly convex.  So if U(x) - x is not yet decreasing at r, its maximum is at r.  Otherwise we
use U(x) - x <= sqrt(b / 2) (Pinsker), which gives Weissman's radius.  The set is therefore contained in Weissman's.  If
one successor is likely, it is far smaller: 2 (1 - exp(-b)), of order 1 / N, as long as no other has been seen.

"bernstein" bounds each probability on its own, with probability 1 - 4 delta (Jin et al. 2020):

    epsilon(x'|x, a) = 2 sqrt(Pbar u / max(1, N - 1)) + 14 u / (3 max(1, N - 1))

"pointwise" works best in practice but guarantees nothing for all rows at once: it has no union bound over pairs and
times, and no constant.  epsilon is the expected deviation of the estimate, summed over its entries, with a uniform
prior that counts as one visit:

    epsilon = sum over x' of sqrt(p~ (1 - p~) / N),   p~ = (n + 1/S) / (N + 1)

That alone would leave a pair for ever whose first visits misled.  So a pair with less than its share of the visits of
its state, N(x) / |A(x)|, has at least the radius of MOSS (Audibert & Bubeck 2009), for each state is a bandit whose
arms are its actions: P(A) may be off by sqrt(2 ln(share / N)) standard deviations, A being the set that varies most,

    epsilon >= 2 sqrt(2 ln(share / N)) sqrt(r (1 - r) / N),   r = min(1/2, 1 - max p~)

If pairs are grouped into kinds, the other pairs of the kind count as m visits (:mod:`advmdp.confidence.pooling`):

    centre = (n + m pooled) / (N + m)
    epsilon = as above with N + m for N,   p~ = (n + m pooled + 1/S) / (N + m + 1)
"""

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.confidence.counts import Counts
from advmdp.confidence.pooling import Kinds
from advmdp.confidence.sets import FREE, Box, L1Ball, RowSet
from advmdp.core.arrays import FloatArray
from advmdp.core.errors import InputError
from advmdp.core.wording import one_of
from advmdp.model.skeleton import Skeleton

Confidence = Literal["l1", "weissman", "chernoff", "bernstein", "pointwise"]
CHOICES: tuple[str, ...] = get_args(Confidence)
INSIDE_THE_PAPERS = ("l1", "weissman", "chernoff")
"""Sets that contain P with probability 1 - delta and lie inside the paper's: its theorems hold for them."""

NEWTON_STEPS = 8
BEYOND = 8.0
"""For a larger b almost nothing is known: U(x) is 1 to three digits."""
TINY = 1e-300
"""Replaces a probability of 0 before taking its logarithm."""


def confidence_set(
    name: str,
    sk: Skeleton,
    counts: Counts,
    horizon: int | None,
    delta: float,
    scale: float = 1.0,
    kinds: Kinds | None = None,
    possible: bool = False,
    times: FloatArray | float | None = None,
) -> RowSet:
    """The confidence set with this name, one of :data:`CHOICES`, for these counts.

    ``horizon`` is T, or None for sets that hold for all times at once.  ``scale`` multiplies radii and widths.
    ``kinds`` applies to "pointwise" only.  ``possible`` applies to "l1" only and makes S the number of possible
    successors, as it always is for the other sets.  ``times``, if given, replaces T in the logarithm.
    """
    if name == "pointwise":
        return pointwise_set(sk, counts, scale, kinds)
    visits = np.maximum(1.0, counts.visits)
    if name == "chernoff" and times is None:
        return chernoff_set(sk, counts, log_at_all_times(sk, counts.visits, delta), scale)
    if times is None:
        times = visits * (visits + 1.0) if horizon is None else float(horizon)
    log_term = np.log(times * sk.num_states * sk.num_actions / delta)
    if name == "l1":
        return l1_set(sk, counts, log_term, scale, possible)
    make = {"weissman": weissman_set, "chernoff": chernoff_set, "bernstein": bernstein_set}
    if name not in make:
        raise InputError("confidence", f"{name!r}", one_of(name, CHOICES))
    return make[name](sk, counts, log_term, scale)


def log_at_all_times(sk: Skeleton, visits: NDArray[np.int64], delta: float) -> FloatArray:
    """ln(m sqrt(N)/delta), where m pairs have several successors: the logarithm of "chernoff"."""
    several = max(1, int((np.diff(sk.transition_ptr) > 1).sum()))
    terms: FloatArray = np.log(several / delta * np.sqrt(np.maximum(1.0, visits)))
    return terms


def kinds_for(name: str, sk: Skeleton, labels: ArrayLike | None) -> Kinds | None:
    """The kinds that these labels declare, checked; only "pointwise" sets accept them."""
    if labels is None:
        return None
    if name != "pointwise":
        raise InputError("kinds", f"labels, with confidence={name!r}", "confidence='pointwise', which pools")
    return Kinds.of(sk, labels)


def l1_set(sk: Skeleton, counts: Counts, log_term: FloatArray | float, scale: float, possible: bool) -> L1Ball:
    """The set of Section 4.1, radii times ``scale``; S counts possible successors, or the whole next layer."""
    over = np.diff(sk.transition_ptr) if possible else np.repeat(sk.layer_sizes[1:], np.diff(sk.layer_pair_ptr))
    radius = scale * np.sqrt(2.0 * over * log_term / np.maximum(1, counts.visits))
    return L1Ball(counts.center(sk), radius)


def weissman_set(sk: Skeleton, counts: Counts, log_term: FloatArray | float, scale: float) -> L1Ball:
    """Weissman's inequality solved for the radius, times ``scale``."""
    b, single = _exponents(sk, counts, log_term)
    radius = np.where(single, 0.0, scale * np.sqrt(2.0 * b))
    return L1Ball(_known_where_single(sk, counts, single), radius)


def chernoff_set(sk: Skeleton, counts: Counts, log_term: FloatArray | float, scale: float) -> L1Ball:
    """Chernoff's inequality for every set of successors; radii times ``scale``."""
    b, single = _exponents(sk, counts, log_term)
    center = _known_where_single(sk, counts, single)
    largest = np.maximum.reduceat(center, sk.transition_ptr[:-1])
    radius = np.minimum(2.0 * largest_excess(np.minimum(0.5, 1.0 - largest), b), np.sqrt(2.0 * b))
    return L1Ball(center, np.where(single, 0.0, scale * radius))


def bernstein_set(sk: Skeleton, counts: Counts, log_term: FloatArray | float, scale: float) -> Box:
    """Empirical Bernstein bounds on each probability on its own, their widths times ``scale``."""
    center, fewer = counts.center(sk), np.maximum(1, counts.visits - 1)
    u = sk.over_transitions(np.broadcast_to(log_term, fewer.shape) / fewer)
    width = scale * (2.0 * np.sqrt(center * u) + 14.0 / 3.0 * u)
    width = np.where(sk.over_transitions(counts.visits == 0), 1.0, width)
    return Box(np.maximum(0.0, center - width), np.minimum(1.0, center + width))


def pointwise_set(
    sk: Skeleton, counts: Counts, scale: float, kinds: Kinds | None = None, revisit: bool = True
) -> L1Ball:
    """Balls whose radius is the expected deviation of the row, times ``scale``; pairs of one kind share counts.

    ``revisit`` gives neglected pairs the radius of MOSS.
    """
    first, widths, over = sk.transition_ptr[:-1], np.diff(sk.transition_ptr), sk.over_transitions
    known, visits = counts.seen.astype(np.float64), counts.visits.astype(np.float64)
    if kinds is not None:
        pooled, strength = kinds.prior(sk, counts)
        known, visits = known + over(strength) * pooled, visits + strength
    likely = (known + over(1.0 / widths)) / over(visits + 1.0)  # p~
    tried, single = visits > 0.0, widths == 1
    visits = np.where(tried, visits, 1.0)
    spread = np.add.reduceat(np.sqrt(likely * (1.0 - likely)), first)
    if revisit:
        r = np.minimum(0.5, 1.0 - np.maximum.reduceat(likely, first))
        spread = np.maximum(spread, np.sqrt(8.0 * _neglect(sk, counts, visits) * r * (1.0 - r)))
    center = np.where(over(single), 1.0, known / over(visits))
    return L1Ball(center, np.where(single, 0.0, np.where(tried, scale * spread / np.sqrt(visits), FREE)))


def _neglect(sk: Skeleton, counts: Counts, visits: FloatArray) -> FloatArray:
    """ln(share / N), or 0 for pairs with their share: the visits of a state over the number of its actions."""
    actions = np.diff(sk.pair_ptr)[:-1]
    share = np.repeat(np.add.reduceat(counts.visits, sk.pair_ptr[:-2]) / actions, actions)
    return np.log(np.maximum(1.0, share / visits))


def inside(sk: Skeleton, ball: L1Ball, outer: L1Ball) -> L1Ball:
    """A ball in ``outer``, and ``ball`` itself where that fits: its centre moved, then its radius cut.

    |p - Pbar|_1 <= |p - c|_1 + |c - Pbar|_1, which is at most epsilon.
    """
    visited = np.add.reduceat(outer.center, sk.transition_ptr[:-1]) > 0.0
    shift = np.where(sk.over_transitions(visited), ball.center - outer.center, 0.0)
    apart = np.add.reduceat(np.abs(shift), sk.transition_ptr[:-1])
    room = outer.radii(sk)
    keep = np.where(apart > room, room / np.where(apart > room, apart, 1.0), 1.0)
    center = ball.center - sk.over_transitions(1.0 - keep) * shift
    return L1Ball(center, np.where(visited, np.clip(room - keep * apart, 0.0, ball.radius), ball.radius))


def largest_excess(r: FloatArray, b: FloatArray) -> FloatArray:
    """max of U(x) - x over x in [0, r], kl(x, U) = b, rounded up; r is at most 1/2.

    Newton's method for kl(r, r + t) = b, which is convex in t, approaches the root from above and never goes below it.
    """
    r, b, beyond = np.maximum(r, TINY), np.minimum(b, BEYOND), b > BEYOND
    entropy = -r * np.log(r) - (1.0 - r) * np.log1p(-r)
    pinsker = np.sqrt(b / 2.0)
    t = np.minimum(pinsker, b + np.sqrt(b * b + 2.0 * r * b))  # kl(r, r + t) is at least 2 t^2, and t^2 / (2 (r + t))
    t = np.minimum(t, 1.0 - r - np.exp(-(b + entropy) / (1.0 - r)))  # and -(1 - r) ln(1 - r - t) - entropy
    for _ in range(NEWTON_STEPS):
        excess = -r * np.log1p(t / r) - (1.0 - r) * np.log1p(-t / (1.0 - r)) - b
        t = t - excess * (r + t) * (1.0 - r - t) / t
    falls = np.log((r + t) * (1.0 - r)) - np.log(r * (1.0 - r - t)) < t / ((r + t) * (1.0 - r - t))
    return np.where(beyond, 1.0, np.where(falls, pinsker, t))


def _exponents(sk: Skeleton, counts: Counts, log_term: FloatArray | float) -> tuple[FloatArray, NDArray[np.bool_]]:
    """b = (ln(2^S - 2) + u) / N, and which pairs have S = 1."""
    widths = np.diff(sk.transition_ptr)
    single = widths == 1
    log_sets = widths * np.log(2.0) + np.log1p(-np.exp2(1.0 - np.where(single, 2, widths)))  # 2^S itself overflows
    return (log_sets + log_term) / np.maximum(1, counts.visits), single


def _known_where_single(sk: Skeleton, counts: Counts, single: NDArray[np.bool_]) -> FloatArray:
    """Pbar, with 1 for the only successor of a pair, visited or not."""
    return np.where(sk.over_transitions(single), 1.0, counts.center(sk))
