"""FPOP, Follow the Perturbed Optimistic Policy: Neu, Gyorgy & Szepesvari, "The adversarial stochastic shortest path
problem with unknown transition probabilities" (AISTATS 2012).

Knows the skeleton, sees the whole loss, handles the total loss.  Epochs and L1 sets are those of UC-O-REPS.  At the
start of epoch i it draws Y_i(x, a) ~ Exp(eta).  In each episode, extended backward induction gives the best policy, in
the best world of the set, for the losses so far minus the perturbation:

    (P_t, pi_t) = argmin over P in the set of epoch i(t), and pi, of  <q^{P, pi}, l_1 + ... + l_{t-1} - Y_{i(t)}>

Guarantee (Theorem 1 there, restated from memory): with eta = sqrt(log2(8T/|X||A|) (ln(|X||A|/L) + 1) / ((e - 1) T)),

    E[R] <= L|X||A| log2(8T/|X||A|) (ln(|X||A|/L) + 1) / eta + eta (e - 1) L|X||A| T
            + (sqrt 2 + 1) L|X| sqrt(T|A| ln(T|X||A|/(delta L))) + L|X| sqrt(2 T ln(L/delta)) + 3 delta L T

for losses that do not react to it; in the shortest games, where log2 is below 1, it is replaced by 1.  The perturbation
changes with the epoch, up to |X||A| log2(8T/|X||A|) times, which explains the factor |X||A| where UC-O-REPS has a
logarithm.  The policies are deterministic, so losses that react to the last one can be ruinous.
"""

from math import e, inf, log, log2, sqrt
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from advmdp.confidence import L1Ball, l1_set
from advmdp.core.arrays import FloatArray, whole
from advmdp.criteria import Criterion
from advmdp.learners import bounds
from advmdp.learners.compiled import CompiledLearner
from advmdp.learners.domains import LOSS, POLICY, SCORE, State
from advmdp.learners.epochs import Epochs
from advmdp.learners.kernels.planners import Follow
from advmdp.learners.parameters import between, horizon_of, theory_or
from advmdp.learners.perturbation import perturbation
from advmdp.model.kernels.world import Dynamics
from advmdp.model.skeleton import Skeleton
from advmdp.planning.kernels.optimism import plan_optimistically
from advmdp.planning.optimism import make_plan
from advmdp.projection.kernels.memory import Bounds

Ints = NDArray[np.int64]


class Leader(NamedTuple):
    """The losses so far, minus the perturbation, and the best policy for them."""

    loss: FloatArray
    cost: FloatArray  # -Y, over pairs
    policy: FloatArray
    visits: Ints
    new_visits: Ints
    new_seen: Ints


class FPOP(CompiledLearner[Leader]):
    """Follow the perturbed optimistic policy.

    It knows the skeleton, sees the whole loss, and handles the total loss. Its policies are deterministic, so losses
    that react can exploit it.

    Parameters
    ----------
    skeleton
        The world without its probabilities.
    horizon
        The number of episodes T.
    criterion
        The total loss, the only criterion it supports.
    eta
        The rate of the perturbations, whose mean is 1 / eta; "theory" is the value of its paper.
    delta
        The probability that its confidence sets miss P.
    confidence_scale
        A factor on the radii. Below 1 the guarantee does not apply.
    seed
        The seed of the perturbations.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> learner = am.FPOP(mdp.skeleton, horizon=500, eta=0.1, confidence_scale=0.1)
    >>> am.play(mdp, am.losses.Stochastic(mdp.skeleton), learner, episodes=500).regret < 100
    True
    """

    assumes = "oblivious"
    kept: ClassVar = {"loss": LOSS, "cost": SCORE, "policy": POLICY}
    _epochs: Epochs
    _rule: Follow

    def __init__(
        self,
        skeleton: Skeleton,
        horizon: int,
        criterion: Criterion | None = None,
        eta: float | Literal["theory"] = "theory",
        delta: float = 0.05,
        confidence_scale: float = 1.0,
        seed: int = 0,
    ) -> None:
        super().__init__(skeleton, criterion)
        sk, self.horizon = self.skeleton, horizon_of(horizon)
        self.eta = theory_or("eta", eta)
        self.delta, self.seed = between("delta", delta, 1.0), whole("seed", seed, 0)
        self.confidence_scale = between("confidence_scale", confidence_scale)
        self._epochs = Epochs(sk)
        counts = self._epochs.counts
        self._memory = Leader(
            np.zeros(sk.num_transitions), np.empty(sk.num_pairs), np.empty(sk.num_pairs), counts.visits,
            counts.new_visits, counts.new_seen,
        )  # fmt: skip
        plan = make_plan(sk, self._memory.policy)
        self._rule = Follow(self._memory, plan)
        self._begin_epoch()
        plan_optimistically(Dynamics(sk), self._bounds, self._memory.loss, self._memory.cost, -inf, inf, plan)

    @property
    def _changes(self) -> float:
        """log2(8T/|X||A|), at least 1; times |X||A|, it bounds the number of epochs."""
        return max(1.0, log2(8.0 * self.horizon / (self.skeleton.num_states * self.skeleton.num_actions)))

    @property
    def _entropy(self) -> float:
        """A bound on eta E max_q <q, Y> / L."""
        return bounds.entropy(self.skeleton) + 1.0

    @property
    def _rate(self) -> float:
        if isinstance(self.eta, str):
            return sqrt(self._changes * self._entropy / ((e - 1.0) * self.horizon))
        return self.eta

    def _take_set(self) -> None:
        """Build the set from the counters."""
        sk = self.skeleton
        log_term = log(self.horizon * sk.num_states * sk.num_actions / self.delta)
        self._row_set = l1_set(sk, self._epochs.counts, log_term, self.confidence_scale, possible=False)
        self._bounds = Bounds(self._row_set.bounds(sk))
        self._rule.within(self._bounds)

    @property
    def row_set(self) -> L1Ball:
        """The confidence set of this epoch."""
        return self._row_set

    def _begin_epoch(self) -> None:
        self._take_set()
        pairs = self.skeleton.num_pairs
        self._memory.cost[:] = -perturbation(self.seed, "FPOP", self.epochs, pairs, self._rate)

    def _next_epoch(self, episodes: int) -> None:
        self._epochs.counts.next_epoch()
        self._begin_epoch()

    def restore(self, state: State) -> None:
        super().restore(state)
        self._take_set()

    def bound(self, episodes: int) -> float:
        """Bound the expected regret of the whole game; infinite with other parameters or lengths."""
        sk, T, delta = self.skeleton, episodes, self.delta
        L, X, A = sk.num_steps, sk.num_states, sk.num_actions
        if self.eta != "theory" or self.confidence_scale != 1.0 or self.horizon != T:
            return inf
        leader = 2.0 * L * X * A * sqrt(self._changes * self._entropy * (e - 1.0) * T)
        optimism = (sqrt(2.0) + 1.0) * L * X * sqrt(T * A * log(T * X * A / (delta * L)))
        return leader + optimism + L * X * sqrt(2.0 * T * log(L / delta)) + 3.0 * delta * L * T
