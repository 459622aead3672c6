# What Python calls of `noise.py`.

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray

def add_noise(
    key: NDArray[np.uint64],
    start: NDArray[np.uint64],
    means: FloatArray,
    which: NDArray[np.int64],
    noise: float,
    losses: FloatArray,
) -> None: ...
