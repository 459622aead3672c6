"""Compile the kernels that most people use, ahead of their first use: ``python -m advmdp.warm``.

Numba keeps what it compiles on disk, so this is worth its two minutes once for each installation, and a second time
costs seconds.
"""

import numpy as np

from advmdp import losses
from advmdp.learners.baselines import FollowLeader
from advmdp.learners.uc_o_reps import UCOREPS
from advmdp.mdp import MDP
from advmdp.playing import play

__all__ = ["warm"]


def warm() -> None:
    """Play two short games, episode by episode and in blocks."""
    mdp = MDP.random([1, 2, 1], 2, seed=0)
    sk = mdp.skeleton
    for learner in (UCOREPS(sk, horizon=2), FollowLeader(sk)):
        learner.update(mdp.sample(learner.policy, np.random.default_rng(0)), np.zeros(sk.num_transitions))
        play(mdp, losses.Switching(sk, period=2), learner, 2)


if __name__ == "__main__":
    warm()
