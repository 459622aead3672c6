"""One pair (x,a) at fixed beta: the KL projection of u(x') = w(x,a,x') exp(beta(x')) onto C(x,a).

    kappa = min over p in C of sum_x' p ln(p/u)

L1 ball, centre Pbar, radius epsilon: p = u / sum u if that is inside; else p = median(Pbar, a u, b u) where

    sum (a u - Pbar)_+ = epsilon/2   (A: entries above the centre, mass_a)
    sum (Pbar - b u)_+ = epsilon/2   (B: entries below the centre, mass_b)

The first is convex and increasing in a, the second convex and decreasing in b, both piecewise linear, and at
a = b = 1/sum u both are too large. Newton from there is monotone and finite: it visits shrinking sets A and B and needs
no sort. Box: p = clip(s u, low, high) with sum p = 1, monotone in s; Newton on the set of unclipped entries.

Both need u within the range of a float64. Where u is so spread that the entries which decide b or s underflow, or
Newton does not settle, `log_rows.py` solves the same equations on ln u.

Which entries move is read off p. If a box leaves 0.52 to two entries, the first bounded by just that, the other of
relative weight exp(-200), then both move, though the first is closer to its bound than rounding can tell. Were it taken
for clipped, the other, left alone, would seem to have nowhere to go, and Newton would creep. So an entry that shares a
multiplier with others stays a unit in the last place below its bound, and below the centre of a ball.

kappa here is relative to the offset of u. A row inside its set counts as A, with a = b = 1/sum u; a box has only A,
with a = s.
"""

import cython
from cython.cimports.advmdp.projection.cython_kernels.exact import finish_rows, log_row
from cython.cimports.advmdp.projection.cython_kernels.log_rows import project_ball_log, project_box_log
from cython.cimports.advmdp.projection.cython_kernels.types import UNDER, Row, Split, scratch_row
from cython.cimports.libc.math import INFINITY, fabs

SMALLEST_PART = cython.declare(cython.double, 1e-130)  # a part of sum u below this may have lost entries that matter
NEWTON_PASSES = cython.declare(cython.int, 40)
LEAST = cython.declare(cython.double, -1e300)
ALMOST = cython.declare(cython.double, 1.0 + 2.0**-50)  # times a bound: what rounding may make of it


def load_row(sk, w, pair, begin, size, u):
    """Fill u of a pair; return sum u."""
    s = 0.0
    first, weight = sk.first_of_pair[pair], w.weight + begin
    if first >= 0:
        growth = w.growth + first
        for j in range(size):
            t = weight[j] * growth[j]
            u[j] = t
            s += t
    else:
        successor = sk.successor + begin
        for j in range(size):
            t = weight[j] * w.growth[successor[j]]
            u[j] = t
            s += t
    return s


def inside(u, size, s, p):
    """The row of a pair whose constraint does not bind: p = u / sum u."""
    scale = 1.0 / s
    for j in range(size):
        p[j] = scale * u[j]
    row: Row = Row(True, False, False, 0.0, scale, scale, 1.0, 0.0)
    return row


def split(u, center, size, a, b, p):
    """Write p = median(Pbar, a u, b u), for a <= b. Returns the sums of u and Pbar over A = {a u > Pbar} and over
    B = {b u < Pbar}.
    """
    u_a = center_a = u_b = center_b = 0.0
    for j in range(size):
        c, t = center[j], u[j]
        high, low = a * t, b * t
        middle = low if low < c else c
        p[j] = high if high > middle else middle
        u_a += t if high > c else 0.0
        center_a += c if high > c else 0.0
        u_b += t if low < c else 0.0
        center_b += c if low < c else 0.0
    sums: Split = Split(u_a, center_a, u_b, center_b)
    return sums


def known_sums(u, center, p, size):
    """The sums of `split` over the sets A and B of an earlier row p."""
    u_a = center_a = u_b = center_b = 0.0
    for j in range(size):
        c, t, here = center[j], u[j], p[j]
        u_a += t if here > c else 0.0
        center_a += c if here > c else 0.0
        u_b += t if here < c else 0.0
        center_b += c if here < c else 0.0
    sums: Split = Split(u_a, center_a, u_b, center_b)
    return sums


def settle_ball(u, center, size, half, s, guessed, p):
    """Newton on a and b, which leaves the cost of what is at the centre to be found.

    `guessed`: p holds an earlier row of the pair, which was tight, and Newton starts on its sets A and B. From any
    point on a convex function a step lands where that is not negative, so these need only not be empty, and a row turns
    out to be inside if a >= b. The pass that finds nothing to change has written the row.
    """
    row: Row = Row(False, True, False, 0.0, 0.0, 0.0, 0.0, 0.0)
    a = b = 1.0 / s
    sums: Split
    if guessed:
        sums = known_sums(u, center, p, size)
    else:
        sums = split(u, center, size, a, b, p)
        if a * sums.u_a - sums.center_a <= half:
            return inside(u, size, s, p)
    for _ in range(NEWTON_PASSES):
        if sums.u_b < SMALLEST_PART * s or sums.center_b <= half or sums.u_a <= 0.0:
            break
        next_a = (half + sums.center_a) / sums.u_a
        next_b = (sums.center_b - half) / sums.u_b
        if not guessed and next_a >= a and next_b <= b:
            if a >= b:
                return inside(u, size, s, p)
            return Row(True, True, False, 0.0, a, b, half + sums.center_a, sums.center_b - half)
        if guessed:
            a, b = next_a, next_b
        else:
            a, b = min(a, next_a), max(b, next_b)
        guessed = False
        sums = split(u, center, size, a, b, p)
    return row


