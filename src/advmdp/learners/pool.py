"""The pool of SelfTuning: its experts, the arrays that they share, and what saved arrays must satisfy."""

from collections.abc import Mapping, Sequence
from math import inf, log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from advmdp.confidence import Counts
from advmdp.core.arrays import MOST, FloatArray, apart
from advmdp.core.errors import InputError
from advmdp.learners.domains import LARGEST_SCORE, MEASURE, POLICY, SLACK, STATUS, Domain, State, is_log
from advmdp.model.occupancy import flow_residuals
from advmdp.model.skeleton import Skeleton

DESCENT, CUMULATIVE, DISCOUNTED, LAST, MEAN, AGO, RULE, HINT, FOUND = range(9)
"""What an expert responds to."""
PACES = {
    "all": (CUMULATIVE, (4.0, 16.0, 64.0, 256.0)),
    "smoothed": (DISCOUNTED, (10.0, 100.0)),
    "last": (LAST, (10.0, 100.0)),
}
"""The kinds of losses that experts respond to, and the paces of these experts."""
SEASONAL_PACES = {"mean": (MEAN, (100.0,)), "last": (AGO, (100.0,))}
FOUND_PACES = (100.0,)
HINT_PACE = 100.0
FIRST = "UC-O-REPS"
"""The expert that carries the guarantee."""
SPANS = 25
"""The number of episodes in the median span."""
MOST_LAGS = 512
MOST_KEPT = 2**18
"""The most entries of past losses to keep for finding periods."""
ROOM = 64
"""Unused numbers between the arrays of a thread, as in :func:`advmdp.core.arrays.apart`."""


class Expert(NamedTuple):
    """An expert's name, what it responds to, its pace, and its place in the arrays."""

    name: str
    kind: int
    pace: float = 0.0
    period: int = 1
    first: int = 0


