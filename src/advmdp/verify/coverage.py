"""Lemma 4.1: how often the confidence sets contain the true dynamics P.

    ||P - Pbar_i||_1 <= epsilon_i for all pairs and epochs, with probability 1 - delta

The same is measured for the tighter sets of :mod:`advmdp.confidence.radii`. For sets without a guarantee, the share of
rows covered is measured.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from advmdp.confidence import (
    Box,
    Counts,
    Kinds,
    L1Ball,
    RowSet,
    bernstein_set,
    chernoff_set,
    l1_set,
    log_at_all_times,
    pointwise_set,
    weissman_set,
)
from advmdp.core.arrays import FloatArray
from advmdp.core.streams import generator
from advmdp.learners.uc_o_reps import UCOREPS
from advmdp.losses import Switching
from advmdp.model.mdp import MDP
from advmdp.model.skeleton import Skeleton
from advmdp.verify.rows import (
    Row,
    Shown,
    hidden,
    share_of_runs,
)  # fmt: skip

COVERAGE_DELTA, COVERAGE_EPISODES = 0.2, 100
MOST_ROWS = 0.5
"""Sets without a guarantee for all rows at once must cover more than this share of the rows."""


def covers(sk: Skeleton, row_set: RowSet, transition: FloatArray) -> bool:
    """Whether all rows lie in the set."""
    if isinstance(row_set, Box):
        return bool(((row_set.lower <= transition) & (transition <= row_set.upper)).all())
    return bool(rows_covered(sk, row_set, transition).all())


def rows_covered(sk: Skeleton, row_set: RowSet, transition: FloatArray) -> NDArray[np.bool_]:
    """Whether each row lies in its ball."""
    assert isinstance(row_set, L1Ball)
    first = sk.transition_ptr[:-1]
    distance = np.add.reduceat(np.abs(transition - row_set.center), first)
    free = np.add.reduceat(row_set.center, first) == 0.0
    held: NDArray[np.bool_] = free | (distance <= row_set.radius)
    return held


@dataclass(frozen=True)
class Kind:
    """A kind of set, its failure probability as a multiple of delta, and a scale at which it visibly fails."""

    name: str
    make: Callable[[Skeleton, Counts, FloatArray | float, float], RowSet]
    multiple: int
    narrow: float
    all_times: bool = False
    """Whether its logarithm has the visits in the place of T."""


KINDS = (
    Kind("l1, S the next layer", partial(l1_set, possible=False), 1, 0.3),
    Kind("l1, S the possible successors", partial(l1_set, possible=True), 1, 0.3),
    Kind("weissman", weissman_set, 1, 0.4),
    Kind("chernoff", chernoff_set, 1, 0.4, all_times=True),
    Kind("bernstein", bernstein_set, 4, 0.1),  # the multiple is that of Jin et al. (2020)
)


def coverage(runs: int, seed: int, shown: Shown = hidden) -> Iterator[Row]:
    """Lemma 4.1: the share of runs in which the sets of all epochs contain P, also for narrower sets to compare.

    For sets without a guarantee: the share of rows that they cover, among pairs with more than one possible row.
    """
    mdp = MDP.random([1, 4, 4, 1], 2, seed=seed, branching=2)
    found = [covered(mdp, seed, number) for number in shown(range(runs), "coverage")]
    held = np.array([one.runs for one in found])
    for j, kind in enumerate(KINDS):
        narrow = f"; {kind.narrow:g} times as wide: {held[:, j, 1].mean():.1%}"
        basis = "1 - delta" if kind.multiple == 1 else f"1 - {kind.multiple} delta"
        what = f"runs covered in all epochs: {kind.name}"
        yield share_of_runs("Lemma 4.1", what, held[:, j, 0], 1.0 - kind.multiple * COVERAGE_DELTA, basis, narrow)
    rows = np.sum([one.rows for one in found], axis=0)
    for (inside, total), which in zip(rows.tolist(), ("pairs tried", "pooled, all pairs"), strict=True):
        what, share = f"rows covered: pointwise, {which}", inside / total
        basis, beside = "most; no guarantee", f"{total:,} rows"
        yield Row("Lemma 4.1", what, share, ">", MOST_ROWS, share > MOST_ROWS, ".1%", beside, basis)


@dataclass(frozen=True)
class Covered:
    """What the sets of one run covered."""

    runs: NDArray[np.bool_]
    """For each kind, at full and at narrower scale: whether the sets of all epochs contain P."""
    rows: NDArray[np.int64]
    """How many rows the pointwise sets covered, and out of how many: for pairs tried, and pooled for all pairs."""


def covered(mdp: MDP, seed: int, number: int) -> Covered:
    """Coverage in one run of UC-O-REPS, from the counters of its epochs."""
    sk, T = mdp.skeleton, COVERAGE_EPISODES
    learner = UCOREPS(sk, horizon=T, delta=COVERAGE_DELTA)
    log_term = float(np.log(T * sk.num_states * sk.num_actions / COVERAGE_DELTA))
    losses = Switching(sk, period=10, seed=seed).block(0, T)
    rng = generator(seed, "verify", "coverage", str(number))
    counts = learner.counts
    assert counts is not None  # it counts, in epochs
    epochs: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    for loss in losses:
        learner.update(mdp.sample(learner.policy, rng), loss)
        if learner.epochs > len(epochs) + 1:
            epochs.append((counts.visits.copy(), counts.seen.copy()))
    every, counted = at_once(mdp, epochs)
    sqrt_visits = log_at_all_times(sk, counted.visits, COVERAGE_DELTA)
    terms = [sqrt_visits if kind.all_times else log_term for kind in KINDS]
    sets = [
        kind.make(every.skeleton, counted, term, c)
        for kind, term in zip(KINDS, terms, strict=True)
        for c in (1.0, kind.narrow)
    ]
    held = [covers(every.skeleton, one, every.transition) for one in sets]
    return Covered(np.reshape(held, (len(KINDS), 2)), pointwise_rows(every, counted, len(epochs)))


def at_once(mdp: MDP, epochs: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]]) -> tuple[MDP, Counts]:
    """A world in which each pair has a copy, as another action, for every epoch, with the counters of that epoch."""
    sk, copies = mdp.skeleton, len(epochs)
    visits, seen = (np.array(of_epochs) for of_epochs in zip(*epochs, strict=True))
    rows = [slice(a, b) for a, b in zip(sk.transition_ptr[:-1], sk.transition_ptr[1:], strict=True)]
    place = np.concatenate([np.tile(np.arange(row.start, row.stop), copies) for row in rows])
    ends = np.cumsum(np.repeat(np.diff(sk.transition_ptr), copies))
    larger = Skeleton(sk.layer_ptr, sk.pair_ptr * copies, np.append(0, ends), sk.successor[place])
    every = MDP(larger, mdp.transition[place])
    counts = Counts(every.skeleton)
    counts.visits[:] = visits.T.ravel()
    counts.seen[:] = np.concatenate([seen[:, row].ravel() for row in rows])
    return every, counts


def pointwise_rows(every: MDP, counts: Counts, epochs: int) -> NDArray[np.int64]:
    """How many rows pointwise sets cover, and out of how many: for pairs tried, and pooled by epoch for all pairs.

    Without what is added for neglected pairs, which needs the visits of states: the sets are no smaller than these.
    """
    sk = every.skeleton
    widths = np.diff(sk.transition_ptr)
    kinds = Kinds.of(sk, widths * epochs + np.arange(sk.num_pairs) % epochs)
    found = []
    for pooled, asked in ((None, (widths > 1) & (counts.visits > 0)), (kinds, widths > 1)):
        inside = rows_covered(sk, pointwise_set(sk, counts, 1.0, pooled, revisit=False), every.transition)
        found.append([(inside & asked).sum(), asked.sum()])
    return np.array(found)
