"""The projection in plain NumPy, to be read beside the paper: slow, simple, an oracle for tests.

Problem. Among the occupancy measures q whose rows q(x, a, .) / q(x, a) lie in C(x, a), minimise sum q ln(q / w).

Dual. Give each inner state a multiplier beta(x) for "inflow = outflow"; beta is 0 at both ends. Let
u(x') = w(x, a, x') exp(beta(x')). The problem then separates into one for each pair, and beta minimises a convex F:

    kappa(x, a) = min over p in C(x, a) of sum p ln(p / u)
    F(beta) = sum over layers k of ln Z_k,   Z_k = sum over pairs of layer k of exp(-kappa(x, a) - beta(x))

The gradient of F is inflow - outflow of q(x, a, x') = q(x, a) p(x'), where q(x, a) = exp(-kappa(x, a) - beta(x)) / Z_k.

Rows, with c the centre and epsilon the radius of an L1 ball (0 for a point), low and high the bounds of a box. Duality
within a row bounds kappa from below for any t(x'). At t = ln(p / u) the bound is kappa itself.

    L1 ball   p = median(c, a u, b u)    sum (a u - c)_+ = sum (c - b u)_+ = epsilon / 2; a = b = 1 / sum u if inside
              kappa >= sum c t - ln sum u e^t - epsilon (max t - min t) / 2
    box       p = clip(s u, low, high)   sum p = 1
              kappa >= ln s - ln sum u e^t - sum (ln s - t)_+ high + sum (t - ln s)_+ low

Certificate. F is computed from these bounds, so sum q ln(q / w) >= -F(beta) for every feasible q and any beta and t.
The gap is the difference of the two sides.

Arrays are matrices of long doubles, with a row for each pair and a column for each state: fit for a few hundred
states. If log weights spread over more than 1e5, the solver may not converge.
"""

from collections import namedtuple
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from advmdp.confidence import RowSet
from advmdp.core.arrays import exact_floats
from advmdp.core.errors import EmptySetError
from advmdp.model.skeleton import Skeleton
from advmdp.projection.projector import Projection
from advmdp.projection.verification import feasible

Array: TypeAlias = Any  # of long doubles
BISECTIONS = 80  # halve a range of 1e3 down to 1e-21, or one of 1e8 down to the last place of a long double
Problem = namedtuple("Problem", "sk log_w low high half is_box inner")
"""The constants of the search: low is c for balls, half is epsilon / 2, inner are the states with a beta."""
Rows = namedtuple("Rows", "log_p bound moving")
"""The rows, a lower bound on kappa, and the sets of entries that share a multiplier (a, b or s)."""
Dual = namedtuple("Dual", "F rows log_pairs log_in log_out gradient imbalance")
"""The dual at beta: log_pairs is ln q(x, a), imbalance the largest |gradient|; flows are those of inner states."""


def project(sk: Skeleton, log_weights: ArrayLike, row_set: RowSet, limit: int = 500) -> Projection:
    """Project exp(log_weights); ``limit`` is the largest number of iterations."""
    given, sets = exact_floats(log_weights, "log_weights", (sk.num_transitions,)), row_set.bounds(sk)
    possible, met = feasible(sk, given, sets)
    if not possible[: sk.pair_ptr[1]].any():
        raise EmptySetError("projection", "no feasible path", "at least one from the first state to the last")
    takes_part = sk.over_transitions(possible & met[sk.state_of_pair]) & met[sk.successor]
    at = (np.repeat(np.arange(sk.num_pairs), np.diff(sk.transition_ptr)), sk.successor)
    log_w, low, high = np.zeros((3, sk.num_pairs, sk.num_states), np.longdouble)
    log_w[:], low[at], high[at] = -np.inf, sets.low, sets.high if sets.is_box else 1
    log_w[at] = np.where(takes_part, given, -np.inf)
    tops = np.maximum.reduceat(log_w.max(axis=1), sk.layer_pair_ptr[:-1])  # a constant in a layer changes no q
    log_w -= np.repeat(tops, np.diff(sk.layer_pair_ptr))[:, None]
    problem = Problem(
        sk, log_w, low, high, np.longdouble(sets.radius[:, None]) / 2, sets.is_box, np.flatnonzero(met)[1:-1]
    )
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        beta, dual, iterations = minimise(problem, limit)
        log_q, log_pairs, policy = push_forward(problem, dual)
        q = np.exp(log_q)
        gap = float(np.where(q > 0, q * (log_q - log_w), 0).sum() + dual.F)
    arrays: Any = (log_q[at], q[at], policy, log_pairs, np.where(met, beta, -np.inf))
    quality: Any = (float(-dual.F - tops.sum()), gap, dual.imbalance, iterations, gap <= 1e-8)
    return Projection(sk, given, row_set, *(array.astype(float) for array in arrays), *quality)


