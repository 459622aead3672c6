"""The certificate: a bound on the distance of an answer from the optimum, by weak duality, in separate code.

Weak duality. For any beta with beta(x_0) = beta(x_L) = 0 and any numbers k(x,a) <= kappa(x,a; beta), no occupancy
measure of the set has sum q ln(q/w) below

    - sum_k ln S_k,    S_k = sum over pairs of layer k of exp(-k(x,a) - beta(x)).

With u(x') = w(x,a,x') exp(beta(x')), Lagrangian duality for one row gives such a k for any multipliers:

    any set     k = - ln sum u                                                      (ignores the constraints)
    L1 ball     k = sum c t - ln sum u e^t - epsilon (t_max - t_min) / 2            for any t(x')
    box         k = s - ln sum u e^t - sum (s - t)_+ high + sum (t - s)_+ low       for any t(x') and s
    point       k = sum P ln(P/u)

At the optimum t = ln(p/u). Here t = ln(c/u) clipped to [ln a, ln b], or ln s clipped to [ln(low/u), ln(high/u)]. From
the solver this uses only ln a, ln b or ln s of a pair; wrong values make the bound looser, never false.
With d(x,a) = exp(-k(x,a) - beta(x)) / S_k and p = q(x,a,.) / q(x,a), the gap between the answer and the bound is

    sum over pairs of q(x,a) [ sum p ln(p/u) - k(x,a) ]   +   sum over layers of KL(q(x,a) || d(x,a)),

two sums of nonnegative terms. So an error in a row, its cost or a mass is visible, and errors cannot cancel.

This holds for a feasible answer, so flow and rows are checked here too. Pairs without a feasible row, and states on no
feasible path, are excluded; this file determines them again, independently of the solver.

It shares with the solver the exponential and the logarithm, the sets as :meth:`RowSet.bounds` prepares them, and the
offsets that keep u in range; it rejects wrong offsets. The value of the answer comes from q, or from log_q where q
underflows; elsewhere log_q is compared with q.

Rounding. The error of ln u is some units in the last place of its largest summand. `doubt` sums these errors, weighted
by the masses of the entries, plus the cost of flow imbalances at their beta, to first order in the unit roundoff.

Pairs are processed in runs of whole states: first the logarithms of all entries, then the sums over rows
(`certificate_sums.py`), then the bounds.
"""

import cython
from cython.cimports.advmdp.projection.kernels.certificate_sums import sum_masses, tally_run
from cython.cimports.advmdp.projection.kernels.exact import (
    exponentials_or_infinite,
    exponentiate,
    logarithms_or_zero,
)
from cython.cimports.advmdp.projection.kernels.types import (
    EPSILON,
    IMPOSSIBLE,
    LIFT,
    first_entry,
    part_of,
    run_row,
)
from cython.cimports.advmdp.projection.kernels.weights import end_of_run
from cython.cimports.libc.math import INFINITY, fabs, log
from cython.parallel import prange

ULPS = cython.declare(cython.double, 4.0)  # twice the error of a sum of four logarithms, in ulps of its largest term
ROUNDING = cython.declare(cython.double, 1e-15)  # as in confidence.py
FAR = cython.declare(cython.double, 1e300)
TINY = cython.declare(cython.double, 1e-290)
OPEN = cython.declare(cython.double, 1.0)
SHUT = cython.declare(cython.double, 0.0)


def can_avoid(sk, sets, w, pair):
    """Whether some row of C(x,a) has no mass on forbidden entries or on states without a feasible path."""
    radius = sets.radius[pair]
    forced = allowed = lost = 0.0
    count = 0
    for i in range(sk.transition_ptr[pair], sk.transition_ptr[pair + 1]):
        if w.log_w[i] == -INFINITY or w.open_[sk.successor[i]] == SHUT:
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


def can_reach(sets, pair, i):
    """Whether some row of C(x,a) has mass on its entry i."""
    if sets.is_box:
        return sets.high[i] > 0.0
    return sets.radius[pair] > 0.0 or sets.low[i] > 0.0


