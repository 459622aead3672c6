"""The projection in plain NumPy and long double, to be read beside the mathematics: slow, simple, an oracle for tests.

    minimise  F(beta) = sum_k ln sum over pairs of layer k of exp(-kappa(x, a) - beta(x))

over beta, one number for each inner state, where kappa(x, a) is the least sum p ln(p / u) over p in C(x, a) and
u(x') = w(x, a, x') exp(beta(x')).  Then q(x, a, x') = q(x, a) p(x') with q(x, a) = exp(-kappa(x, a) - beta(x)) / Z_k.

What the kernels solve by sorting and by Newton steps on active sets is found here by bisection, and the Hessian is a
dense matrix.  That suits some hundred states and log weights within some hundred of each other; where it does not get
there, the answer says so (``converged``).  ``projector.py`` says what the problem is, ``verification.py`` how an answer
is checked.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from advmdp.confidence import RowSet
from advmdp.confidence.sets import RowSets
from advmdp.core.arrays import exact_floats
from advmdp.core.errors import EmptySetError
from advmdp.model.skeleton import Skeleton
from advmdp.projection.projector import Projection
from advmdp.projection.verification import feasible, flow_violation, log_sums, verify

Array: TypeAlias = Any  # of long doubles
Long = np.longdouble
BISECTIONS = 160
"""More than halve 1e8 down to a unit in the last place of a long double."""


@dataclass
class Problem:
    """What stays the same while beta moves."""

    sk: Skeleton
    sets: RowSets
    log_w: Array
    """Without what a layer has in common; -inf where no feasible path leads."""
    pairs: Array
    """The pairs that take part."""
    inner: Array
    """The states that have a beta."""

    def sums(self, values: Array) -> Array:
        """Sums over the successors of each pair."""
        return np.add.reduceat(values, self.sk.transition_ptr[:-1])


@dataclass
class Dual:
    """Everything at one beta."""

    value: Array
    p: Array
    log_p: Array
    free: Array
    """2 for entries that share the multiplier b of their row, 1 for a (or s), 0 for those at a bound or the centre."""
    log_pairs: Array
    """ln q(x, a)."""
    inflow: Array
    outflow: Array


def project(
    sk: Skeleton, log_weights: ArrayLike, rows: RowSet, tolerance: float = 1e-11, limit: int = 500
) -> Projection:
    """The projection of exp(log_weights), until no state is out of balance by more than ``tolerance``."""
    given = exact_floats(log_weights, "log_weights", (sk.num_transitions,))
    problem = pose(sk, given, rows)
    beta = np.zeros(sk.num_states, Long)
    iterations, dual = 0, evaluate(problem, beta)
    while iterations < limit and imbalance(problem, dual) > tolerance:
        iterations += 1
        beta, dual, moved = newton(problem, beta, dual)
        if not moved:
            beta, dual = sweep(problem, beta, dual)
    return rebuild(problem, given, rows, beta, dual, iterations, imbalance(problem, dual) <= tolerance)


def pose(sk: Skeleton, given: Array, rows: RowSet) -> Problem:
    """Leave out what no feasible path meets, and take off each layer's largest log weight."""
    sets = rows.bounds(sk)
    possible, met = feasible(sk, given, sets)
    if not possible[: sk.pair_ptr[1]].any():
        raise EmptySetError("projection", "no feasible path", "at least one from the first state to the last")
    pairs = possible & met[sk.state_of_pair]
    log_w = np.where(sk.over_transitions(pairs) & met[sk.successor], given, -np.inf).astype(Long)
    tops = np.maximum.reduceat(log_w, sk.layer_transition_ptr[:-1])
    log_w -= np.repeat(tops, np.diff(sk.layer_transition_ptr))
    return Problem(sk, sets, log_w, pairs, np.flatnonzero(met)[1:-1])


def evaluate(problem: Problem, beta: Array) -> Dual:
    """The rows, the masses of the pairs, and the flows that follow."""
    sk = problem.sk
    log_u = problem.log_w + beta[sk.successor]
    p, free = project_rows(problem, log_u)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_p = np.log(p)
        kappa = problem.sums(np.where(p > 0, p * (log_p - log_u), 0))
    masses = np.where(problem.pairs, -kappa - beta[sk.state_of_pair], -np.inf)
    log_z = log_sums(masses, sk.layer_pair_ptr[:-1])
    log_pairs = masses - np.repeat(log_z, np.diff(sk.layer_pair_ptr))
    inflow, outflow = np.zeros((2, sk.num_states), Long)
    np.add.at(outflow, sk.state_of_pair, np.exp(log_pairs))
    np.add.at(inflow, sk.successor, sk.over_transitions(np.exp(log_pairs)) * p)
    return Dual(log_z.sum(), p, log_p, free, log_pairs, inflow, outflow)


