"""Rows whose set is a box: p = clip(s u, low, high), on u or, where that does not do, on ln u; see `rows.py`."""

import numpy as np

from advmdp.projection.kernels.compiled import compiled, compiled_inline, compiled_sums, unsigned
from advmdp.projection.kernels.rows import NEWTON_PASSES, OVER, SMALLEST_PART, UNDER
from advmdp.projection.kernels.types import Floats, Row

ALMOST = 1.0 + 2.0**-50  # times a bound: what rounding may make of it
BLUR = 2.0**-47  # relative to ln s: how well it is known
AT_LOW, MOVES, AT_HIGH = 0.0, 1.0, 2.0


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
    log_u: Floats, low: Floats, high: Floats, log_low: Floats, log_high: Floats, p: Floats, place: Floats
) -> Row:
    """Projection onto the box when u does not fit into one range, by variable fixing (Kiwiel 2008).

    All entries share what there is by their weights. Those beyond their upper bounds stop there, or those beyond their
    lower ones, whichever are farther beyond in sum, and the others share again. No multiplier is ever subtracted from
    ln u, so the sum is one to rounding however large these are. `place` is memory for one row.
    """
    for j in range(log_u.shape[0]):
        place[j] = AT_LOW if log_u[j] == -np.inf or low[j] >= UNDER * high[j] else MOVES
    left, total, top = share_out(log_u, low, high, place, p)
    while left > 0.0 and fix_entries(low, high, place, p):
        left, total, top = share_out(log_u, low, high, place, p)
    lower, upper = range_of_s(log_u, low, high, log_low, log_high, place)
    if left > 0.0 and total > 0.0:
        log_s = np.log(left) - np.log(total) - top
    else:
        log_s = lower if lower > -np.inf else (upper if upper < np.inf else 0.0)
    blur = BLUR * (1.0 + abs(log_s))
    if left <= 0.0 or log_s < lower - blur or log_s > upper + blur:  # what is left is nothing but rounding
        log_s = min(max(log_s, lower), upper)
        for j in range(log_u.shape[0]):
            p[j] = np.exp(min(log_s + log_u[j], 0.0))
            if place[j] == MOVES and p[j] < low[j]:
                place[j] = AT_LOW
            elif place[j] == MOVES and p[j] > high[j]:
                place[j] = AT_HIGH
    kappa = mass = 0.0
    for j in range(log_u.shape[0]):
        if place[j] == MOVES:
            p[j] = min(max(p[j], OVER * low[j]), UNDER * high[j])
            mass += p[j]
        else:
            p[j] = low[j] if place[j] == AT_LOW else high[j]
            kappa += p[j] * ((log_low[j] if place[j] == AT_LOW else log_high[j]) - log_u[j]) if p[j] > 0.0 else 0.0
    return True, kappa + mass * log_s, log_s, log_s, mass, 0.0


@compiled_inline
def range_of_s(
    log_u: Floats, low: Floats, high: Floats, log_low: Floats, log_high: Floats, place: Floats
) -> tuple[float, float]:
    """The least and the largest ln s at which the entries that have stopped are where they are."""
    lower, upper = -np.inf, np.inf
    for j in range(log_u.shape[0]):
        if log_u[j] == -np.inf or low[j] >= UNDER * high[j]:
            continue
        if place[j] == AT_HIGH:
            lower = max(lower, log_high[j] - log_u[j])
        elif place[j] == AT_LOW:
            upper = min(upper, log_low[j] - log_u[j])
    return lower, max(lower, upper)


@compiled_inline
def share_out(log_u: Floats, low: Floats, high: Floats, place: Floats, p: Floats) -> tuple[float, float, float]:
    """Give the entries that move what the others leave. Returns (left, total, top): s = left / total exp(-top)."""
    left, total, top = 1.0, 0.0, -np.inf
    for j in range(log_u.shape[0]):
        if place[j] == MOVES:
            top = max(top, log_u[j])
        else:
            left -= low[j] if place[j] == AT_LOW else high[j]
    for j in range(log_u.shape[0]):
        if place[j] == MOVES:
            p[j] = np.exp(log_u[j] - top)
            total += p[j]
    for j in range(log_u.shape[0]):
        if place[j] == MOVES:
            p[j] *= left / total
    return left, total, top


@compiled_inline
def fix_entries(low: Floats, high: Floats, place: Floats, p: Floats) -> bool:
    """Stop the entries that are beyond their bounds, on the side that is farther beyond; whether there were any.

    An entry within rounding of its bound goes on: were it stopped, the rest might be left with nothing but rounding.
    """
    over = under = 0.0
    for j in range(p.shape[0]):
        if place[j] == MOVES:
            over += p[j] - high[j] if p[j] > ALMOST * high[j] else 0.0
            under += low[j] - p[j] if ALMOST * p[j] < low[j] else 0.0
    if over == 0.0 and under == 0.0:
        return False
    for j in range(p.shape[0]):
        if place[j] == MOVES and over >= under and p[j] > ALMOST * high[j]:
            place[j] = AT_HIGH
        elif place[j] == MOVES and over < under and ALMOST * p[j] < low[j]:
            place[j] = AT_LOW
    return True
