"""Epochs: the counters that a learner of unknown dynamics keeps.

An epoch ends when some pair of the trajectory has n_i(x, a) >= max(1, N_i(x, a)), as in Algorithm 2 of the paper
(docs/errata.md, item 2).  :mod:`advmdp.confidence.kernels.counting` counts and applies this rule.  The learner decides
what happens at the start of a new epoch.
"""

import numpy as np

from advmdp.confidence import Counts
from advmdp.learners.domains import COUNTERS, State
from advmdp.model.skeleton import Skeleton


class Epochs:
    """The counters of a learner, saved and restored with it."""

    domains = COUNTERS

    def __init__(self, sk: Skeleton) -> None:
        self.counts = Counts(sk)

    def arrays(self) -> State:
        """The counters by name, not copied."""
        return {name: np.asarray(getattr(self.counts, name)) for name in COUNTERS}

    def restore(self, state: State) -> None:
        """Replace the counters; the caller has checked them."""
        for name, array in self.arrays().items():
            array[...] = state[name]
        self.counts.epoch = int(state["epoch"])