def imbalance(problem: Problem, dual: Dual) -> float:
    """The largest |inflow - outflow|: the gradient of F."""
    return float(np.abs(dual.inflow - dual.outflow)[problem.inner].max(initial=0))


def project_rows(problem: Problem, log_u: Array) -> tuple[Array, Array]:
    """The row of every pair nearest to u within its set, and which entries share a multiplier."""
    sets, sk = problem.sets, problem.sk
    radius = sk.over_transitions(sets.radius)
    inside = np.exp(log_u - sk.over_transitions(log_sums(log_u, sk.transition_ptr[:-1]).clip(min=-1e300)))
    p, free = (box_rows if sets.is_box else ball_rows)(problem, log_u, inside)
    point = np.where(log_u > -np.inf, sets.low, 0).astype(Long)
    unbound = radius >= 2
    return (
        np.where(unbound, inside, np.where(radius == 0, point, p)),
        np.where(unbound, 1, np.where(radius == 0, 0, free)),
    )


def ball_rows(problem: Problem, log_u: Array, inside: Array) -> tuple[Array, Array]:
    """median(c, a u, b u) with sum (a u - c)_+ = sum (c - b u)_+ = epsilon / 2, unless u / sum u is within the ball."""
    sk, c = problem.sk, problem.sets.low.astype(Long)
    half = problem.sets.radius / 2
    here = log_u > -np.inf
    top = np.maximum.reduceat(np.where(here, log_u, -1e300), sk.transition_ptr[:-1])
    forbidden = problem.sums(np.where(here, 0, c))
    half = np.maximum(half, forbidden)
    excess = bisect(lambda a: problem.sums(np.maximum(scaled(sk, a, log_u) - c, 0)) >= half, -top - 200, -top + 2)
    with np.errstate(divide="ignore"):
        ratio = np.where(here & (c > 0), np.log(c) - np.where(here, log_u, 0), 0)
    low, high = (f.reduceat(ratio, sk.transition_ptr[:-1]) for f in (np.minimum, np.maximum))
    lack = bisect(lambda b: problem.sums(np.maximum(c - scaled(sk, b, log_u), 0)) <= half, low - 200, high + 2)
    above, below = scaled(sk, excess, log_u), scaled(sk, lack, log_u)
    p = np.maximum(above, np.minimum(c, below))
    within = sk.over_transitions((problem.sums(np.abs(inside - c)) <= problem.sets.radius) | (excess >= lack))
    classes = np.where(p > c, 1, np.where(p < c, 2, 0))
    return np.where(within, inside, p), np.where(within, 1, classes)


def box_rows(problem: Problem, log_u: Array, inside: Array) -> tuple[Array, Array]:
    """clip(s u, low, high) with sum one."""
    sk, low, high = problem.sk, problem.sets.low.astype(Long), problem.sets.high.astype(Long)
    high = np.where(log_u > -np.inf, high, 0)
    finite = np.where((log_u > -np.inf) & (high > 0), log_u, np.nan)
    top, bottom = (f.reduceat(finite, sk.transition_ptr[:-1]) for f in (np.fmax, np.fmin))

    def row(log_s: Array) -> Array:
        return np.clip(scaled(sk, log_s, log_u), low, high)

    p = row(bisect(lambda s: problem.sums(row(s)) >= 1, np.nan_to_num(-top) - 100, np.nan_to_num(-bottom) + 2))
    return p, np.where((p > low) & (p < high), 1, 0)


def scaled(sk: Skeleton, log_scale: Array, log_u: Array) -> Array:
    """exp(log_scale) u, pair by pair."""
    return np.exp(np.minimum(sk.over_transitions(log_scale) + log_u, 700))


def bisect(enough: Any, low: Array, high: Array) -> Array:
    """The least number at which ``enough`` is true, for each pair."""
    low, high = low.astype(Long), high.astype(Long)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        there = enough(middle)
        low, high = np.where(there, low, middle), np.where(there, middle, high)
    return high


