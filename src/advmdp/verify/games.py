"""The games of ``advmdp verify``: a world so small that bounds are below L T there, and losses that hurt in it.

Two steps, and one of two states on the way.  Where the good action switches in every episode, what is learned is
wrong the next time, and regret comes from the losses (R^ON).  Where one state costs far more than the other, a
learner that believes it can keep out of it is wrong about the dynamics (R^APP).  Where one action costs far more
than the other, every episode in which it is taken counts: what a learner pays for being slow.
"""

import numpy as np

from advmdp.criteria import Criterion, WorstCase
from advmdp.losses import Losses, Stochastic, Switching
from advmdp.model.mdp import MDP
from advmdp.model.skeleton import Skeleton

LOSSES_AT_ONCE = 2
"""d, for WorstCase."""


def world() -> MDP:
    """Two steps; on the way one of two states, to which either action leads more or less often."""
    return MDP.dense([[[[0.7, 0.3], [0.4, 0.6]]], np.ones((2, 2, 1))])


def switching(sk: Skeleton, criterion: Criterion, seed: int) -> Losses:
    """The good action is another one in every episode."""
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
    """One of the two actions costs nine times as much as the other: the first, which ties are broken for."""
    return Stochastic(sk, seed=seed, means=np.tile([0.9, 0.1], sk.num_pairs // 2))


def horizons(episodes: int) -> list[int]:
    """10^3, 10^3.5, ... and the last."""
    grid = np.round(10.0 ** np.arange(3.0, 15.0, 0.5)).astype(int)
    return [*grid[grid < episodes].tolist(), episodes]
