"""The rows of `rows.py` on ln u, for u outside the range of a float64.

For balls, a search over the sorted breakpoints gives the multipliers; for boxes, variable fixing. A multiplier is only
as accurate as ln u, 1e-11 if that is 1e5, so entries that share one are rescaled to the mass that their equation gives.
"""

import cython
from cython.cimports.advmdp.projection.kernels.types import OVER, UNDER, Floats, Row
from cython.cimports.libc.math import INFINITY, exp, fabs, log
from cython.cimports.libc.stdint import uintptr_t

LEAST = cython.declare(cython.double, -1e300)
LARGEST_EXPONENT = cython.declare(cython.double, 700.0)
ALMOST = cython.declare(cython.double, 1.0 + 2.0**-50)  # a factor on a bound that covers rounding
BLUR = cython.declare(cython.double, 2.0**-47)  # the relative error of ln s
AT_LOW = cython.declare(cython.double, 0.0)
MOVES = cython.declare(cython.double, 1.0)
AT_HIGH = cython.declare(cython.double, 2.0)


def sift_down(values, root, end):
    """Sift the value at `root` down the heap that ends before `end`."""
    while 2 * root + 1 < end:
        child = 2 * root + 1
        if child + 1 < end and values[child + 1] > values[child]:
            child += 1
        if values[root] >= values[child]:
            break
        values[root], values[child] = values[child], values[root]
        root = child