def newton(problem: Problem, beta: Array, dual: Dual) -> tuple[Array, Dual, bool]:
    """A Newton step, halved until F falls as its slope promises; whether one was found."""
    inner, gradient = problem.inner, (dual.inflow - dual.outflow)[problem.inner]
    scale = 1 / np.sqrt(np.maximum((dual.inflow + dual.outflow)[inner], 1e-300))
    matrix = (hessian(problem, dual) * scale[:, None] * scale).astype(float)
    direction = scale * np.linalg.lstsq(matrix, -(scale * gradient).astype(float), rcond=1e-13)[0]
    slope, length = (gradient * np.nan_to_num(direction)).sum(), 1.0
    while slope < 0 and length > 1e-6:
        trial = beta.copy()
        trial[inner] += length * direction
        there = evaluate(problem, trial)
        better = imbalance(problem, there) <= 0.5 * imbalance(problem, dual)
        if there.value < dual.value + 1e-4 * length * slope or (there.value <= dual.value and better):
            return trial, there, True
        length /= 2
    return beta, dual, False


def hessian(problem: Problem, dual: Dual) -> Array:
    """Second derivatives of F: sum q(x,a) [dp/dbeta + (p - e_x)(p - e_x)'] - sum over layers of g g'."""
    sk, n = problem.sk, problem.sk.num_states
    H = np.zeros((n, n), Long)
    for k in range(sk.num_steps):
        g = np.zeros(n, Long)
        for pair in range(sk.layer_pair_ptr[k], sk.layer_pair_ptr[k + 1]):
            at = slice(sk.transition_ptr[pair], sk.transition_ptr[pair + 1])
            mass, p, y = np.exp(dual.log_pairs[pair]), dual.p[at], sk.successor[at]
            for shared in (1, 2):
                mine = np.where(dual.free[at] == shared, p, 0)
                if mine.sum() > 0:
                    H[np.ix_(y, y)] += mass * (np.diag(mine) - np.outer(mine, mine) / mine.sum())
            flow = np.zeros(n, Long)
            flow[y] = p
            flow[sk.state_of_pair[pair]] -= 1
            H += mass * np.outer(flow, flow)
            g += mass * flow
        H -= np.outer(g, g)
    return H[np.ix_(problem.inner, problem.inner)]


def sweep(problem: Problem, beta: Array, dual: Dual) -> tuple[Array, Dual]:
    """Coordinate descent: beta(x) += (ln outflow - ln inflow) / 2 on every other layer, then on the rest."""
    for parity in (1, 0):
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.nan_to_num(np.log(dual.outflow) - np.log(dual.inflow), posinf=0.0, neginf=0.0) / 2
        layer = np.searchsorted(problem.sk.layer_ptr, problem.inner, side="right") - 1
        chosen = problem.inner[layer % 2 == parity]
        beta = beta.copy()
        beta[chosen] += step[chosen]
        dual = evaluate(problem, beta)
    return beta, dual


def rebuild(
    problem: Problem, given: Array, rows: RowSet, beta: Array, dual: Dual, iterations: int, converged: bool
) -> Projection:
    """The policy and the rows of the dual, pushed forward from the first state: feasible to rounding."""
    sk = problem.sk
    with np.errstate(divide="ignore", invalid="ignore"):
        log_out = log_sums(dual.log_pairs, sk.pair_ptr[:-2])
        log_policy = np.where(problem.pairs, dual.log_pairs - np.repeat(log_out, np.diff(sk.pair_ptr[:-1])), -np.inf)
        log_mass = np.full(sk.num_states, -np.inf, Long)
        log_mass[0] = 0
        log_q = np.empty(sk.num_transitions, Long)
        for k in range(sk.num_steps):
            for pair in range(sk.layer_pair_ptr[k], sk.layer_pair_ptr[k + 1]):
                at = slice(sk.transition_ptr[pair], sk.transition_ptr[pair + 1])
                log_q[at] = log_mass[sk.state_of_pair[pair]] + log_policy[pair] + dual.log_p[at]
                for i in range(at.start, at.stop):
                    log_mass[sk.successor[i]] = np.logaddexp(log_mass[sk.successor[i]], log_q[i])
    log_pairs = log_mass[sk.state_of_pair] + log_policy
    widths = np.diff(sk.pair_ptr[:-1])
    policy = np.where(np.repeat(log_out > -np.inf, widths), np.exp(log_policy), 1 / np.repeat(widths, widths))
    kept = np.where(log_mass > -np.inf, beta, -np.inf)
    answer = Projection(
        sk, given, rows, log_q.astype(float), np.exp(log_q).astype(float), policy.astype(float),
        log_pairs.astype(float), kept.astype(float), np.nan, np.nan, float(flow_violation(sk, np.exp(log_q))),
        iterations, converged,
    )  # fmt: skip
    checked = verify(answer)
    object.__setattr__(answer, "gap", checked.gap)
    object.__setattr__(answer, "dual", checked.value - checked.gap)
    return answer
