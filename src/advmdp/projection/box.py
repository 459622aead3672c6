"""Rows whose set is a box: p = clip(s u, low, high), on u or, where that does not do, on ln u; see `rows.py`."""

import numpy as np

from advmdp.projection.compiled import compiled, compiled_sums, unsigned
from advmdp.projection.rows import LEAST, NEWTON_PASSES, OVER, SMALLEST_PART, UNDER, correction, sort_first
from advmdp.projection.types import Floats, Row

ALMOST = 1.0 + 2.0**-50  # times a bound: what rounding may make of it


@compiled_sums
def clip_sums(u: Floats, low: Floats, high: Floats, begin: int, size: int, s: float) -> tuple[float, float]:
    """sum of u over {low < s u < high}, and sum of the bounds of all other entries."""
    free = clipped = 0.0
    at = unsigned(begin)
    for j in range(unsigned(size)):
        v = s * u[j]
        lower, upper = low[at + j], high[at + j]
        bound = lower if v <= lower else upper
        inner = 1.0 if (v > lower) & (v < upper) else 0.0
        free += inner * u[j]
        clipped += (1.0 - inner) * bound
    return free, clipped


@compiled
def project_box(
    u: Floats,
    log_u: Floats,
    low: Floats,
    high: Floats,
    log_low: Floats,
    log_high: Floats,
    begin: int,
    end: int,
    whole: float,
    p: Floats,
    breaks: Floats,
) -> Row:
    """Projection of u, whose sum is `whole`, onto the box. Newton starts where no bound binds.

    `breaks` is memory for one row.
    """
    size = end - begin
    s = 1.0 / whole
    free, clipped = clip_sums(u, low, high, begin, size, s)
    for _ in range(NEWTON_PASSES):
        if free < SMALLEST_PART * whole:
            break
        before, s = s, (1.0 - clipped) / free
        if not 0.0 < s < np.inf:
            break
        if abs(s - before) <= 4e-16 * s:
            return finish_box(u, log_u, low, high, log_low, log_high, begin, size, s, p)
        free, clipped = clip_sums(u, low, high, begin, size, s)
    return project_box_log(
        log_u[:size], low[begin:end], high[begin:end], log_low[begin:end], log_high[begin:end], p[begin:end], breaks
    )


@compiled_sums
def finish_box(
    u: Floats,
    log_u: Floats,
    low: Floats,
    high: Floats,
    log_low: Floats,
    log_high: Floats,
    begin: int,
    size: int,
    s: float,
    p: Floats,
) -> Row:
    """Write p = clip(s u, low, high); add up its cost."""
    mass = cost = 0.0
    clipped = 0
    at = unsigned(begin)
    for j in range(unsigned(size)):
        i = at + j
        v = s * u[j]
        limit = UNDER * high[i]
        at_low, at_high = (v <= low[i]) | (low[i] >= limit), v > ALMOST * high[i]
        inner = v if v < limit else limit
        value = low[i] if at_low else (high[i] if at_high else inner)
        log_value = log_low[i] if at_low else log_high[i]
        p[i] = value
        bound = at_low | at_high
        clipped += 1 if bound & (log_u[j] > -np.inf) else 0
        mass += 0.0 if bound else value
        cost += value * (log_value - log_u[j]) if bound & (value > 0.0) else 0.0
    log_s = np.log(s)
    return clipped > 0, cost + mass * log_s, log_s, log_s, mass, 0.0


@compiled
def project_box_log(
    log_u: Floats, low: Floats, high: Floats, log_low: Floats, log_high: Floats, p: Floats, breaks: Floats
) -> Row:
    """Projection onto the box when u does not fit into one range."""
    log_s = box_multiplier(log_u, low, high, log_low, log_high, breaks)
    kappa = mass = rest = 0.0
    for j in range(log_u.shape[0]):
        v = np.exp(min(log_s + log_u[j], 700.0))
        at_low, at_high = v <= low[j], log_high[j] - log_u[j] < log_s
        if at_low or at_high:
            p[j] = low[j] if at_low else high[j]
            rest += p[j]
            kappa += p[j] * ((log_low[j] if at_low else log_high[j]) - log_u[j]) if p[j] > 0.0 else 0.0
        else:
            p[j] = max(min(v, UNDER * high[j]), low[j])
            mass += p[j]
    factor = correction(1.0 - rest, mass)
    mass = 0.0
    for j in range(log_u.shape[0]):
        if p[j] > low[j] and p[j] < high[j]:
            p[j] = min(max(p[j] * factor, OVER * low[j]), UNDER * high[j])
            mass += p[j]
    return True, kappa + mass * log_s, log_s, log_s, mass, 0.0


@compiled
def first_enough(
    log_u: Floats, low: Floats, high: Floats, bound: Floats, log_bound: Floats, breaks: Floats
) -> tuple[float, float]:
    """Of the ratios bound/u the last at which the sum stays below one, or -1e300, and the first where not, or +inf."""
    count = 0
    for j in range(log_u.shape[0]):
        if log_u[j] > -np.inf and bound[j] > 0.0:
            breaks[count] = log_bound[j] - log_u[j]
            count += 1
    sort_first(breaks, count)
    first, last = 0, count
    while first < last:
        middle = (first + last) // 2
        mass = 0.0
        for j in range(log_u.shape[0]):
            mass += min(max(np.exp(min(breaks[middle] + log_u[j], 700.0)), low[j]), high[j])
        if mass >= 1.0:
            last = middle
        else:
            first = middle + 1
    return breaks[first - 1] if first > 0 else LEAST, breaks[first] if first < count else np.inf


@compiled
def box_multiplier(
    log_u: Floats, low: Floats, high: Floats, log_low: Floats, log_high: Floats, breaks: Floats
) -> float:
    """ln s by a search over the sorted breakpoints low/u and high/u, then the exact solution on its segment.

    Where rounding keeps the sum below one at the last of them, s is that: every entry is at its upper bound.
    """
    below_low, edge_low = first_enough(log_u, low, high, low, log_low, breaks)
    below_high, edge_high = first_enough(log_u, low, high, high, log_high, breaks)
    below, edge = max(below_low, below_high), min(edge_low, edge_high)
    if edge == np.inf:
        return below
    return max(below, segment_multiplier(log_u, low, high, log_low, log_high, below, edge))


@compiled
def segment_multiplier(
    log_u: Floats, low: Floats, high: Floats, log_low: Floats, log_high: Floats, below: float, edge: float
) -> float:
    """ln s on the segment (below, edge]: the entries neither at low nor at high share what the others leave."""
    top = -np.inf
    clipped = 0.0
    for j in range(log_u.shape[0]):
        if log_u[j] == -np.inf or high[j] == 0.0:
            continue
        if low[j] > 0.0 and log_low[j] - log_u[j] >= edge:
            clipped += low[j]
        elif log_high[j] - log_u[j] < edge:
            clipped += high[j]
        else:
            top = max(top, log_u[j])
    if top == -np.inf:
        return edge
    if clipped >= 1.0:
        return below
    free = 0.0
    for j in range(log_u.shape[0]):
        at_low = low[j] > 0.0 and log_low[j] - log_u[j] >= edge
        if log_u[j] > -np.inf and high[j] > 0.0 and not at_low and log_high[j] - log_u[j] >= edge:
            free += np.exp(log_u[j] - top)
    return float(min(edge, np.log(1.0 - clipped) - np.log(free) - top))
