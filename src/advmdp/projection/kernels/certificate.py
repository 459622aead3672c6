"""The certificate: how far an answer is from the optimum at the most, by weak duality, in code of its own.

Weak duality. For any beta with beta(x_0) = beta(x_L) = 0 and any numbers k(x,a) <= kappa(x,a; beta), no occupancy
measure of the set has sum q ln(q/w) below

    - sum_k ln S_k,    S_k = sum over pairs of layer k of exp(-k(x,a) - beta(x)).

With u(x') = w(x,a,x') exp(beta(x')), Lagrangian duality for one row gives such a k for any multipliers:

    any set     k = - ln sum u                                                      (no constraint is looked at)
    L1 ball     k = sum c t - ln sum u e^t - epsilon (t_max - t_min) / 2            for any t(x')
    box         k = s - ln sum u e^t - sum (s - t)_+ high + sum (t - s)_+ low       for any t(x') and s
    point       k = sum P ln(P/u)

At the optimum t = ln(p/u). Here t = ln(c/u) clipped to [ln a, ln b], or ln s clipped to [ln(low/u), ln(high/u)]: of the
solver's work only the numbers ln a, ln b or ln s of a pair are used, and wrong ones make the bound worse, not false.
With d(x,a) = exp(-k(x,a) - beta(x)) / S_k and p = q(x,a,.) / q(x,a), the gap between the answer and the bound is

    sum over pairs of q(x,a) [ sum p ln(p/u) - k(x,a) ]   +   sum over layers of KL(q(x,a) || d(x,a)),

two sums of terms that are not negative: an error in a row, in its cost or in a mass shows, and none cancels another.

This holds for an answer that is feasible, so flow and rows are checked here too. Pairs without a feasible row, and
states that no feasible path meets, take no part; which ones these are is worked out here once more.

It shares with the solver the exponential and the logarithm, the sets as :meth:`RowSet.bounds` prepares them, and the
offsets that keep u in range; wrong offsets are refused. The value of the answer comes from q; from log_q only where q
underflows, and log_q is compared with q elsewhere.

Rounding. A logarithm ln u is known to some units in the last place of its largest summand. `doubt` adds that up, entry
by entry and times their masses, with what a miss in the flow costs at its beta, to first order in the unit roundoff.
"""

import numpy as np
from numba import prange

from advmdp.confidence.sets import RowSets
from advmdp.projection.kernels.compiled import (
    compiled,
    compiled_in_place,
    compiled_inline,
    compiled_parallel,
    compiled_sums,
    unsigned,
)
from advmdp.projection.kernels.exponential import exponential
from advmdp.projection.kernels.logarithm import logarithm
from advmdp.projection.kernels.parts import Part, part_of
from advmdp.projection.kernels.types import (
    BETA,
    FIRST_OF_PAIR,
    INFLOW,
    LOG_A,
    LOG_B,
    LOG_MASS,
    MASS_A,
    MASS_B,
    OFFSET,
    OUTFLOW,
    PAIR_PTR,
    PRODUCT,
    STATUS,
    STEP,
    THERE,
    Floats,
    Structure,
    Work,
)
from advmdp.projection.kernels.weights import LIFT

EPSILON = 2.0**-52
ULPS = 4.0  # units in the last place of its largest term that a sum of four logarithms may be off, and as much again
WATCHED, IMPOSSIBLE = 1, 2  # as in weights.py
ROUNDING = 1e-15  # as in confidence.py
FAR = 1e300
TINY = 1e-290
BOUND, EXCESS, DOUBT, MASS = LOG_MASS, MASS_A, MASS_B, LOG_B  # what `weigh_pair` leaves in the rows of the pairs
OPEN_TO, VIOLATION, APART = PRODUCT, OUTFLOW, STEP  # and others in the rows of the states
LARGEST_LOG = 709.0  # beyond it `exponential` has no number
AGREE = 1e-5  # the most that log_q may differ from ln q, however small q is
OPEN, SHUT = 1.0, 0.0


