"""Traffic matrices over time: how much is to go from each node to each other, episode by episode.

    time,from,to,amount
    10:00,north,south,4.5

A CSV or Parquet file has a row for each demand at a time, in any order.  Times are labels and count in the order in
which they first come; each is an episode.  What has no row at a time is 0 then.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from advmdp.core.arrays import LARGEST, FloatArray, exact_floats, frozen
from advmdp.core.errors import InputError
from advmdp.scenarios.csv_table import read_table
from advmdp.scenarios.network.topology import Topology, demand_table

MOST_ENTRIES = 10**8
COLUMNS = ("time", "from", "to", "amount")


def matrices_of(net: Topology, given: Any) -> FloatArray:
    """(episodes, nodes, nodes), of tables {node: {node: amount}} or an array."""
    if given is None:
        return np.zeros((1, len(net.nodes), len(net.nodes)))
    if isinstance(given, np.ndarray):
        shape = (len(given) if given.ndim else 0, len(net.nodes), len(net.nodes))
        tables = exact_floats(given, "demands", shape)
        across = np.arange(len(net.nodes))
        wrong = ~((tables == 0.0) | ((tables >= 1.0 / LARGEST) & (tables <= LARGEST)))
        wrong[:, across, across] |= tables[:, across, across] != 0.0
        if wrong.any():
            t, i, j = (int(n) for n in np.argwhere(wrong)[0])
            where = f"demands, episode {t}, {net.nodes[i]} -> {net.nodes[j]}"
            raise InputError(where, f"{tables[t, i, j]!r}", "a finite number, 0 or more, and 0 from a node to itself")
    else:
        if not isinstance(given, Sequence) or not all(isinstance(table, Mapping) for table in given):
            raise InputError(
                "demands", f"{type(given).__name__}", "tables {node: {node: amount}}, one for each episode"
            )
        number = {name: k for k, name in enumerate(net.nodes)}
        found = [demand_table(f"{net.name}, episode {t}", table, number, net.nodes) for t, table in enumerate(given)]
        empty = np.zeros((len(net.nodes), len(net.nodes)))
        tables = np.array([empty if table is None else table for table in found]).reshape(-1, *empty.shape)
    if not len(tables) or not (tables.sum(axis=(1, 2)) > 0.0).all():
        raise InputError("demands", "an episode without any" if len(tables) else "none", "some in each episode")
    return tables


def demands_from_file(path: str | PathLike[str], net: Topology) -> FloatArray:
    """Read traffic matrices over time.

    Parameters
    ----------
    path
        A CSV or Parquet file with the columns time, from, to and amount.
    net
        The topology that has the nodes.

    Returns
    -------
    FloatArray
        (episodes, nodes, nodes), for ``congestion_game(..., demands=...)``.

    Raises
    ------
    InputError
        Names the line and column of what is wrong.
    """
    table = read_table(path)
    time, begin, end, amount = (table.column(name) for name in COLUMNS)
    if strange := [name for name in table.header if name not in COLUMNS]:
        raise InputError(table.top, f"column '{strange[0]}'", ", ".join(COLUMNS))
    times = {label: k for k, label in enumerate(dict.fromkeys(cells[time] for cells in table.rows))}
    if len(times) * len(net.nodes) ** 2 > MOST_ENTRIES:
        raise InputError(table.path, f"{len(times):,} times", f"at most {MOST_ENTRIES:,} entries of all matrices")
    found = np.full((len(times), len(net.nodes), len(net.nodes)), np.nan)
    for row, cells in enumerate(table.rows):
        if not cells[time]:
            raise InputError(table.where(row, time), "nothing", "a time")
        ends = []
        for column in (begin, end):
            try:
                ends.append(net.node(cells[column]))
            except InputError as error:
                raise InputError(table.where(row, column), error.given, error.expected) from None
        place = times[cells[time]], *ends
        value = table.number(row, amount, 0.0, LARGEST)
        if ends[0] == ends[1] or 0.0 < value < 1.0 / LARGEST:
            given = f"{value:g} from {cells[begin]} to {cells[end]}"
            raise InputError(
                table.place(row), given, f"demands between different nodes, 0 or {1.0 / LARGEST:g} and more"
            )
        if not np.isnan(found[place]):
            given = f"{cells[begin]} to {cells[end]} at time {cells[time]} for a second time"
            raise InputError(table.place(row), given, "each demand once at a time")
        found[place] = value
    tables = np.nan_to_num(found, nan=0.0)
    if not (sums := tables.sum(axis=(1, 2)) > 0.0).all():
        empty = list(times)[int(np.flatnonzero(~sums)[0])]
        raise InputError(table.path, f"no demand at time {empty}", "some at every time")
    return frozen(tables)
