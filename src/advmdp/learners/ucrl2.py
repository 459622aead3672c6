"""UCRL2: Jaksch, Ortner & Auer, "Near-optimal regret bounds for reinforcement learning" (JMLR 2010), with episodes.

Knows the skeleton, handles the total loss, and assumes that losses are independent draws from fixed distributions.
For other losses it has no guarantee, and losses that react or switch can make its regret linear in T.  In epoch i,
which begins at step t = L (episodes so far) + 1, it plays the best policy in the best plausible world,

    || P(.|x, a) - Pbar_i(.|x, a) ||_1 <= sqrt(14 |X_{k+1}| ln(2|A| t / delta) / max(1, N_i(x, a)))

by extended backward induction on

    full:    the mean of all losses so far
    bandit:  the mean of the losses seen at (x, a), minus sqrt(7 ln(2|X||A| t / delta) / (2 max(1, N_i(x, a))))

with no value below 0.  It keeps this policy until some pair has been visited as often in the epoch as before it.

Guarantee (Theorem 2 there): R <= 34 D|X| sqrt(|A| L T ln(L T / delta)) with probability 1 - delta, after the L T steps
of T episodes, against the best policy for the mean losses.  The best policy in hindsight may be better by about
L sqrt(T).  D bounds the differences of the values; here D = L.
"""

from math import inf, log, sqrt
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from advmdp.confidence import l1_set
from advmdp.core.arrays import FloatArray
from advmdp.criteria import Criterion
from advmdp.learners.base import Feedback
from advmdp.learners.compiled import CompiledLearner
from advmdp.learners.domains import LOSS, PAID, POLICY
from advmdp.learners.epochs import Epochs
from advmdp.learners.kernels.planners import Gather
from advmdp.learners.parameters import between
from advmdp.model.kernels.world import Dynamics
from advmdp.model.skeleton import Skeleton
from advmdp.planning.kernels.optimism import plan_optimistically
from advmdp.planning.optimism import make_plan
from advmdp.projection.kernels.memory import Bounds

Ints = NDArray[np.int64]


class Record(NamedTuple):
    """The losses so far, over transitions or over the visited pairs, and the policy of this epoch."""

    loss: FloatArray
    paid: FloatArray
    policy: FloatArray
    visits: Ints
    new_visits: Ints
    new_seen: Ints


class UCRL2(CompiledLearner[Record]):
    """UCRL2: the best policy in the most favourable plausible world, for stochastic losses.

    It knows the skeleton and handles the total loss.

    Parameters
    ----------
    skeleton
        The world without its probabilities.
    criterion
        The total loss, the only criterion it supports.
    feedback
        "full", or "bandit" for the losses along the path only.
    delta
        The guarantee holds with probability 1 - delta.
    confidence_scale
        A factor on radii and bonuses. Below 1 the guarantee does not apply; 0.1 to 0.3 usually works best.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> learner = am.UCRL2(mdp.skeleton, confidence_scale=0.1)
    >>> am.play(mdp, am.losses.Stochastic(mdp.skeleton), learner, episodes=500).regret < 50
    True
    """

    sees = "full or bandit"
    assumes = "stochastic"
    kept: ClassVar = {"loss": LOSS, "paid": PAID, "policy": POLICY}
    _epochs: Epochs
    span = inf
    """A bound on the differences between the values of a layer (see :class:`advmdp.REGAL`)."""

    def __init__(
        self,
        skeleton: Skeleton,
        criterion: Criterion | None = None,
        feedback: Feedback = "full",
        delta: float = 0.05,
        confidence_scale: float = 1.0,
    ) -> None:
        super().__init__(skeleton, criterion, feedback)
        sk = self.skeleton
        self.delta, self.confidence_scale = between("delta", delta, 1.0), between("confidence_scale", confidence_scale)
        self._epochs = Epochs(sk)
        counts = self._epochs.counts
        self._memory = Record(
            np.zeros(sk.num_transitions), np.zeros(sk.num_pairs), np.empty(sk.num_pairs), counts.visits,
            counts.new_visits, counts.new_seen,
        )  # fmt: skip
        self._plan = make_plan(sk, self._memory.policy)
        self._rule = Gather(self._memory, self.feedback == "full")
        self._begin_epoch(0)

    def _begin_epoch(self, episode: int) -> None:
        sk, t = self.skeleton, self.skeleton.num_steps * episode + 1
        log_term = 7.0 * log(2.0 * sk.num_actions * t / self.delta)
        row_set = l1_set(sk, self._epochs.counts, log_term, self.confidence_scale, possible=False)
        loss = self._memory.loss / max(1, episode)
        bounds = Bounds(row_set.bounds(sk))
        plan_optimistically(Dynamics(sk), bounds, loss, self._cost(t), 0.0, self.span, self._plan)

    def _cost(self, t: int) -> FloatArray:
        """The optimistic loss of every pair with bandit feedback; 0 with full feedback."""
        sk, visits = self.skeleton, np.maximum(1, self._epochs.counts.visits)
        if self.feedback == "full":
            return np.zeros(sk.num_pairs)
        bonus = np.sqrt(3.5 * log(2.0 * sk.num_states * sk.num_actions * t / self.delta) / visits)
        means: FloatArray = self._memory.paid / visits
        return means - self.confidence_scale * bonus

    def _next_epoch(self, episodes: int) -> None:
        self._epochs.counts.next_epoch()
        self._begin_epoch(episodes)

    def bound(self, episodes: int) -> float:
        """Bound the regret at any time; infinite with another scale."""
        sk = self.skeleton
        if self.confidence_scale != 1.0 or episodes < 1:
            return inf
        steps, spread = sk.num_steps * episodes, min(float(sk.num_steps), 1.0 + self.span)
        return 34.0 * spread * sk.num_states * sqrt(sk.num_actions * steps * log(steps / self.delta))
