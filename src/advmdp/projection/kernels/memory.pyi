# What Python calls of `memory.py`.

import numpy as np
from numpy.typing import NDArray

from advmdp.confidence.sets import RowSets
from advmdp.core.arrays import FloatArray

Ints = NDArray[np.int64]
Indices = NDArray[np.int32]

class Layout:
    threads: int
    def __init__(
        self, layer_ptr: Ints, pair_ptr: Ints, transition_ptr: Ints, successor: Indices, threads: int
    ) -> None: ...

class Bounds:
    sets: RowSets
    def __init__(self, sets: RowSets) -> None: ...

class Workspace:
    layout: Layout
    beta: FloatArray
    arrays: dict[str, FloatArray]
    def __init__(self, layout: Layout) -> None: ...

def new_answer(layout: Layout) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]: ...
