"""Rows whose set is an L1 ball: p = median(Pbar, a u, b u), on u or, where that does not do, on ln u; see `rows.py`."""

import numpy as np

from advmdp.projection.kernels.compiled import compiled, compiled_inline, compiled_sums, unsigned
from advmdp.projection.kernels.rows import (
    LEAST,
    NEWTON_PASSES,
    OVER,
    SMALLEST_PART,
    UNDER,
    correction,
    inside,
    inside_log,
    sort_first,
)
from advmdp.projection.kernels.types import Floats, Row

UNSETTLED, INSIDE, SETTLED = 0, 1, 2


@compiled_sums
def split(
    u: Floats, log_u: Floats, center: Floats, log_center: Floats, begin: int, size: int, a: float, b: float, p: Floats
) -> tuple[float, float, float, float, float]:
    """Write p = median(Pbar, a u, b u), for a <= b. Returns the sums of u and Pbar over A = {a u > Pbar}, those over
    B = {b u < Pbar}, and the sum of Pbar ln(Pbar/u) over the entries that stay at the centre.
    """
    u_a = center_a = u_b = center_b = cost = 0.0
    at = unsigned(begin)
    for j in range(unsigned(size)):
        c = center[at + j]
        high, low = a * u[j], b * u[j]
        middle = low if low < c else c
        p[at + j] = high if high > middle else middle
        above = 1.0 if high > c else 0.0
        below = 1.0 if low < c else 0.0
        pinned = c if (high <= c) & (low >= c) else 0.0
        finite = log_u[j] if log_u[j] > LEAST else LEAST  # an entry with ln u = -inf is not pinned
        u_a += above * u[j]
        center_a += above * c
        u_b += below * u[j]
        center_b += below * c
        cost += pinned * (log_center[at + j] - finite)
    return u_a, center_a, u_b, center_b, cost


@compiled_sums
def known_sums(u: Floats, center: Floats, p: Floats, begin: int, size: int) -> tuple[float, float, float, float]:
    """The sums of `split` over the sets A and B of an earlier row p."""
    u_a = center_a = u_b = center_b = 0.0
    at = unsigned(begin)
    for j in range(unsigned(size)):
        c = center[at + j]
        above = 1.0 if p[at + j] > c else 0.0
        below = 1.0 if p[at + j] < c else 0.0
        u_a += above * u[j]
        center_a += above * c
        u_b += below * u[j]
        center_b += below * c
    return u_a, center_a, u_b, center_b


@compiled_inline
def settle_l1(
    u: Floats, log_u: Floats, center: Floats, log_center: Floats, begin: int, size: int, half: float, s: float,
    guessed: bool, p: Floats,
) -> tuple[int, float, float, float, float, float]:  # fmt: skip
    """Newton on a and b. Returns (UNSETTLED, INSIDE or SETTLED, a, b, mass_a, mass_b, kappa of what is at the centre).

    `guessed`: p holds an earlier row of the pair, which was tight, and Newton starts on its sets A and B. From any
    point on a convex function a step lands where that is not negative, so these need only not be empty, and a row turns
    out to be inside if a >= b. The pass that finds nothing to change has written the row.
    """
    a = b = 1.0 / s
    cost = 0.0
    if guessed:
        u_a, center_a, u_b, center_b = known_sums(u, center, p, begin, size)
    else:
        u_a, center_a, u_b, center_b, cost = split(u, log_u, center, log_center, begin, size, a, b, p)
        if a * u_a - center_a <= half:
            return INSIDE, a, b, 1.0, 0.0, 0.0
    for _ in range(NEWTON_PASSES):
        if u_b < SMALLEST_PART * s or center_b <= half or u_a <= 0.0:
            break
        next_a = (half + center_a) / u_a
        next_b = (center_b - half) / u_b
        if not guessed and next_a >= a and next_b <= b:
            return (SETTLED if a < b else INSIDE), a, b, half + center_a, center_b - half, cost
        a, b = (next_a, next_b) if guessed else (min(a, next_a), max(b, next_b))
        guessed = False
        u_a, center_a, u_b, center_b, cost = split(u, log_u, center, log_center, begin, size, a, b, p)
    return UNSETTLED, a, b, 0.0, 0.0, 0.0


@compiled_inline
def project_l1(
    u: Floats, log_u: Floats, center: Floats, log_center: Floats, begin: int, end: int, radius: float, s: float,
    guessed: bool, p: Floats, breaks: Floats,
) -> Row:  # fmt: skip
    """Projection of u, whose sum is s, onto the L1 ball; `guessed` as in `settle_l1`.

    Sets and rows are read and written at begin .. end, u from its start. `breaks` is memory for one row.
    """
    size, half = end - begin, 0.5 * radius
    found, a, b, mass_a, mass_b, kappa = settle_l1(u, log_u, center, log_center, begin, size, half, s, guessed, p)
    if found == UNSETTLED and guessed:
        found, a, b, mass_a, mass_b, kappa = settle_l1(u, log_u, center, log_center, begin, size, half, s, False, p)
    if found == UNSETTLED:
        return project_l1_log(log_u[:size], center[begin:end], log_center[begin:end], half, p[begin:end], breaks)
    if found == INSIDE:
        return inside(u, begin, size, s, p)
    log_a, log_b = np.log(a), np.log(b)
    return True, kappa + mass_a * log_a + mass_b * log_b, log_a, log_b, mass_a, mass_b