def mark_feasible(sk, sets, w):
    """Set open_(x) = 1 for the states on a feasible path from the first state to the last, else 0 or -1.

    able(x,a) tells whether the pair can avoid the forbidden entries.
    """
    open_, last = w.open_, sk.states - 1
    for x in range(last - 1, -1, -1):
        open_[x] = SHUT
        for pair in range(sk.pair_ptr[x], sk.pair_ptr[x + 1]):
            w.able[pair] = can_avoid(sk, sets, w, pair)
            if w.able[pair]:
                open_[x] = OPEN
    for x in range(1, last + 1):
        open_[x] = -open_[x]  # not yet reached
    for x in range(last):
        if open_[x] != OPEN:
            continue
        for pair in range(sk.pair_ptr[x], sk.pair_ptr[x + 1]):
            if not w.able[pair]:
                continue
            for i in range(sk.transition_ptr[pair], sk.transition_ptr[pair + 1]):
                y = sk.successor[i]
                if open_[y] < 0.0 and w.log_w[i] > -INFINITY and can_reach(sets, pair, i):
                    open_[y] = OPEN


def mark_met(sk, w):
    """`mark_feasible` if nothing is forbidden, so every path is feasible."""
    for x in range(1, sk.states):
        w.open_[x] = SHUT
    for x in range(sk.states - 1):
        if w.open_[x] == OPEN:
            for i in range(first_entry(sk, x), first_entry(sk, x + 1)):
                w.open_[sk.successor[i]] = OPEN


def load_pair(sk, w, pair, log_u, side):
    """ln u relative to the offset, |beta(x')|, and the pair's part of the inflow."""
    begin, first, offset = sk.transition_ptr[pair], sk.first_of_pair[pair], w.offset[pair] + LIFT
    size, log_w, q = sk.transition_ptr[pair + 1] - begin, w.log_w + begin, w.q + begin
    if first >= 0:
        beta, inflow = w.beta + first, w.inflow + first
        for j in range(size):
            log_u[j] = log_w[j] + beta[j] - offset
            side[j] = fabs(beta[j]) if beta[j] > -FAR else 0.0
        for j in range(size):
            inflow[j] += q[j]
    else:
        successor = sk.successor + begin
        for j in range(size):
            here = w.beta[successor[j]]
            log_u[j] = log_w[j] + here - offset
            side[j] = fabs(here) if here > -FAR else 0.0
            w.inflow[successor[j]] += q[j]


def tilt_ball(center, log_center, log_u, size, log_a, log_b, t, tilted):
    """t = ln(c/u) clipped to [ln a, ln b], and ln(u e^t)."""
    for j in range(size):
        present: cython.bint = log_u[j] > -FAR
        ratio = log_center[j] - (log_u[j] if present else 0.0)
        clipped = ratio if ratio > log_a else log_a
        clipped = clipped if clipped < log_b else log_b
        tilt = clipped if center[j] > 0.0 else log_a
        t[j] = tilt if present else log_b  # a forbidden entry gets the largest tilt
        tilted[j] = log_u[j] + t[j]


def tilt_box(low, high, log_low, log_high, log_u, size, log_s, t, tilted):
    """t = ln s clipped to [ln(low/u), ln(high/u)], and ln(u e^t); an entry without mass costs nothing."""
    for j in range(size):
        present: cython.bint = (log_u[j] > -FAR) & (high[j] > 0.0)
        logs = log_u[j] if present else 0.0
        least, most = log_low[j] - logs, log_high[j] - logs
        tilt = log_s if log_s < most else most
        tilt = least if (low[j] > 0.0) & (least > tilt) else tilt
        t[j] = tilt if present else log_s
    for j in range(size):
        tilted[j] = log_u[j] + t[j] if high[j] > 0.0 else -INFINITY


def is_tilted(sets, w, pair, k):
    """Whether a pair, the k-th watched one, has multipliers that may improve its bound."""
    radius = sets.radius[pair]
    return 0.0 < radius < 2.0 and fabs(w.log_a[k] + LIFT) < FAR and fabs(w.log_b[k] + LIFT) < FAR


def prepare_run(sk, sets, w, part, first, end, k):
    """Compute all logarithms and exponentials of the states first .. end; their first watched pair is >= k."""
    begin, number = first_entry(sk, first), part.number
    size = first_entry(sk, end) - begin
    log_u, side, t, tilted = run_row(w, number, 0), run_row(w, number, 3), run_row(w, number, 4), run_row(w, number, 5)
    some: cython.bint = False
    for pair in range(sk.pair_ptr[first], sk.pair_ptr[end]):
        at = sk.transition_ptr[pair]
        e, count = at - begin, sk.transition_ptr[pair + 1] - at
        load_pair(sk, w, pair, log_u + e, side + e)
        if k < part.watched_end and w.watched[k] == pair:
            if is_tilted(sets, w, pair, k):
                some = True
                log_a, log_b, low, log_low = w.log_a[k] + LIFT, w.log_b[k] + LIFT, sets.low + at, sets.log_low + at
                if sets.is_box:
                    high, log_high = sets.high + at, sets.log_high + at
                    tilt_box(low, high, log_low, log_high, log_u + e, count, log_a, t + e, tilted + e)
                else:
                    log_a, log_b = min(log_a, log_b), max(log_a, log_b)
                    tilt_ball(low, log_low, log_u + e, count, log_a, log_b, t + e, tilted + e)
            k += 1
    exponentials_or_infinite(log_u, size, run_row(w, number, 1))
    logarithms_or_zero(w.q + begin, size, TINY, run_row(w, number, 2))
    if some:
        exponentials_or_infinite(tilted, size, tilted)


