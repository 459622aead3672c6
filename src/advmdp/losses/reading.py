"""Recorded rows of numbers, from an array or a file, for access in any order.

An array is copied, unless it is a memory map, which is used in place.  A CSV or Parquet file is read once, batch by
batch through Polars' streaming scan, into an array of float64: in memory if it is small, otherwise in a memory-mapped
temporary file.  So a recording may exceed memory, any row can be read directly, and later changes to the file have no
effect.  (Polars decodes Parquet by row groups: a file that exceeds memory must have several.)

:func:`rescaling` passes over all rows once.  It accepts the numbers, or names the row, the column and the content of
the first invalid one.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.core.arrays import FloatArray, floats
from advmdp.core.errors import InputError

if TYPE_CHECKING:
    import polars as pl

STRETCH = 1 << 21
"""How many numbers are checked at a time: 16 MB.  Recordings of up to four times this size stay in memory."""


@dataclass(frozen=True, eq=False)
class Recording:
    """Rows of numbers; NaN stands for anything that is not a number."""

    name: str
    rows: NDArray[np.generic]
    frame: "pl.LazyFrame | None" = None
    """The columns of the file as recorded, for error messages."""

    @property
    def width(self) -> int:
        return int(np.prod(self.rows.shape[1:]))

    def read(self, first: int, stop: int) -> FloatArray:
        """Rows first, ..., stop - 1, as a copy."""
        return np.array(self.rows[first:stop], dtype=np.float64).reshape(stop - first, self.width)

    def place(self, row: int, column: int) -> tuple[str, str]:
        """The place of an entry and its content, for error messages."""
        if self.frame is None:
            return f"{self.name}, row {row}, entry {column}", f"{self.rows[row].ravel()[column]}"
        label = self.frame.collect_schema().names()[column]
        value = self.frame.slice(row, 1).select(label).collect().item()
        line = f"line {row + 2}" if _is_csv(self.name) else f"row {row}"
        return f"{self.name}, {line}, column {label}", "nothing" if value is None else f"'{value}'"


_forked = False


def _note_fork() -> None:
    global _forked  # noqa: PLW0603 (of the whole process)
    _forked = _forked or "polars" in sys.modules


os.register_at_fork(after_in_child=_note_fork)


def read_array(source: ArrayLike, shapes: set[tuple[int, ...]]) -> Recording:
    """An array whose rows have one of the given shapes."""
    array = source if isinstance(source, np.memmap) else floats(source, "array").copy()
    if array.dtype.kind not in "fiu" or array.shape[1:] not in shapes or not len(array):
        shown = " or ".join(f"(episodes, {', '.join(map(str, shape))})" for shape in sorted(shapes))
        raise InputError("array", f"shape {array.shape} of {array.dtype}", shown)
    return Recording("array", array)


def read_file(path: str, labels: Sequence[Sequence[str]]) -> Recording:
    """A CSV file with a header line, or a Parquet file.

    ``labels`` are ways to name the columns in order; a file that uses one of them may have its columns in any order.
    """
    import polars as pl

    if _forked:
        given = "a process forked after its parent had loaded Polars, whose threads a fork does not copy"
        raise InputError(path, given, "a process started by 'spawn', or an array")
    if not Path(path).is_file():
        raise InputError(path, "no such file", "a CSV or Parquet file")
    if not path.lower().endswith((".csv", ".parquet")):
        raise InputError(path, f"a file that ends in '{Path(path).suffix}'", "one that ends in .csv or .parquet")
    try:
        # CSV is read as text, so that errors can show entries that are not numbers.
        scan = pl.scan_csv(path, infer_schema=False, glob=False) if _is_csv(path) else pl.scan_parquet(path, glob=False)
        frame = scan.select(_ordered(path, scan.collect_schema(), labels))
        count = int(frame.select(pl.len()).collect().item())
        rows = _copied(path, frame, count)
        while _is_csv(path) and len(rows) and not np.isfinite(rows[-1]).any() and _blank(frame, len(rows) - 1):
            rows = rows[:-1]
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        given = f"unreadable ({str(error).splitlines()[0]})"
        raise InputError(path, given, "a CSV file with a header line and complete rows, or a Parquet file") from None
    if not len(rows):
        raise InputError(path, "no rows", "one row per episode")
    return Recording(path, rows, frame)


def _is_csv(path: str) -> bool:
    return path.lower().endswith(".csv")


def _blank(frame: "pl.LazyFrame", row: int) -> bool:
    """Whether a row of a CSV file is an empty line."""
    return all(value is None for value in frame.slice(row, 1).collect().row(0))


def _ordered(path: str, schema: "pl.Schema", labels: Sequence[Sequence[str]]) -> list[str]:
    """The names of the columns: in the order of the labels if the file uses them, otherwise as in the file."""
    import polars as pl

    for name, kind in schema.items():
        if not _is_csv(path) and not (kind.is_numeric() or kind == pl.Boolean):
            raise InputError(f"{path}, column {name}", f"values of type {kind}", "numbers")
    names = schema.names()
    if _is_csv(path) and _all_numbers(path):
        raise InputError(f"{path}, line 1", "numbers", "a header line with the names of the columns")
    for known in labels:
        if set(names) & set(known):
            if strange := sorted(set(names) - set(known)):
                expected = f"labels of the skeleton such as '{known[0]}' in all columns, or in none"
                raise InputError(f"{path}, header", f"column '{strange[0]}'", expected)
            if len(names) == len(known):
                return list(known)
    return names


def _all_numbers(path: str) -> bool:
    """Whether the first line of a file is a row of numbers instead of a header."""
    with open(path, encoding="utf-8", errors="replace") as file:
        cells = file.readline().strip().replace('"', "").split(",")
    try:
        return bool([float(cell) for cell in cells])
    except ValueError:
        return False


def _copied(path: str, frame: "pl.LazyFrame", count: int) -> FloatArray:
    """All rows as float64: in memory if they are few, otherwise in a temporary file."""
    import polars as pl

    shape = (count, len(frame.collect_schema()))
    if shape[1] == 0:
        raise InputError(path, "no columns", "one for each transition")
    rows: FloatArray
    if count * shape[1] <= 4 * STRETCH:
        rows = np.empty(shape)
    else:
        with TemporaryFile() as file:  # the memory map outlives the file's name and handle
            rows = np.memmap(file, np.float64, "w+", shape=shape)
    text = pl.all().str.strip_chars() if _is_csv(path) else pl.all()
    numbers = frame.select(text.cast(pl.Float64, strict=False))
    filled = 0
    for batch in numbers.collect_batches(chunk_size=max(1, STRETCH // shape[1])):
        rows[filled : filled + len(batch)] = batch.to_numpy()
        filled += len(batch)
    return rows[:filled]


def rescaling(recording: Recording, rescale: tuple[float, float] | Literal["range"] | None) -> tuple[float, float]:
    """(low, high) such that (c - low) / (high - low) is in [0, 1] for all rows, in one pass over them."""
    by_range = isinstance(rescale, str) and rescale == "range"
    bounds = (-np.inf, np.inf) if by_range else _bounds(rescale)
    low, high = np.inf, -np.inf
    step = max(1, STRETCH // recording.width)
    count = len(recording.rows)
    for first in range(0, count, step):
        numbers = recording.read(first, min(first + step, count))
        good = np.isfinite(numbers) & (numbers >= bounds[0]) & (numbers <= bounds[1])
        if not good.all():
            row, column = (int(k) for k in np.unravel_index(int(np.argmin(good)), good.shape))
            where, given = recording.place(first + row, column)
            finite = "a finite number" if by_range else f"a number from {bounds[0]:g} to {bounds[1]:g}"
            raise InputError(where, given, finite + (" (or pass rescale)" if rescale is None else ""))
        low, high = min(low, float(numbers.min())), max(high, float(numbers.max()))
    if not by_range:
        return bounds
    if not 0.0 < high - low < np.inf:
        raise InputError(recording.name, f"costs from {low} to {high}", "a positive, finite range to rescale by")
    return low, high


def _bounds(rescale: tuple[float, float] | str | None) -> tuple[float, float]:
    """The bounds of the numbers, given by ``rescale``."""
    if rescale is None:
        return 0.0, 1.0
    pair = np.empty(0) if isinstance(rescale, str) else floats(rescale, "rescale")
    if pair.shape != (2,) or not 0.0 < float(pair[1]) - float(pair[0]) < np.inf:
        raise InputError("rescale", f"{rescale!r}", "(low, high) with low < high, or 'range'")
    return float(pair[0]), float(pair[1])