def most_lags(sk: Skeleton) -> int:
    """The number of past losses to keep, which is also the longest period that can be found."""
    return min(MOST_LAGS, MOST_KEPT // sk.num_transitions)


def all_experts(sk: Skeleton, periods: tuple[int, ...], rules: Mapping[str, object]) -> list[Expert]:
    """UC-O-REPS; the responses to all, smoothed and last losses; those of each period; the rules; the hint."""
    pool = [Expert(FIRST, DESCENT)]
    for name, (kind, paces) in PACES.items():
        pool += [Expert(f"{name} x{pace:g}", kind, pace) for pace in paces]
    first = 0
    for period in periods:
        for name, (kind, paces) in SEASONAL_PACES.items():
            pool += [Expert(f"{name} of {period} x{pace:g}", kind, pace, period, first) for pace in paces]
        first += period
    if most_lags(sk) > 1:
        pool += [Expert(f"found x{pace:g}", FOUND, pace) for pace in FOUND_PACES]
    pool += [Expert(f"rule {name}", RULE, first=number) for number, name in enumerate(rules)]
    return [*pool, Expert("hint", HINT, HINT_PACE)]


def chosen_experts(pool: list[Expert], names: Sequence[str] | None) -> list[Expert]:
    """The named experts, in the order of the pool."""
    if names is None:
        return pool
    known = [expert.name for expert in pool]
    if not isinstance(names, list | tuple) or not names or any(name not in known for name in names):
        raise InputError("experts", f"{names!r}", f"a list of some of {', '.join(known)}")
    if set(names) == {"hint"}:
        raise InputError("experts", "the hint alone", "another expert too, for episodes without a hint")
    return [expert for expert in pool if expert.name in names]


class Pool(NamedTuple):
    """The arrays of the mixture, with a row for each expert, each kind of loss, or each phase of a period."""

    q: FloatArray
    policy: FloatArray
    measures: FloatArray  # (K, n): q_e
    policies: FloatArray  # (K, pairs)
    betas: FloatArray  # (K, states): warm starts of the projections
    sums: FloatArray  # (5, n): all losses, smoothed, the last, the forecast, the prediction by lag
    means: FloatArray  # (phases, n)
    ago: FloatArray  # (phases, n)
    rules: FloatArray  # (rules, pairs)
    believed: FloatArray  # (K,): the believed losses so far
    weights: FloatArray  # (K,)
    account: FloatArray  # (3,): sums of the mixability gaps, the mixture's believed losses, the squared spans
    spans: FloatArray
    past: FloatArray  # (lags, n): the last losses
    numbers: NDArray[np.int64]  # (lags,): the episodes of these losses
    errors: FloatArray  # (2, lags + 1): the prediction errors of each lag, and their number
    awake: NDArray[np.int64]  # (K,)
    log_q: FloatArray  # of UC-O-REPS
    log_pairs: FloatArray
    z: FloatArray  # scratch from here on
    reduced: FloatArray
    mass: FloatArray
    losses: FloatArray
    gaps: FloatArray
    scratch: FloatArray
    visits: NDArray[np.int64]
    new_visits: NDArray[np.int64]
    new_seen: NDArray[np.int64]


def make_pool(
    sk: Skeleton, experts: Sequence[Expert], periods: Sequence[int], rules: Mapping[str, Sequence[float]],
    counts: Counts, threads: int,
) -> Pool:  # fmt: skip
    """Allocate the arrays, with unused space around each."""
    n, pairs, states, phases, K = sk.num_transitions, sk.num_pairs, sk.num_states, sum(periods), len(experts)
    lags = most_lags(sk) if any(expert.kind == FOUND for expert in experts) else 0
    first = int(experts[0].kind == DESCENT)
    shapes: dict[str, tuple[int, ...]] = {
        "q": (n,), "policy": (pairs,), "measures": (K, n), "policies": (K, pairs), "betas": (K, states),
        "sums": (5, n), "means": (phases, n), "ago": (phases, n), "rules": (len(rules), pairs),
        "believed": (K,), "weights": (K,), "account": (3,), "spans": (SPANS,), "past": (lags, n),
        "errors": (2, lags + 1), "log_q": (n * first,), "log_pairs": (pairs * first,),
        "z": (n,), "reduced": (n,), "mass": (threads * states,), "losses": (K,), "gaps": (K,),
        "scratch": (threads, 2 * n + pairs + 3 * ROOM),
    }  # fmt: skip
    flat = apart(*(int(np.prod(shape)) for shape in shapes.values()))
    arrays = {name: array.reshape(shape) for (name, shape), array in zip(shapes.items(), flat, strict=True)}
    awake = np.array([expert.kind != HINT for expert in experts], np.int64)
    arrays["rules"][:] = np.array(list(rules.values())).reshape(arrays["rules"].shape)
    return Pool(
        **arrays,
        awake=awake,
        numbers=np.full(lags, -1),
        visits=counts.visits,
        new_visits=counts.new_visits,
        new_seen=counts.new_seen,
    )


def _rows_are_policies(sk: Skeleton, state: State, name: str) -> NDArray[np.bool_]:
    totals = np.add.reduceat(state[name], sk.pair_ptr[:-2], axis=1)
    return np.repeat(np.abs(totals - 1.0) <= SLACK, np.diff(sk.pair_ptr)[:-1], axis=1)


def _rows_flow(sk: Skeleton, state: State, name: str) -> NDArray[np.bool_]:
    fits = [flow_residuals(sk, row).largest <= SLACK for row in state[name]]
    return np.repeat(np.array(fits)[:, None], sk.num_transitions, axis=1)


def _is_log_of_first(sk: Skeleton, state: State, name: str) -> NDArray[np.bool_]:
    if state[name].size == 0:  # a pool without UC-O-REPS
        return np.ones(0, np.bool_)
    first = state["measures"][0]
    return is_log(state[name], first if name == "log_q" else np.add.reduceat(first, sk.transition_ptr[:-1]))


def _sum_to_one(sk: Skeleton, state: State, name: str) -> NDArray[np.bool_]:
    return np.full(state[name].shape, abs(state[name].sum() - 1.0) <= SLACK)


def _are_hedged(sk: Skeleton, state: State, name: str) -> NDArray[np.bool_]:
    """Weights follow from the believed losses, the mixability gaps, and which experts are awake.

    When an episode has begun, its hint is asleep already, but the weights are still those of this episode.
    """
    fits = np.abs(state[name] - _shares(state, state["awake"])) <= SLACK
    if STATUS in state:
        awake = state["awake"].copy()
        awake[-1] = 1  # the hint, if the pool has one
        fits |= (np.abs(state[name] - _shares(state, awake)) <= SLACK).all()
    return fits


def _shares(state: State, awake: NDArray[Any]) -> FloatArray:
    """AdaHedge's weights of the experts that are awake."""
    gaps, believed = float(state["account"][0]), np.where(awake, state["believed"], inf)
    excess = believed - believed.min()
    with np.errstate(over="ignore"):
        shares = np.exp(-log(len(excess)) * (excess / gaps)) if gaps > 0.0 else (excess <= 0.0).astype(float)
    found: FloatArray = shares / shares.sum()
    return found


def _is_mixture(sk: Skeleton, state: State, name: str) -> NDArray[np.bool_]:
    fits: NDArray[np.bool_] = np.abs(state[name] - state["weights"] @ state["measures"]) <= SLACK
    return fits


def _are_awake(sk: Skeleton, state: State, name: str) -> NDArray[np.bool_]:
    """The hint is the last expert of the pool, and never the only one."""
    awake = state[name] > 0
    if len(awake) > 1:
        awake[-1] = True
    return awake


MEASURES = Domain("occupancy measures, one for each expert", 0.0, 1.0 + SLACK, _rows_flow)
POLICIES = Domain("policies, one in each row", 0.0, 1.0 + SLACK, _rows_are_policies)
START = Domain("a warm start of a projection", -LARGEST_SCORE, LARGEST_SCORE)
RECORD = Domain("losses minus the minimum of their layer, or sums of these", 0.0, LARGEST_SCORE)
SQUARES = Domain("sums of such losses, or of their squares", 0.0, LARGEST_SCORE**3)
MIXTURE = Domain("the mixture of the experts' occupancy measures", 0.0, 1.0 + SLACK, _is_mixture)
WEIGHTS = Domain("the weights that AdaHedge gives these experts", 0.0, 1.0, _are_hedged)
PAST_WEIGHTS = Domain("weights that sum to 1", 0.0, 1.0 + SLACK, _sum_to_one)
FLAG = Domain("1, or 0 for a hint that was not given", 0, 1, _are_awake)
NUMBER = Domain("the number of an episode, or -1", -1, MOST)
LOG_FIRST = Domain("a logarithm of the first measure", -np.inf, SLACK, _is_log_of_first)

KEPT = {
    "awake": FLAG, "q": MIXTURE, "policy": POLICY, "measures": MEASURES, "policies": POLICIES, "betas": START,
    "sums": RECORD, "means": RECORD, "ago": RECORD, "rules": POLICIES, "believed": RECORD, "weights": WEIGHTS,
    "account": SQUARES, "spans": RECORD, "past": RECORD, "errors": SQUARES, "log_q": LOG_FIRST,
    "log_pairs": LOG_FIRST,
}  # fmt: skip
"""The arrays of a state, and their domains."""
REMEMBERED = {
    "q": MEASURE, "policy": POLICY, "measures": MEASURES, "weights": PAST_WEIGHTS, "awake": FLAG
}  # fmt: skip
"""The arrays to store when an episode begins."""
