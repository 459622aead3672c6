"""Operations on rows of a matrix, and sums over them, that neither allocate nor make views."""

import numpy as np

from advmdp.projection.kernels.compiled import compiled_sums, unsigned
from advmdp.projection.kernels.types import Floats

BLOCK = 512


@compiled_sums
def copy_row(rows: Floats, target: int, source: int) -> None:
    """One row over another."""
    for i in range(rows.shape[1]):
        rows[target, i] = rows[source, i]


@compiled_sums
def scale_row(rows: Floats, target: int, factor: float) -> None:
    """row *= factor."""
    for i in range(rows.shape[1]):
        rows[target, i] *= factor


@compiled_sums
def add_multiple(target: Floats, factor: float, source: Floats) -> None:
    """target += factor * source."""
    for i in range(target.shape[0]):
        target[i] += factor * source[i]


@compiled_sums
def orthogonalise(basis: Floats, k: int, h: Floats) -> float:
    """Free row k + 1 of its parts along rows 0 .. k, which are written to column k of h; return what is left of it.

    All products of a block of columns are formed before the next block, so that long rows are read once, not k times.
    """
    size, new = basis.shape[1], k + 1
    for i in range(new):
        h[i, k] = 0.0
    for begin in range(0, size, BLOCK):
        end = min(begin + BLOCK, size)
        for i in range(new):
            s = 0.0
            for x in range(unsigned(begin), unsigned(end)):
                s += basis[i, x] * basis[new, x]
            h[i, k] += s
    squares = 0.0
    for begin in range(0, size, BLOCK):
        end = min(begin + BLOCK, size)
        for i in range(new):
            for x in range(unsigned(begin), unsigned(end)):
                basis[new, x] -= h[i, k] * basis[i, x]
        for x in range(unsigned(begin), unsigned(end)):
            squares += basis[new, x] * basis[new, x]
    return float(np.sqrt(squares))


@compiled_sums
def dot(a: Floats, b: Floats) -> float:
    """a.b."""
    s = 0.0
    for i in range(a.shape[0]):
        s += a[i] * b[i]
    return s
