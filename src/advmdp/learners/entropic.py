"""Exponential weights in each state: the common part of MDP-E, OSSP and MDP-EXP3.

    pi(a|x) proportional to exp(-eta S(x, a)),    S(x, a) = sum_t Q_t(x, a)

where Q_t are the values of (P, pi_t, l_t), or of an estimate of l_t.  By the performance difference lemma, the regret
against any policy pi is a weighted sum of the regrets of the states,

    sum_t V_t(pi_t) - V_t(pi) = sum_x Pr[x | P, pi] sum_t sum_a (pi_t(a|x) - pi(a|x)) Q_t(x, a),

so low regret in each state gives low regret overall.
"""

from typing import ClassVar, NamedTuple

import numpy as np

from advmdp.core.arrays import FloatArray
from advmdp.criteria import Criterion
from advmdp.learners.compiled import CompiledLearner
from advmdp.learners.domains import POLICY, SCORE
from advmdp.model.mdp import MDP
from advmdp.model.policy import uniform_policy


class Experts(NamedTuple):
    """The scores, their exponential weights, and the policy."""

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
    """A learner that knows P and keeps exponential weights in each state."""

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
