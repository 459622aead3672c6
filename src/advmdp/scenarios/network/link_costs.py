"""The user's own measurements of links: a CSV or Parquet file of costs over time.

    time,from,to,delay,congestion,price
    2024-05-01 10:00,New York,Chicago,0.31,0.2,0.5

One row for a link at a time, in any order; times are labels and count in the order in which they first come.  Of
delay, congestion and price at least one is a column.  Costs lie in [0, 1], or are divided by ``scale``, which none
may exceed: one number for all kinds, or one for each by name.  A link is one direction, so both directions of a
cable have rows of their own.

A second file may say how often links fail, with a row for each link that the flow can use and one or both columns:

    from,to,loss,deflection
    New York,Chicago,0.01,0.05

At every time there must be a row for each link that is needed, which a packet of the flow can go over; rows of other
links of the topology are checked too, and then not used.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray, frozen
from advmdp.core.errors import InputError
from advmdp.scenarios.base import positive
from advmdp.scenarios.csv_table import CsvTable, read_table
from advmdp.scenarios.network.topology import Topology

COSTS = ("delay", "congestion", "price")
"""The kinds of cost that a link has."""
RATES = ("loss", "deflection")
"""How often a link loses or deflects a packet."""


@dataclass(frozen=True, eq=False)
class LinkCosts:
    """Recorded costs, divided by ``scale``: (times, links, kinds), in [0, 1]; 0 for links that are not needed."""

    values: FloatArray
    times: tuple[str, ...]
    kinds: tuple[str, ...]
    scale: dict[str, float]


def costs_from_file(
    path: str | PathLike[str],
    topology: Topology,
    needed: NDArray[np.int64] | None = None,
    scale: float | Mapping[str, float] | None = None,
) -> LinkCosts:
    """The costs of the topology's links, of which those with the numbers ``needed`` must be there: all unless said."""
    table = read_table(path)
    time = table.column("time")
    ends = table.column("from"), table.column("to")
    if strange := [name for name in table.header if name not in ("time", "from", "to", *COSTS)]:
        raise InputError(table.top, f"column '{strange[0]}'", f"time, from, to, {', '.join(COSTS)}")
    kinds = tuple(kind for kind in COSTS if kind in table.header)
    if not kinds:
        raise InputError(table.top, "no column of costs", f"at least one of {', '.join(COSTS)}")
    units = _units(kinds, scale)
    columns = [table.column(kind) for kind in kinds]
    numbers = {(int(i), int(j)): k for k, (i, j) in enumerate(topology.links)}
    times = {label: k for k, label in enumerate(dict.fromkeys(cells[time] for cells in table.rows))}
    values = np.full((len(times), len(numbers), len(kinds)), np.nan)
    for row, cells in enumerate(table.rows):
        if not cells[time]:
            raise InputError(table.where(row, time), "nothing", "a time")
        place = times[cells[time]], _link(table, row, ends, topology, numbers)
        if not np.isnan(values[place]).any():
            given = f"{topology.link(place[1])} at time {cells[time]} for a second time"
            raise InputError(table.place(row), given, "each link once at a time")
        limits = [units[kind] for kind in kinds]
        values[place] = [table.number(row, k, 0.0, most) for k, most in zip(columns, limits, strict=True)]
    _check_complete(table, values, tuple(times), topology, needed)
    values = np.nan_to_num(values, nan=0.0) / [units[kind] for kind in kinds]
    return LinkCosts(frozen(values), tuple(times), kinds, units)


def rates_from_file(
    path: str | PathLike[str],
    topology: Topology,
    needed: NDArray[np.int64],
    losses: FloatArray,
    deflections: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Measured rates of loss and deflection by link; a rate without a column is that which is given.

    Links with the numbers ``needed`` must be in the file.
    """
    table = read_table(path)
    ends = table.column("from"), table.column("to")
    if strange := [name for name in table.header if name not in ("from", "to", *RATES)]:
        raise InputError(table.top, f"column '{strange[0]}'", f"from, to, {', '.join(RATES)}")
    columns = {name: table.column(name) for name in RATES if name in table.header}
    if not columns:
        raise InputError(table.top, "no column of rates", f"at least one of {', '.join(RATES)}")
    numbers = {(int(i), int(j)): k for k, (i, j) in enumerate(topology.links)}
    rates, seen = {"loss": losses.copy(), "deflection": deflections.copy()}, np.zeros(len(numbers), bool)
    for row in range(len(table.rows)):
        k = _link(table, row, ends, topology, numbers)
        if seen[k]:
            raise InputError(table.place(row), f"{topology.link(k)} for a second time", "each link once")
        seen[k] = True
        for name, column in columns.items():
            rates[name][k] = table.number(row, column, 0.0, 1.0)
        if rates["loss"][k] + rates["deflection"][k] > 0.5:
            given = f"rates of {rates['loss'][k]:g} and {rates['deflection'][k]:g}"
            raise InputError(table.place(row), given, "a packet that arrives at least as often as not")
    if len(missing := needed[~seen[needed]]):
        expected = "every link that the flow can use"
        raise InputError(table.path, f"no row for {topology.link(int(missing[0]))}", expected)
    return rates["loss"], rates["deflection"]


def _units(kinds: tuple[str, ...], scale: float | Mapping[str, float] | None) -> dict[str, float]:
    if not isinstance(scale, Mapping):
        return dict.fromkeys(kinds, 1.0 if scale is None else positive("scale", scale))
    if strange := [kind for kind in scale if kind not in kinds]:
        raise InputError("scale", f"{strange[0]!r}", f"one of the columns of costs: {', '.join(kinds)}")
    return {kind: positive(f"scale of {kind}", scale.get(kind, 1.0)) for kind in kinds}


def _link(
    table: CsvTable, row: int, ends: tuple[int, int], topology: Topology, numbers: Mapping[tuple[int, int], int]
) -> int:
    """The number of the link in a row."""
    found = []
    for column in ends:
        try:
            found.append(topology.node(table.rows[row][column]))
        except InputError as error:
            raise InputError(table.where(row, column), error.given, error.expected) from None
    if (found[0], found[1]) not in numbers:
        given = f"no link {topology.nodes[found[0]]} -> {topology.nodes[found[1]]} in {topology.name}"
        raise InputError(table.place(row), given, "links of the topology")
    return numbers[found[0], found[1]]


def _check_complete(
    table: CsvTable, values: FloatArray, times: tuple[str, ...], topology: Topology, needed: NDArray[np.int64] | None
) -> None:
    links = np.arange(values.shape[1]) if needed is None else needed
    if (missing := np.isnan(values[:, links, 0])).any():
        t, k = (int(n) for n in np.argwhere(missing)[0])
        given = f"no row for {topology.link(int(links[k]))} at time {times[t]}"
        raise InputError(table.path, given, "every link that the flow can use, at every time")
