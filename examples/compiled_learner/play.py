"""Compare the compiled learner of softmin.pyx with two of the library. Build it first: cythonize -i softmin.pyx."""

from typing import NamedTuple

import numpy as np
from softmin import SoftMin

import advmdp as am
from advmdp.learners.compiled import CompiledLearner
from advmdp.learners.domains import POLICY, SCORE


class Memory(NamedTuple):
    """The arrays that the rule changes; the learner saves those named in ``kept``."""

    policy: np.ndarray
    scores: np.ndarray


class LocalCosts(CompiledLearner[Memory]):
    """Prefers actions whose steps were cheap recently, and never looks ahead."""

    kept = {"policy": POLICY, "scores": SCORE}  # noqa: RUF012

    def __init__(self, skeleton, criterion=None, eta=1.0, keep=0.9):
        super().__init__(skeleton, criterion)
        self.eta, self.keep = eta, keep
        self._memory = Memory(am.uniform_policy(skeleton), np.zeros(skeleton.num_pairs))
        self._rule = SoftMin(self._memory.policy, self._memory.scores, eta, keep)


if __name__ == "__main__":
    am.testing.check_learner(LocalCosts)
    mdp = am.MDP.random(layers=[1, 5, 5, 5, 5, 1], actions=4, seed=0)
    losses = am.losses.Switching(mdp.skeleton, period=500, seed=1)
    for learner in (LocalCosts(mdp.skeleton), am.ReplayLast(mdp.skeleton), am.Uniform(mdp.skeleton)):
        game = am.play(mdp, losses, learner, episodes=10_000, seed=2)
        print(f"{type(learner).__name__} paid {game.total_loss:,.0f}")
