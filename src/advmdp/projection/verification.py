"""The check behind :meth:`Projection.verify`: a second certificate, in plain NumPy and long double.

Like ``certificate.py`` it uses weak duality, but it takes only the answer from the solver. For any beta and any t(x'),
with u(x') = w(x, a, x') exp(beta(x')), no occupancy measure of the set has sum q ln(q / w) below

    - sum_k ln sum over pairs of layer k of exp(-kappa(x, a) - beta(x)),      where kappa(x, a) is the largest of

    min t - ln sum u e^t                                                any set
    sum c t - ln sum u e^t - epsilon (max t - min t) / 2                L1 ball
    s - ln sum u e^t - sum (s - t)_+ high + sum (t - s)_+ low           box, for any s
    sum P ln(P / u)                                                     point

Here t = ln(p / u), where p is the row of the answer's log_q. At the optimum this bound is tight.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from advmdp.confidence import ROUNDING, RowSet
from advmdp.confidence.sets import RowSets
from advmdp.core.arrays import exact_floats, expect, real
from advmdp.model.skeleton import Skeleton

if TYPE_CHECKING:
    from advmdp.projection.projector import Projection

Long = np.longdouble
Array: TypeAlias = Any  # of long doubles
Flags = NDArray[np.bool_]
TINY, FAINT = 1e-290, -667.0
"""Masses below the first may have underflowed; their logarithms are below the second."""


@dataclass(frozen=True)
class Verification:
    """The result of checking a projection."""

    flow: float
    """The largest of: |inflow - outflow| of a state, |sum of q - 1| of a layer, negative mass."""
    rows: float
    """The largest distance of a row from its set, times the mass of its pair: L1 norm, or largest entry for boxes."""
    policy: float
    """The largest of: |q(x, a) - q(x) policy(a|x)|, |sum of the policy - 1| of a state, negative probability."""
    logs: float
    """The largest of |log_q - ln q| and |log_pairs - ln q(x, a)|; infinite if a forbidden entry has mass."""
    value: float
    """sum q ln(q / w)."""
    gap: float
    """The value minus the bound: an upper bound on the distance from the optimum."""
    claims: float
    """How far the answer's ``dual`` exceeds the value, or its ``gap`` falls short of their difference."""
    rounding: float
    """The error that rounding of the log weights explains: 1e-14 of the largest, for each layer."""

    def holds(self, tolerance: float = 1e-8, feasible: float = 1e-12) -> bool:
        """Whether q is feasible up to ``feasible``, and optimal up to ``tolerance`` and rounding."""
        limit = tolerance + self.rounding
        close = self.logs <= limit and abs(self.gap) <= limit and self.claims <= limit
        return bool(close and self.flow <= feasible and self.rows <= feasible and self.policy <= feasible)


def verify(answer: "Projection") -> Verification:
    """Check a projection: that q and its rows are feasible, and how far q is from the optimum.

    Raises
    ------
    InputError
        If an array has the wrong length for the skeleton, or a field has the wrong type.
    """
    answer = well_formed(answer)
    sk, sets = answer.skeleton, answer.row_set.bounds(answer.skeleton)
    q, tops = answer.q.astype(Long), layer_tops(answer)
    log_w = answer.log_weights - np.repeat(tops, np.diff(sk.layer_transition_ptr))  # small numbers have small errors
    pairs = np.add.reduceat(q, sk.transition_ptr[:-1])
    states = np.repeat(np.add.reduceat(pairs, sk.pair_ptr[:-2]), np.diff(sk.pair_ptr[:-1]))
    present = q > 0
    cost = (q[present] * (np.log(q[present]) - log_w[present])).sum()
    value, known = cost - tops.sum(), np.abs(answer.log_weights[answer.log_weights > -np.inf])
    return Verification(
        flow=float(flow_violation(sk, q)),
        rows=float(row_violation(sk, sets, q)),
        policy=float(policy_violation(sk, answer.policy, pairs, states)),
        logs=float(np.maximum(log_violation(answer.log_q, q), log_violation(answer.log_pairs, pairs))),
        value=float(value),
        gap=float(cost + log_partition(answer, log_w, sets)),
        claims=float(np.maximum(answer.dual - value, np.maximum(value - answer.dual, 0) - answer.gap)),
        rounding=1e-14 * sk.num_steps * float(known.max(initial=0)),
    )


def well_formed(answer: "Projection") -> "Projection":
    """Check the type and length of every field, since a user can build a projection by hand."""
    sk = expect(Skeleton, answer.skeleton, "skeleton")
    expect(RowSet, answer.row_set, "row_set")  # type: ignore[type-abstract]
    n, pairs = (sk.num_transitions,), (sk.num_pairs,)
    shapes = {
        "log_weights": n, "log_q": n, "q": n, "policy": pairs, "log_pairs": pairs, "beta": (sk.num_states,),
    }  # fmt: skip
    arrays: Any = {name: exact_floats(getattr(answer, name), name, shape) for name, shape in shapes.items()}
    return replace(answer, **arrays, dual=real(answer.dual), gap=real(answer.gap))


