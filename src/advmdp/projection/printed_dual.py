"""Theorem 4.2 as the paper prints it: a reference, for comparison only.

    min over beta and mu+, mu- >= 0 of  sum_k ln Z_k,      Z_k = sum over layer k of w exp(B)
    B(x,a,x') = e(x,a,x') + v(x,a,x') - sum_y Pbar(y|x,a) v(x,a,y)
    v = mu- - mu+,      e(x,a,x') = (mu+(x,a,x') + mu-(x,a,x')) epsilon(x,a) + beta(x') - beta(x)
    q(x,a,x') = w(x,a,x') exp(B(x,a,x')) / Z_k

(with w = q_t exp(-eta z_t), the paper's eta z_t in B is absorbed).  Because mu+ + mu- may differ from one x' to the
next, this is not the projection onto the confidence set (3) but onto |q(x,a,x') - Pbar q(x,a)| <= epsilon q(x,a,x') for
every x', which excludes unobserved successors; see docs/errata.md, item 1.  No learner uses it.
"""

import numpy as np
from numpy.typing import ArrayLike

from advmdp.core.arrays import FloatArray, exact_floats
from advmdp.core.errors import ProjectionError
from advmdp.core.optional import optional
from advmdp.model.skeleton import Skeleton

LARGEST_MULTIPLIER = 60.0
"""A cap on multipliers, which diverge where the printed dual sends an entry to zero; e^-60 counts as zero."""


def project_as_printed(sk: Skeleton, log_weights: ArrayLike, center: ArrayLike, radius: ArrayLike) -> FloatArray:
    """Minimise the printed dual by SciPy's L-BFGS-B and return its q: slow, accurate to a few digits."""
    with optional:
        from scipy.optimize import minimize

    weights = exact_floats(log_weights, "log_weights", (sk.num_transitions,))
    rows = exact_floats(center, "center", (sk.num_transitions,))
    epsilon = sk.over_transitions(exact_floats(radius, "radius", (sk.num_pairs,)))
    source = np.repeat(sk.state_of_pair, np.diff(sk.transition_ptr))
    first, layers = sk.transition_ptr[:-1], sk.layer_transition_ptr
    n, inner = sk.num_transitions, slice(1, sk.num_states - 1)

    def measure(variables: FloatArray) -> tuple[float, FloatArray]:
        """sum_k ln Z_k and q at (mu+, mu-, beta)."""
        plus, minus, beta = variables[:n], variables[n : 2 * n], np.zeros(sk.num_states)
        beta[inner] = variables[2 * n :]
        v = minus - plus
        bellman = (plus + minus) * epsilon + beta[sk.successor] - beta[source] + v
        exponent = weights + bellman - sk.over_transitions(np.add.reduceat(rows * v, first))
        tops = np.maximum.reduceat(exponent, layers[:-1])
        sizes = np.diff(layers)
        q = np.exp(exponent - np.repeat(tops, sizes))
        totals = np.add.reduceat(q, layers[:-1])
        return float((tops + np.log(totals)).sum()), q / np.repeat(totals, sizes)

    def objective(variables: FloatArray) -> tuple[float, FloatArray]:
        value, q = measure(variables)
        pairs = sk.over_transitions(np.add.reduceat(q, first))
        flow = np.bincount(sk.successor, q, sk.num_states) - np.bincount(source, q, sk.num_states)
        gradient = np.concatenate([(epsilon - 1.0) * q + rows * pairs, (epsilon + 1.0) * q - rows * pairs, flow[inner]])
        return value, gradient

    bounds = [(0.0, LARGEST_MULTIPLIER)] * (2 * n) + [(-np.inf, np.inf)] * (sk.num_states - 2)
    start = np.zeros(len(bounds))
    found = minimize(
        objective,
        start,
        jac=True,
        bounds=bounds,
        method="L-BFGS-B",
        options={"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-15, "gtol": 1e-9},
    )
    q = measure(found.x)[1]
    if not np.isfinite(q).all():
        raise ProjectionError(f"the printed dual was not minimised: {found.message}")
    return q
