"""Draws batches of hard projection problems, and judges answers by an oracle that shares no code with the solver.

The oracle is the Frank-Wolfe gap. D(q || w) is convex with gradient g = ln(q / w), so for every feasible u

    D(q) - D(u) <= <q - u, g>,    hence    D(q) - min D <= <q, g> - min over u of <u, g>

and the minimum of a linear function is a dynamic programme: V(x) = min over a, and over p in C(x, a), of
sum_x' p(x') (g(x, a, x') + V(x')). Both sides are computed here in long double, from the sets as they were given.

A state of mass exp(-5000) whose logarithm is wrong by 0.1 makes that gap 0.1, though it costs nothing. But Gibbs'
inequality, D(u) >= <u, ln(r / w)> for any r whose layers sum to one, allows any other r on the right: here
r = (1 - s) q + s / n on a layer of n entries, for two small s. The smallest of these gaps counts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np

import advmdp as am

Array: TypeAlias = np.ndarray
Long = np.longdouble
SHAPES = {
    "fan": ([1, 3, 1], [2, 1]),
    "two": ([1, 2, 2, 1], [2, 2, 2]),
    "square": ([1, 3, 3, 1], [2, 2, 2]),
    "tall": ([1, 4, 2, 4, 1], [2, 1, 3, 1]),
    "row": ([1, 6, 1], [1, 1]),
}
"""Layers and actions of small worlds."""
KINDS = ("ball", "box", "point")
WEIGHTS = ("smooth", "ties", "levels", "far", "huge", "offset")
RADII = (0.0, 1e-16, 1e-12, 1e-6, 0.1, 0.5, 1.5, 2.0 - 1e-13, 2.0, np.inf)
VISITS = (0, 1, 2, 3, 4, 6, 10, 100)
"""Possible visits n of a pair whose row comes from counts and has multiples of 1/n; 0 for other rows."""
FORBIDDEN = 1e30
"""The cost of a forbidden entry in the dynamic programme, far above any real cost."""
ROUNDING = 1e-15
SHARES = (Long(1e-9), Long(1e-13))


def skeleton(shape: str, seed: int = 0) -> am.Skeleton:
    """A skeleton by name; "long" has 300 layers, "wide" has two of 2,000 states with five successors per pair."""
    if shape == "long":
        return am.Skeleton.dense([1, *[2] * 299, 1], 2)
    if shape == "wide":
        return am.MDP.random([1, 2000, 2000, 1], 2, seed=seed, branching=5).skeleton
    return am.Skeleton.dense(*SHAPES[shape])


@dataclass(frozen=True)
class Problems:
    """Problems of one kind on one skeleton: row b of every array belongs to problem b."""

    skeleton: am.Skeleton
    kind: str
    log_weights: Array
    low: Array
    """The lower bounds of boxes, the centres of balls, the rows of points."""
    high: Array
    """The upper bounds of boxes, the radii of balls."""

    def __len__(self) -> int:
        return len(self.log_weights)

    @property
    def levelled(self) -> Array:
        """The log weights minus the largest of each layer: the same answer with small numbers."""
        sk = self.skeleton
        tops = np.maximum.reduceat(self.log_weights, sk.layer_transition_ptr[:-1], axis=1)
        widths = np.diff(sk.layer_transition_ptr)
        return self.log_weights - np.repeat(np.where(tops > -np.inf, tops, 0.0), widths, axis=1)

    def rows(self, b: int) -> am.Box | am.L1Ball | am.Point:
        if self.kind == "box":
            return am.Box(self.low[b], self.high[b])
        return am.L1Ball(self.low[b], self.high[b]) if self.kind == "ball" else am.Point(self.low[b])


def draw(
    sk: am.Skeleton, kind: str, weights: str, count: int, rng: np.random.Generator, counted: float = 1 / 3
) -> Problems:
    """Draw problems of one kind, with weights of one kind; a third of them forbid some entries.

    A share of them, ``counted``, have centres as counts give them.
    """
    n = sk.num_transitions
    log_w = draw_weights(sk, weights, count, rng)
    forbids = rng.random((count, 1)) < 1 / 3
    log_w[forbids & (rng.random((count, n)) < 0.15)] = -np.inf
    center = draw_rows(sk, count, rng, counted)
    if kind == "point":
        return Problems(sk, kind, log_w, center, np.zeros((count, sk.num_pairs)))
    if kind == "ball":
        return Problems(sk, kind, log_w, center, rng.choice(RADII, (count, sk.num_pairs)))
    return Problems(sk, kind, log_w, *draw_boxes(center, rng))


def draw_weights(sk: am.Skeleton, kind: str, count: int, rng: np.random.Generator) -> Array:
    """ln w: small differences, exact ties, a few levels, spread over e^100,000, +-1e7 on a tenth, a common offset."""
    shape = (count, sk.num_transitions)
    scale = 10.0 ** rng.uniform(-4, 1.5, (count, 1))
    log_w = scale * rng.standard_normal(shape)
    if kind == "ties":
        return np.round(log_w)
    if kind == "levels":
        return rng.choice([0.0, -1.0, -30.0, -700.0], shape)
    if kind == "far":
        return 10.0 ** rng.uniform(1, 5, (count, 1)) * rng.standard_normal(shape)
    if kind == "huge":
        return np.where(rng.random(shape) < 0.1, rng.choice([-1e7, 1e7], shape), log_w)
    if kind == "offset":
        layer = np.repeat(np.arange(sk.num_layers), np.diff(sk.layer_transition_ptr))
        return log_w + rng.choice([-1e7, 0.0, 1e3, 1e7], (count, sk.num_layers))[:, layer]
    return log_w


def draw_rows(sk: am.Skeleton, count: int, rng: np.random.Generator, counted: float) -> Array:
    """Rows with tiny entries (gamma 0.01), even rows, rows with a single successor; a share comes from counts."""
    rows = draw_smooth_rows(sk, count, rng)
    if counted == 0.0:
        return rows
    visits = rng.choice(VISITS, (count, sk.num_pairs)) * (rng.random((count, 1)) < counted)
    for p, (a, b) in enumerate(pairwise(sk.transition_ptr.tolist())):
        n = visits[:, p]
        rows[n > 0, a:b] = rng.multinomial(n, rows[:, a:b])[n > 0] / n[n > 0, None]
    return rows


def draw_smooth_rows(sk: am.Skeleton, count: int, rng: np.random.Generator) -> Array:
    """Rows that do not come from counts."""
    concentration = rng.choice([0.01, 0.1, 1.0], (count, sk.num_pairs))
    mass = rng.gamma(np.repeat(concentration, np.diff(sk.transition_ptr), axis=1)) + 1e-320
    totals = np.add.reduceat(mass, sk.transition_ptr[:-1], axis=1)
    return mass / np.repeat(totals, np.diff(sk.transition_ptr), axis=1)


def draw_boxes(center: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Boxes around the centres: entries fixed, free, nearly fixed (1e-16 to 1e-9), bounded or zero, in one row."""
    kinds = rng.integers(0, 6, center.shape)
    near = 10.0 ** rng.uniform(-16, -9, center.shape)
    wide = rng.choice([0.02, 0.1, 0.5], center.shape)
    none = np.zeros(center.shape)
    width = np.choose(kinds, [none, np.full(center.shape, 2.0), near, wide, wide, none])
    one_sided = rng.random(center.shape) < 0.2
    low = np.maximum(center - np.where(one_sided, 0.0, width), 0.0)
    shut = (kinds == 5) & (center < 1e-17)  # an upper bound of zero
    return np.where(shut, 0.0, low), np.where(shut, 0.0, np.minimum(center + width, 1.0))


