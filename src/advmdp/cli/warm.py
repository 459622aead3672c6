"""Compile the kernels that most people use, ahead of their first use: ``python -m advmdp.cli.warm``.

Numba keeps what it compiles on disk, so this is worth its two minutes once for each installation, and a second time
costs seconds.
"""

from collections.abc import Callable
from inspect import signature

import numpy as np

from advmdp import losses
from advmdp.game.play import play
from advmdp.learners.base import LEARNERS, Learner, learner_class
from advmdp.model.mdp import MDP

__all__ = ["warm"]


def warm() -> None:
    """Play a short game with each learner, episode by episode and in blocks."""
    mdp = MDP.random([1, 2, 1], 2, seed=0)
    sk = mdp.skeleton
    for name in LEARNERS:
        learner = made(name, mdp, horizon=4)
        path = mdp.sample(learner.policy, np.random.default_rng(0))
        learner.update(path, np.zeros(sk.num_transitions if learner.feedback == "full" else sk.num_layers))
        play(mdp, losses.Switching(sk, period=2), learner, 2)


def made(name: str, mdp: MDP, horizon: int) -> Learner:
    """The learner of that name, with the theory's parameters."""
    kind: Callable[..., Learner] = learner_class(name)
    told = mdp if learner_class(name).knows == "dynamics" else mdp.skeleton
    return kind(told, horizon=horizon) if "horizon" in signature(kind).parameters else kind(told)


if __name__ == "__main__":
    warm()
