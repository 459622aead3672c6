"""Reads the user's measurements of links: a CSV or Parquet file of costs over time.

    time,from,to,delay,congestion,price
    2024-05-01 10:00,New York,Chicago,0.31,0.2,0.5

There is one row for each link and time, in any order.  Times are labels, ordered by first appearance.  At least one of
the columns delay, congestion and price is present.  Costs lie in [0, 1] after division by ``scale``: one number for all
kinds of cost, or one for each by name.  Links are directed, so the two directions of a cable have separate rows.

An optional second file gives failure rates.  It has a row for each link that the flow can use and one or both columns:

    from,to,loss,deflection
    New York,Chicago,0.01,0.05

A link is needed if a packet of the flow can use it.  Each needed link must have a row at every time.  Rows of other
links of the topology are checked but not used.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray, frozen
from advmdp.core.errors import InputError
from advmdp.scenarios.base import positive
from advmdp.scenarios.network.topology import Topology
from advmdp.scenarios.user_tables import CsvTable, read_table

COSTS = ("delay", "congestion", "price")
"""The kinds of link cost."""
RATES = ("loss", "deflection")
"""The probabilities that a link loses or deflects a packet."""


@dataclass(frozen=True, eq=False)
class LinkCosts:
    """Recorded costs, divided by ``scale``: (times, links, kinds), in [0, 1]; 0 for links without rows."""

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
    """Read the costs of the topology's links. The links ``needed`` must have rows; by default all links."""
    table = read_table(path)
    time = table.column("time")
    ends = table.column("from"), table.column("to")
    if strange := [name for name in table.header if name not in ("time", "from", "to", *COSTS)]:
        raise InputError(table.top, f"column '{strange[0]}'", f"time, from, to, {', '.join(COSTS)}")
    kinds = tuple(kind for kind in COSTS if kind in table.header)
    if not kinds:
        raise InputError(table.top, "no cost column", f"at least one of {', '.join(COSTS)}")
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
            given = f"a second row for {topology.link(place[1])} at time {cells[time]}"
            raise InputError(table.place(row), given, "one row for each link and time")
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
    """Read measured rates of loss and deflection by link; a rate without a column keeps the given values.

    The links ``needed`` must have rows.
    """
    table = read_table(path)
    ends = table.column("from"), table.column("to")
    if strange := [name for name in table.header if name not in ("from", "to", *RATES)]:
        raise InputError(table.top, f"column '{strange[0]}'", f"from, to, {', '.join(RATES)}")
    columns = {name: table.column(name) for name in RATES if name in table.header}
    if not columns:
        raise InputError(table.top, "no rate column", f"at least one of {', '.join(RATES)}")
    numbers = {(int(i), int(j)): k for k, (i, j) in enumerate(topology.links)}
    rates, seen = {"loss": losses.copy(), "deflection": deflections.copy()}, np.zeros(len(numbers), bool)
    for row in range(len(table.rows)):
        k = _link(table, row, ends, topology, numbers)
        if seen[k]:
            raise InputError(table.place(row), f"a second row for {topology.link(k)}", "one row for each link")
        seen[k] = True
        for name, column in columns.items():
            rates[name][k] = table.number(row, column, 0.0, 1.0)
        if rates["loss"][k] + rates["deflection"][k] > 0.5:
            given = f"rates of {rates['loss'][k]:g} and {rates['deflection'][k]:g}"
            raise InputError(table.place(row), given, "a sum of at most 1/2")
    if len(missing := needed[~seen[needed]]):
        expected = "every link that the flow can use"
        raise InputError(table.path, f"no row for {topology.link(int(missing[0]))}", expected)
    return rates["loss"], rates["deflection"]


def _units(kinds: tuple[str, ...], scale: float | Mapping[str, float] | None) -> dict[str, float]:
    if not isinstance(scale, Mapping):
        return dict.fromkeys(kinds, 1.0 if scale is None else positive("scale", scale))
    if strange := [kind for kind in scale if kind not in kinds]:
        raise InputError("scale", f"{strange[0]!r}", f"one of the cost columns: {', '.join(kinds)}")
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
