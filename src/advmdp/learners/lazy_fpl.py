"""Lazy FPL, Lazy Follow the Perturbed Leader: Yu, Mannor & Shimkin, "Markov decision processes with arbitrary reward
processes" (Mathematics of Operations Research 2009).

Knows P, sees the whole loss, handles the total loss.  Time is divided into phases.  The policy changes only at the
start of a phase, to the best one in P for the losses so far minus a fresh perturbation:

    pi_m = argmin over pi of <q^{P, pi}, l_1 + ... + l_{t_m - 1} - Y_m>,    Y_m(x, a) ~ Exp(eta_m)

Phase m has ceil(sqrt m) episodes, so T episodes have about T^{2/3} phases.  It plans only once per phase, and pays for
that with a regret of order T^{2/3}.  It needs no horizon.

Guarantee, for losses that do not react to it, in the model of this library (the original treats one endless run): let
c_m be the sum of the losses of phase m, and tau_m its length.  If the perturbed leader of each phase saw its c_m, the
regret would be at most E max_q <q, Y> <= L (ln(|X||A|/L) + 1) / eta.  Seeing c_m changes the density of Y by a
factor of at most exp(eta |c_m|_1), with |c_m|_1 <= tau_m |X||A|.  So not seeing c_m costs at most
(e - 1) eta_m tau_m |X||A| <q, c_m> if eta_m tau_m |X||A| <= 1, and never more than L tau_m.  With
S_m = sum_{j <= m} tau_j^2 and eta_m = sqrt((ln(|X||A|/L) + 1) / ((e - 1)|X||A| S_m)),

    E[R] <= 3 L sqrt((e - 1)|X||A| (ln(|X||A|/L) + 1) S_M) + L (the episodes of phases with eta_m tau_m |X||A| > 1)
"""

from math import ceil, e, inf, isqrt, sqrt
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from advmdp.confidence import Point
from advmdp.core.arrays import FloatArray, whole
from advmdp.criteria import Criterion
from advmdp.learners import bounds
from advmdp.learners.compiled import CompiledLearner
from advmdp.learners.domains import LOSS, POLICY, Domain, State
from advmdp.learners.kernels.planners import Wait
from advmdp.learners.parameters import between
from advmdp.learners.perturbation import perturbation
from advmdp.model.kernels.world import Dynamics
from advmdp.model.mdp import MDP
from advmdp.model.skeleton import Skeleton
from advmdp.planning.kernels.optimism import plan_optimistically
from advmdp.planning.optimism import make_plan
from advmdp.projection.kernels.memory import Bounds


class Leader(NamedTuple):
    """The losses so far, the policy of this phase, its number m, the episodes left in it, and S_m."""

    loss: FloatArray
    policy: FloatArray
    phase: NDArray[np.int64]  # (3,)


def _is_phase(sk: Skeleton, state: State, name: str) -> NDArray[np.bool_]:
    """Check m, the episodes left (1 to tau_m), and S_m, in closed form: tau = j in the 2j - 1 phases up to j^2."""
    number, left, squares = map(int, state[name])
    tau = isqrt(number - 1) + 1
    j = tau - 1
    before = (j * (j + 1)) ** 2 // 2 - j * (j + 1) * (2 * j + 1) // 6
    return np.array([True, left <= tau, squares == before + tau**2 * (number - j**2)])


PHASE = Domain("the number of a phase, the episodes left in it, and S_m", 1, 2**62, _is_phase)


class LazyFPL(CompiledLearner[Leader]):
    """Follow the perturbed leader, with few changes of policy.

    It knows the dynamics, sees the whole loss, and handles the total loss. It changes its policy about T^(2/3) times
    in T episodes.

    Parameters
    ----------
    mdp
        The world, with its probabilities.
    criterion
        The total loss, the only criterion it supports.
    scale
        A factor on the perturbations. The guarantee is for 1; 0.1 often learns faster.
    seed
        The seed of the perturbations.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> am.play(mdp, am.losses.Stochastic(mdp.skeleton), am.LazyFPL(mdp), episodes=500).regret < 100
    True
    """

    knows = "dynamics"
    assumes = "oblivious"
    kept: ClassVar = {"loss": LOSS, "policy": POLICY, "phase": PHASE}

    def __init__(self, mdp: MDP, criterion: Criterion | None = None, scale: float = 1.0, seed: int = 0) -> None:
        super().__init__(mdp, criterion)
        sk = self.skeleton
        self.scale, self.seed = between("scale", scale), whole("seed", seed, 0)
        self._memory = Leader(np.zeros(sk.num_transitions), np.empty(sk.num_pairs), np.zeros(3, np.int64))
        self._plan = make_plan(sk, self._memory.policy)
        self._bounds = Bounds(Point(mdp.transition).bounds(sk))
        self._rule = Wait(self._memory)
        self._next_epoch(0)

    @property
    def _entropy(self) -> float:
        """A bound on eta E max_q <q, Y> / L."""
        return bounds.entropy(self.skeleton) + 1.0

    def _rate(self, squares: int) -> float:
        """eta_m for S_m = ``squares``."""
        return sqrt(self._entropy / ((e - 1.0) * self.skeleton.num_states * self.skeleton.num_actions * squares))

    def _next_epoch(self, episodes: int) -> None:
        """Begin the next phase."""
        sk, leader = self.skeleton, self._memory
        number = int(leader.phase[0]) + 1
        length = phase_length(number)
        leader.phase[:] = number, length, leader.phase[2] + length**2
        rate = self._rate(int(leader.phase[2])) / self.scale
        cost = -perturbation(self.seed, "LazyFPL", number, sk.num_pairs, rate)
        plan_optimistically(Dynamics(sk), self._bounds, leader.loss, cost, -inf, inf, self._plan)

    @property
    def epochs(self) -> int:
        """The number of phases that have begun."""
        return int(self._memory.phase[0])

    def bound(self, episodes: int) -> float:
        """Bound the expected regret at any time; infinite with another scale."""
        if self.scale != 1.0:
            return inf
        L, pairs = self.skeleton.num_steps, self.skeleton.num_states * self.skeleton.num_actions
        number, played, squares, early = 0, 0, 0, 0
        while played < episodes:
            number += 1
            length = phase_length(number)
            played, squares = played + length, squares + length**2
            early += length if self._rate(squares) * length * pairs > 1.0 else 0
        return 3.0 * L * sqrt((e - 1.0) * pairs * self._entropy * squares) + L * min(early, episodes)


def phase_length(number: int) -> int:
    """tau_m = ceil(sqrt m)."""
    return ceil(sqrt(number))