def log_masses(w, first, end):
    """Compute ln q(x,a) from the masses in range, for some pairs; stored in `excess` for now."""
    logarithms_or_zero(w.mass + first, end - first, TINY, w.excess + first)
    for pair in range(first, end):
        w.excess[pair] = w.excess[pair] if w.mass[pair] > TINY else w.log_pair[pair]


def bound_row(sets, w, pair, k, sums, more):
    """k(x,a) for u relative to the offset; adds its rounding error to `more`. k = -1 means not watched."""
    radius, total, size = sets.radius[pair], sums.total, sums.size
    if radius == 0.0:
        more[0] = sums.linear_size
        return sums.linear
    simple = -log(total) if total > 0.0 else INFINITY
    more[0] = size / total if total > 0.0 else 0.0
    if k < 0 or not is_tilted(sets, w, pair, k):
        return simple
    log_a, log_b = w.log_a[k] + LIFT, w.log_b[k] + LIFT
    linear_size = sums.linear_size
    if sets.is_box:
        bound = log_a + sums.linear
    else:
        log_a, log_b = min(log_a, log_b), max(log_a, log_b)
        bound = sums.linear - 0.5 * radius * (log_b - log_a)
        linear_size += radius * (log_b - log_a)
    if not 0.0 < sums.tilted < INFINITY:
        return simple
    bound -= log(sums.tilted)
    if bound > simple:
        more[0] = sums.tilted_size / sums.tilted + linear_size + fabs(log_a)
        return bound
    return simple


def judge_pair(sets, w, x, pair, k, count, sums):
    """Compute bound, excess and doubt of a pair with `count` entries; return the violation of its row."""
    here, offset, known, mass = w.beta[x], w.offset[pair] + LIFT, w.excess[pair], w.mass[pair]
    more = cython.declare(cython.double, 0.0)
    bound = bound_row(sets, w, pair, k, sums, cython.address(more))
    w.bound[pair] = -bound + offset - here
    w.excess[pair] = sums.cost - mass * bound if mass > 0.0 else 0.0
    large = more + fabs(here) + fabs(offset) + fabs(known) + (sums.weight / mass if mass > 0.0 else 0.0)
    w.doubt[pair] = 4.0 + count + large
    w.apart[x] += sums.apart + mass * fabs(known - w.log_pair[pair])
    if sums.stray > 0.0 or not fabs(bound) < FAR:  # an invalid entry, or a feasible pair without a bound
        return INFINITY
    if sets.radius[pair] >= 2.0:
        return 0.0
    return sums.distance if sets.is_box else max(0.0, sums.distance - sets.radius[pair] * mass)


def judge_run(sk, sets, w, part, first, end, k):
    """Judge the pairs of the states first .. end; return the number of the next watched pair.

    violation(x) is the sum over a state's rows. It is infinite if the solver and this file disagree on which pairs are
    feasible.
    """
    sums = w.tallies + part.number * w.run_stride
    for x in range(first, end):
        worst = INFINITY if (w.open_[x] == OPEN) != (w.alive[x] == 1) else 0.0
        w.apart[x] = 0.0
        for pair in range(sk.pair_ptr[x], sk.pair_ptr[x + 1]):
            watched: cython.bint = k < part.watched_end and w.watched[k] == pair
            possible: cython.bint = w.open_[x] == OPEN and (w.plain or w.able[pair])
            if w.open_[x] == OPEN and possible != (w.status[pair] != IMPOSSIBLE):
                worst, possible = INFINITY, False
            if possible:  # sums, since a maximum would lose NaN
                count = sk.transition_ptr[pair + 1] - sk.transition_ptr[pair]
                worst += judge_pair(sets, w, x, pair, k if watched else -1, count, sums)
            else:
                worst += 0.0 if w.mass[pair] == 0.0 else INFINITY
                w.bound[pair], w.excess[pair], w.mass[pair] = -INFINITY, 0.0, 0.0
            k += watched
            sums += 1
        w.violation[x] = worst
    return k


