"""The projection in plain NumPy, to be read beside the paper: slow, simple, an oracle for tests.

Problem. Among the occupancy measures q whose rows q(x, a, .) / q(x, a) lie in C(x, a), minimise sum q ln(q / w).

Dual. Give each inner state a multiplier beta(x) for "inflow = outflow"; beta is 0 at both ends. Let
u(x') = w(x, a, x') exp(beta(x')). Each pair is then a problem of its own, and beta minimises a convex function:

    kappa(x, a) = min over p in C(x, a) of sum p ln(p / u)
    F(beta) = sum over layers k of ln Z_k,   Z_k = sum over pairs of layer k of exp(-kappa(x, a) - beta(x))

The gradient of F is inflow - outflow of q(x, a, x') = q(x, a) p(x'), where q(x, a) = exp(-kappa(x, a) - beta(x)) / Z_k.

Rows. With c the centre and epsilon the radius of an L1 ball, and low and high the bounds of a box,

    L1 ball    p = median(c, a u, b u)     sum (a u - c)_+ = sum (c - b u)_+ = epsilon / 2; a = b = 1 / sum u if inside
    box        p = clip(s u, low, high)    sum p = 1
    point      p = c

Certificate. For any t(x'), duality within a row bounds kappa from below. At t = ln(p / u) the bound is kappa itself.

    L1 ball    sum c t - ln sum u e^t - epsilon (max t - min t) / 2
    box        ln s - ln sum u e^t - sum (ln s - t)_+ high + sum (t - ln s)_+ low
    point      sum c ln(c / u)

F is computed from these bounds, so -F(beta) bounds sum q ln(q / w) from below for every feasible q, whatever beta is.
The gap is what the answer costs above that bound.

All arrays are matrices of long doubles with a row for each pair and a column for each state; a transition that does not
exist has weight zero. That suits some hundred states.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from advmdp.confidence import RowSet
from advmdp.core.arrays import exact_floats
from advmdp.core.errors import EmptySetError
from advmdp.model.skeleton import Skeleton
from advmdp.projection.projector import Projection
from advmdp.projection.verification import feasible

__all__ = ["project"]

Array: TypeAlias = Any  # of long doubles
BISECTIONS = 80
"""Enough to halve a range of 1e3 down to 1e-21, or one of 1e8 down to the last place of a long double."""


@dataclass
class Problem:
    """What stays the same while beta moves."""

    sk: Skeleton
    log_w: Array
    low: Array  # the centre of a ball, the lower bound of a box, the row of a point
    high: Array
    epsilon: Array  # a column: 0 for a point, 2 for no constraint
    is_box: bool


@dataclass
class Dual:
    """Everything at one beta."""

    F: Array
    p: Array
    log_pairs: Array  # ln q(x, a)
    moving: list[Array]  # sets of entries of p that share a multiplier
    inflow: Array
    outflow: Array

    @property
    def imbalance(self) -> float:
        """The largest |inflow - outflow| of an inner state."""
        return float(np.abs(self.inflow - self.outflow)[1:-1].max(initial=0))


def project(
    sk: Skeleton, log_weights: ArrayLike, rows: RowSet, tolerance: float = 1e-14, limit: int = 500
) -> Projection:
    """The projection of exp(log_weights), until no state is out of balance by more than ``tolerance``."""
    given, sets = exact_floats(log_weights, "log_weights", (sk.num_transitions,)), rows.bounds(sk)
    possible, met = feasible(sk, given, sets)
    if not possible[: sk.pair_ptr[1]].any():
        raise EmptySetError("projection", "no feasible path", "at least one from the first state to the last")
    at = (np.repeat(np.arange(sk.num_pairs), np.diff(sk.transition_ptr)), sk.successor)

    def matrix(values: Array, elsewhere: float) -> Array:
        full = np.full((sk.num_pairs, sk.num_states), elsewhere, np.longdouble)
        full[at] = values
        return full

    takes_part = sk.over_transitions(possible & met[sk.state_of_pair]) & met[sk.successor]
    log_w = matrix(np.where(takes_part, given, -np.inf), -np.inf)
    tops = np.maximum.reduceat(log_w.max(axis=1), sk.layer_pair_ptr[:-1])  # a constant in a layer is free
    log_w -= np.repeat(tops, np.diff(sk.layer_pair_ptr))[:, None]
    high = matrix(sets.high if sets.is_box else 0, 0)
    problem = Problem(sk, log_w, matrix(sets.low, 0), high, sets.radius[:, None].astype(np.longdouble), sets.is_box)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        beta, dual, iterations = minimise(problem, np.flatnonzero(met)[1:-1], tolerance, limit)
        log_q, log_pairs, policy = push_forward(problem, dual)
        q = np.exp(log_q)
        gap = float(dot(q, log_q - log_w).sum() + dual.F)
    shown = (log_q[at], q[at], policy, log_pairs, np.where(met, beta, -np.inf))
    arrays = (array.astype(float) for array in shown)
    converged = dual.imbalance <= tolerance and gap <= 1e-9
    return Projection(sk, given, rows, *arrays, float(-dual.F - tops.sum()), gap, dual.imbalance, iterations, converged)


def minimise(problem: Problem, inner: Array, tolerance: float, limit: int) -> tuple[Array, Dual, int]:
    """Newton's method (Levenberg-Marquardt): damp the step more until F falls as promised, then less again."""
    beta, damping, iterations = np.zeros(problem.sk.num_states, np.longdouble), 1e-3, 0
    dual = evaluate(problem, beta)
    while iterations < limit and dual.imbalance > tolerance:
        iterations += 1
        gradient = (dual.inflow - dual.outflow)[inner]
        scale = 1 / np.sqrt((dual.inflow + dual.outflow)[inner])
        H = (hessian(problem, dual)[np.ix_(inner, inner)] * scale * scale[:, None]).astype(float)
        step = np.zeros_like(beta)
        step[inner] = -scale * np.linalg.solve(H + damping * np.eye(len(H)), (scale * gradient).astype(float))
        trial = evaluate(problem, beta + step)
        promised = -1e-4 * (gradient * step[inner]).sum()
        visible = promised > 1e-17 * (1 + abs(dual.F))
        if dual.F - trial.F > promised if visible else trial.imbalance < dual.imbalance:
            beta, dual, damping = beta + step, trial, max(damping / 10, 1e-12)
        else:
            damping *= 10
    return beta, dual, iterations