def sort_first(values, count):
    """Sort the first `count` values in place (heap sort: no memory, no bad case)."""
    for root in range(count // 2 - 1, -1, -1):
        sift_down(values, root, count)
    for end in range(count - 1, 0, -1):
        values[0], values[end] = values[end], values[0]
        sift_down(values, 0, end)


def top_of(log_u, size):
    """The largest of ln u."""
    top = -INFINITY
    for j in range(size):
        top = max(top, log_u[j])
    return top


def correction(target, mass):
    """The factor that rescales a class of entries to its target mass.

    The target is a difference of sums near one, so a correction as small as its rounding is ignored.
    """
    return target / mass if 1e-15 < fabs(target - mass) < 1e-6 * mass else 1.0


def inside_log(log_u, size, p):
    """The row of a pair whose constraint is not active: p = u / sum u."""
    top, s = top_of(log_u, size), 0.0
    for j in range(size):
        p[j] = exp(log_u[j] - top)
        s += p[j]
    for j in range(size):
        p[j] /= s
    log_a = -log(s) - top
    row: Row = Row(True, False, True, 0.0, log_a, log_a, 1.0, 0.0)
    return row


def upper_multiplier(log_u, center, size, half):
    """ln a, starting with A = all entries and shrinking it. A always lives on the scale of the largest u."""
    top, log_a = top_of(log_u, size), INFINITY
    for _ in range(size + 1):
        u_a = center_a = 0.0
        for j in range(size):
            if exp(min(log_a + log_u[j], LARGEST_EXPONENT)) > center[j] and log_u[j] > -INFINITY:
                u_a += exp(log_u[j] - top)
                center_a += center[j]
        next_a = log(half + center_a) - log(u_a) - top
        if not next_a < log_a:
            break
        log_a = next_a
    return log_a


def excess_below(log_u, center, size, log_b):
    """sum (Pbar - b u)_+."""
    excess = 0.0
    for j in range(size):
        if center[j] > 0.0:
            excess += max(0.0, center[j] - exp(min(log_b + log_u[j], LARGEST_EXPONENT)))
    return excess


def lower_multiplier(log_u, center, log_center, size, half, breaks):
    """ln b by a search over the sorted ratios Pbar/u, then the exact solution on its segment.

    Without a ratio every entry of the centre is forbidden, and b is meaningless.
    """
    count = 0
    for j in range(size):
        if center[j] > 0.0 and log_u[j] > -INFINITY:
            breaks[count] = log_center[j] - log_u[j]
            count += 1
    if count == 0:
        return -LEAST
    sort_first(breaks, count)
    low, high = 0, count - 1  # the first break at which the excess is at most epsilon/2
    while low < high:
        middle = (low + high) // 2
        if excess_below(log_u, center, size, breaks[middle]) <= half:
            high = middle
        else:
            low = middle + 1
    below = breaks[low - 1] if low > 0 else -INFINITY
    return solve_segment(log_u, center, log_center, size, half, below, breaks[low])


def solve_segment(log_u, center, log_center, size, half, below, edge):
    """ln b between two neighbouring ratios."""
    top = -INFINITY
    for j in range(size):
        if center[j] > 0.0 and log_center[j] - log_u[j] >= edge:
            top = max(top, log_u[j])
    u_b = center_b = 0.0
    for j in range(size):
        if center[j] > 0.0 and log_center[j] - log_u[j] >= edge:
            u_b += exp(log_u[j] - top)
            center_b += center[j]
    if center_b <= half:
        return max(below, LEAST)
    return max(below, min(edge, log(center_b - half) - log(u_b) - top))


def project_ball_log(log_u, center, log_center, size, half, p, breaks):
    """Project onto the L1 ball.

    If the mass of the forbidden entries exceeds epsilon/2 by rounding, it replaces epsilon/2. A row inside the ball,
    which u may not have shown, has a >= b.
    """
    forbidden = 0.0
    for j in range(size):
        forbidden += center[j] if log_u[j] == -INFINITY else 0.0
    half = max(half, forbidden)
    log_a = upper_multiplier(log_u, center, size, half)
    log_b = lower_multiplier(log_u, center, log_center, size, half, breaks)
    if log_a >= log_b:
        return inside_log(log_u, size, p)
    cost = mass_a = mass_b = target_a = target_b = 0.0
    for j in range(size):
        above = exp(min(log_a + log_u[j], LARGEST_EXPONENT))
        below = exp(min(log_b + log_u[j], LARGEST_EXPONENT)) if log_u[j] > -INFINITY else 0.0
        limit = UNDER * center[j] if log_center[j] - log_u[j] >= log_b else center[j]
        p[j] = max(above, min(limit, below))
        if p[j] > center[j]:
            mass_a += p[j]
            target_a += center[j]
        elif p[j] < center[j]:
            mass_b += p[j]
            target_b += center[j]
        elif center[j] > 0.0:
            cost += center[j] * (log_center[j] - log_u[j])
    factor_a, factor_b = correction(half + target_a, mass_a), correction(target_b - half, mass_b)
    mass_a = mass_b = 0.0
    for j in range(size):
        if p[j] > center[j]:
            p[j] = max(p[j] * factor_a, OVER * center[j])
            mass_a += p[j]
        elif p[j] < center[j]:
            p[j] = min(p[j] * factor_b, UNDER * center[j])
            mass_b += p[j]
    row: Row = Row(True, True, True, cost, log_a, log_b, mass_a, mass_b)
    return row


def project_box_log(log_u, low, high, log_low, log_high, size, p, place):
    """Project onto the box by variable fixing (Kiwiel 2008).

    The entries share the mass by their weights. Those beyond their upper bounds are fixed there, or those beyond their
    lower bounds, whichever sum of violations is larger; the others share again. No multiplier is subtracted from ln u,
    so the sum is one up to rounding however large ln u is. `place` is memory for one row.
    """
    for j in range(size):
        place[j] = AT_LOW if log_u[j] == -INFINITY or low[j] >= UNDER * high[j] else MOVES
    shares = share_out(log_u, low, high, size, place, p)
    while shares.left > 0.0 and fix_entries(low, high, size, place, p):
        shares = share_out(log_u, low, high, size, place, p)
    allowed = range_of_s(log_u, low, high, log_low, log_high, size, place)
    if shares.left > 0.0 and shares.total > 0.0:
        log_s = log(shares.left) - log(shares.total) - shares.top
    elif allowed.lower > -INFINITY:
        log_s = allowed.lower
    else:
        log_s = allowed.upper if allowed.upper < INFINITY else 0.0
    blur = BLUR * (1.0 + fabs(log_s))
    if shares.left <= 0.0 or log_s < allowed.lower - blur or log_s > allowed.upper + blur:
        log_s = min(max(log_s, allowed.lower), allowed.upper)  # only rounding is left
        settle_rest(log_u, low, high, size, log_s, p, place)
    cost = mass = 0.0
    for j in range(size):
        if place[j] == MOVES:
            p[j] = min(max(p[j], OVER * low[j]), UNDER * high[j])
            mass += p[j]
        else:
            p[j] = low[j] if place[j] == AT_LOW else high[j]
            cost += p[j] * ((log_low[j] if place[j] == AT_LOW else log_high[j]) - log_u[j]) if p[j] > 0.0 else 0.0
    row: Row = Row(True, True, True, cost, log_s, log_s, mass, 0.0)
    return row


def settle_rest(log_u, low, high, size, log_s, p, place):
    """Place the free entries by a known multiplier."""
    for j in range(size):
        p[j] = exp(min(log_s + log_u[j], 0.0))
        if place[j] == MOVES and p[j] < low[j]:
            place[j] = AT_LOW
        elif place[j] == MOVES and p[j] > high[j]:
            place[j] = AT_HIGH


def range_of_s(log_u, low, high, log_low, log_high, size, place):
    """The smallest and the largest ln s that keep the fixed entries where they are."""
    found: Range
    lower, upper = -INFINITY, INFINITY
    for j in range(size):
        if log_u[j] == -INFINITY or low[j] >= UNDER * high[j]:
            continue
        if place[j] == AT_HIGH:
            lower = max(lower, log_high[j] - log_u[j])
        elif place[j] == AT_LOW:
            upper = min(upper, log_low[j] - log_u[j])
    found.lower, found.upper = lower, max(lower, upper)
    return found


def share_out(log_u, low, high, size, place, p):
    """Share the remaining mass among the free entries: s = left / total exp(-top)."""
    shares: Shares
    left, total, top = 1.0, 0.0, -INFINITY
    for j in range(size):
        if place[j] == MOVES:
            top = max(top, log_u[j])
        else:
            left -= low[j] if place[j] == AT_LOW else high[j]
    for j in range(size):
        if place[j] == MOVES:
            p[j] = exp(log_u[j] - top)
            total += p[j]
    for j in range(size):
        if place[j] == MOVES:
            p[j] *= left / total
    shares.left, shares.total, shares.top = left, total, top
    return shares


def fix_entries(low, high, size, place, p):
    """Fix the entries beyond their bounds, on the side with the larger violation; return whether there were any.

    An entry within rounding of its bound stays free: fixing it might leave only rounding to the rest.
    """
    over = under = 0.0
    for j in range(size):
        if place[j] == MOVES:
            over += p[j] - high[j] if p[j] > ALMOST * high[j] else 0.0
            under += low[j] - p[j] if ALMOST * p[j] < low[j] else 0.0
    if over == 0.0 and under == 0.0:
        return False
    for j in range(size):
        if place[j] == MOVES and over >= under and p[j] > ALMOST * high[j]:
            place[j] = AT_HIGH
        elif place[j] == MOVES and over < under and ALMOST * p[j] < low[j]:
            place[j] = AT_LOW
    return True


def sort_values(values):
    """Sort an array of float64 in place, for tests; by its address, as in `exact.py`."""
    place: uintptr_t = values.ctypes.data
    sort_first(cython.cast(Floats, place), len(values))