@compiled
def can_avoid(structure: Structure, log_w: Floats, sets: RowSets, open_: Floats, pair: int) -> bool:
    """Whether some row of C(x,a) has no mass on forbidden entries and on states without a feasible path."""
    radius = sets.radius[pair]
    forced = allowed = lost = 0.0
    count = 0
    for i in range(structure.transition_ptr[pair], structure.transition_ptr[pair + 1]):
        if log_w[i] == -np.inf or open_[structure.successor[i]] == SHUT:
            forced += sets.low[i] if radius < 2.0 or sets.is_box else 0.0
        else:
            count += 1
            term = (sets.high[i] if sets.is_box else 0.0) - lost  # a compensated sum: its last digits decide
            total = allowed + term
            lost = (total - allowed) - term
            allowed = total
    if count == 0:
        return False
    if sets.is_box:
        return forced == 0.0 and (radius >= 2.0 or radius == 0.0 or allowed >= 1.0 - ROUNDING)
    return forced <= (0.5 * radius + ROUNDING if radius > 0.0 else 0.0)


@compiled
def can_reach(sets: RowSets, pair: int, i: int) -> bool:
    """Whether some row of C(x,a) has mass on its entry i."""
    if sets.is_box:
        return bool(sets.high[i] > 0.0)
    return bool(sets.radius[pair] > 0.0 or sets.low[i] > 0.0)


@compiled
def mark_feasible(structure: Structure, log_w: Floats, sets: RowSets, open_: Floats) -> None:
    """open_(x) = 1 for the states that a feasible path from the first state to the last may meet, else 0."""
    last = open_.shape[0] - 1
    pair_ptr = structure.states[PAIR_PTR]
    open_[last] = OPEN
    for x in range(last - 1, -1, -1):
        open_[x] = SHUT
        for pair in range(pair_ptr[x], pair_ptr[x + 1]):
            if can_avoid(structure, log_w, sets, open_, pair):
                open_[x] = OPEN
    for x in range(1, last + 1):
        open_[x] = -open_[x]  # not yet met
    for x in range(last):
        if open_[x] != OPEN:
            continue
        for pair in range(pair_ptr[x], pair_ptr[x + 1]):
            if not can_avoid(structure, log_w, sets, open_, pair):
                continue
            for i in range(structure.transition_ptr[pair], structure.transition_ptr[pair + 1]):
                y = structure.successor[i]
                if open_[y] < 0.0 and log_w[i] > -np.inf and can_reach(sets, pair, i):
                    open_[y] = OPEN


@compiled_sums
def free_terms(
    log_w: Floats, log_q: Floats, q: Floats, begin: int, size: int, beta: Floats, first: int, offset: float,
    log_pair: float,
) -> tuple[float, float, float, float, float, float]:  # fmt: skip
    """sum u and its magnitude; the cost sum q ln(p/u) and its magnitude; what must not be; sum q |ln q - log_q|.

    `log_q` is used where q underflows only, and checked elsewhere. What must not be is mass on forbidden entries, and
    entries whose log_q is not ln q.
    """
    s = m = cost = weight = stray = apart = 0.0
    at, there = unsigned(begin), unsigned(first)
    for j in range(unsigned(size)):
        i = at + j
        log_u = log_w[i] + beta[there + j] - offset
        seen = q[i] > TINY
        exact = logarithm(q[i] if seen else 1.0)
        given = log_q[i] if log_q[i] > -FAR else 0.0  # what is forbidden has no logarithm
        known = exact if seen else given
        open_ = log_u > -FAR
        logs = log_u if open_ else 0.0
        u = exponential(logs) if open_ else 0.0
        u = u if logs < LARGEST_LOG else np.inf
        size_of = abs(logs) + abs(beta[there + j] if beta[there + j] > -FAR else 0.0)
        s += u
        m += u * size_of
        cost += q[i] * (known - log_pair - logs)
        weight += q[i] * (size_of + abs(known))
        stray += 0.0 if open_ else abs(q[i])
        apart += q[i] * abs(exact - given) if seen else 0.0
        stray += 0.0 if (not seen) | (abs(exact - given) <= AGREE) else 1.0  # NaN too
    return s, m, cost, weight, stray, apart


@compiled_sums
def sum_row(q: Floats, begin: int, end: int) -> float:
    """The sum of |q|: NaN if there is one."""
    s = 0.0
    for i in range(unsigned(begin), unsigned(end)):
        s += abs(q[i])
    return s


