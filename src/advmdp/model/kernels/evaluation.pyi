# What Python calls of `evaluation.py`.

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray
from advmdp.model.kernels.world import Dynamics

Ints = NDArray[np.int64]

def find_broken(world: Dynamics, policy: FloatArray) -> int: ...
def occupy(world: Dynamics, policy: FloatArray, mass: FloatArray, q: FloatArray) -> int: ...
def value_policy(
    world: Dynamics, loss: FloatArray, policy: FloatArray, state_values: FloatArray, pair_values: FloatArray
) -> tuple[int, int]: ...
def respond(world: Dynamics, loss: FloatArray, policy: FloatArray, values: FloatArray) -> int: ...
def sample(
    world: Dynamics, policy: FloatArray, uniform: FloatArray, states: Ints, pairs: Ints, transitions: Ints
) -> int: ...
