"""The domains of the arrays in a learner's state, which protect the kernels from invalid states.

A learner declares a :class:`Domain` for each array of its state: the range of its entries, and how they must agree with
the other arrays.  :func:`check_state` checks a state from a file or a caller before it is used, and names the first
entry that does not fit.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advmdp.confidence.recent import CLOCK
from advmdp.core.arrays import MOST, check_like
from advmdp.core.errors import InputError
from advmdp.model.occupancy import flow_residuals
from advmdp.model.skeleton import Skeleton
from advmdp.model.tables import TOLERANCE

Array = NDArray[np.float64 | np.int64]
State = dict[str, Array]
"""What a learner has learned: arrays of numbers and counts, by name."""
Fits = NDArray[np.bool_]

STATUS = "delay_status"
"""The array that a state has if losses arrived late, or if incomplete paths may have been counted."""
LARGEST_FLOAT = float(np.finfo(np.float64).max)
LARGEST_SCORE = 1e30
"""Far above any sum of losses divided by small probabilities."""
SLACK = 1e-6
"""Tolerance for arrays that follow from others: projections are exact to 1e-9, and logarithms add to the error."""
TINY = 1e-300
"""Probabilities below this may underflow to zero; their logarithms do not."""


@dataclass(frozen=True)
class Domain:
    """Entries from ``least`` to ``most`` that agree with the other arrays; ``expected`` describes them in errors.

    ``agrees`` takes the skeleton, the whole state and the name of the array, and tells which entries agree.
    """

    expected: str
    least: float = -LARGEST_FLOAT
    most: float = LARGEST_FLOAT
    agrees: Callable[[Skeleton, State, str], Fits] | None = None


def check_state(owner: str, sk: Skeleton, domains: Mapping[str, Domain], like: State, state: State) -> None:
    """Reject an invalid state: missing arrays, wrong shapes or types, or entries outside their domains."""
    for name, array in like.items():
        if name not in state:
            raise InputError(f"state of {owner}", f"no {name}", ", ".join(like))
        check_like(array, state[name], f"state of {owner}, {name}")
    for name, domain in domains.items():
        _check(owner, sk, domain, state, name, (state[name] >= domain.least) & (state[name] <= domain.most))
    # Compare arrays with each other only now, when all entries are known to be in range.
    for name, domain in domains.items():
        if domain.agrees is not None:
            _check(owner, sk, domain, state, name, domain.agrees(sk, state, name))


def _check(owner: str, sk: Skeleton, domain: Domain, state: State, name: str, fits: Fits) -> None:
    if not fits.all():
        i = int(np.argmin(fits))
        labels = {sk.num_transitions: sk.where_transition, sk.num_pairs: sk.where_pair}
        where = f" at {labels[fits.size](i)}" if fits.size in labels else f"[{i}]" if fits.ndim else ""
        raise InputError(f"state of {owner}, {name}{where}", f"{state[name].flat[i]}", domain.expected)


def _sums_to_one(sk: Skeleton, state: State, name: str) -> Fits:
    totals = np.add.reduceat(state[name], sk.pair_ptr[:-2])
    return np.repeat(np.abs(totals - 1.0) <= TOLERANCE, np.diff(sk.pair_ptr)[:-1])


def _flows(sk: Skeleton, state: State, name: str) -> Fits:
    layer, at_state = (np.abs(miss) <= SLACK for miss in flow_residuals(sk, state[name]))
    source = sk.over_transitions(sk.state_of_pair)
    return np.repeat(layer, np.diff(sk.layer_transition_ptr)) & at_state[source] & at_state[sk.successor]


def is_log(logarithm: Array, value: Array) -> Fits:
    """Which entries are the logarithm of the value, up to rounding and underflow."""
    exact = np.log(np.maximum(value, TINY))
    fits: Fits = np.where(value > TINY, np.abs(logarithm - exact) <= SLACK, logarithm <= np.log(TINY) + SLACK)
    return fits


def _is_log_q(sk: Skeleton, state: State, name: str) -> Fits:
    return is_log(state[name], state["q"])


def _is_log_of_pairs(sk: Skeleton, state: State, name: str) -> Fits:
    return is_log(state[name], np.add.reduceat(state["q"], sk.transition_ptr[:-1]))


def _sums_to_visits(sk: Skeleton, state: State, name: str) -> Fits:
    # As floats: integer sums of absurd counts would wrap around.
    totals = np.add.reduceat(state[name].astype(np.float64), sk.transition_ptr[:-1])
    return sk.over_transitions(totals == state[name.replace("seen", "visits")])


def _alike_in_layers(sk: Skeleton, state: State, name: str) -> Fits:
    """Whether all layers have equal sums: an episode visits one pair of each layer. Incomplete paths need not."""
    totals = np.add.reduceat(state[name].astype(np.float64), sk.layer_pair_ptr[:-1])
    if STATUS in state:
        return np.ones(state[name].shape, np.bool_)
    return np.repeat(totals == totals[0], np.diff(sk.layer_pair_ptr))


def _in_epoch(sk: Skeleton, state: State, name: str) -> Fits:
    """An epoch ends when a pair has been visited as often in the epoch as before it."""
    fits: Fits = state[name] <= np.maximum(1, state["visits"])
    return fits & _alike_in_layers(sk, state, name)


def episodes_of(sk: Skeleton, state: State) -> float | None:
    """The number of episodes that the counters add up to; None without counters."""
    if "visits" not in state:
        return None
    if CLOCK in state:  # counters of the last episodes only
        return float(state[CLOCK][0])
    counts = state["visits"] + state.get("new_visits", 0)
    return float(counts[: sk.layer_pair_ptr[1]].sum(dtype=np.float64))


def _within_episodes(sk: Skeleton, state: State, name: str) -> Fits:
    episodes = episodes_of(sk, state)
    fits: Fits = state[name] <= (MOST if episodes is None else episodes * (1.0 + SLACK))
    return fits


def _within_visits(sk: Skeleton, state: State, name: str) -> Fits:
    counts = state["visits"] + state.get("new_visits", 0)
    fits: Fits = state[name] <= counts * (1.0 + SLACK)
    return fits


def _is_due(sk: Skeleton, state: State, name: str) -> Fits:
    if CLOCK in state:
        return np.asarray(state[name] - 1.0 <= (episodes_of(sk, state) or 0.0) * sk.num_steps)
    last = sk.num_pairs if STATUS in state else sk.layer_pair_ptr[1]
    episodes = state["visits"][:last].sum(dtype=np.float64)
    return np.asarray(state[name] - 1.0 <= episodes)


def _is_mean(sk: Skeleton, state: State, name: str) -> Fits:
    visits, widths = sk.over_transitions(state["visits"]), sk.over_transitions(np.diff(sk.transition_ptr))
    mean = np.where(visits > 0, state["seen"] / np.maximum(1, visits), 1.0 / widths)
    fits: Fits = np.abs(state[name] - mean) <= SLACK
    return fits


def _is_known(sk: Skeleton, state: State, name: str) -> Fits:
    fits: Fits = np.isfinite(state[name]) == (state["visits"] > 0)
    return fits


LOSS = Domain("a sum of losses from 0 to 1, one for each episode", 0.0, MOST, _within_episodes)
PAID = Domain("a sum of losses from 0 to 1, one for each visit", 0.0, MOST, _within_visits)
SCORE = Domain("a sum of estimated losses", -LARGEST_SCORE, LARGEST_SCORE)
POLICY = Domain("probabilities that sum to 1 in every state", 0.0, 1.0 + TOLERANCE, _sums_to_one)
MEASURE = Domain("an occupancy measure", 0.0, 1.0 + SLACK, _flows)
LOG_MEASURE = Domain("the logarithm of q", -np.inf, SLACK, _is_log_q)
LOG_PAIRS = Domain("the logarithm of q summed over the pair", -np.inf, SLACK, _is_log_of_pairs)
VISITS = Domain("counts with the same sum in every layer", 0, MOST, _alike_in_layers)
NEW_VISITS = Domain("counts with the same sum in every layer, at most as many as before", 0, MOST, _in_epoch)
SEEN = Domain("counts that sum to the visits of their pair", 0, MOST, _sums_to_visits)
EPOCH = Domain("1 or more, and at most one for each episode before it", 1, MOST, _is_due)
ESTIMATE = Domain("transitions seen over visits; uniform without visits", 0.0, 1.0, _is_mean)
COST = Domain("at most 1; minus infinity without visits", -np.inf, 1.0, _is_known)
COUNTERS = {"visits": VISITS, "new_visits": NEW_VISITS, "seen": SEEN, "new_seen": SEEN, "epoch": EPOCH}
"""The counters of :class:`advmdp.confidence.Counts`."""