def minimise(problem: Problem, limit: int) -> tuple[Array, Dual, int]:
    """Newton's method (Levenberg-Marquardt): raise the damping until F falls as predicted, then lower it again."""
    inner, damping, iterations = problem.inner, 1e-3, 0
    odd = np.searchsorted(problem.sk.layer_ptr, inner, side="right") % 2 == 1
    dual = evaluate(problem, beta := np.zeros(problem.sk.num_states, np.longdouble))
    while iterations < limit and dual.imbalance > 1e-14:
        iterations += 1
        scale = np.exp(-np.logaddexp(dual.log_in, dual.log_out) / 2)
        H = (hessian(problem, dual) * scale * scale[:, None]).astype(float) + damping * np.eye(len(inner))
        step = np.zeros_like(beta)
        step[inner] = -scale * np.linalg.solve(H, (scale * dual.gradient).astype(float))
        trial, promised = evaluate(problem, beta + step), -1e-4 * (dual.gradient * step[inner]).sum()
        hidden = promised < 1e-17 * (1 + abs(dual.F))  # rounding hides the change of F
        if trial.imbalance < dual.imbalance if hidden else dual.F - promised > trial.F:
            beta, dual, damping = beta + step, trial, max(damping / 10, 1e-12)
        else:  # coordinate descent on every other layer, with steps that cannot overshoot
            damping *= 10
            for some in (odd, ~odd):
                beta[inner[some]] += (dual.log_out - dual.log_in)[some] / 2
                dual = evaluate(problem, beta)
    return beta, dual, iterations


def evaluate(problem: Problem, beta: Array) -> Dual:
    """Solve all rows at one beta, and add up the flows."""
    sk, inner, log_u = problem.sk, problem.inner, problem.log_w + beta
    rows = (box_rows if problem.is_box else ball_rows)(problem, log_u)
    log_mass = np.where(log_u.max(axis=1) > -np.inf, -rows.bound - beta[sk.state_of_pair], -np.inf)
    log_Z = np.logaddexp.reduceat(log_mass, sk.layer_pair_ptr[:-1])
    log_pairs = log_mass - np.repeat(log_Z, np.diff(sk.layer_pair_ptr))
    log_in = np.logaddexp.reduce(np.where(log_u > -np.inf, rows.log_p + log_pairs[:, None], -np.inf), axis=0)[inner]
    log_out = np.logaddexp.reduceat(log_pairs, sk.pair_ptr[:-2])[inner]
    gradient = np.exp(log_in) - np.exp(log_out)
    return Dual(log_Z.sum(), rows, log_pairs, log_in, log_out, gradient, float(np.abs(gradient).max(initial=0)))


def ball_rows(problem: Problem, log_u: Array) -> Rows:
    """Find a and b in closed form.

    sum (a u - c)_+ is the maximum of a u(A) - c(A) over all sets A, so a is the minimum of (epsilon / 2 + c(A)) / u(A).
    It suffices to try the sets of the entries with the smallest c / u. Likewise, b is the maximum of
    (c(B) - epsilon / 2) / u(B).
    """
    c, allowed = problem.low, log_u > -np.inf
    half = np.maximum(problem.half, np.where(allowed, 0, c).sum(axis=1, keepdims=True))
    ratio = np.where(allowed, np.log(c) - log_u, np.inf)
    order = np.argsort(ratio, axis=1)
    c_up, u_up = np.take_along_axis(c, order, 1), np.take_along_axis(log_u, order, 1)
    c_A, c_B = (np.cumsum(one, axis=1) for one in (c_up, c_up[:, ::-1]))
    u_A, u_B = (np.logaddexp.accumulate(one, 1) for one in (u_up, u_up[:, ::-1]))
    log_a = (np.log(half + c_A) - u_A).min(axis=1, keepdims=True)
    log_b = np.where(c_B > half, np.log(c_B - half) - u_B, -np.inf).max(axis=1, keepdims=True)
    inside = (problem.half >= 1) | (log_a >= log_b)
    log_a, log_b = (np.where(inside, -u_A[:, -1:], one) for one in (log_a, log_b))
    t = np.clip(ratio, log_a, log_b)
    width = np.where(half > 0, half * (log_b - log_a), 0)[:, 0]
    bound = np.where(c > 0, c * t, 0).sum(axis=1) - np.logaddexp.reduce(log_u + t, axis=1) - width
    moving = [inside | (ratio < log_a), ~inside & (ratio > log_b)]
    return Rows(log_u + t, np.where(inside[:, 0], -u_A[:, -1], bound), moving)


