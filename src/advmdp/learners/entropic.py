"""Entropic steps, one for each state: what MDP-E and the bandit learners after it share.

    pi(a|x) proportional to exp(-eta S(x, a)),    S(x, a) = sum_t Q_t(x, a)

where Q_t are the values of (P, pi_t, l_t), or of an estimate of l_t.  The difference between the total losses of pi_t
and of any policy pi splits into the regrets of the states (the performance difference lemma),

    sum_t V_t(pi_t) - V_t(pi) = sum_x Pr[x | P, pi] sum_t sum_a (pi_t(a|x) - pi(a|x)) Q_t(x, a),

so that a good learner in each state is a good learner.
"""

from abc import abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray
from advmdp.core.compiling import compiled
from advmdp.core.errors import InputError
from advmdp.criteria import Criterion
from advmdp.learners.compiled import CompiledLearner
from advmdp.learners.domains import POLICY, SCORE
from advmdp.learners.episode import Block
from advmdp.model.dynamics import Dynamics
from advmdp.model.mdp import MDP
from advmdp.model.occupancy import evaluate
from advmdp.model.policy import uniform_policy


class Experts(NamedTuple):
    """The scores, the exponential weights that they give, and the policy that is played."""

    transition: FloatArray  # P
    scores: FloatArray  # S
    weights: FloatArray  # over the actions of each state, summing to one
    policy: FloatArray
    loss: FloatArray  # scratch: l_t or its estimate, over transitions
    pairs: FloatArray  # q_t over pairs, for learners that mix occupancy measures
    pair_values: FloatArray  # scratch: Q_t
    values: FloatArray  # scratch: V_t
    mass: FloatArray  # scratch, over states
    q: FloatArray  # scratch, over transitions
    chance: FloatArray  # scratch, over the steps of a path


class Entropic(CompiledLearner[Experts]):
    """One that knows P and keeps exponential weights in each state."""

    knows = "dynamics"
    kept: ClassVar = {"scores": SCORE, "weights": POLICY, "policy": POLICY}

    def __init__(self, mdp: MDP, criterion: Criterion | None = None) -> None:
        super().__init__(mdp, criterion)
        sk = self.skeleton
        n, pairs, states = sk.num_transitions, sk.num_pairs, sk.num_states
        self._memory = Experts(
            mdp.transition, np.zeros(pairs), uniform_policy(sk), uniform_policy(sk), np.zeros(n), np.empty(pairs),
            np.empty(pairs), np.empty(states), np.empty(states), np.empty(n), np.empty(sk.num_steps),
        )  # fmt: skip

    @abstractmethod
    def _step(self, world: Dynamics, block: Block) -> int:
        """All episodes of the block; -1, or a pair whose value is not finite."""

    def _learn(self, world: Dynamics, block: Block) -> None:
        bad = self._step(world, block)
        if bad >= 0:
            raise InputError(f"loss at {self.skeleton.where_pair(bad)}", "no finite number", "finite numbers")


@compiled
def advance(world: Dynamics, experts: Experts, policy: FloatArray, eta: float) -> int:
    """One step: Q of a policy under the loss (or its estimate) joins the scores, and the weights follow.

    Returns -1, or a pair whose value is not finite.
    """
    _, bad = evaluate(
        world.pair_ptr, world.transition_ptr, world.successor, experts.transition, experts.loss, policy,
        experts.values, experts.pair_values,
    )  # fmt: skip
    if bad >= 0:
        return int(bad)
    for p in range(len(policy)):
        experts.scores[p] += experts.pair_values[p]
    soften(world.pair_ptr, experts.scores, eta, experts.weights)
    return -1


@compiled
def soften(pair_ptr: NDArray[np.int64], scores: FloatArray, eta: float, weights: FloatArray) -> None:
    """Exponential weights over the actions of each state."""
    for x in range(len(pair_ptr) - 2):
        first, last = pair_ptr[x], pair_ptr[x + 1]
        least, total = np.inf, 0.0
        for p in range(first, last):
            least = min(least, scores[p])
        for p in range(first, last):
            weights[p] = np.exp(-eta * (scores[p] - least))
            total += weights[p]
        for p in range(first, last):
            weights[p] /= total
