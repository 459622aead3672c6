"""One pair (x,a) at fixed beta: the KL projection of u(x') = w(x,a,x') exp(beta(x')) onto C(x,a).

    kappa = min over p in C of sum_x' p ln(p/u)

L1 ball, centre Pbar, radius epsilon: p = u / sum u if that is inside; else p = median(Pbar, a u, b u) where

    sum (a u - Pbar)_+ = epsilon/2   (A: entries above the centre, mass_a)
    sum (Pbar - b u)_+ = epsilon/2   (B: entries below the centre, mass_b)

The first is convex and increasing in a, the second convex and decreasing in b, both piecewise linear, and at
a = b = 1/sum u both are too large. Newton from there is monotone and finite: it visits shrinking sets A and B and needs
no sort. Box: p = clip(s u, low, high) with sum p = 1, monotone in s; Newton on the set of unclipped entries.

Both need u within the range of a float64. Where u is so spread that the entries which decide b or s underflow, or
Newton does not settle, the same equations are solved on ln u: for balls by a search over the sorted breakpoints, for
boxes by variable fixing. There a multiplier is only as good as ln u, to 1e-11 where that is 1e5, so the entries that
share one are brought to the mass that their equation gives them.

Which entries move is read off p. If a box leaves 0.52 to two entries, the first bounded by just that, the other of
relative weight exp(-200), then both move, though the first is closer to its bound than rounding can tell. Were it taken
for clipped, the other, left alone, would seem to have nowhere to go, and Newton would creep. So an entry that shares a
multiplier with others stays a unit in the last place below its bound, and below the centre of a ball.

`ball.py` and `box.py` do that; here is what they share, and the set that is one point.

kappa here is relative to the scale of u that the caller has chosen. Every function returns
(tight, kappa, ln a, ln b, mass_a, mass_b) and writes p; a row inside its set counts as A, with a = b = 1/sum u; a box
has only A, with a = s.
"""

import numpy as np

from advmdp.projection.kernels.compiled import compiled, compiled_inline, compiled_sums, unsigned
from advmdp.projection.kernels.types import Floats, Indices, Row
from advmdp.projection.kernels.weights import log_ratio

SMALLEST_PART = 1e-130  # a part of sum u below this may have lost entries that matter
NEWTON_PASSES = 40
LEAST = -1e300
UNDER, OVER = 1.0 - 2.0**-52, 1.0 + 2.0**-52  # times a number: the one before it, or two; the one after it, or two


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


@compiled_inline
def inside(u: Floats, begin: int, size: int, s: float, p: Floats) -> Row:
    """The row of a pair whose constraint does not bind: p = u / sum u."""
    scale = 1.0 / s
    at = unsigned(begin)
    for j in range(unsigned(size)):
        p[at + j] = scale * u[j]
    log_a = -np.log(s)
    return False, log_a, log_a, log_a, 1.0, 0.0


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


@compiled_inline
def correction(target: float, mass: float) -> float:
    """The factor that brings a class of entries to the mass it must have.

    A difference as small as the rounding of the target, itself a difference of sums near one, says nothing.
    """
    return target / mass if 1e-15 < abs(target - mass) < 1e-6 * mass else 1.0


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