@compiled
def upper_multiplier(log_u: Floats, center: Floats, half: float) -> float:
    """ln a, from A = everything downwards. A always lives on the scale of the largest u."""
    top, log_a = -np.inf, np.inf
    for j in range(log_u.shape[0]):
        top = max(top, log_u[j])
    for _ in range(log_u.shape[0] + 1):
        u_a = center_a = 0.0
        for j in range(log_u.shape[0]):
            if np.exp(min(log_a + log_u[j], 700.0)) > center[j] and log_u[j] > -np.inf:
                u_a += np.exp(log_u[j] - top)
                center_a += center[j]
        next_a = np.log(half + center_a) - np.log(u_a) - top
        if not next_a < log_a:
            break
        log_a = next_a
    return log_a


@compiled
def excess_below(log_u: Floats, center: Floats, log_b: float) -> float:
    """sum (Pbar - b u)_+."""
    excess = 0.0
    for j in range(log_u.shape[0]):
        if center[j] > 0.0:
            excess += max(0.0, center[j] - np.exp(min(log_b + log_u[j], 700.0)))
    return excess


@compiled
def lower_multiplier(log_u: Floats, center: Floats, log_center: Floats, half: float, breaks: Floats) -> float:
    """ln b by a search over the sorted ratios Pbar/u, then the exact solution on its segment.

    Without a ratio every entry of the centre is forbidden, and b stands for nothing.
    """
    count = 0
    for j in range(log_u.shape[0]):
        if center[j] > 0.0 and log_u[j] > -np.inf:
            breaks[count] = log_center[j] - log_u[j]
            count += 1
    if count == 0:
        return -LEAST
    sort_first(breaks, count)
    low, high = 0, count - 1  # the first break at which the excess is at most epsilon/2
    while low < high:
        middle = (low + high) // 2
        if excess_below(log_u, center, breaks[middle]) <= half:
            high = middle
        else:
            low = middle + 1
    edge = breaks[low]
    top = -np.inf
    for j in range(log_u.shape[0]):
        if center[j] > 0.0 and log_center[j] - log_u[j] >= edge:
            top = max(top, log_u[j])
    u_b = center_b = 0.0
    for j in range(log_u.shape[0]):
        if center[j] > 0.0 and log_center[j] - log_u[j] >= edge:
            u_b += np.exp(log_u[j] - top)
            center_b += center[j]
    below = breaks[low - 1] if low > 0 else -np.inf
    if center_b <= half:
        return max(below, LEAST)
    return float(max(below, min(edge, np.log(center_b - half) - np.log(u_b) - top)))


@compiled
def project_l1_log(log_u: Floats, center: Floats, log_center: Floats, half: float, p: Floats, breaks: Floats) -> Row:
    """Projection onto the L1 ball when u does not fit into one range.

    Where the mass of the forbidden entries exceeds epsilon/2 by rounding, it takes its place. A row that is inside,
    which may not have shown on u, has a >= b.
    """
    forbidden = 0.0
    for j in range(log_u.shape[0]):
        forbidden += center[j] if log_u[j] == -np.inf else 0.0
    half = max(half, forbidden)
    log_a = upper_multiplier(log_u, center, half)
    log_b = lower_multiplier(log_u, center, log_center, half, breaks)
    if log_a >= log_b:
        return inside_log(log_u, p)
    kappa = mass_a = mass_b = target_a = target_b = 0.0
    for j in range(log_u.shape[0]):
        above = np.exp(min(log_a + log_u[j], 700.0))
        below = np.exp(min(log_b + log_u[j], 700.0)) if log_u[j] > -np.inf else 0.0
        limit = UNDER * center[j] if log_center[j] - log_u[j] >= log_b else center[j]
        p[j] = max(above, min(limit, below))
        if p[j] > center[j]:
            mass_a += p[j]
            target_a += center[j]
        elif p[j] < center[j]:
            mass_b += p[j]
            target_b += center[j]
        elif center[j] > 0.0:
            kappa += center[j] * (log_center[j] - log_u[j])
    factor_a, factor_b = correction(half + target_a, mass_a), correction(target_b - half, mass_b)
    mass_a = mass_b = 0.0
    for j in range(log_u.shape[0]):
        if p[j] > center[j]:
            p[j] = max(p[j] * factor_a, OVER * center[j])
            mass_a += p[j]
        elif p[j] < center[j]:
            p[j] = min(p[j] * factor_b, UNDER * center[j])
            mass_b += p[j]
    kappa += mass_a * log_a + (mass_b * log_b if mass_b > 0.0 else 0.0)
    return True, kappa, log_a, log_b, mass_a, mass_b
