# What Python calls of `reaction.py`.

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray

class Reaction:
    base: FloatArray
    before: FloatArray
    policies: FloatArray
    losses: FloatArray
    def __init__(
        self,
        base: FloatArray,
        strength: float,
        noise: float,
        key: NDArray[np.uint64],
        start: NDArray[np.uint64],
        before: FloatArray,
        played: int,
        memory: int,
        policies: FloatArray,
        losses: FloatArray,
    ) -> None: ...