@dataclass(frozen=True)
class Verdict:
    """The oracle's verdict on the answers, one number for each problem."""

    gap: Array
    """The Frank-Wolfe gap: an upper bound on the distance from the optimum."""
    flow: Array
    """The largest violation of the layer sums and of the conservation of flow."""
    rows: Array
    """The largest violation of a row's set, weighted by the mass of its pair."""
    value: Array
    """sum q ln(q / w), up to a constant of the problem."""


def judge(problems: Problems, q: Array, log_q: Array) -> Verdict:
    """Check answers (row b for problem b) against the definition of the problem."""
    sk, log_w = problems.skeleton, problems.levelled
    here = q.astype(Long)
    finite = np.where(here > 0.0, np.log(np.where(here > 0.0, here, 1.0)), np.where(log_q == -np.inf, 0.0, log_q))
    g = np.where(log_w == -np.inf, FORBIDDEN, finite - log_w.astype(Long))
    g = np.where((log_q == -np.inf) & (log_w > -np.inf), -1e6, g)
    value = np.where(here > 0.0, here * g, 0.0).sum(axis=1)
    widths = np.diff(sk.layer_transition_ptr)
    best = least_cost(problems, g)
    for share in SHARES:
        mixed = np.log((1 - share) * here + share / np.repeat(widths, widths).astype(Long))
        smooth = np.where(log_w == -np.inf, FORBIDDEN, mixed - log_w.astype(Long))
        best = np.maximum(best, least_cost(problems, smooth))
    return Verdict((value - best).astype(float), flow_violation(sk, here), row_violation(problems, here), value)


