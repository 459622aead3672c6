"""Counting trajectories: N and M before the epoch, n and m within it, and estimates for learners without epochs."""

import cython
from cython.cimports.advmdp.core.kernels.types import counters_of, floats_of, ints_of


def count_path(visits, new_visits, new_seen, pairs, transitions, steps):
    """Count the pairs and transitions of a trajectory; whether one of its pairs has doubled its visits."""
    over: cython.bint = False
    for k in range(steps):
        p = pairs[k]
        new_visits[p] += 1
        new_seen[transitions[k]] += 1
        over = over or new_visits[p] >= (visits[p] if visits[p] > 1 else 1)
    return over


def tally(transition_ptr, visits, seen, estimate, pairs, transitions, steps):
    """Count a trajectory, and bring Pbar up to date at once."""
    for k in range(steps):
        p = pairs[k]
        visits[p] += 1
        seen[transitions[k]] += 1
        for i in range(transition_ptr[p], transition_ptr[p + 1]):
            estimate[i] = cython.cast(cython.double, seen[i]) / visits[p]


def count_in_epoch(visits, new_visits, new_seen, pairs, transitions) -> bool:
    """Count a trajectory; whether one of its pairs has doubled its visits."""
    return count_path(
        ints_of(visits), counters_of(new_visits), counters_of(new_seen), ints_of(pairs), ints_of(transitions),
        len(pairs),
    )  # fmt: skip


def count_at_once(transition_ptr, visits, seen, estimate, pairs, transitions) -> None:
    """Count a trajectory, and bring Pbar up to date."""
    tally(
        ints_of(transition_ptr), counters_of(visits), counters_of(seen), floats_of(estimate), ints_of(pairs),
        ints_of(transitions), len(pairs),
    )  # fmt: skip
