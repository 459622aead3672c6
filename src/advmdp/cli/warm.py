"""Compile the kernels that most people use, ahead of their first use: ``python -m advmdp.cli.warm``.

Numba keeps what it compiles on disk, so this is worth its two minutes once for each installation, and a second time
costs seconds.
"""

import numpy as np

from advmdp import losses
from advmdp.game.play import play
from advmdp.learners.registry import LEARNERS, make_learner
from advmdp.model.mdp import MDP


def warm() -> None:
    """Play a short game with each learner, episode by episode and in blocks."""
    mdp = MDP.random([1, 2, 1], 2, seed=0)
    sk = mdp.skeleton
    for name in LEARNERS:
        learner = make_learner(name, mdp, offered={"horizon": 4})
        path = mdp.sample(learner.policy, np.random.default_rng(0))
        learner.update(path, np.zeros(sk.num_transitions if learner.feedback == "full" else sk.num_steps))
        play(mdp, losses.Switching(sk, period=2), learner, 2)


if __name__ == "__main__":
    warm()