@compiled_sums
def ball_terms(
    log_w: Floats, center: Floats, log_center: Floats, begin: int, size: int, beta: Floats, first: int, offset: float,
    log_a: float, log_b: float,
) -> tuple[float, float, float, float]:  # fmt: skip
    """sum u e^t, the same times its magnitude, sum c t and its magnitude; t in units where u is relative to offset."""
    s = m = linear = weight = 0.0
    at, there = unsigned(begin), unsigned(first)
    for j in range(unsigned(size)):
        i = at + j
        log_u = log_w[i] + beta[there + j] - offset
        logs = log_u if log_u > -FAR else 0.0
        ratio = log_center[i] - logs
        clipped = ratio if ratio > log_a else log_a
        clipped = clipped if clipped < log_b else log_b
        t = clipped if center[i] > 0.0 else log_a
        t = t if log_u > -FAR else log_b  # a forbidden entry wants its mass elsewhere
        value = exponential(log_u + t) if log_u + t < LARGEST_LOG else np.inf
        size_of = abs(logs) + abs(beta[there + j] if beta[there + j] > -FAR else 0.0) + abs(t)
        s += value
        m += value * size_of
        linear += center[i] * t
        weight += center[i] * abs(t)
    return s, m, linear, weight


@compiled_sums
def box_terms(
    log_w: Floats, low: Floats, high: Floats, log_low: Floats, log_high: Floats, begin: int, size: int, beta: Floats,
    first: int, offset: float, log_s: float,
) -> tuple[float, float, float, float]:  # fmt: skip
    """sum u e^t, the same times its magnitude, sum (t - s)_+ low - sum (s - t)_+ high, and its magnitude."""
    s = m = linear = weight = 0.0
    at, there = unsigned(begin), unsigned(first)
    for j in range(unsigned(size)):
        i = at + j
        log_u = log_w[i] + beta[there + j] - offset
        present = (log_u > -FAR) & (high[i] > 0.0)  # else its mass is zero, and costs nothing
        logs = log_u if log_u > -FAR else 0.0
        least, most = log_low[i] - logs, log_high[i] - logs
        t = log_s if log_s < most else most
        t = least if (low[i] > 0.0) & (least > t) else t
        t = t if present else log_s
        value = exponential(log_u + t) if log_u + t < LARGEST_LOG else np.inf
        value = value if present else 0.0
        size_of = abs(logs) + abs(beta[there + j] if beta[there + j] > -FAR else 0.0) + abs(t)
        above = (t - log_s) * low[i] if t > log_s else 0.0
        below = (log_s - t) * high[i] if t < log_s else 0.0
        s += value
        m += value * size_of
        linear += above - below
        weight += above + below
    return s, m, linear, weight


@compiled_sums
def point_terms(
    log_w: Floats, center: Floats, log_center: Floats, begin: int, size: int, beta: Floats, first: int, offset: float
) -> tuple[float, float]:
    """kappa = sum P ln(P/u) and its magnitude."""
    kappa = weight = 0.0
    at, there = unsigned(begin), unsigned(first)
    for j in range(unsigned(size)):
        i = at + j
        log_u = log_w[i] + beta[there + j] - offset
        here = center[i] > 0.0
        logs = log_u if here else 0.0
        side = beta[there + j] if here else 0.0
        kappa += center[i] * (log_center[i] - logs)
        weight += center[i] * (abs(log_center[i]) + abs(logs) + abs(side))
    return kappa, weight


@compiled_sums
def row_distance(sets_low: Floats, sets_high: Floats, is_box: bool, q: Floats, begin: int, size: int, mass: float
                 ) -> float:  # fmt: skip
    """How far the row is from its centre in L1 norm, or the sum of what it is beyond its bounds; times its mass."""
    d = 0.0
    at = unsigned(begin)
    if is_box:
        for j in range(unsigned(size)):
            below, above = sets_low[at + j] * mass - q[at + j], q[at + j] - sets_high[at + j] * mass
            d += (below if below > 0.0 else 0.0) + (above if above > 0.0 else 0.0)
    else:
        for j in range(unsigned(size)):
            d += abs(q[at + j] - sets_low[at + j] * mass)
    return d