def evaluate(problem: Problem, beta: Array) -> Dual:
    """Rows, masses of the pairs, and flows."""
    sk, log_u = problem.sk, problem.log_w + beta
    p, kappa, moving = (box_rows if problem.is_box else ball_rows)(problem, log_u)
    point = problem.epsilon == 0
    p = np.where(point, problem.low, p)
    kappa = np.where(point[:, 0], dot(p, np.log(p) - log_u), kappa)
    alone = -kappa - beta[sk.state_of_pair]
    alone[log_u.max(axis=1) == -np.inf] = -np.inf  # pairs that take no part
    log_Z = np.logaddexp.reduceat(alone, sk.layer_pair_ptr[:-1])
    log_pairs = alone - np.repeat(log_Z, np.diff(sk.layer_pair_ptr))
    mass = np.exp(log_pairs)
    outflow = np.append(np.add.reduceat(mass, sk.pair_ptr[:-2]), 1)
    return Dual(log_Z.sum(), p, log_pairs, [one & ~point for one in moving], dot(p.T, mass), outflow)


def ball_rows(problem: Problem, log_u: Array) -> tuple[Array, Array, list[Array]]:
    """p = median(c, a u, b u), a bound on kappa, and the entries that move with a and with b.

    sum (a u - c)_+ is the largest a u(A) - c(A) of all sets A, so a is the least (epsilon / 2 + c(A)) / u(A). The sets
    that matter hold the entries with the least c / u. In the same way b is the largest (c(B) - epsilon / 2) / u(B).
    """
    c, allowed = problem.low, log_u > -np.inf
    half = np.maximum(problem.epsilon / 2, np.where(allowed, 0, c).sum(axis=1, keepdims=True))
    ratio = np.where(allowed, np.log(c) - log_u, np.inf)
    order = np.argsort(ratio, axis=1)
    c_up, u_up = np.take_along_axis(c, order, 1), np.take_along_axis(log_u, order, 1)
    c_down, u_down = (np.cumsum(c_up[:, ::-1], axis=1) - half).clip(min=0), np.logaddexp.accumulate(u_up[:, ::-1], 1)
    log_a = (np.log(half + np.cumsum(c_up, axis=1)) - np.logaddexp.accumulate(u_up, 1)).min(axis=1, keepdims=True)
    log_b = np.where(c_down > 0, np.log(c_down) - u_down, -np.inf).max(axis=1, keepdims=True)
    inside = (problem.epsilon >= 2) | (log_a >= log_b)
    log_total = np.logaddexp.reduce(log_u, axis=1)
    log_a, log_b = (np.where(inside, -log_total[:, None], one) for one in (log_a, log_b))
    t = np.clip(ratio, log_a, log_b)
    bound = dot(c, t) - np.logaddexp.reduce(log_u + t, axis=1) - (half * (log_b - log_a))[:, 0]
    p = np.where(allowed, np.where(inside | (ratio < log_a) | (ratio > log_b), np.exp(log_u + t), c), 0)
    return p, np.where(inside[:, 0], -log_total, bound), [inside | (ratio < log_a), ~inside & (ratio > log_b)]


