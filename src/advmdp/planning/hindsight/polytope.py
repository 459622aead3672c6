"""The polytope of occupancy measures under the true dynamics, as vectors over pairs."""

import numpy as np

from advmdp.core.arrays import FloatArray
from advmdp.core.optional import optional
from advmdp.model.mdp import MDP
from advmdp.model.occupancy import best_response, occupancy, policy_of

TINY = float(np.finfo(np.float64).tiny)


class Polytope:
    """Delta(M) over pairs: x >= 0, a flow of 1 leaves the start, and flow is conserved in every other state."""

    def __init__(self, mdp: MDP) -> None:
        self.mdp, self.sk = mdp, mdp.skeleton

    def over_transitions(self, x: FloatArray) -> FloatArray:
        """q of x."""
        return self.sk.over_transitions(x) * self.mdp.transition

    def by_pairs(self, q: FloatArray) -> FloatArray:
        """x of q."""
        return np.add.reduceat(q, self.sk.transition_ptr[:-1])

    def visits(self, policy: FloatArray) -> FloatArray:
        """x of a policy."""
        return self.by_pairs(occupancy(self.mdp, policy))

    def policy(self, x: FloatArray) -> FloatArray:
        """The policy of x, which may violate the constraints of Delta(M) by rounding."""
        return policy_of(self.sk, self.over_transitions(np.maximum(x, 0.0)))

    def best(self, slope: FloatArray) -> tuple[FloatArray, float]:
        """The vertex that minimises <slope, x>, and the minimum."""
        policy, least = best_response(self.mdp, self.sk.over_transitions(slope))
        return self.visits(policy), least

    def least_of_lines(self, heights: FloatArray, slopes: FloatArray, about: float) -> tuple[FloatArray, FloatArray]:
        """min over x of max_j heights[j] + <slopes[j], x>, by HiGHS: the dual weights of the cuts, and the x.

        HiGHS has absolute tolerances, so the problem is scaled by ``about``, an estimate of the minimum.
        """
        with optional:
            from scipy.optimize import linprog
            from scipy.sparse import csr_array, hstack

        sk, pairs, lines = self.sk, np.arange(self.sk.num_pairs), len(heights)
        shape = (sk.num_states, sk.num_pairs)
        leaving = csr_array((np.ones(len(pairs)), (sk.state_of_pair, pairs)), shape=shape)
        entering = csr_array((self.mdp.transition, (sk.successor, sk.over_transitions(pairs))), shape=shape)
        start = np.append(1.0, np.zeros(sk.num_states - 2))
        scale = max(abs(about), 1e-6 * float(np.abs(slopes).max()), TINY)
        answer = linprog(
            np.append(np.zeros(len(pairs)), 1.0),
            A_ub=np.hstack([slopes / scale, np.full((lines, 1), -1.0)]),
            b_ub=-heights / scale,
            A_eq=hstack([(leaving - entering)[:-1], csr_array((len(start), 1))]),
            b_eq=start,
            bounds=[(0.0, None)] * len(pairs) + [(None, None)],
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        weights = np.maximum(-answer.ineqlin.marginals, 0.0) if answer.status == 0 else np.zeros(lines)
        if not weights.sum() > 0.0:  # a minimum exists; if the solver fails to find it, the search goes on anyway
            return np.append(np.zeros(lines - 1), 1.0), self.best(slopes[-1])[0]
        return weights / weights.sum(), answer.x[:-1]