@compiled
def bound_row(
    structure: Structure, log_w: Floats, sets: RowSets, work: Work, pair: int, beta: Floats, first: int, s: float,
    m: float,
) -> tuple[float, float]:  # fmt: skip
    """k(x,a) where u is relative to the offset, and how well it is known; s and m are sum u and its magnitude."""
    begin, end = structure.transition_ptr[pair], structure.transition_ptr[pair + 1]
    size, offset, radius = end - begin, work.pairs[OFFSET, pair] + LIFT, sets.radius[pair]
    if radius == 0.0:
        return point_terms(log_w, sets.low, sets.log_low, begin, size, beta, first, offset)
    simple = -np.log(s) if s > 0.0 else np.inf
    simple_doubt = m / s if s > 0.0 else 0.0
    log_a, log_b = work.pairs[LOG_A, pair] + LIFT, work.pairs[LOG_B, pair] + LIFT
    if radius >= 2.0 or work.marks[STATUS, pair] != WATCHED or not (abs(log_a) < FAR and abs(log_b) < FAR):
        return simple, simple_doubt
    if sets.is_box:
        total, weight, linear, more = box_terms(
            log_w, sets.low, sets.high, sets.log_low, sets.log_high, begin, size, beta, first, offset, log_a
        )
        k = log_a + linear
    else:
        log_a, log_b = min(log_a, log_b), max(log_a, log_b)
        total, weight, linear, more = ball_terms(
            log_w, sets.low, sets.log_low, begin, size, beta, first, offset, log_a, log_b
        )
        k = linear - 0.5 * radius * (log_b - log_a)
        more += radius * (log_b - log_a)
    if not 0.0 < total < np.inf:
        return simple, simple_doubt
    k -= np.log(total)
    return (k, weight / total + more + abs(log_a)) if k > simple else (simple, simple_doubt)


@compiled_inline
def weigh_pair(
    structure: Structure, log_w: Floats, sets: RowSets, work: Work, part: Part, x: int, pair: int, log_q: Floats,
    q: Floats, log_pair: Floats,
) -> float:  # fmt: skip
    """BOUND, EXCESS, DOUBT and MASS of one pair, and its part of the inflow; returns the violation of its row."""
    begin, end = structure.transition_ptr[pair], structure.transition_ptr[pair + 1]
    size, first, beta = end - begin, structure.pairs[FIRST_OF_PAIR, pair], work.states[BETA]
    at, inflow = unsigned(begin), work.states[INFLOW]
    if first >= 0:
        for j in range(unsigned(size)):
            inflow[unsigned(first) + j] += q[at + j]
    else:
        beta, first = work.scratch[part.number, THERE], 0
        for j in range(unsigned(size)):
            y = unsigned(structure.successor[at + j])
            beta[j] = work.states[BETA, y]
            inflow[y] += q[at + j]
    mass = sum_row(q, begin, end)
    known = np.log(mass) if mass > TINY else log_pair[pair]
    offset = work.pairs[OFFSET, pair] + LIFT  # the largest log u of the row, or of its state
    s, m, cost, weight, stray, apart = free_terms(log_w, log_q, q, begin, size, beta, first, offset, known)
    k, more = bound_row(structure, log_w, sets, work, pair, beta, first, s, m)
    here = work.states[BETA, x]
    work.pairs[BOUND, pair] = -k + offset - here
    work.pairs[EXCESS, pair] = cost - mass * k if mass > 0.0 else 0.0
    large = more + abs(here) + abs(offset) + abs(known) + (weight / mass if mass > 0.0 else 0.0)
    work.pairs[DOUBT, pair] = 4.0 + size + large
    work.pairs[MASS, pair] = mass
    work.states[APART, x] += apart + mass * abs(known - log_pair[pair])
    if stray > 0.0 or not abs(k) < FAR:  # what must not be; a possible pair without a bound
        return np.inf
    if sets.radius[pair] >= 2.0:
        return 0.0
    distance = row_distance(sets.low, sets.high, sets.is_box, q, begin, size, mass)
    return distance if sets.is_box else max(0.0, distance - sets.radius[pair] * mass)


@compiled
def weigh_part(
    structure: Structure, log_w: Floats, sets: RowSets, work: Work, part: Part, log_q: Floats, q: Floats,
    log_pair: Floats,
) -> None:  # fmt: skip
    """`weigh_pair` for all pairs of one part that take part. VIOLATION(x) is the sum over a state's rows.

    It is infinite where the solver and this file do not agree on what can take part at all.
    """
    pair_ptr, open_ = structure.states[PAIR_PTR], work.states[OPEN_TO]
    for y in range(part.into, part.into_end):
        work.states[INFLOW, y] = 0.0
    for x in range(part.first, part.end):
        worst = np.inf if (open_[x] == OPEN) != (work.alive[x] == 1) else 0.0
        work.states[APART, x] = 0.0
        for pair in range(pair_ptr[x], pair_ptr[x + 1]):
            possible = open_[x] == OPEN and (work.plain or can_avoid(structure, log_w, sets, open_, pair))
            if open_[x] == OPEN and possible != (work.marks[STATUS, pair] != IMPOSSIBLE):
                worst, possible = np.inf, False
            if possible:  # sums, since a maximum loses NaN
                worst += weigh_pair(structure, log_w, sets, work, part, x, pair, log_q, q, log_pair)
            else:
                left = sum_row(q, structure.transition_ptr[pair], structure.transition_ptr[pair + 1])
                worst += 0.0 if left == 0.0 else np.inf
                work.pairs[BOUND, pair], work.pairs[EXCESS, pair], work.pairs[MASS, pair] = -np.inf, 0.0, 0.0
        work.states[VIOLATION, x] = worst


