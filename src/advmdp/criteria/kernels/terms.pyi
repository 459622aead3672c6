# What Python calls of `terms.py`.

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray

def evaluate(
    table: FloatArray, layer_transition_ptr: NDArray[np.int64], q: FloatArray, loss: FloatArray, z: FloatArray
) -> float: ...