def policy_violation(sk: Skeleton, policy: Array, pairs: Array, states: Array) -> Array:
    """The distance of the policy from that of q, and from a valid policy."""
    sums = np.add.reduceat(policy.astype(Long), sk.pair_ptr[:-2])
    return np.maximum(np.abs(pairs - states * policy).max(), np.maximum(np.abs(sums - 1).max(), (-policy).max()))


def log_violation(logs: Array, mass: Array) -> Array:
    """The largest difference between the logarithms given and those of the masses, except where masses underflow."""
    seen = mass > TINY
    apart = np.abs(logs[seen] - np.log(mass[seen])).max(initial=0)
    below = np.where(
        seen | (logs == -np.inf), 0, logs.astype(Long) - FAINT
    )  # an underflowed mass has a log below FAINT
    return np.maximum(apart, np.maximum(0, below).max(initial=0))


def layer_tops(answer: "Projection") -> Array:
    """The largest log weight of each layer."""
    tops = np.maximum.reduceat(answer.log_weights, answer.skeleton.layer_transition_ptr[:-1])
    return np.where(tops > -np.inf, tops, 0).astype(Long)


def log_partition(answer: "Projection", log_w: Array, sets: RowSets) -> Array:
    """sum_k ln sum over pairs of exp(-kappa(x, a) - beta(x)): minus this bounds the value of every q of the set."""
    sk = answer.skeleton
    possible, met = feasible(sk, answer.log_weights, sets)
    pairs = possible & met[sk.state_of_pair]
    moves = np.logical_or.reduceat(answer.log_q > -np.inf, sk.transition_ptr[:-1])
    if (
        answer.beta[0] != 0
        or answer.beta[-1] != 0
        or not np.isfinite(answer.beta[met]).all()
        or not (np.isfinite(answer.log_pairs) & moves)[pairs].all()
    ):
        return Long(np.inf)  # the answer leaves out a feasible state or pair
    beta = np.where(met, answer.beta, 0.0).astype(Long)
    masses = np.where(pairs, -row_bounds(answer, log_w, sets, beta, met) - beta[sk.state_of_pair], -np.inf)
    return log_sums(masses, sk.layer_pair_ptr[:-1]).sum()


def row_bounds(answer: "Projection", log_w: Array, sets: RowSets, beta: Array, met: Flags) -> Array:
    """A lower bound on kappa(x, a) for each feasible pair."""
    sk, first = answer.skeleton, answer.skeleton.transition_ptr[:-1]
    allowed = (answer.log_weights > -np.inf) & met[sk.successor]
    log_u = np.where(allowed, log_w, 0) + beta[sk.successor]
    moves = allowed & (answer.log_q > -np.inf)
    known = np.where(answer.log_pairs > -np.inf, answer.log_pairs, 0)
    log_p = np.where(moves, answer.log_q.astype(Long) - sk.over_transitions(known), -np.inf)
    t = np.where(moves, log_p, 0) - log_u
    used = np.logical_or.reduceat(moves, first)
    least = np.where(used, np.minimum.reduceat(np.where(moves, t, np.inf), first), 0)
    most = np.where(used, np.maximum.reduceat(np.where(moves, t, -np.inf), first), 0)
    # Without mass any t is valid: take the smallest where mass is possible, else the largest.
    t = np.where(moves, t, np.where(allowed, sk.over_transitions(least), sk.over_transitions(most)))
    inside = allowed & (sets.high > 0) if sets.is_box else allowed
    total = np.where(used, log_sums(np.where(inside, log_u + t, -np.inf), first), 0)
    kappa = least - total
    if sets.is_box:
        kappa = np.fmax(kappa, box_bound(sk, sets, t, inside) - total)
    else:
        linear = np.add.reduceat(sets.low * t, first) - sets.radius * (most - least) / 2
        kappa = np.fmax(kappa, np.where(sets.radius < 2, linear - total, -np.inf))
    log_low = np.log(np.where(sets.low > 0, sets.low, 1).astype(Long))
    point = np.add.reduceat(sets.low * (log_low - np.where(allowed, log_u, 0)), first)
    return np.where(sets.radius == 0, point, kappa)


