"""Independent answers to compare with: slow, simple, and written without the code under test."""

import cvxpy as cp
import numpy as np

import advmdp as am


def rows_of(sk: am.Skeleton) -> list[slice]:
    """The transitions of each pair."""
    return [slice(a, b) for a, b in zip(sk.transition_ptr[:-1], sk.transition_ptr[1:], strict=True)]


def flow_rules(sk: am.Skeleton, q: cp.Variable) -> list[cp.Constraint]:
    """Equations (1) and (2)."""
    rules = [
        cp.sum(q[a:b]) == 1 for a, b in zip(sk.layer_transition_ptr[:-1], sk.layer_transition_ptr[1:], strict=True)
    ]
    source = np.repeat(sk.state_of_pair, np.diff(sk.transition_ptr))
    for x in range(1, sk.num_states - 1):
        entering = np.flatnonzero(sk.successor == x)
        into = cp.sum(q[entering]) if len(entering) else 0.0
        rules.append(cp.sum(q[np.flatnonzero(source == x)]) == into)
    return rules


def l1_rules(sk: am.Skeleton, q: cp.Variable, center: np.ndarray, radius: np.ndarray) -> list[cp.Constraint]:
    """sum_x' |q(x,a,x') - Pbar(x'|x,a) q(x,a)| <= epsilon(x,a) q(x,a); void where nothing was observed."""
    return [
        cp.norm1(q[row] - center[row] * cp.sum(q[row])) <= radius[p] * cp.sum(q[row])
        for p, row in enumerate(rows_of(sk))
        if radius[p] < 2.0 and center[row].sum() > 0.0
    ]


def printed_rules(sk: am.Skeleton, q: cp.Variable, center: np.ndarray, radius: np.ndarray) -> list[cp.Constraint]:
    """What the printed dual of Theorem 4.2 solves: |q(x,a,x') - Pbar q(x,a)| <= epsilon q(x,a,x') for every x'."""
    return [cp.abs(q[row] - center[row] * cp.sum(q[row])) <= radius[p] * q[row] for p, row in enumerate(rows_of(sk))]


def box_rules(sk: am.Skeleton, q: cp.Variable, lower: np.ndarray, upper: np.ndarray) -> list[cp.Constraint]:
    """lower q(x,a) <= q(x,a,x') <= upper q(x,a)."""
    rules = []
    for row in rows_of(sk):
        rules += [q[row] >= lower[row] * cp.sum(q[row]), q[row] <= upper[row] * cp.sum(q[row])]
    return rules


def kl_projection(
    sk: am.Skeleton, weights: np.ndarray, rules_of_rows: list, q: cp.Variable
) -> tuple[np.ndarray, float, str]:
    """min D(q || w) under the rules, by CVXPY and Clarabel: q, the divergence, and what the solver says of it."""
    problem = cp.Problem(cp.Minimize(cp.sum(cp.kl_div(q, weights))), [*flow_rules(sk, q), *rules_of_rows])
    problem.solve(solver=cp.CLARABEL)
    return q.value, float(problem.value), str(problem.status)


def occupancy_variable(sk: am.Skeleton) -> cp.Variable:
    return cp.Variable(sk.num_transitions, nonneg=True)
