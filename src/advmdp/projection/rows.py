"""One pair (x,a) at fixed beta: the KL projection of u(x') = w(x,a,x') exp(beta(x')) onto C(x,a).

    kappa = min over p in C of sum_x' p ln(p/u)

L1 ball, centre Pbar, radius epsilon: p = u / sum u if that is inside; else p = median(Pbar, a u, b u) where

    sum (a u - Pbar)_+ = epsilon/2   (A: entries above the centre, mass_a)
    sum (Pbar - b u)_+ = epsilon/2   (B: entries below the centre, mass_b)

The first is convex and increasing in a, the second convex and decreasing in b, both piecewise linear, and at
a = b = 1/sum u both are too large. Newton from there is monotone and finite: it visits shrinking sets A and B and needs
no sort. Box: p = clip(s u, low, high) with sum p = 1, monotone in s; Newton on the set of unclipped entries.

Both need u within the range of a float64. Where u is so spread that the entries which decide b or s underflow, or
Newton does not settle, the same equations are solved on ln u, by a search over the sorted breakpoints. There a
multiplier is only as good as ln u, to 1e-11 where that is 1e5, so the entries that share one are brought to the mass
that their equation gives them.

Which entries move is read off p. If a box leaves 0.52 to two entries, the first bounded by just that, the other of
relative weight exp(-200), then both move, though the first is closer to its bound than rounding can tell. Were it taken
for clipped, the other, left alone, would seem to have nowhere to go, and Newton would creep. So an entry that shares a
multiplier with others stays a unit in the last place below its bound, and below the centre of a ball.

kappa here is relative to the scale of u that the caller has chosen. Every function returns
(tight, kappa, ln a, ln b, mass_a, mass_b) and writes p; a row inside its set counts as A, with a = b = 1/sum u; a box
has only A, with a = s.
"""

import numpy as np

from advmdp.projection.compiled import compiled, compiled_inline, compiled_sums, unsigned
from advmdp.projection.types import Floats, Indices, Row
from advmdp.projection.weights import log_ratio

SMALLEST_PART = 1e-130  # a part of sum u below this may have lost entries that matter
NEWTON_PASSES = 40
UNSETTLED, INSIDE, SETTLED = 0, 1, 2
LEAST = -1e300
UNDER, OVER = 1.0 - 2.0**-52, 1.0 + 2.0**-52  # times a number: the one before it, or two; the one after it, or two
ALMOST = 1.0 + 2.0**-50  # times a bound: what rounding may make of it


@compiled_sums
def load_row(
    weight: Floats, log_w: Floats, growth: Floats, beta: Floats, begin: int, size: int, first: int, offset: float,
    u: Floats, log_u: Floats,
) -> float:  # fmt: skip
    """Fill u and ln u of a pair whose successors are the states from `first` on; return sum u."""
    s = 0.0
    at, there = unsigned(begin), unsigned(first)
    for j in range(unsigned(size)):
        t = weight[at + j] * growth[there + j]
        s += t
        u[j] = t
        log_u[j] = log_ratio(log_w[at + j], beta[there + j], offset)
    return s


@compiled_sums
def gather_row(
    weight: Floats, log_w: Floats, growth: Floats, beta: Floats, begin: int, size: int, successor: Indices,
    offset: float, u: Floats, log_u: Floats,
) -> float:  # fmt: skip
    """Fill u and ln u of any pair; return sum u."""
    s = 0.0
    at = unsigned(begin)
    for j in range(unsigned(size)):
        y = unsigned(successor[at + j])
        t = weight[at + j] * growth[y]
        s += t
        u[j] = t
        log_u[j] = log_ratio(log_w[at + j], beta[y], offset)
    return s


@compiled_sums
def split_sums(
    u: Floats, center: Floats, begin: int, size: int, a: float, b: float
) -> tuple[float, float, float, float]:
    """sum of u and of Pbar over A = {a u > Pbar} and over B = {b u < Pbar}."""
    u_a = center_a = u_b = center_b = 0.0
    at = unsigned(begin)
    for j in range(unsigned(size)):
        c = center[at + j]
        above = 1.0 if a * u[j] > c else 0.0
        below = 1.0 if b * u[j] < c else 0.0
        u_a += above * u[j]
        center_a += above * c
        u_b += below * u[j]
        center_b += below * c
    return u_a, center_a, u_b, center_b


@compiled_sums
def known_sums(u: Floats, center: Floats, p: Floats, begin: int, size: int) -> tuple[float, float, float, float]:
    """The sums of `split_sums` over the sets A and B of an earlier row p."""
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


@compiled_sums
def finish_l1(
    u: Floats, log_u: Floats, center: Floats, log_center: Floats, begin: int, size: int, a: float, b: float, p: Floats
) -> float:
    """Write p = median(Pbar, a u, b u); return the sum of Pbar ln(Pbar/u) over the entries that stay at the centre."""
    cost = 0.0
    at = unsigned(begin)
    for j in range(unsigned(size)):
        c = center[at + j]
        above, below = a * u[j], b * u[j]
        middle = below if below < c else c
        p[at + j] = above if above > middle else middle
        pinned = c if (above <= c) & (below >= c) else 0.0
        finite = log_u[j] if log_u[j] > LEAST else LEAST  # an entry with ln u = -inf is not pinned
        cost += pinned * (log_center[at + j] - finite)
    return cost


