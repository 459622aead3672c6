"""The sums over rows that the certificate needs, from the logarithms prepared for a run of states."""

import cython
from cython.cimports.advmdp.projection.kernels.types import LIFT, run_row
from cython.cimports.libc.math import fabs

FAR = cython.declare(cython.double, 1e300)
TINY = cython.declare(cython.double, 1e-290)
LOG_TINY = cython.declare(cython.double, -667.7495)  # just above ln 1e-290 + AGREE
AGREE = cython.declare(cython.double, 1e-5)  # the most that log_q may differ from ln q, however small q is


def sum_masses(sk, w, first, end):
    """mass(x,a) = sum of |q| for some pairs; NaN if an entry is."""
    for pair in range(first, end):
        s = 0.0
        for i in range(sk.transition_ptr[pair], sk.transition_ptr[pair + 1]):
            s += fabs(w.q[i])
        w.mass[pair] = s


def sum_entries(log_u, u, known, side, q, log_q, size, log_pair, sums):
    """sum u and its magnitude; the cost sum q ln(p/u) and its magnitude; stray entries; sum q |ln q - log_q|.

    `log_q` is used only where q underflows, and checked elsewhere. Stray entries are forbidden ones with mass, and
    those whose log_q is not ln q.
    """
    total = magnitude = cost = weight = stray = apart = 0.0
    for j in range(size):
        present: cython.bint = log_u[j] > -FAR
        seen: cython.bint = q[j] > TINY
        given = log_q[j] if log_q[j] > -FAR else 0.0  # forbidden entries have no logarithm
        logs = log_u[j] if present else 0.0
        best = known[j] if seen else given
        size_of = fabs(logs) + side[j]
        off = fabs(known[j] - given)
        total += u[j]
        magnitude += u[j] * size_of
        cost += q[j] * (best - log_pair - logs)
        weight += q[j] * (size_of + fabs(best))
        apart += q[j] * off if seen else 0.0
        stray += 0.0 if present else fabs(q[j])
        stray += 0.0 if (off <= AGREE) | (q[j] <= TINY) else 1.0  # NaN too
        stray += 0.0 if seen | (log_q[j] <= LOG_TINY) else 1.0
    sums.total, sums.size, sums.cost, sums.weight = total, magnitude, cost, weight
    sums.stray, sums.apart = stray, apart


def sum_ball(log_u, side, t, tilted, center, size, sums):
    """sum u e^t, the same times its magnitude, sum c t and its magnitude; t in units where u is relative to offset."""
    total = magnitude = linear = weight = 0.0
    for j in range(size):
        size_of = (fabs(log_u[j]) if log_u[j] > -FAR else 0.0) + side[j] + fabs(t[j])
        total += tilted[j]
        magnitude += tilted[j] * size_of
        linear += center[j] * t[j]
        weight += center[j] * fabs(t[j])
    sums.tilted, sums.tilted_size, sums.linear, sums.linear_size = total, magnitude, linear, weight


def sum_box(log_u, side, t, tilted, low, high, size, log_s, sums):
    """sum u e^t, the same times its magnitude, sum (t - s)_+ low - sum (s - t)_+ high, and its magnitude."""
    total = magnitude = linear = weight = 0.0
    for j in range(size):
        size_of = (fabs(log_u[j]) if log_u[j] > -FAR else 0.0) + side[j] + fabs(t[j])
        above = (t[j] - log_s) * low[j] if t[j] > log_s else 0.0
        below = (log_s - t[j]) * high[j] if t[j] < log_s else 0.0
        total += tilted[j]
        magnitude += tilted[j] * size_of
        linear += above - below
        weight += above + below
    sums.tilted, sums.tilted_size, sums.linear, sums.linear_size = total, magnitude, linear, weight


def sum_point(log_u, side, center, log_center, size, sums):
    """kappa = sum P ln(P/u) and its magnitude."""
    kappa = weight = 0.0
    for j in range(size):
        logs = log_u[j] if center[j] > 0.0 else 0.0
        beside = side[j] if center[j] > 0.0 else 0.0
        kappa += center[j] * (log_center[j] - logs)
        weight += center[j] * (fabs(log_center[j]) + fabs(logs) + beside)
    sums.linear, sums.linear_size = kappa, weight


def row_distance(low, high, is_box, q, size, mass):
    """The L1 distance of a row from its centre, or the sum by which it violates its bounds; times its mass."""
    d = 0.0
    if is_box:
        for j in range(size):
            below, above = low[j] * mass - q[j], q[j] - high[j] * mass
            d += (below if below > 0.0 else 0.0) + (above if above > 0.0 else 0.0)
    else:
        for j in range(size):
            d += fabs(q[j] - low[j] * mass)
    return d


def tally_run(sk, sets, w, part, first, end, k):
    """Compute all sums over the rows of the pairs first .. end; their first watched pair is >= k."""
    number, sums = part.number, w.tallies + part.number * w.run_stride
    log_u, u, known = run_row(w, number, 0), run_row(w, number, 1), run_row(w, number, 2)
    side, t, tilted = run_row(w, number, 3), run_row(w, number, 4), run_row(w, number, 5)
    start = sk.transition_ptr[first]
    for pair in range(first, end):
        i, radius = sk.transition_ptr[pair], sets.radius[pair]
        e, size = i - start, sk.transition_ptr[pair + 1] - i
        sum_entries(log_u + e, u + e, known + e, side + e, w.q + i, w.log_q + i, size, w.excess[pair], sums)
        watched: cython.bint = k < part.watched_end and w.watched[k] == pair
        if radius == 0.0:
            sum_point(log_u + e, side + e, sets.low + i, sets.log_low + i, size, sums)
        elif watched and sets.is_box:
            log_s = w.log_a[k] + LIFT
            sum_box(log_u + e, side + e, t + e, tilted + e, sets.low + i, sets.high + i, size, log_s, sums)
        elif watched:
            sum_ball(log_u + e, side + e, t + e, tilted + e, sets.low + i, size, sums)
        if radius < 2.0:
            high = sets.high + i if sets.is_box else sets.low
            sums.distance = row_distance(sets.low + i, high, sets.is_box, w.q + i, size, w.mass[pair])
        k += watched
        sums += 1
