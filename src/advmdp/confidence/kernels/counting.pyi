# What Python calls of `counting.py`.

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray

Ints = NDArray[np.int64]

def count_in_epoch(visits: Ints, new_visits: Ints, new_seen: Ints, pairs: Ints, transitions: Ints) -> bool: ...
def count_at_once(
    transition_ptr: Ints, visits: Ints, seen: Ints, estimate: FloatArray, pairs: Ints, transitions: Ints
) -> None: ...
