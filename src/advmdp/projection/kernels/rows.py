"""One pair (x,a) at fixed beta: the KL projection of u(x') = w(x,a,x') exp(beta(x')) onto C(x,a).

    kappa = min over p in C of sum_x' p ln(p/u)

L1 ball, centre Pbar, radius epsilon: p = u / sum u if that is inside; else p = median(Pbar, a u, b u) where

    sum (a u - Pbar)_+ = epsilon/2   (A: entries above the centre, mass_a)
    sum (Pbar - b u)_+ = epsilon/2   (B: entries below the centre, mass_b)

The first is convex and increasing in a, the second convex and decreasing in b. Both are piecewise linear, and both are
too large at a = b = 1/sum u. Newton's method from there is monotone and finite: the sets A and B only shrink, and no
sort is needed. Box: p = clip(s u, low, high) with sum p = 1, monotone in s; Newton on the set of unclipped entries.

Both need u within the range of a float64. If the entries that decide b or s underflow, or if Newton does not converge,
`log_rows.py` solves the same equations on ln u.

p tells which entries are free to move. Suppose that a box leaves 0.52 to two entries, that this is the bound of the
first, and that the other has relative weight exp(-200). Then both are free, though the first is within rounding of its
bound. If the first counted as clipped, the other would seem unable to move, and Newton would creep. So an entry that
shares a multiplier with others stays a unit in the last place below its bound, or below the centre of a ball.

The cost of the entries that do not move, a sum of p ln(p/u), needs the logarithms of all entries. But while these
entries stay the same, it changes with beta only by - sum p (beta - beta_base), so its value at beta_base is kept.

kappa here is relative to the offset of u. A row inside its set counts as A, with a = b = 1/sum u; a box has only A,
with a = s.
"""

import cython
from cython.cimports.advmdp.projection.kernels.exact import log_row
from cython.cimports.advmdp.projection.kernels.log_rows import project_ball_log, project_box_log
from cython.cimports.advmdp.projection.kernels.types import UNDER, Clip, Row
from cython.cimports.libc.math import INFINITY, NAN, fabs, isfinite

SMALLEST_PART = cython.declare(
    cython.double, 1e-130
)  # in a smaller part of sum u, entries that matter may have underflowed
NEWTON_PASSES = cython.declare(cython.int, 40)
LEAST = cython.declare(cython.double, -1e300)
ALMOST = cython.declare(cython.double, 1.0 + 2.0**-50)  # a factor on a bound that covers rounding
ROUNDING = cython.declare(cython.double, 1e-14)  # the rounding error of a sum of masses


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
    return Split(u_a, center_a, u_b, center_b)


def known_sums(u, center, p, size):
    """The sums of `split` over the sets A and B of an earlier row p."""
    u_a = center_a = u_b = center_b = 0.0
    for j in range(size):
        c, t, here = center[j], u[j], p[j]
        u_a += t if here > c else 0.0
        center_a += c if here > c else 0.0
        u_b += t if here < c else 0.0
        center_b += c if here < c else 0.0
    return Split(u_a, center_a, u_b, center_b)


def settle_ball(u, center, size, half, s, a, b, p, row):
    """Newton on a and b from a <= b; the cost at the centre is left to the caller. Returns whether it converges.

    Without a guess, start at a = b = 1/s. The row is inside if that is within the radius, or if later a >= b. The pass
    that changes nothing has written the row.
    """
    row.ready, row.cost = False, 0.0
    sums = split(u, center, size, a, b, p)
    if a == b and a * sums.u_a - sums.center_a <= half:
        row.tight, row.a, row.b, row.mass_a, row.mass_b = False, a, a, 1.0, 0.0
        return True
    for _ in range(NEWTON_PASSES):
        if sums.u_b < SMALLEST_PART * s or sums.center_b <= half or sums.u_a <= 0.0:
            break
        next_a = (half + sums.center_a) / sums.u_a
        next_b = (sums.center_b - half) / sums.u_b
        if next_a >= a and next_b <= b:
            row.tight, row.a, row.b = True, a, b
            row.mass_a, row.mass_b = half + sums.center_a, sums.center_b - half
            return True
        a, b = min(a, next_a), max(b, next_b)
        sums = split(u, center, size, a, b, p)
    return False


def settle_again(u, center, size, half, s, p, row):
    """`settle_ball` for a pair that was tight, from the sets A and B of its earlier row p.

    A Newton step on a convex function ends where it is not negative, so any nonempty sets will do. `cost` is NaN if
    they have changed.
    """
    sums = known_sums(u, center, p, size)
    if sums.u_b < SMALLEST_PART * s or sums.center_b <= half or sums.u_a <= 0.0:
        return False
    a, b = (half + sums.center_a) / sums.u_a, (sums.center_b - half) / sums.u_b
    if a >= b or not settle_ball(u, center, size, half, s, a, b, p, row):
        return False
    # Centres are often multiples of some 1/n, so different sets may have the same mass, but not the same a.
    same_mass: cython.bint = row.mass_a == half + sums.center_a and row.mass_b == sums.center_b - half
    row.cost = 0.0 if same_mass and row.a == a and row.b == b else NAN
    return True