@compiled_inline
def inside(u: Floats, begin: int, size: int, s: float, p: Floats) -> Row:
    """The row of a pair whose constraint does not bind: p = u / sum u."""
    scale = 1.0 / s
    at = unsigned(begin)
    for j in range(unsigned(size)):
        p[at + j] = scale * u[j]
    log_a = -np.log(s)
    return False, log_a, log_a, log_a, 1.0, 0.0


@compiled_inline
def settle_l1(
    u: Floats, center: Floats, begin: int, size: int, half: float, s: float, guessed: bool, p: Floats
) -> tuple[int, float, float, float, float]:
    """Newton on a and b. Returns (UNSETTLED, INSIDE or SETTLED, a, b, mass_a, mass_b).

    `guessed`: p holds an earlier row of the pair, which was tight, and Newton starts on its sets A and B. From any
    point on a convex function a step lands where that is not negative, so these need only not be empty, and a row turns
    out to be inside if a >= b.
    """
    a = b = 1.0 / s
    if guessed:
        u_a, center_a, u_b, center_b = known_sums(u, center, p, begin, size)
    else:
        u_a, center_a, u_b, center_b = split_sums(u, center, begin, size, a, b)
        if a * u_a - center_a <= half:
            return INSIDE, a, b, 1.0, 0.0
    for _ in range(NEWTON_PASSES):
        if u_b < SMALLEST_PART * s or center_b <= half or u_a <= 0.0:
            break
        next_a = (half + center_a) / u_a
        next_b = (center_b - half) / u_b
        if not guessed and next_a >= a and next_b <= b:
            return (SETTLED if a < b else INSIDE), a, b, half + center_a, center_b - half
        a, b = (next_a, next_b) if guessed else (min(a, next_a), max(b, next_b))
        guessed = False
        u_a, center_a, u_b, center_b = split_sums(u, center, begin, size, a, b)
    return UNSETTLED, a, b, 0.0, 0.0


@compiled_inline
def project_l1(
    u: Floats, log_u: Floats, center: Floats, log_center: Floats, begin: int, end: int, radius: float, s: float,
    guessed: bool, p: Floats, breaks: Floats,
) -> Row:  # fmt: skip
    """Projection of u, whose sum is s, onto the L1 ball; `guessed` as in `settle_l1`.

    Sets and rows are read and written at begin .. end, u from its start. `breaks` is memory for one row.
    """
    size, half = end - begin, 0.5 * radius
    found, a, b, mass_a, mass_b = settle_l1(u, center, begin, size, half, s, guessed, p)
    if found == UNSETTLED and guessed:
        found, a, b, mass_a, mass_b = settle_l1(u, center, begin, size, half, s, False, p)
    if found == INSIDE:
        return inside(u, begin, size, s, p)
    if found == UNSETTLED:
        return project_l1_log(log_u[:size], center[begin:end], log_center[begin:end], half, p[begin:end], breaks)
    log_a, log_b = np.log(a), np.log(b)
    kappa = finish_l1(u, log_u, center, log_center, begin, size, a, b, p)
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
def sift_down(values: Floats, root: int, end: int) -> None:
    """Let the value at `root` sink until none below it, before `end`, is larger."""
    while 2 * root + 1 < end:
        child = 2 * root + 1
        if child + 1 < end and values[child + 1] > values[child]:
            child += 1
        if values[root] >= values[child]:
            break
        values[root], values[child] = values[child], values[root]
        root = child


@compiled
def sort_first(values: Floats, count: int) -> None:
    """Sort the first `count` values in their place (heap sort: no memory, no bad case)."""
    for root in range(count // 2 - 1, -1, -1):
        sift_down(values, root, count)
    for end in range(count - 1, 0, -1):
        values[0], values[end] = values[end], values[0]
        sift_down(values, 0, end)


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


@compiled_inline
def correction(target: float, mass: float) -> float:
    """The factor that brings a class of entries to the mass it must have.

    A difference as small as the rounding of the target, itself a difference of sums near one, says nothing.
    """
    return target / mass if 1e-15 < abs(target - mass) < 1e-6 * mass else 1.0


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


@compiled
def inside_log(log_u: Floats, p: Floats) -> Row:
    """As `inside`, from ln u."""
    top, s = -np.inf, 0.0
    for j in range(log_u.shape[0]):
        top = max(top, log_u[j])
    for j in range(log_u.shape[0]):
        p[j] = np.exp(log_u[j] - top)
        s += p[j]
    for j in range(log_u.shape[0]):
        p[j] /= s
    log_a = -np.log(s) - top
    return False, log_a, log_a, log_a, 1.0, 0.0


@compiled_sums
def project_point(log_u: Floats, center: Floats, log_center: Floats, begin: int, end: int, p: Floats) -> Row:
    """A set of one row: p = P and kappa = sum P ln(P/u)."""
    kappa = 0.0
    for i in range(begin, end):
        p[i] = center[i]
        kappa += center[i] * (log_center[i] - log_u[i - begin]) if center[i] > 0.0 else 0.0
    return True, kappa, 0.0, 0.0, 0.0, 0.0


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
