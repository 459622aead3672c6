"""Reads the user's small tables, CSV or Parquet; errors name the line and the column.

Files are UTF-8 text, with or without a byte-order mark.  Cells stay text until they are used, so that an error can
quote them.  Empty lines are skipped.  A Parquet file becomes the same kind of table; its errors name rows, counted
from 0, instead of lines.
"""

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from os import PathLike
from pathlib import Path

from advmdp.core.arrays import LARGEST
from advmdp.core.errors import InputError
from advmdp.core.files import path_of


@dataclass(frozen=True)
class CsvTable:
    """The cells of a file, as text."""

    path: str
    header: tuple[str, ...]
    lines: tuple[int, ...]
    """The line of the file on which each row ends."""
    rows: tuple[tuple[str, ...], ...]
    unit: str = "line"
    """What the numbers in ``lines`` count."""

    @property
    def top(self) -> str:
        """Where the column names are, for messages."""
        return f"{self.path}, line 1" if self.unit == "line" else f"{self.path}, columns"

    def place(self, row: int) -> str:
        """'prices.csv, line 7': for messages."""
        return f"{self.path}, {self.unit} {self.lines[row]}"

    def column(self, name: str) -> int:
        """The index of a column."""
        if name not in self.header:
            given = f"no column '{name}' among {', '.join(self.header)}"
            raise InputError(self.top, given, f"a column '{name}'")
        return self.header.index(name)

    def where(self, row: int, column: int) -> str:
        """'prices.csv, line 7, column price': for messages."""
        return f"{self.place(row)}, column {self.header[column]}"

    def number(self, row: int, column: int, low: float, high: float) -> float:
        """A cell as a number from ``low`` to ``high``; these may be infinite."""
        cell = self.rows[row][column]
        try:
            # Python's float also accepts underscores and foreign digits.
            value = float(cell) if cell.isascii() and "_" not in cell else math.nan
        except ValueError:
            value = math.nan
        low, high = max(low, -LARGEST), min(high, LARGEST)
        if not low <= value <= high:
            expected = f"a number from {low:g} to {high:g}"
            raise InputError(self.where(row, column), f"'{cell}'" if cell else "nothing", expected)
        return value

    def whole(self, row: int, column: int, low: int, high: int) -> int:
        """A cell as a whole number from ``low`` to ``high``."""
        value = self.number(row, column, low, high)
        if value != int(value):
            expected = f"a whole number from {low} to {high}"
            raise InputError(self.where(row, column), f"'{self.rows[row][column]}'", expected)
        return int(value)


def read_csv(path: str | PathLike[str]) -> CsvTable:
    """Read a CSV file. Its header must have distinct names, and each row as many cells."""
    name = str(path_of("file", path))
    reader = csv.reader(StringIO(_text(name), newline=""), strict=True)
    try:
        found = list(_cells(reader))
    except csv.Error as error:
        raise InputError(f"{name}, line {reader.line_num}", f"unreadable ({error})", "valid CSV") from None
    if not found:
        raise InputError(name, "an empty file", "a header line with column names, and rows")
    header = found[0][1]
    _check_header(name, header)
    for line, cells in found[1:]:
        if len(cells) != len(header):
            raise InputError(f"{name}, line {line}", f"{len(cells)} cells", f"{len(header)}, as in the header")
    if len(found) == 1:
        raise InputError(name, "a header line and no rows", "rows")
    return CsvTable(name, header, tuple(line for line, _ in found[1:]), tuple(cells for _, cells in found[1:]))


def read_table(path: str | PathLike[str]) -> CsvTable:
    """Read a CSV file, or a Parquet file if its name ends in .parquet."""
    name = str(path_of("file", path))
    if not name.lower().endswith(".parquet"):
        return read_csv(name)
    import polars as pl

    try:
        frame = pl.read_parquet(name, glob=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        given = f"unreadable ({str(error).splitlines()[0]})"
        raise InputError(name, given, "a readable Parquet file") from None
    if not len(frame):
        raise InputError(name, "no rows", "rows")
    rows = tuple(tuple("" if cell is None else str(cell).strip() for cell in row) for row in frame.iter_rows())
    return CsvTable(name, tuple(frame.columns), tuple(range(len(rows))), rows, "row")


def _text(name: str) -> str:
    """The text of a file."""
    try:
        return Path(name).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(name, f"{error.strerror}", "a readable CSV file") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InputError(f"{name}, line {line}", f"unreadable ({error})", "a CSV file in UTF-8") from None


def _cells(reader: Iterator[Sequence[str]]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The line and the cells of each row, without empty rows."""
    for row in reader:
        if any(cell.strip() for cell in row):
            yield reader.line_num, tuple(cell.strip() for cell in row)  # type: ignore[attr-defined]


def _check_header(name: str, header: tuple[str, ...]) -> None:
    for k, label in enumerate(header):
        if not label:
            raise InputError(f"{name}, line 1", f"no name for column {k + 1}", "a name for every column")
        if label in header[:k]:
            raise InputError(f"{name}, line 1", f"column '{label}' twice", "each column once")
