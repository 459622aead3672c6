"""Groups of transitions that are observed together: a path that takes one transition of a group sees all its losses.

With U(g) the largest probability, over the confidence set, that a path of pi_t takes a transition of g,

    l^_t(x, a, x') = l_t(x, a, x') / (U(g) + gamma)  in the groups that the path has seen, 0 elsewhere.

As in UOB-REPS, this is optimistic while the set contains P: E[l^_t] = l_t Pr[the path sees g] / (U(g) + gamma).  Every
path sees a group that no path avoids, so l^_t = l_t there.  With one pair in each group this is UOB-REPS, if the loss
of a pair does not depend on x'; with a single group it is full information.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.core.arrays import FloatArray, floats, integers
from advmdp.core.errors import InputError
from advmdp.model.by_name import ByName, loss_from_names
from advmdp.model.skeleton import Skeleton

Ints = NDArray[np.int64]


class Groups:
    """A partition of the transitions, from a label for each transition or for each pair."""

    def __init__(self, sk: Skeleton, labels: ArrayLike) -> None:
        self._skeleton = sk
        given = integers(labels, "groups")
        if given.shape not in ((sk.num_transitions,), (sk.num_pairs,)):
            expected = f"{sk.num_transitions}, one for each transition, or {sk.num_pairs}, one for each pair"
            raise InputError("groups", f"{given.size} labels", expected)
        self.labels: list[int] = given.tolist()
        over = given if given.shape == (sk.num_transitions,) else sk.over_transitions(given)
        _, inverse = np.unique(over, return_inverse=True)
        self.of: Ints = inverse.astype(np.int64)
        self.count = int(self.of.max()) + 1
        self.members: Ints = np.argsort(self.of, kind="stable")
        self.ptr: Ints = np.searchsorted(self.of[self.members], np.arange(self.count + 1))
        step = np.repeat(np.arange(sk.num_steps), np.diff(sk.layer_transition_ptr))
        self.last_step: Ints = np.full(self.count, 0)
        np.maximum.at(self.last_step, self.of, step)
        self.certain: Ints = np.zeros(self.count, np.int64)
        self.certain[list(_unavoidable(sk, self.of))] = 1
        self.size = len(np.unique(step * self.count + self.of))
        """The number of groups in each layer, summed over the layers: the number of pairs for groups of one pair."""

    def shown(self, path: Ints, loss: ByName) -> FloatArray:
        """The losses of the groups that a path sees, NaN elsewhere."""
        given = loss_from_names(self._skeleton, loss) if isinstance(loss, Mapping) else floats(loss, "loss")
        if given.shape != self.of.shape:
            raise InputError(
                "loss", f"shape {given.shape}", f"{self.of.shape}; groups that the path does not see are ignored"
            )
        seen = np.isin(self.of, self.of[path])
        if not ((given[seen] >= 0.0) & (given[seen] <= 1.0)).all():
            raise InputError("loss of a group that the path sees", "a value out of range", "numbers from 0 to 1")
        return np.where(seen, given, np.nan)


def _unavoidable(sk: Skeleton, of: Ints) -> frozenset[int]:
    """The groups that no path avoids."""
    groups, after = of.tolist(), sk.successor.tolist()
    unavoidable: list[frozenset[int]] = [frozenset()] * sk.num_states
    for x in range(sk.num_states - 2, -1, -1):
        first, last = sk.transition_ptr[sk.pair_ptr[x]], sk.transition_ptr[sk.pair_ptr[x + 1]]
        unavoidable[x] = frozenset.intersection(*(unavoidable[after[i]] | {groups[i]} for i in range(first, last)))
    return unavoidable[0]
