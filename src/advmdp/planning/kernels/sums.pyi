# What Python calls of `sums.py`.

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray

Pointers = NDArray[np.int64]

def fill_means(ptr: Pointers, transition: FloatArray, losses: FloatArray, means: FloatArray) -> None: ...
def add_sums(ptr: Pointers, rows: FloatArray, columns: FloatArray, v: FloatArray) -> None: ...
def add_rows(ptr: Pointers, rows: FloatArray, weights: FloatArray, slopes: FloatArray) -> None: ...
def add_products(
    ptr: Pointers, rows: FloatArray, weights: FloatArray, inner_weights: FloatArray, H: FloatArray
) -> None: ...
