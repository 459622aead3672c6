"""The counters of Algorithm 2: N_i(x, a) and M_i(x'|x, a) up to the start of epoch i, n_i and m_i within it."""

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray
from advmdp.core.compiling import compiled
from advmdp.model.skeleton import Skeleton

Integers = NDArray[np.int64]


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
