# What Python calls of `segments.py`.

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray
from advmdp.model.kernels.world import Dynamics

def extend(
    world: Dynamics,
    running: FloatArray,
    first: int,
    stop: int,
    best: FloatArray,
    start: NDArray[np.int64],
    scratch: tuple[FloatArray, FloatArray, FloatArray],
) -> None: ...
def width() -> int: ...
