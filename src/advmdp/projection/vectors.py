"""Operations on rows of a matrix, and sums over them, that neither allocate nor make views."""

from advmdp.projection.compiled import compiled_sums, unsigned
from advmdp.projection.types import Floats


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
def add_to_row(
    target: Floats, y: int, first: int, factor: float, source: Floats, x: int, begin: int, size: int
) -> None:
    """Row y of the target from column `first` on += factor * row x of the source from column `begin` on."""
    to, of, here, there = unsigned(y), unsigned(x), unsigned(begin), unsigned(first)
    for j in range(unsigned(size)):
        target[to, there + j] += factor * source[of, here + j]


@compiled_sums
def dot(a: Floats, b: Floats) -> float:
    """a.b."""
    s = 0.0
    for i in range(a.shape[0]):
        s += a[i] * b[i]
    return s