def box_rows(problem: Problem, log_u: Array) -> Rows:
    """Find ln s by bisection."""
    low, high, used = problem.low, problem.high, (log_u > -np.inf) & (problem.high > 0)
    least, most = np.where(used, np.log(low) - log_u, -np.inf), np.where(used, np.log(high) - log_u, 0)
    below, log_s = most.min(axis=1, keepdims=True) - 1e3, most.max(axis=1, keepdims=True) + 1
    for _ in range(BISECTIONS):
        middle = (below + log_s) / 2
        enough = np.where(used, np.clip(np.exp(middle + log_u), low, high), 0).sum(axis=1, keepdims=True) >= 1
        below, log_s = np.where(enough, below, middle), np.where(enough, middle, log_s)
    t = np.where(used, np.clip(log_s, least, most), log_s)
    log_p = np.where(used, log_u + t, -np.inf)
    linear = np.where(used, (t - log_s) * np.where(t < log_s, high, low), 0).sum(axis=1)
    bound = log_s[:, 0] + linear - np.logaddexp.reduce(log_p, axis=1)
    return Rows(log_p, bound, [used & (least < log_s) & (log_s < most)])


def hessian(problem: Problem, dual: Dual) -> Array:
    """Second derivatives of F: sum q(x, a) [dp / dbeta + (p - e_x)(p - e_x)'] - sum over layers of g g'."""
    sk, q = problem.sk, np.exp(dual.log_pairs)[:, None]
    p = np.where(q > 0, np.exp(dual.rows.log_p), 0)
    change = p - (sk.state_of_pair[:, None] == np.arange(sk.num_states))
    g = np.add.reduceat(q * change, sk.layer_pair_ptr[:-1])
    H = change.T @ (q * change) - g.T @ g
    for one in dual.rows.moving:  # entries that share a multiplier share their mass: dp/dbeta = diag(p) - p p'/sum p
        mine = np.where(one, p, 0)
        total = mine.sum(axis=1, keepdims=True)
        H += np.diag((q * mine).sum(axis=0)) - mine.T @ (np.where(total > 0, q / total, 0) * mine)
    return H[np.ix_(problem.inner, problem.inner)]


def push_forward(problem: Problem, dual: Dual) -> tuple[Array, Array, Array]:
    """ln q, ln q(x, a) and the policy, from the policy and the rows of the dual: feasible up to rounding."""
    sk, actions = problem.sk, np.diff(problem.sk.pair_ptr[:-1])
    log_out = np.repeat(np.logaddexp.reduceat(dual.log_pairs, sk.pair_ptr[:-2]), actions)
    log_policy = np.where(log_out > -np.inf, dual.log_pairs - log_out, -np.log(np.repeat(actions, actions)))
    log_p = np.where(problem.log_w > -np.inf, dual.rows.log_p, -np.inf)
    log_x = np.where(np.arange(sk.num_states) == 0, np.longdouble(0), -np.inf)  # ln of the mass of each state
    for k in range(sk.num_steps):
        pairs = slice(sk.layer_pair_ptr[k], sk.layer_pair_ptr[k + 1])
        log_q = (log_x[sk.state_of_pair] + log_policy)[pairs, None] + log_p[pairs]
        log_x = np.logaddexp(log_x, np.logaddexp.reduce(log_q, axis=0))
    log_pairs = log_x[sk.state_of_pair] + log_policy
    return log_pairs[:, None] + log_p, log_pairs, np.exp(log_policy)
