"""Recorded rows of numbers, from memory or from a file, a stretch at a time.

:class:`ArrayRows` reads an array, which may be memory-mapped; :class:`FileRows` a CSV or Parquet file through Polars'
lazy scans.  Neither holds more than one stretch.  :func:`rescaling` makes one pass over all rows and either accepts the
numbers or names the first that cannot be: its row, its column and its value.
"""

from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from advmdp.arrays import FloatArray, floats
from advmdp.errors import InputError

__all__ = ["ArrayRows", "FileRows", "Rows", "rescaling"]

STRETCH = 1 << 21
"""How many numbers are read at a time: 16 MB."""


class Rows(Protocol):
    """``count`` rows of ``width`` numbers."""

    name: str
    count: int
    width: int

    def read(self, first: int, stop: int) -> FloatArray:
        """Rows first, ..., stop - 1 as float64; what is no number is NaN."""

    def where(self, row: int, column: int) -> str:
        """A place, for messages."""


class ArrayRows:
    """An array of shape (rows, ...)."""

    def __init__(self, source: ArrayLike) -> None:
        array = source if isinstance(source, np.ndarray) else floats(source, "array")
        if array.ndim < 2 or array.dtype.kind not in "fiu" or not array.size:
            raise InputError("array", f"shape {array.shape}, type {array.dtype}", "numbers with one row an episode")
        self.name = "array"
        self.count = len(array)
        self.width = int(np.prod(array.shape[1:]))
        # A private copy unless it is a map of a file, so that what was checked is what will be played.
        self._array = array if isinstance(array, np.memmap) else array.copy()

    def read(self, first: int, stop: int) -> FloatArray:
        return np.array(self._array[first:stop], dtype=np.float64).reshape(stop - first, self.width)

    def where(self, row: int, column: int) -> str:
        return f"array, row {row}, entry {column}"


class FileRows:
    """A CSV file with a header line, or a Parquet file."""

    def __init__(self, path: str) -> None:
        import polars as pl

        self.name = path
        if not Path(path).is_file():
            raise InputError(path, "no such file", "a CSV or Parquet file")
        # CSV is taken in as text and turned into numbers here, so that what is no number can be named by its line.
        ending = Path(path).suffix.lower()
        if ending not in (".csv", ".parquet"):
            raise InputError(path, f"a file that ends in '{ending}'", "one that ends in .csv or .parquet")
        self._is_csv = ending == ".csv"
        try:
            frame = pl.scan_csv(path, infer_schema=False) if self._is_csv else pl.scan_parquet(path)
            self._columns = frame.collect_schema().names()
            self.count = int(frame.select(pl.len()).collect().item())
        except pl.exceptions.PolarsError as error:
            raise InputError(path, f"unreadable ({str(error).splitlines()[0]})", f"a {ending[1:]} file") from None
        if not self.count:
            raise InputError(path, "no rows", "one row an episode")
        self.width = len(self._columns)
        self._frame = frame.select(pl.all().cast(pl.Float64, strict=False))
        self._first, self._stretch = 0, np.empty((0, self.width))

    def read(self, first: int, stop: int) -> FloatArray:
        if not self._first <= first <= stop <= self._first + len(self._stretch):
            length = max(stop - first, STRETCH // self.width, 1)
            self._first, self._stretch = first, self._load(first, length)
        return self._stretch[first - self._first : stop - self._first]

    def _load(self, first: int, length: int) -> FloatArray:
        import polars as pl

        try:
            return self._frame.slice(first, length).collect(engine="streaming").to_numpy().astype(np.float64)
        except pl.exceptions.PolarsError as error:
            where = f"{self.name}, rows {first} to {first + length}"
            raise InputError(where, f"unreadable ({str(error).splitlines()[0]})", "complete rows of numbers") from None

    def where(self, row: int, column: int) -> str:
        place = f"line {row + 2}" if self._is_csv else f"row {row}"
        return f"{self.name}, {place}, column {column + 1} ({self._columns[column]})"


def rescaling(rows: Rows, rescale: tuple[float, float] | Literal["range"] | None) -> tuple[float, float]:
    """(low, high) such that (c - low) / (high - low) is in [0, 1] for all rows, each of which is looked at once."""
    low, high = np.inf, -np.inf
    bounds = (0.0, 1.0) if rescale is None else (-np.inf, np.inf) if rescale == "range" else rescale
    if not bounds[0] < bounds[1]:
        raise InputError("rescale", f"{rescale}", "(low, high) with low < high, or 'range'")
    step = max(1, STRETCH // rows.width)
    for first in range(0, rows.count, step):
        numbers = rows.read(first, min(first + step, rows.count))
        good = np.isfinite(numbers) & (numbers >= bounds[0]) & (numbers <= bounds[1])
        if not good.all():
            row, column = np.unravel_index(int(np.argmin(good)), good.shape)
            value = numbers[row, column]
            given = "no finite number" if not np.isfinite(value) else f"{value}"
            expected = f"a number from {bounds[0]:g} to {bounds[1]:g}" + (
                " (or give rescale)" if rescale is None else ""
            )
            raise InputError(rows.where(first + int(row), int(column)), given, expected)
        low, high = min(low, float(numbers.min())), max(high, float(numbers.max()))
    if rescale != "range":
        return bounds
    if low == high:
        raise InputError(rows.name, f"nothing but {low}", "costs that differ, to rescale by their range")
    return low, high
