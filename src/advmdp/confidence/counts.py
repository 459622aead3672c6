"""The counters of Algorithm 2: N_i(x, a) and M_i(x'|x, a) up to the start of epoch i, n_i and m_i within it."""

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray
from advmdp.model.skeleton import Skeleton

Integers = NDArray[np.int64]


class Counts:
    """The counters of Algorithm 2: N_i, M_i (``visits``, ``seen``) before the epoch, n_i, m_i (``new_...``) in it."""

    def __init__(self, sk: Skeleton) -> None:
        self.epoch = 1
        self.visits, self.new_visits = np.zeros(sk.num_pairs, np.int64), np.zeros(sk.num_pairs, np.int64)
        self.seen, self.new_seen = np.zeros(sk.num_transitions, np.int64), np.zeros(sk.num_transitions, np.int64)

    def next_epoch(self) -> None:
        """Begin a new epoch: add the counts of the last one to the totals."""
        self.epoch += 1
        for old, new in ((self.visits, self.new_visits), (self.seen, self.new_seen)):
            np.add(old, new, out=old)
            new[:] = 0

    def center(self, sk: Skeleton) -> FloatArray:
        """Pbar; the row of a pair that was never visited is zero."""
        visits: FloatArray = np.maximum(1.0, self.visits)
        return np.divide(self.seen, sk.over_transitions(visits))
