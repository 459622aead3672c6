"""UCBVI, Upper Confidence Bound Value Iteration: Azar, Osband & Munos, "Minimax regret bounds for reinforcement
learning" (ICML 2017), with their first bonus (Chernoff-Hoeffding).

Knows the skeleton, handles the total loss, and assumes that losses are independent draws from fixed distributions, like
UCRL2.  After every episode it plans again, by backward induction in the estimate Pbar of all visits so far,

    Q(x, a) = max(0, l(x, a) + sum_{x'} Pbar(x'|x, a) V(x') - 7 L ln(5|X||A| L T / delta) / sqrt(N(x, a)))

with V = min_a Q, and Q = 0 for unvisited pairs.  l is the mean of all losses so far if it sees the whole loss, else the
mean of the losses seen at (x, a).

The original keeps the tightest Q so far.  This version does not, since the mean losses change.

Guarantee (Theorem 1 there, for known means of the losses, against the best policy for these means), with probability
1 - delta: R <= 20 L i sqrt(|X||A| L T) + 250 L^2 |X|^2 |A| i^2 with i = ln(5|X||A| L T / delta).
"""

from math import inf, log, sqrt
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from advmdp.confidence import Point
from advmdp.core.arrays import FloatArray, frozen
from advmdp.criteria import Criterion
from advmdp.learners.base import Feedback
from advmdp.learners.compiled import CompiledLearner
from advmdp.learners.domains import COST, ESTIMATE, LOSS, PAID, POLICY, SEEN, VISITS
from advmdp.learners.kernels.planners import Iterate
from advmdp.learners.parameters import between, horizon_of
from advmdp.model.kernels.world import Dynamics
from advmdp.model.skeleton import Skeleton
from advmdp.planning.kernels.optimism import plan_optimistically
from advmdp.planning.optimism import make_plan
from advmdp.projection.kernels.memory import Bounds

Ints = NDArray[np.int64]


class Record(NamedTuple):
    """Counts, Pbar, the losses so far, and the policy."""

    visits: Ints
    seen: Ints
    estimate: FloatArray
    loss: FloatArray
    paid: FloatArray
    policy: FloatArray
    cost: FloatArray  # the mean loss of pairs minus the bonus; minus infinity without visits
    mean: FloatArray  # scratch: the mean loss of transitions


class UCBVI(CompiledLearner[Record]):
    """UCBVI: backward induction in the estimated world with an exploration bonus, for stochastic losses.

    It knows the skeleton and handles the total loss.

    Parameters
    ----------
    skeleton
        The world without its probabilities.
    horizon
        The number of episodes T.
    criterion
        The total loss, the only criterion it supports.
    feedback
        "full", or "bandit" for the losses along the path only.
    delta
        The guarantee holds with probability 1 - delta.
    confidence_scale
        A factor on the bonus. Below 1 the guarantee does not apply. With 1, a pair needs hundreds of visits before
        anything is learned; 0.003 to 0.1 usually works best.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> learner = am.UCBVI(mdp.skeleton, horizon=500, confidence_scale=0.01)
    >>> am.play(mdp, am.losses.Stochastic(mdp.skeleton), learner, episodes=500).regret < 50
    True
    """

    sees = "full or bandit"
    assumes = "stochastic"
    kept: ClassVar = {
        "visits": VISITS, "seen": SEEN, "estimate": ESTIMATE, "loss": LOSS, "paid": PAID, "policy": POLICY,
        "cost": COST,
    }  # fmt: skip

    def __init__(
        self,
        skeleton: Skeleton,
        horizon: int,
        criterion: Criterion | None = None,
        feedback: Feedback = "full",
        delta: float = 0.05,
        confidence_scale: float = 1.0,
    ) -> None:
        super().__init__(skeleton, criterion, feedback)
        sk, self.horizon = self.skeleton, horizon_of(horizon)
        self.delta, self.confidence_scale = between("delta", delta, 1.0), between("confidence_scale", confidence_scale)
        n, pairs = sk.num_transitions, sk.num_pairs
        rows = sk.over_transitions(1.0 / np.diff(sk.transition_ptr))
        self._memory = Record(
            np.zeros(pairs, np.int64), np.zeros(n, np.int64), rows, np.zeros(n), np.zeros(pairs), np.empty(pairs),
            np.full(pairs, -inf), np.zeros(n),
        )  # fmt: skip
        # The set is the estimate itself: a view, so it follows the estimate.
        bounds, plan = Bounds(Point(rows).bounds(sk)._replace(low=frozen(rows))), make_plan(sk, self._memory.policy)
        bonus = self.confidence_scale * 7.0 * sk.num_steps * self._iota
        self._rule = Iterate(self._memory, bounds, plan, bonus, self.feedback == "full")
        plan_optimistically(Dynamics(sk), bounds, self._memory.mean, self._memory.cost, 0.0, inf, plan)

    @property
    def _iota(self) -> float:
        sk = self.skeleton
        return log(5.0 * sk.num_states * sk.num_actions * sk.num_steps * self.horizon / self.delta)

    def bound(self, episodes: int) -> float:
        """Bound the regret up to the horizon; infinite after it, or with another scale."""
        sk = self.skeleton
        L, X, A = sk.num_steps, sk.num_states, sk.num_actions
        if self.confidence_scale != 1.0 or episodes > self.horizon:
            return inf
        return 20.0 * L * self._iota * sqrt(X * A * L * episodes) + 250.0 * L**2 * X**2 * A * self._iota**2