def centre_cost(p, center, log_center, log_u, size):
    """The sum of Pbar ln(Pbar/u) over the entries that stay at the centre."""
    cost = 0.0
    for j in range(size):
        finite = log_u[j] if log_u[j] > LEAST else LEAST  # an entry with ln u = -inf stays there only at zero
        pinned = center[j] if p[j] == center[j] else 0.0
        cost += pinned * (log_center[j] - finite)
    return cost


def project_ball(sk, sets, w, pair, s, u, log_u, breaks):
    """Projection of u, whose sum is s, onto the L1 ball. A pair that was tight starts from its last sets."""
    begin, half = sk.transition_ptr[pair], 0.5 * sets.radius[pair]
    size = sk.transition_ptr[pair + 1] - begin
    center, log_center, p = sets.low + begin, sets.log_low + begin, w.row + begin
    row: Row = settle_ball(u, center, size, half, s, w.tight[pair] == 1, p)
    if not row.settled and w.tight[pair] == 1:
        row = settle_ball(u, center, size, half, s, False, p)
    if not row.settled:
        log_row(sk, w, pair, log_u)
        return project_ball_log(log_u, center, log_center, size, half, p, breaks)
    if row.tight:
        log_row(sk, w, pair, log_u)
        row.cost = centre_cost(p, center, log_center, log_u, size)
    return row


def settle_box(u, low, high, size, whole):
    """Newton on s, from where no bound binds; 0 if it does not settle."""
    s = 1.0 / whole
    before = INFINITY
    for _ in range(NEWTON_PASSES + 1):
        if fabs(s - before) <= 4e-16 * s:
            return s
        free = clipped = 0.0
        for j in range(size):
            t, lower, upper = u[j], low[j], high[j]
            v = s * t
            bound = lower if v <= lower else upper
            inner: cython.bint = (v > lower) & (v < upper)
            free += t if inner else 0.0
            clipped += 0.0 if inner else bound
        if free < SMALLEST_PART * whole:
            return 0.0
        before = s
        s = (1.0 - clipped) / free
        if not 0.0 < s < INFINITY:
            return 0.0
    return 0.0


def finish_box(u, log_u, low, high, log_low, log_high, size, s, p):
    """Write p = clip(s u, low, high); add up its cost."""
    mass = cost = clipped = 0.0
    for j in range(size):
        v, lower, upper = s * u[j], low[j], high[j]
        limit = UNDER * upper
        value = v if v < limit else limit
        value = upper if v > ALMOST * upper else value
        p[j] = lower if (v <= lower) | (lower >= limit) else value
    for j in range(size):  # what moves is below its upper bound and above its lower one
        here, lower, log_lower, log_upper = p[j], low[j], log_low[j], log_high[j]
        finite = log_u[j] if log_u[j] > LEAST else LEAST
        price = here * ((log_lower if here == lower else log_upper) - finite)
        moves: cython.bint = (here > lower) & (here < high[j])
        mass += here if moves else 0.0
        cost += 0.0 if moves else price
        clipped += 0.0 if moves | (finite <= LEAST) else 1.0
    row: Row = Row(True, clipped > 0.0, False, cost, s, s, mass, 0.0)
    return row


def project_box(sk, sets, w, pair, s, u, log_u, breaks):
    """Projection of u, whose sum is s, onto the box. `breaks` is memory for one row."""
    begin = sk.transition_ptr[pair]
    size = sk.transition_ptr[pair + 1] - begin
    low, high, log_low, log_high = sets.low + begin, sets.high + begin, sets.log_low + begin, sets.log_high + begin
    scale = settle_box(u, low, high, size, s)
    log_row(sk, w, pair, log_u)
    if scale == 0.0:
        return project_box_log(log_u, low, high, log_low, log_high, size, w.row + begin, breaks)
    return finish_box(u, log_u, low, high, log_low, log_high, size, scale, w.row + begin)


def project_point(sk, sets, w, pair, log_u):
    """A set of one row: p = P and kappa = sum P ln(P/u)."""
    log_row(sk, w, pair, log_u)
    begin = sk.transition_ptr[pair]
    center, log_center, p = sets.low + begin, sets.log_low + begin, w.row + begin
    kappa = 0.0
    for j in range(sk.transition_ptr[pair + 1] - begin):
        p[j] = center[j]
        kappa += center[j] * (log_center[j] - log_u[j]) if center[j] > 0.0 else 0.0
    row: Row = Row(True, True, True, kappa, 0.0, 0.0, 0.0, 0.0)
    return row


def project_watched(sk, sets, w, part):
    """The rows of all watched pairs at the current beta. Rows that were tight start from their last sets."""
    u, log_u = scratch_row(w, part.number, 0), scratch_row(w, part.number, 1)
    breaks = scratch_row(w, part.number, 3)  # which Newton's step uses, at another time
    row: Row
    for k in range(part.watched, part.watched_end):
        pair = w.watched[k]
        begin = sk.transition_ptr[pair]
        if sets.radius[pair] == 0.0:
            row = project_point(sk, sets, w, pair, log_u)
        else:
            s = load_row(sk, w, pair, begin, sk.transition_ptr[pair + 1] - begin, u)
            if sets.is_box:
                row = project_box(sk, sets, w, pair, s, u, log_u, breaks)
            else:
                row = project_ball(sk, sets, w, pair, s, u, log_u, breaks)
        w.tight[pair] = row.tight
        w.ready[k] = row.ready
        w.log_mass[k] = row.cost  # until `finish_rows` has the logarithms of a and b
        w.log_a[k] = row.a
        w.log_b[k] = row.b
        w.mass_a[k] = row.mass_a
        w.mass_b[k] = row.mass_b
    finish_rows(w, part)
