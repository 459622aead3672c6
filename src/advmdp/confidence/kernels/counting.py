"""Counters of visits: N and M before the epoch, n and m within it, and estimates for learners without epochs."""

import cython
from cython.cimports.advmdp.core.kernels.types import counters_of, floats_of, ints_of


def count_path(visits, new_visits, new_seen, pairs, transitions, steps):
    """Count the pairs and transitions of a trajectory; return whether the visits of one of its pairs have doubled."""
    over: cython.bint = False
    for k in range(steps):
        p = pairs[k]
        new_visits[p] += 1
        new_seen[transitions[k]] += 1
        over = over or new_visits[p] >= (visits[p] if visits[p] > 1 else 1)
    return over


def tally(transition_ptr, visits, seen, estimate, pairs, transitions, steps):
    """Count a trajectory and update Pbar."""
    for k in range(steps):
        p = pairs[k]
        visits[p] += 1
        seen[transitions[k]] += 1
        for i in range(transition_ptr[p], transition_ptr[p + 1]):
            estimate[i] = cython.cast(cython.double, seen[i]) / visits[p]


def count_in_epoch(visits, new_visits, new_seen, pairs, transitions) -> bool:
    """Count a trajectory; return whether the visits of one of its pairs have doubled."""
    return count_path(
        ints_of(visits), counters_of(new_visits), counters_of(new_seen), ints_of(pairs), ints_of(transitions),
        len(pairs),
    )  # fmt: skip


def count_at_once(transition_ptr, visits, seen, estimate, pairs, transitions) -> None:
    """Count a trajectory and update Pbar; see `tally`."""
    tally(
        ints_of(transition_ptr), counters_of(visits), counters_of(seen), floats_of(estimate), ints_of(pairs),
        ints_of(transitions), len(pairs),
    )  # fmt: skip
