"""The answer, rebuilt from the policy and the rows at beta, so that it is feasible up to rounding.

A forward pass gives mu'(x') = sum mu'(x) pi(a|x) p(x'), hence an occupancy measure q' whose flow is conserved:
q' = q mu'(x)/mu(x), where mu is the outflow of the dual.

If log w is near 1e5, so are beta, ln Z and the offsets of the weights, and their sums have errors of 1e-11. So q' does
not use these sums. The mass of a state comes from the forward pass, and is split by numbers of order one and by
exponentials of differences of offsets, which are exact. Flow is conserved to the rounding of q', not that of log w.
"""

import cython
from cython.cimports.advmdp.projection.kernels.exact import exponential, exponentiate, log_row
from cython.cimports.advmdp.projection.kernels.sums import sum_of
from cython.cimports.advmdp.projection.kernels.types import (
    FREE,
    IMPOSSIBLE,
    LIFT,
    LIFT_REST,
    UNIT,
    first_entry,
    part_of,
    scratch_row,
)
from cython.cimports.libc.math import INFINITY, log
from cython.cimports.libc.string import memset
from cython.parallel import prange

SMALLEST_FACTOR = cython.declare(cython.double, 1e-150)


def forward_pass(sk, w):
    """Compute lift(x) = ln mu'(x)/mu(x) for masses in range; store mu', times 2^500, as inflow."""
    memset(w.inflow, 0, sk.states * cython.sizeof(cython.double))
    w.inflow[0] = 1.0 / UNIT
    for x in range(sk.states - 1):
        if not w.alive[x]:
            continue
        here, first, begin = UNIT * w.inflow[x], sk.first_of_state[x], sk.edge_ptr[x]
        w.lift[x] = log(here) - w.log_out[x]
        size, flow = sk.edge_ptr[x + 1] - begin, w.flow + begin
        if first >= 0:
            mass = w.inflow + first
            for j in range(size):
                mass[j] += here * flow[j]
        else:
            successor = sk.successor + first_entry(sk, x)
            for j in range(size):
                w.inflow[successor[j]] += here * flow[j]


def write_free_row(sk, w, pair, factor, shift, log_q):
    """log q and q of a free pair."""
    begin, first, offset = sk.transition_ptr[pair], sk.first_of_pair[pair], w.offset[pair]
    size, log_w, weight, q = sk.transition_ptr[pair + 1] - begin, w.log_w + begin, w.weight + begin, w.q + begin
    logs = log_q + begin
    if first >= 0:
        growth, beta = w.growth + first, w.beta + first
        for j in range(size):
            q[j] = factor * (UNIT * weight[j] * growth[j])
            logs[j] = log_w[j] + beta[j] - offset + shift
    else:
        successor = sk.successor + begin
        for j in range(size):
            q[j] = factor * (UNIT * weight[j] * w.growth[successor[j]])
            logs[j] = log_w[j] + w.beta[successor[j]] - offset + shift


def write_free(sk, w, part, log_q):
    """log q = log w + beta(x') - beta(x) - ln Z + lift(x) for every free pair."""
    for x in range(part.first, part.end):
        if not w.alive[x]:
            continue
        log_share = w.lift[x] + w.log_out[x] - w.log_total[x]
        known, factor = INFINITY, 0.0  # the pairs of a state usually share their offset
        for pair in range(sk.pair_ptr[x], sk.pair_ptr[x + 1]):
            if w.status[pair] != FREE:
                continue
            log_factor = log_share + (w.offset[pair] - w.top[x])
            if log_factor != known:
                known, factor = log_factor, exponential(log_factor)
            scale = factor if factor > SMALLEST_FACTOR else 1.0  # keeps the digits of the sum
            write_free_row(sk, w, pair, scale, log_factor - LIFT, log_q)
            begin = sk.transition_ptr[pair]
            size = sk.transition_ptr[pair + 1] - begin
            w.log_pair[pair] = log(sum_of(w.q + begin, size))
            if scale != factor:
                w.log_pair[pair] += log_factor
                for j in range(size):
                    w.q[begin + j] *= factor


def write_bounded(sets, begin, size, row, log_share, log_a, log_u, log_q):
    """log q of a point or of a tight row of a box, from the class of each entry, not from p."""
    low, log_low = sets.low + begin, sets.log_low + begin
    if sets.is_box:
        high, log_high = sets.high + begin, sets.log_high + begin
        for j in range(size):
            top = log_high[j] if row[j] > 0.0 else -INFINITY
            log_p = top if row[j] == high[j] else log_a + log_u[j]
            log_q[j] = log_share + (log_low[j] if (row[j] == low[j]) & (low[j] > 0.0) else log_p)
    else:
        for j in range(size):
            log_q[j] = log_share + log_low[j] if low[j] > 0.0 else -INFINITY