def centre_cost(p, center, log_center, log_u, size):
    """The sum of Pbar ln(Pbar/u) over the entries that stay at the centre."""
    cost = 0.0
    for j in range(size):
        finite = (
            log_u[j] if log_u[j] > LEAST else LEAST
        )  # an entry with ln u = -inf can be at the centre only if that is zero
        pinned = center[j] if p[j] == center[j] else 0.0
        cost += pinned * (log_center[j] - finite)
    return cost


def centre_shift(p, center, shift, size):
    """The sum of Pbar (beta - beta_base) over the entries that stay at the centre."""
    moved = 0.0
    for j in range(size):
        moved += (center[j] if p[j] == center[j] else 0.0) * shift[j]
    return moved


def shifts_of(sk, w, pair, begin, size, room):
    """beta - beta_base of the successors of a pair, in `room` unless they are consecutive."""
    first = sk.first_of_pair[pair]
    if first >= 0:
        return w.shift + first
    successor = sk.successor + begin
    for j in range(size):
        room[j] = w.shift[successor[j]]
    return room


def project_ball(sk, sets, w, k, s, u, log_u, breaks, row):
    """Project u, whose sum is s, onto the L1 ball of the k-th watched pair."""
    pair = w.watched[k]
    begin, half = sk.transition_ptr[pair], 0.5 * sets.radius[pair]
    size = sk.transition_ptr[pair + 1] - begin
    center, log_center, p = sets.low + begin, sets.log_low + begin, w.row + begin
    settled: cython.bint = w.tight[pair] == 1 and settle_again(u, center, size, half, s, p, row)
    if settled:
        cost = w.cost[k] + row.cost
        if isfinite(cost):  # known at beta_base, with the same entries at the centre
            row.cost = cost - centre_shift(p, center, shifts_of(sk, w, pair, begin, size, log_u), size)
            return
    elif not settle_ball(u, center, size, half, s, 1.0 / s, 1.0 / s, p, row):
        log_row(sk, w, pair, log_u)
        w.cost[k] = NAN
        row[0] = project_ball_log(log_u, center, log_center, size, half, p, breaks)
        return
    if row.tight:
        log_row(sk, w, pair, log_u)
        row.cost = w.cost[k] = centre_cost(p, center, log_center, log_u, size)
        if not w.at_base:
            w.cost[k] += centre_shift(p, center, shifts_of(sk, w, pair, begin, size, log_u), size)


def settle_box(u, low, high, size, whole, start, found):
    """Newton on s from `start`, with sums over the free and the clipped entries; returns whether it converges."""
    s, before = start, INFINITY
    for _ in range(NEWTON_PASSES + 1):
        free = clipped = count = 0.0
        for j in range(size):
            t, lower, upper = u[j], low[j], high[j]
            v = s * t
            bound = lower if v <= lower else upper
            inner: cython.bint = (v > lower) & (v < upper)
            free += t if inner else 0.0
            clipped += 0.0 if inner else bound
            count += 0.0 if inner else 1.0
        if free < SMALLEST_PART * whole:
            return False
        before, s = s, (1.0 - clipped) / free
        if not 0.0 < s < INFINITY:
            return False
        if fabs(s - before) <= 4e-16 * s:
            found.s, found.free, found.clipped, found.count = s, free, clipped, count
            return True
    return False


def settle_box_again(u, low, high, size, whole, p, found):
    """`settle_box` for a pair that was tight, from the clipped entries of its earlier row p.

    The count is -1 if these have not changed.
    """
    free = clipped = 0.0
    for j in range(size):
        here = p[j]
        inner: cython.bint = (here > low[j]) & (here < high[j])
        free += u[j] if inner else 0.0
        clipped += 0.0 if inner else here
    if free < SMALLEST_PART * whole or clipped >= 1.0:
        return False
    if not settle_box(u, low, high, size, whole, (1.0 - clipped) / free, found):
        return False
    if found.free == free and found.clipped == clipped:
        found.count = -1.0
    return True


def clip_row(u, low, high, size, s, p):
    """Write p = clip(s u, low, high). Free entries stay strictly between their bounds."""
    for j in range(size):
        v, lower, upper = s * u[j], low[j], high[j]
        limit = UNDER * upper
        value = v if v < limit else limit
        value = upper if v > ALMOST * upper else value
        p[j] = lower if (v <= lower) | (lower >= limit) else value