def box_rows(problem: Problem, log_u: Array) -> tuple[Array, Array, list[Array]]:
    """p = clip(s u, low, high), a bound on kappa, and the entries that move with s; ln s by bisection."""
    low, high = problem.low, np.where(log_u > -np.inf, problem.high, 0)
    least, most = np.log(low) - log_u, np.log(high) - log_u
    ends = np.where(high > 0, most, 0)
    left, right = ends.min(axis=1, keepdims=True) - 1e3, ends.max(axis=1, keepdims=True) + 1
    for _ in range(BISECTIONS):
        log_s = (left + right) / 2
        enough = np.clip(np.exp(log_s + log_u), low, high).sum(axis=1, keepdims=True) >= 1
        left, right = np.where(enough, left, log_s), np.where(enough, log_s, right)
    log_s = right
    t = np.where(high > 0, np.clip(log_s, np.where(low > 0, least, -np.inf), most), log_s)
    linear = np.where(t < log_s, (t - log_s) * high, (t - log_s) * low).sum(axis=1)
    bound = log_s[:, 0] + linear - np.logaddexp.reduce(np.where(high > 0, log_u + t, -np.inf), axis=1)
    p = np.clip(np.exp(log_s + log_u), low, high)
    return p, bound, [(p > low) & (p < high)]


def hessian(problem: Problem, dual: Dual) -> Array:
    """Second derivatives of F: sum q(x, a) [dp / dbeta + (p - e_x)(p - e_x)'] - sum over layers of g g'."""
    sk, q = problem.sk, np.exp(dual.log_pairs)[:, None]
    change = np.where(q > 0, dual.p, 0)
    change[np.arange(sk.num_pairs), sk.state_of_pair] -= 1
    g = np.add.reduceat(q * change, sk.layer_pair_ptr[:-1])
    H = change.T @ (q * change) - g.T @ g
    for one in dual.moving:  # entries that share a multiplier share their mass: dp / dbeta = diag(p) - p p' / sum p
        p = np.where(one & (q > 0), dual.p, 0)
        total = p.sum(axis=1, keepdims=True)
        H += np.diag((q * p).sum(axis=0)) - p.T @ (np.where(total > 0, q / total, 0) * p)
    return H


def push_forward(problem: Problem, dual: Dual) -> tuple[Array, Array, Array]:
    """ln q, ln q(x, a) and the policy, from the policy and the rows of the dual: feasible up to rounding."""
    sk, actions = problem.sk, np.diff(problem.sk.pair_ptr[:-1])
    log_out = np.repeat(np.logaddexp.reduceat(dual.log_pairs, sk.pair_ptr[:-2]), actions)
    log_policy = np.where(log_out > -np.inf, dual.log_pairs - log_out, -np.log(np.repeat(actions, actions)))
    log_q, log_mass = np.log(dual.p), np.full(sk.num_states, -np.inf, np.longdouble)
    log_mass[0] = 0
    for k in range(sk.num_layers):
        pairs = slice(sk.layer_pair_ptr[k], sk.layer_pair_ptr[k + 1])
        log_q[pairs] += (log_mass[sk.state_of_pair] + log_policy)[pairs, None]
        log_mass = np.logaddexp(log_mass, np.logaddexp.reduce(log_q[pairs], axis=0))
    return log_q, log_mass[sk.state_of_pair] + log_policy, np.exp(log_policy)


def dot(x: Array, y: Array) -> Array:
    """Sums of x y over the last axis, where 0 times anything is 0."""
    return np.where(x > 0, x * y, 0).sum(axis=-1)