def least_cost(problems: Problems, cost: Array) -> Array:
    """min over u of <u, cost>, by backward induction over all rows of the sets."""
    sk = problems.skeleton
    V = np.zeros((len(problems), sk.num_states), Long)
    for x in range(sk.num_states - 2, -1, -1):
        options = []
        for pair in range(sk.pair_ptr[x], sk.pair_ptr[x + 1]):
            at = slice(sk.transition_ptr[pair], sk.transition_ptr[pair + 1])
            options.append(best_row(problems, pair, at, cost[:, at] + V[:, sk.successor[at]]))
        V[:, x] = np.min(options, axis=0)
    return V[:, 0]


def best_row(problems: Problems, pair: int, at: slice, cost: Array) -> Array:
    """min over p in C(x, a) of p.cost; FORBIDDEN if every row of the set has mass on forbidden entries."""
    low = problems.low[:, at].astype(Long)
    order = np.argsort(cost, axis=1, kind="stable")
    cost, low = np.take_along_axis(cost, order, 1), np.take_along_axis(low, order, 1)
    if problems.kind == "box":
        high = np.minimum(np.take_along_axis(problems.high[:, at].astype(Long), order, 1), 1.0)
        room, missing = high - low, np.maximum(1.0 - low.sum(axis=1, keepdims=True), 0.0)
        added = np.clip(missing - (np.cumsum(room, axis=1) - room), 0.0, room)
        p = low + np.where(added > ROUNDING, added, 0.0)  # bounds that sum to one do so up to rounding
    else:
        low = low / low.sum(axis=1, keepdims=True)
        radius = np.minimum(problems.high[:, pair, None].astype(Long), 2.0) if problems.kind == "ball" else Long(0)
        p = move_mass(low, radius / 2)
    banned = cost >= FORBIDDEN / 2
    blocked = (banned & (p > 0.0)).any(axis=1)
    value = np.where(banned, 0.0, p * cost).sum(axis=1)
    return np.where(blocked, Long(FORBIDDEN), value)


def move_mass(center: Array, half: Array) -> Array:
    """Move the mass ``half`` to the cheapest entry, as far as it fits, from the most expensive; sorted by cost."""
    added = np.minimum(half, center[:, 1:].sum(axis=1, keepdims=True))
    p = center.copy()
    p[:, :1] += added
    after = np.zeros_like(p)  # the mass behind each entry
    after[:, :-1] = np.cumsum(p[:, :0:-1], axis=1)[:, ::-1]
    taken = np.clip(added - after, 0.0, p)
    taken[:, 0] = 0.0
    return p - taken


def flow_violation(sk: am.Skeleton, q: Array) -> Array:
    """The largest violation of a layer's sum and of a state's flow balance."""
    sums = np.abs(np.add.reduceat(q, sk.layer_transition_ptr[:-1], axis=1) - 1.0).max(axis=1)
    inflow = np.zeros((len(q), sk.num_states), Long)
    np.add.at(inflow, (slice(None), sk.successor), q)
    outflow = np.add.reduceat(q, sk.transition_ptr[sk.pair_ptr[:-2]], axis=1)
    miss = np.abs(inflow[:, 1:-1] - outflow[:, 1:])
    return np.maximum(sums, miss.max(axis=1, initial=0.0)).astype(float)


