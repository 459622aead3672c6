"""A skeleton and its transition probabilities as one tuple of arrays, for kernels."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray, frozen
from advmdp.model.mdp import MDP
from advmdp.model.skeleton import Skeleton

Ints = NDArray[np.int64]


class Dynamics(NamedTuple):
    """The skeleton's arrays, and P: empty where it is unknown, for trajectories that are given."""

    layer_ptr: Ints
    pair_ptr: Ints
    transition_ptr: Ints
    successor: NDArray[np.int32]
    layer_transition_ptr: Ints
    transition: FloatArray


def known_dynamics(mdp: MDP) -> Dynamics:
    """Those of an MDP."""
    return _dynamics(mdp.skeleton, mdp.transition)


def unknown_dynamics(sk: Skeleton) -> Dynamics:
    """The skeleton alone."""
    return _dynamics(sk, frozen(np.empty(0)))


def _dynamics(sk: Skeleton, transition: FloatArray) -> Dynamics:
    return Dynamics(sk.layer_ptr, sk.pair_ptr, sk.transition_ptr, sk.successor, sk.layer_transition_ptr, transition)