def write_ball(sk, sets, w, k, log_share, log_u, log_q):
    """log q of a tight row of an L1 ball, from the class of each entry, not from p."""
    pair, log_a, log_b = w.watched[k], w.log_a[k], w.log_b[k]
    begin = sk.transition_ptr[pair]
    row, low, log_low, logs = w.row + begin, sets.low + begin, sets.log_low + begin, log_q + begin
    for j in range(sk.transition_ptr[pair + 1] - begin):
        log_p = (log_b if row[j] < low[j] else log_a) + log_u[j]
        fixed: cython.bint = (row[j] == low[j]) & (low[j] > 0.0)
        logs[j] = log_share + (log_low[j] if fixed else log_p)


def write_watched(sk, sets, w, part, log_q):
    """log q = log p + ln q(x,a) for every watched pair."""
    log_u = scratch_row(w, part.number, 1)
    for k in range(part.watched, part.watched_end):
        pair, log_a = w.watched[k], w.log_a[k]
        x, begin, end = sk.state_of[pair], sk.transition_ptr[pair], sk.transition_ptr[pair + 1]
        shift = w.lift[x] + w.log_out[x] - w.log_total[x]
        log_share = shift + (w.log_mass[k] - w.top[x] - LIFT - LIFT_REST)
        w.log_pair[pair] = log_share
        log_row(sk, w, pair, log_u)
        logs = log_q + begin
        if not w.tight[pair]:
            for j in range(end - begin):
                logs[j] = log_share + (log_a + log_u[j])
        elif sets.is_box or sets.radius[pair] == 0.0:
            write_bounded(sets, begin, end - begin, w.row + begin, log_share, log_a, log_u, logs)
        else:
            write_ball(sk, sets, w, k, log_share, log_u, log_q)


def write_absent(sk, w, part, log_q):
    """Zero mass on impossible pairs and on states off all feasible paths."""
    for pair in range(sk.pair_ptr[part.first], sk.pair_ptr[part.end]):
        if w.status[pair] == IMPOSSIBLE or not w.alive[sk.state_of[pair]]:
            for i in range(sk.transition_ptr[pair], sk.transition_ptr[pair + 1]):
                log_q[i] = -INFINITY
                w.row[i] = 0.0
            w.log_pair[pair] = -INFINITY


def write_logs(sk, sets, w, number, log_q):
    """log q and ln q(x,a) of one part, lifted by exp(lift(x)), and q itself where a pair is free."""
    part = part_of(sk, w, number)
    write_free(sk, w, cython.address(part), log_q)
    write_watched(sk, sets, w, cython.address(part), log_q)
    write_absent(sk, w, cython.address(part), log_q)


def scale_rows(sk, w, part):
    """Overwrite p by q = q(x,a) p for every watched pair."""
    share = w.mass_a  # not `share`: that memory is the policy, which other threads write
    for k in range(part.watched, part.watched_end):
        share[k] = w.log_pair[w.watched[k]]
    exponentiate(share + part.watched, part.watched_end - part.watched)
    for k in range(part.watched, part.watched_end):
        pair = w.watched[k]
        for i in range(sk.transition_ptr[pair], sk.transition_ptr[pair + 1]):
            w.q[i] *= share[k]


def write_policy(sk, w, part):
    """pi(a|x) = q(x,a) / mu'(x), uniform in states without mass."""
    policy = w.policy
    for x in range(part.first, part.end):
        for pair in range(sk.pair_ptr[x], sk.pair_ptr[x + 1]):
            policy[pair] = w.log_pair[pair] - w.lift[x] - w.log_out[x] if w.alive[x] else -INFINITY
    first = sk.pair_ptr[part.first]
    exponentiate(policy + first, sk.pair_ptr[part.end] - first)
    for x in range(part.first, part.end):
        total = 0.0
        for pair in range(sk.pair_ptr[x], sk.pair_ptr[x + 1]):
            total += policy[pair]
        uniform = 1.0 / (sk.pair_ptr[x + 1] - sk.pair_ptr[x])
        for pair in range(sk.pair_ptr[x], sk.pair_ptr[x + 1]):
            policy[pair] = policy[pair] / total if total > 0.0 else uniform


def write_part(sk, sets, w, number):
    """Write log q', ln q'(x,a), the policy, and q' over the rows."""
    part = part_of(sk, w, number)
    write_logs(sk, sets, w, number, w.log_q)
    scale_rows(sk, w, cython.address(part))
    write_policy(sk, w, cython.address(part))


def write_answer(sk, sets, w):
    """Write all parts of the answer."""
    if sk.parts > 1:
        for number in prange(sk.parts, num_threads=sk.parts, schedule="static"):
            write_part(sk, sets, w, number)
    else:
        write_part(sk, sets, w, 0)