def row_violation(problems: Problems, q: Array) -> Array:
    """q(x, a) times the distance of its row from C(x, a): largest entry for boxes, L1 beyond the radius for balls."""
    sk, worst = problems.skeleton, np.zeros(len(q), Long)
    for pair in range(sk.num_pairs):
        at = slice(sk.transition_ptr[pair], sk.transition_ptr[pair + 1])
        mass, low = q[:, at].sum(axis=1, keepdims=True), problems.low[:, at].astype(Long)
        if problems.kind == "box":
            high = np.minimum(problems.high[:, at], 1.0)
            miss = np.maximum(mass * low - q[:, at], q[:, at] - mass * high).max(axis=1)
        else:
            low = low / low.sum(axis=1, keepdims=True)
            radius = problems.high[:, pair] if problems.kind == "ball" else 0.0
            miss = np.abs(q[:, at] - mass * low).sum(axis=1) - np.minimum(radius, 2.0) * mass[:, 0]
        worst = np.maximum(worst, miss)
    return worst.astype(float)


@dataclass
class Answers:
    """The library's answers and the oracle's verdict, as masks over problems."""

    solved: Array
    """Problems that have an answer."""
    refused: Array
    """Feasible problems for which it raised."""
    wrong: Array
    """Answers that are infeasible, or farther from the optimum than they say and than rounding allows."""
    infeasible: Array
    """Answers that violate a constraint."""
    apart: Array
    """Answers whose log_q is farther from ln q than rounding explains."""
    untold: Array
    """Answers whose log_q is farther from ln q than the tolerance and their own gap admit."""
    gap: Array
    """The gaps that the answers claim."""
    verdict: Verdict
    iterations: Array


def attack(problems: Problems, project: Callable[[Array, am.Box | am.L1Ball | am.Point], am.Projection]) -> Answers:
    """Let the library solve the problems, and judge its answers."""
    count, n = problems.log_weights.shape
    q, log_q, gap = np.zeros((count, n)), np.full((count, n), -np.inf), np.zeros(count)
    solved, empty, iterations = np.zeros(count, bool), np.zeros(count, bool), np.zeros(count, int)
    for b in range(count):
        try:
            r = project(problems.log_weights[b], problems.rows(b))
            solved[b], q[b], log_q[b], gap[b], iterations[b] = True, r.q, r.log_q, r.gap, r.iterations
        except am.EmptySetError:
            empty[b] = True
        except am.ProjectionError:
            pass
    blank = np.where(problems.log_weights == -np.inf, FORBIDDEN, 0.0).astype(Long)
    feasible = least_cost(problems, blank) < FORBIDDEN / 2
    verdict = judge(problems, q, log_q)
    finite = np.where(problems.log_weights > -np.inf, np.abs(problems.levelled), 0.0)
    allowed = 1e-8 + 1e-14 * finite.max(axis=1) * problems.skeleton.num_layers
    apart = np.abs(np.exp(log_q) - q).max(axis=1) > 1e-9 + 1e-15 * finite.max(axis=1)
    stray = np.where(problems.log_weights == -np.inf, q, 0.0).any(axis=1)
    violated = (verdict.flow > 1e-12) | (verdict.rows > 1e-12) | stray
    in_range = q > 1e-290
    ln_q = np.log(q, where=in_range, out=np.zeros_like(q))
    miss = (q * np.abs(ln_q - np.where(in_range, log_q, 0.0))).sum(axis=1)
    untold = ~(miss <= np.maximum(gap, 1e-8))
    vague = ~(gap <= 10 * allowed)  # a vacuous bound is no certificate
    far = feasible & (vague | ~(verdict.gap <= allowed))
    wrong = solved & (violated | apart | untold | far)
    marks = (solved & which for which in (violated, apart, untold))
    return Answers(solved, ~solved & feasible, wrong, *marks, gap, verdict, iterations)
