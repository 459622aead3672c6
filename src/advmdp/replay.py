"""Recorded rows of numbers, from memory or from a file, a stretch at a time.

:class:`ArrayRows` reads an array, which may be memory-mapped; :class:`FileRows` a CSV or Parquet file through Polars'
lazy scans.  Neither holds more than one stretch.  :func:`rescaling` makes one pass over all rows and either accepts the
numbers or names the first that cannot be: its row, its column and its value.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from advmdp.arrays import FloatArray, floats
from advmdp.errors import InputError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ArrayRows", "FileRows", "Rows", "rescaling"]

STRETCH = 1 << 21
"""How many numbers are read at a time at the most: 16 MB."""


class Rows(Protocol):
    """``count`` rows of ``width`` numbers."""

    name: str
    count: int
    width: int

    def read(self, first: int, stop: int) -> FloatArray:
        """Rows first, ..., stop - 1 as float64; what is no number is NaN."""

    def where(self, row: int, column: int) -> str:
        """A place, for messages."""

    def cell(self, row: int, column: int) -> str:
        """What stands there, as it was recorded."""


class ArrayRows:
    """An array of rows of one of the given shapes."""

    def __init__(self, source: ArrayLike, shapes: set[tuple[int, ...]]) -> None:
        # A private copy unless it is a map of a file, so that what was checked is what will be played.
        array = source if isinstance(source, np.memmap) else floats(source, "array").copy()
        if array.dtype.kind not in "fiu" or array.shape[1:] not in shapes or not len(array):
            shown = " or ".join(f"(episodes, {', '.join(map(str, shape))})" for shape in sorted(shapes))
            raise InputError("array", f"shape {array.shape} of {array.dtype}", shown)
        self.name = "array"
        self.count = len(array)
        self.width = int(np.prod(array.shape[1:]))
        self._array = array

    def read(self, first: int, stop: int) -> FloatArray:
        return np.array(self._array[first:stop], dtype=np.float64).reshape(stop - first, self.width)

    def where(self, row: int, column: int) -> str:
        return f"array, row {row}, entry {column}"

    def cell(self, row: int, column: int) -> str:
        return f"{self._array[row].ravel()[column]}"


class FileRows:
    """A CSV file with a header line, or a Parquet file.

    ``labels`` tells, for a number of columns, what they would be called in order; a file that uses these names may have
    its columns in any order.
    """

    def __init__(self, path: str, labels: Callable[[int], list[str]]) -> None:
        self.name = path
        if not Path(path).is_file():
            raise InputError(path, "no such file", "a CSV or Parquet file")
        ending = Path(path).suffix.lower()
        if ending not in (".csv", ".parquet"):
            raise InputError(path, f"a file that ends in '{ending}'", "one that ends in .csv or .parquet")
        self._is_csv = ending == ".csv"
        self._raw = self._scan()
        self._columns = self._in_order(labels)
        self.width = len(self._columns)
        self.count = self._count()
        self._first, self._stretch, self._ahead = 0, np.empty((0, self.width)), 1

    def _scan(self) -> "pl.LazyFrame":
        """The columns as they are: text for CSV, so that what is no number can be shown; numbers for Parquet."""
        import polars as pl

        if self._is_csv:
            return pl.scan_csv(self.name, infer_schema=False, glob=False)
        return pl.scan_parquet(self.name, glob=False)

    def _in_order(self, labels: Callable[[int], list[str]]) -> list[str]:
        """The names of the columns, by the labels where they are used, else as they come."""
        import polars as pl

        try:
            schema = self._raw.collect_schema()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise self._unreadable(error, "a CSV file with a header line, or a Parquet file") from None
        for name, kind in schema.items():
            if not self._is_csv and not (kind.is_numeric() or kind == pl.Boolean):
                raise InputError(f"{self.name}, column {name}", f"values of type {kind}", "numbers")
        names = schema.names()
        if self._is_csv and _all_costs(names):
            raise InputError(f"{self.name}, line 1", "numbers", "a header line with the names of the columns")
        known = labels(len(names))
        if not set(names) & set(known):
            return names
        if strange := [name for name in names if name not in set(known)]:
            expected = f"one like {known[0]}, as others in this file are"
            raise InputError(f"{self.name}, header", f"column '{strange[0]}'", expected)
        return known

    def _count(self) -> int:
        """The number of rows; blank lines at the end of a CSV file are none."""
        import polars as pl

        try:
            count = int(self._raw.select(pl.len()).collect().item())
            while (
                self._is_csv
                and count
                and self._raw.slice(count - 1, 1).collect().null_count().row(0) == (1,) * self.width
            ):
                count -= 1
        except (pl.exceptions.PolarsError, OSError) as error:
            raise self._unreadable(error, "complete rows") from None
        if not count:
            raise InputError(self.name, "no rows", "one row an episode")
        return count

    def read(self, first: int, stop: int) -> FloatArray:
        end = self._first + len(self._stretch)
        if not self._first <= first <= stop <= end:
            # Reading on doubles the stretch, up to its limit; a jump begins anew with a short one.
            self._ahead = 2 * self._ahead if first == end else 1
            length = min(max(stop - first, min(self._ahead * 64, STRETCH // self.width)), self.count - first)
            self._first, self._stretch = first, self._load(first, length)
        return self._stretch[first - self._first : stop - self._first]

    def _load(self, first: int, length: int) -> FloatArray:
        import polars as pl

        columns = pl.col(self._columns)
        numbers = columns.str.strip_chars().cast(pl.Float64, strict=False) if self._is_csv else columns.cast(pl.Float64)
        try:
            rows = self._raw.slice(first, length).select(numbers).collect(engine="streaming").to_numpy()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise self._unreadable(error, f"complete rows {first} to {first + length}") from None
        if len(rows) != length:
            raise InputError(
                self.name, f"{first + len(rows)} rows", f"the {self.count} that were there when it was opened"
            )
        return rows.astype(np.float64)

    def _unreadable(self, error: Exception, expected: str) -> InputError:
        return InputError(self.name, f"unreadable ({str(error).splitlines()[0]})", expected)

    def where(self, row: int, column: int) -> str:
        place = f"line {row + 2}" if self._is_csv else f"row {row}"
        return f"{self.name}, {place}, column {self._columns[column]}"

    def cell(self, row: int, column: int) -> str:
        value = self._raw.slice(row, 1).select(self._columns[column]).collect().item()
        return "nothing" if value is None else f"'{value}'" if self._is_csv else f"{value}"


def _all_costs(names: list[str]) -> bool:
    """Whether a header is a row of numbers after all, and not the running numbers that some programs write."""
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return False
    return numbers not in ([*range(len(names))], [*range(1, len(names) + 1)])


def rescaling(rows: Rows, rescale: tuple[float, float] | Literal["range"] | None) -> tuple[float, float]:
    """(low, high) such that (c - low) / (high - low) is in [0, 1] for all rows, each of which is looked at once."""
    bounds = _bounds(rescale)
    low, high = np.inf, -np.inf
    step = max(1, STRETCH // rows.width)
    for first in range(0, rows.count, step):
        numbers = rows.read(first, min(first + step, rows.count))
        good = np.isfinite(numbers) & (numbers >= bounds[0]) & (numbers <= bounds[1])
        if not good.all():
            row, column = (int(k) for k in np.unravel_index(int(np.argmin(good)), good.shape))
            finite = "a finite number" if rescale == "range" else f"a number from {bounds[0]:g} to {bounds[1]:g}"
            expected = finite + (" (or give rescale)" if rescale is None else "")
            raise InputError(rows.where(first + row, column), rows.cell(first + row, column), expected)
        low, high = min(low, float(numbers.min())), max(high, float(numbers.max()))
    if rescale != "range":
        return bounds
    if low == high:
        raise InputError(rows.name, f"nothing but {low}", "costs that differ, to rescale by their range")
    return low, high


def _bounds(rescale: tuple[float, float] | Literal["range"] | None) -> tuple[float, float]:
    """Between what the numbers may lie."""
    if rescale is None:
        return 0.0, 1.0
    if isinstance(rescale, str) and rescale == "range":
        return -np.inf, np.inf
    pair = None if isinstance(rescale, str) else floats(rescale, "rescale")
    if pair is None or pair.shape != (2,) or not np.isfinite(pair).all() or not pair[0] < pair[1]:
        raise InputError("rescale", f"{rescale!r}", "(low, high) with low < high, or 'range'")
    return float(pair[0]), float(pair[1])