@compiled_parallel
def weigh_parts(
    structure: Structure, log_w: Floats, sets: RowSets, work: Work, log_q: Floats, q: Floats, log_pair: Floats
) -> None:
    """`weigh_part`, a thread for each."""
    for number in prange(structure.parts.shape[0] - 1):
        weigh_part(structure, log_w, sets, work, part_of(structure, work, number), log_q, q, log_pair)


@compiled_inline
def divergence(ratio: float) -> float:
    """ratio ln ratio - ratio + 1, without cancellation near one."""
    d = ratio - 1.0
    if abs(d) < 1e-4:
        return d * d * (0.5 - d / 6.0)
    return float(ratio * np.log(ratio) - d if ratio > 0.0 else 1.0)


@compiled
def layer_gap(work: Work, first: int, end: int) -> tuple[float, float, float, float]:
    """ln S_k, the gap of the layer, what rounding may add to it, and the sum of its q; for the pairs first .. end."""
    pairs, top = work.pairs, -np.inf
    for pair in range(first, end):
        top = max(top, pairs[BOUND, pair])
    s = 0.0
    for pair in range(first, end):
        s += np.exp(pairs[BOUND, pair] - top)
    log_s = np.log(s) + top
    gap = mass = 0.0
    doubt = abs(log_s) + (end - first)
    for pair in range(first, end):
        q, dual = pairs[MASS, pair], np.exp(pairs[BOUND, pair] - log_s)
        if pairs[BOUND, pair] == -np.inf:  # it takes no part
            continue
        if dual > TINY:
            gap += pairs[EXCESS, pair] + dual * divergence(q / dual)
        elif q > 0.0:
            gap += pairs[EXCESS, pair] + q * (np.log(q) - pairs[BOUND, pair] + log_s)
        doubt += (q + dual) * pairs[DOUBT, pair]
        mass += q
    return log_s, gap, EPSILON * ULPS * doubt, mass


@compiled_in_place
def certify(
    structure: Structure, log_w: Floats, sets: RowSets, work: Work, log_q: Floats, q: Floats, log_pair: Floats
) -> tuple[float, float, float, float, float, float]:
    """The gap, what rounding may add to it, the violations of flow and rows, sum q |ln q - log_q|, and sum_k ln S_k.

    The gap is NaN where anything else is no number.
    """
    open_, states, pair_ptr = work.states[OPEN_TO], work.states, structure.states[PAIR_PTR]
    open_[:] = OPEN
    if not work.plain:
        mark_feasible(structure, log_w, sets, open_)
    if structure.parts.shape[0] > 2:
        weigh_parts(structure, log_w, sets, work, log_q, q, log_pair)
    else:
        weigh_part(structure, log_w, sets, work, part_of(structure, work, 0), log_q, q, log_pair)
    gap = doubt = flow = rows = total = lost = apart = 0.0
    for layer in range(structure.layer_ptr.shape[0] - 2):
        first, end = structure.layer_ptr[layer], structure.layer_ptr[layer + 1]
        log_s, more, unsure, mass = layer_gap(work, pair_ptr[first], pair_ptr[end])
        before, total = total, total + log_s
        lost += (before - total) + log_s if abs(before) >= abs(log_s) else (log_s - total) + before  # Neumaier's sum
        gap += more
        doubt += unsure + abs(mass - 1.0) * abs(log_s)
        flow = max(flow, abs(mass - 1.0))
        for x in range(first, end):
            rows = max(rows, states[VIOLATION, x])
            apart += states[APART, x]
            outflow = 0.0
            for pair in range(pair_ptr[x], pair_ptr[x + 1]):
                outflow += work.pairs[MASS, pair]
            miss = abs(states[INFLOW, x] - outflow) if x > 0 else 0.0
            flow = max(flow, miss)
            gap += 0.0 * miss + 0.0 * states[VIOLATION, x]  # a maximum loses NaN
            doubt += miss * abs(states[BETA, x]) if work.alive[x] else 0.0
    total += lost
    return gap + 0.0 * apart, doubt + EPSILON * abs(total), flow, rows, apart, total