def weigh_part(sk, sets, w, number):
    """Judge all pairs of one part, run by run."""
    part = part_of(sk, w, number)
    for y in range(part.into, part.into_end):
        w.inflow[y] = 0.0
    k = part.watched
    for layer in range(part.layer, part.layer_end):
        first, last = sk.layer_ptr[layer], sk.layer_ptr[layer + 1]
        while first < last:
            end = end_of_run(sk, first, last)
            prepare_run(sk, sets, w, cython.address(part), first, end, k)
            sum_masses(sk, w, sk.pair_ptr[first], sk.pair_ptr[end])
            log_masses(w, sk.pair_ptr[first], sk.pair_ptr[end])
            tally_run(sk, sets, w, cython.address(part), sk.pair_ptr[first], sk.pair_ptr[end], k)
            k = judge_run(sk, sets, w, cython.address(part), first, end, k)
            first = end


def divergence(ratio):
    """ratio ln ratio - ratio + 1, without cancellation near one."""
    d = ratio - 1.0
    if fabs(d) < 1e-4:
        return d * d * (0.5 - d / 6.0)
    return ratio * log(ratio) - d if ratio > 0.0 else 1.0


def layer_gap(w, first, end):
    """ln S_k, the gap of the layer, its rounding error, and the sum of its q, for the pairs first .. end."""
    found: Layer
    top, s = -INFINITY, 0.0
    for pair in range(first, end):
        top = max(top, w.bound[pair])
    for pair in range(first, end):
        w.dual[pair] = w.bound[pair] - top
    exponentiate(w.dual + first, end - first)
    for pair in range(first, end):
        s += w.dual[pair]
    log_s = log(s) + top
    gap = mass = 0.0
    doubt = fabs(log_s) + (end - first)
    for pair in range(first, end):
        q, dual = w.mass[pair], w.dual[pair] / s
        if w.bound[pair] == -INFINITY:  # infeasible
            continue
        if dual > TINY:
            gap += w.excess[pair] + dual * divergence(q / dual)
        elif q > 0.0:
            gap += w.excess[pair] + q * (log(q) - w.bound[pair] + log_s)
        doubt += (q + dual) * w.doubt[pair]
        mass += q
    found.log_s, found.gap, found.doubt, found.mass = log_s, gap, EPSILON * ULPS * doubt, mass
    return found


def certify(sk, sets, w):
    """The gap, its rounding error, the violations of flow and rows, sum q |ln q - log_q|, and sum_k ln S_k.

    The gap is NaN if any of the others is NaN.
    """
    found: Certificate
    for x in range(sk.states):
        w.open_[x] = OPEN
    if not w.plain:
        mark_feasible(sk, sets, w)
    elif not sk.connected:
        mark_met(sk, w)
    if sk.parts > 1:
        for number in prange(sk.parts, num_threads=sk.parts, schedule="static"):
            weigh_part(sk, sets, w, number)
    else:
        weigh_part(sk, sets, w, 0)
    gap = doubt = flow = rows = total = lost = apart = 0.0
    for layer in range(sk.steps):
        first, end = sk.layer_ptr[layer], sk.layer_ptr[layer + 1]
        part = layer_gap(w, sk.pair_ptr[first], sk.pair_ptr[end])
        before = total
        total += part.log_s
        if fabs(before) >= fabs(part.log_s):  # Neumaier's sum
            lost += (before - total) + part.log_s
        else:
            lost += (part.log_s - total) + before
        gap += part.gap
        doubt += part.doubt + fabs(part.mass - 1.0) * fabs(part.log_s)
        flow = max(flow, fabs(part.mass - 1.0))
        for x in range(first, end):
            rows = max(rows, w.violation[x])
            apart += w.apart[x]
            outflow = 0.0
            for pair in range(sk.pair_ptr[x], sk.pair_ptr[x + 1]):
                outflow += w.mass[pair]
            miss = fabs(w.inflow[x] - outflow) if x > 0 else 0.0
            flow = max(flow, miss)
            gap += 0.0 * miss + 0.0 * w.violation[x]  # a maximum would lose NaN
            doubt += miss * fabs(w.beta[x]) if w.alive[x] else 0.0
    total += lost
    found.gap, found.doubt = gap + 0.0 * apart, doubt + EPSILON * fabs(total)
    found.flow, found.rows, found.apart, found.value = flow, rows, apart, total
    return found