def clip_cost(p, log_u, low, high, log_low, log_high, size, row):
    """The mass of the free entries of a clipped row, the cost of the others, and whether there are others."""
    mass = cost = clipped = 0.0
    for j in range(size):
        here, lower, log_lower, log_upper = p[j], low[j], log_low[j], log_high[j]
        finite = log_u[j] if log_u[j] > LEAST else LEAST
        price = here * ((log_lower if here == lower else log_upper) - finite)
        moves: cython.bint = (here > lower) & (here < high[j])
        mass += here if moves else 0.0
        cost += 0.0 if moves else price
        clipped += 0.0 if moves | (finite <= LEAST) else 1.0
    row.tight, row.cost, row.mass_a = clipped > 0.0, cost, mass


def clip_shift(p, low, high, shift, size, row):
    """The mass of the free entries; returns the sum of p (beta - beta_base) over the others."""
    mass = moved = 0.0
    for j in range(size):
        here = p[j]
        moves: cython.bint = (here > low[j]) & (here < high[j])
        mass += here if moves else 0.0
        moved += (0.0 if moves else here) * shift[j]
    row.mass_a = mass
    return moved


def scale_row(u, size, s, p):
    """Write p = s u for a pair without active bounds; returns its sum."""
    mass = 0.0
    for j in range(size):
        v = s * u[j]
        p[j] = v
        mass += v
    return mass


def project_box(sk, sets, w, k, s, u, log_u, breaks, row):
    """Project u, whose sum is s, onto the box of the k-th watched pair. `breaks` is memory for one row."""
    pair = w.watched[k]
    begin = sk.transition_ptr[pair]
    size, p = sk.transition_ptr[pair + 1] - begin, w.row + begin
    low, high, log_low, log_high = sets.low + begin, sets.high + begin, sets.log_low + begin, sets.log_high + begin
    found: Clip
    again: cython.bint = w.tight[pair] == 1
    settled: cython.bint = again and settle_box_again(u, low, high, size, s, p, cython.address(found))
    if not settled and not settle_box(u, low, high, size, s, 1.0 / s, cython.address(found)):
        log_row(sk, w, pair, log_u)
        w.cost[k] = NAN
        row[0] = project_box_log(log_u, low, high, log_low, log_high, size, p, breaks)
        return
    row.tight, row.ready, row.cost, row.a, row.b, row.mass_b = False, False, 0.0, found.s, found.s, 0.0
    if found.count == 0.0:
        row.mass_a = scale_row(u, size, found.s, p)
        return
    clip_row(u, low, high, size, found.s, p)
    moved = 0.0
    if not w.at_base:
        moved = clip_shift(p, low, high, shifts_of(sk, w, pair, begin, size, breaks), size, row)
        cost = w.cost[k] - moved
        if found.count < 0.0 and isfinite(cost) and fabs(row.mass_a + found.clipped - 1.0) <= ROUNDING:
            row.tight, row.cost = True, cost
            return
    log_row(sk, w, pair, log_u)
    clip_cost(p, log_u, low, high, log_low, log_high, size, row)
    w.cost[k] = row.cost + moved


def project_point(sk, sets, w, pair, log_u, row):
    """A set of one row: p = P and kappa = sum P ln(P/u)."""
    log_row(sk, w, pair, log_u)
    begin = sk.transition_ptr[pair]
    center, log_center, p = sets.low + begin, sets.log_low + begin, w.row + begin
    kappa = 0.0
    for j in range(sk.transition_ptr[pair + 1] - begin):
        p[j] = center[j]
        kappa += center[j] * (log_center[j] - log_u[j]) if center[j] > 0.0 else 0.0
    row.tight, row.ready, row.cost = True, True, kappa
    row.a, row.b, row.mass_a, row.mass_b = 0.0, 0.0, 0.0, 0.0


def write_row(w, k, row):
    """Store the row of the k-th watched pair."""
    w.tight[w.watched[k]] = row.tight
    w.ready[k] = row.ready
    w.log_mass[k] = row.cost  # until `finish_rows` computes the logarithms of a and b
    w.log_a[k] = row.a
    w.log_b[k] = row.b
    w.mass_a[k] = row.mass_a
    w.mass_b[k] = row.mass_b


def project_alone(sk, sets, w, k, u, log_u, breaks):
    """Project the row of the k-th watched pair at the current beta. A row that was tight starts from its last sets."""
    row: Row
    pair = w.watched[k]
    begin = sk.transition_ptr[pair]
    if sets.radius[pair] == 0.0:
        project_point(sk, sets, w, pair, log_u, cython.address(row))
    else:
        s = load_row(sk, w, pair, begin, sk.transition_ptr[pair + 1] - begin, u)
        if sets.is_box:
            project_box(sk, sets, w, k, s, u, log_u, breaks, cython.address(row))
        else:
            project_ball(sk, sets, w, k, s, u, log_u, breaks, cython.address(row))
    write_row(w, k, cython.address(row))
