# What Python calls of `philox.py`.

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray

def fill_uniforms(key: NDArray[np.uint64], start: NDArray[np.uint64], rows: FloatArray) -> None: ...