def box_bound(sk: Skeleton, sets: RowSets, t: Array, inside: Flags) -> Array:
    """max over s of s - sum (s - t)_+ high + sum (t - s)_+ low.

    It is concave and piecewise linear in s. So its maximum is at the first t of the row, in ascending order, beyond
    which the slope is not positive; beyond t, the slope is 1 - sum of high up to this t - sum of low above it.
    """
    first, row = sk.transition_ptr[:-1], sk.over_transitions(np.arange(sk.num_pairs))
    low, high = (np.where(inside, bound, 0).astype(Long) for bound in (sets.low, sets.high))
    order = np.lexsort((t, row))
    fall = np.cumsum((high - low)[order])
    room = (
        np.append(Long(0), fall)[first] + 1 - np.add.reduceat(low, first)
    )  # the sum of high - low that makes the slope 0
    beyond = np.where(fall >= sk.over_transitions(room), t[order], np.inf)
    highest = np.maximum.reduceat(np.where(inside, t, -np.inf), first)  # if rounding makes the function rise to the end
    s = np.minimum(np.minimum.reduceat(beyond, first), highest)
    known = np.where(np.isfinite(s), s, 0)
    apart = sk.over_transitions(known) - t
    cost = np.where(apart > 0, apart * high, apart * low)
    return np.where(np.isfinite(s), known - np.add.reduceat(cost, first), -np.inf)


def feasible(sk: Skeleton, log_weights: Array, sets: RowSets) -> tuple[Flags, Flags]:
    """The pairs with a row in their set that avoids all dead ends, and the states on feasible paths."""
    possible, met = np.zeros(sk.num_pairs, bool), np.zeros(sk.num_states, bool)
    met[-1] = True  # for now: from here the last state can be reached
    for k in range(sk.num_steps - 1, -1, -1):
        pairs, at = layer_slices(sk, k)
        avoided = (log_weights[at] == -np.inf) | ~met[sk.successor[at]]
        possible[pairs] = can_avoid(sets, pairs, at, avoided, sk.transition_ptr[pairs.start : pairs.stop] - at.start)
        np.logical_or.at(met, sk.state_of_pair[pairs], possible[pairs])
    onward = met.copy()
    met[1:] = False
    has_mass = (sets.high > 0) if sets.is_box else (sets.low > 0) | (sk.over_transitions(sets.radius) > 0)
    for k in range(sk.num_steps):
        pairs, at = layer_slices(sk, k)
        used = sk.over_transitions(possible & met[sk.state_of_pair])[at] & has_mass[at] & (log_weights[at] > -np.inf)
        met[sk.successor[at][used & onward[sk.successor[at]]]] = True
    return possible, met


def layer_slices(sk: Skeleton, k: int) -> tuple[slice, slice]:
    """The pairs and the transitions of layer k."""
    return (
        slice(sk.layer_pair_ptr[k], sk.layer_pair_ptr[k + 1]),
        slice(sk.layer_transition_ptr[k], sk.layer_transition_ptr[k + 1]),
    )


def can_avoid(sets: RowSets, pairs: slice, at: slice, avoided: Flags, first: Array) -> Flags:
    """For the pairs of a layer: whether some row of the set has no mass on the avoided entries."""
    radius, low = sets.radius[pairs], sets.low[at]
    forced = np.add.reduceat(np.where(avoided, low, 0), first)
    if sets.is_box:
        room = np.add.reduceat(np.where(avoided, 0, sets.high[at]).astype(Long), first)
        fits = (forced == 0) & ((room >= 1 - ROUNDING) | (radius == 0))
    else:
        fits = (radius >= 2) | (forced <= np.where(radius > 0, radius / 2 + ROUNDING, 0))
    avoids: Flags = ~np.logical_and.reduceat(avoided, first) & fits
    return avoids


def flow_violation(sk: Skeleton, q: Array) -> Array:
    """The largest violation of a layer's sum and of a state's balance."""
    layers = np.abs(np.add.reduceat(q, sk.layer_transition_ptr[:-1]) - 1).max()
    outflow = np.add.reduceat(q, sk.transition_ptr[sk.pair_ptr[:-2]])
    inflow = np.zeros(sk.num_states, Long)
    np.add.at(inflow, sk.successor, q)
    balance = np.abs(inflow[1:-1] - outflow[1:]).max(initial=0)
    return np.maximum(np.maximum(layers, balance), (-q).max())


def row_violation(sk: Skeleton, sets: RowSets, q: Array) -> Array:
    """The largest distance of a row from its set, times the mass of its pair."""
    first = sk.transition_ptr[:-1]
    mass = np.add.reduceat(q, first)
    low = sets.low * sk.over_transitions(mass)
    if sets.is_box:
        return np.maximum(0, np.maximum(low - q, q - sets.high * sk.over_transitions(mass)).max())
    distance = np.add.reduceat(np.abs(q - low), first) - sets.radius * mass
    return np.maximum(0, np.where(sets.radius < 2, distance, 0).max())


def log_sums(values: Array, first: Array) -> Array:
    """ln sum exp over the runs that begin at ``first``."""
    tops = np.maximum.reduceat(values, first)
    tops = np.where(tops > -np.inf, tops, 0)
    sizes = np.diff(np.append(first, len(values)))
    with np.errstate(divide="ignore"):  # an empty sum
        return tops + np.log(np.add.reduceat(np.exp(values - np.repeat(tops, sizes)), first))
