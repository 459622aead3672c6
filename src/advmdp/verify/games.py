"""The games of ``advmdp verify``: a world small enough that bounds are below L T, and difficult losses.

An episode has two steps and passes through one of two states.  If the good action switches in every episode, what was
learned is wrong the next time, and regret comes from the losses (R^ON).  If one state costs far more than the other, a
learner that believes it can avoid that state is wrong about the dynamics (R^APP).  If one action costs far more than
the other, every episode that uses it adds regret, so slow learners pay more.
"""

import numpy as np

from advmdp.criteria import Criterion, WorstCase
from advmdp.losses import Losses, Stochastic, Switching
from advmdp.model.mdp import MDP
from advmdp.model.skeleton import Skeleton

LOSSES_AT_ONCE = 2
"""d, for WorstCase."""


def world() -> MDP:
    """A world of two steps through one of two states, which the actions reach with different probabilities."""
    return MDP.dense([[[[0.7, 0.3], [0.4, 0.6]]], np.ones((2, 2, 1))])


def switching(sk: Skeleton, criterion: Criterion, seed: int) -> Losses:
    """The good action changes in every episode."""
    d = LOSSES_AT_ONCE if criterion == WorstCase() else None
    return Switching(sk, period=1, seed=seed, dimensions=d)


def bad_state(sk: Skeleton, criterion: Criterion, seed: int) -> Losses:
    """One of the two states costs nine times as much as the other."""
    means = np.array([0.5, 0.5, 0.9, 0.9, 0.1, 0.1])
    if criterion != WorstCase():
        return Stochastic(sk, seed=seed, means=means)
    columns = np.repeat(means[:, None], LOSSES_AT_ONCE, axis=1)
    return Stochastic(sk, seed=seed, means=columns, dimensions=LOSSES_AT_ONCE)


ADVERSARIES = (switching, bad_state)


def bad_action(sk: Skeleton, seed: int) -> Losses:
    """The first action, which wins ties, costs nine times as much as the other."""
    return Stochastic(sk, seed=seed, means=np.tile([0.9, 0.1], sk.num_pairs // 2))


def horizons(episodes: int) -> list[int]:
    """10^3, 10^3.5, ... and the last."""
    grid = np.round(10.0 ** np.arange(3.0, 15.0, 0.5)).astype(int)
    return [*grid[grid < episodes].tolist(), episodes]
