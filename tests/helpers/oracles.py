"""Independent answers to compare with: slow, simple, and written without the code under test."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import scipy.sparse

import advmdp as am
from tests.helpers.cvx import cp


def rows_of(sk: am.Skeleton) -> list[slice]:
    """The transitions of each pair."""
    return [slice(a, b) for a, b in zip(sk.transition_ptr[:-1], sk.transition_ptr[1:], strict=True)]


def summing(owner: np.ndarray, count: int) -> scipy.sparse.csr_array:
    """The matrix that sums entries by owner."""
    n = len(owner)
    return scipy.sparse.csr_array((np.ones(n), (owner, np.arange(n))), shape=(count, n))


def owners(sk: am.Skeleton) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The layer, the state and the pair of each transition."""
    pair = np.repeat(np.arange(sk.num_pairs), np.diff(sk.transition_ptr))
    layer = np.repeat(np.arange(sk.num_layers), np.diff(sk.layer_transition_ptr))
    return layer, sk.state_of_pair[pair], pair


def flow_rules(sk: am.Skeleton, q: cp.Variable) -> list[cp.Constraint]:
    """Equations (1) and (2)."""
    layer, state, _ = owners(sk)
    balance = (summing(sk.successor, sk.num_states) - summing(state, sk.num_states))[1:-1]
    rules = [summing(layer, sk.num_layers) @ q == 1]
    return [*rules, balance @ q == 0] if sk.num_states > 2 else rules


def misses(sk: am.Skeleton, q: cp.Variable, center: np.ndarray) -> tuple[cp.Expression, scipy.sparse.csr_array]:
    """|q(x,a,x') - Pbar(x'|x,a) q(x,a)|, and the matrix of q(x,a)."""
    pairs = summing(owners(sk)[2], sk.num_pairs)
    return cp.abs(q - scipy.sparse.diags_array(center) @ pairs.T @ pairs @ q), pairs


def l1_rules(sk: am.Skeleton, q: cp.Variable, center: np.ndarray, radius: np.ndarray) -> list[cp.Constraint]:
    """sum_x' |q(x,a,x') - Pbar(x'|x,a) q(x,a)| <= epsilon(x,a) q(x,a); vacuous if nothing was observed."""
    miss, pairs = misses(sk, q, center)
    binding = np.flatnonzero((radius < 2.0) & (pairs @ center > 0.0))
    here = pairs[binding]
    return [here @ miss <= scipy.sparse.diags_array(radius[binding]) @ here @ q] if len(binding) else []


def printed_rules(sk: am.Skeleton, q: cp.Variable, center: np.ndarray, radius: np.ndarray) -> list[cp.Constraint]:
    """Constraints of Theorem 4.2's printed dual: |q(x,a,x') - Pbar q(x,a)| <= epsilon q(x,a,x') for every x'."""
    return [misses(sk, q, center)[0] <= cp.multiply(sk.over_transitions(radius), q)]


def box_rules(sk: am.Skeleton, q: cp.Variable, lower: np.ndarray, upper: np.ndarray) -> list[cp.Constraint]:
    """lower q(x,a) <= q(x,a,x') <= upper q(x,a)."""
    pairs = summing(owners(sk)[2], sk.num_pairs)
    low, high = (scipy.sparse.diags_array(bound) @ pairs.T @ pairs for bound in (lower, upper))
    return [q >= low @ q, q <= high @ q]


def kl_projection(
    sk: am.Skeleton, weights: np.ndarray, rules_of_rows: list, q: cp.Variable
) -> tuple[np.ndarray, float, str]:
    """min D(q || w) under the rules, by CVXPY and Clarabel: q, the divergence, and the solver's status."""
    problem = cp.Problem(cp.Minimize(cp.sum(cp.kl_div(q, weights))), [*flow_rules(sk, q), *rules_of_rows])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate")  # the status says so too
        try:
            problem.solve(solver=cp.CLARABEL)
        except cp.SolverError:
            return np.zeros(sk.num_transitions), np.nan, cp.SOLVER_ERROR
    return q.value, float(problem.value), str(problem.status)


def occupancy_variable(sk: am.Skeleton) -> cp.Variable:
    return cp.Variable(sk.num_transitions, nonneg=True)


def policies(sk: am.Skeleton) -> list[np.ndarray]:
    """All deterministic ones."""
    choices = product(*(range(count) for count in np.diff(sk.pair_ptr)[:-1]))
    return [am.deterministic_policy(sk, choice) for choice in choices]
