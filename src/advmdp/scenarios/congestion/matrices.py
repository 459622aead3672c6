"""Traffic matrices over time: the demand between each pair of nodes, episode by episode.

    time,from,to,amount
    10:00,north,south,4.5

A CSV or Parquet file has a row for each demand and time, in any order.  Each time is an episode; times are labels,
ordered by first appearance.  A demand without a row at a time is 0 then.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from advmdp.core.arrays import LARGEST, FloatArray, exact_floats, frozen
from advmdp.core.errors import InputError
from advmdp.scenarios.network.topology import Topology, demand_table
from advmdp.scenarios.user_tables import read_table

MOST_ENTRIES = 10**8
COLUMNS = ("time", "from", "to", "amount")


def matrices_of(net: Topology, given: Any) -> FloatArray:
    """Convert tables {node: {node: amount}} or an array to an array (episodes, nodes, nodes)."""
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
        given = "an episode without demand" if len(tables) else "no episodes"
        raise InputError("demands", given, "some demand in each episode")
    return tables


def demands_from_file(path: str | PathLike[str], net: Topology) -> FloatArray:
    """Read traffic matrices over time.

    Parameters
    ----------
    path
        A CSV or Parquet file with the columns time, from, to and amount.
    net
        The topology.

    Returns
    -------
    FloatArray
        (episodes, nodes, nodes), for ``congestion_game(..., demands=...)``.

    Raises
    ------
    InputError
        If the file is invalid; the error names the line and the column.

    Examples
    --------
    >>> from pathlib import Path
    >>> import networkx as nx
    >>> from advmdp.scenarios.congestion import demands_from_file
    >>> from advmdp.scenarios.network.topology import topology_from
    >>> _ = Path("demands.csv").write_text("time,from,to,amount\\n10:00,a,b,4.5\\n10:05,b,a,2\\n")
    >>> demands_from_file("demands.csv", topology_from(nx.Graph([("a", "b")]))).tolist()
    [[[0.0, 4.5], [0.0, 0.0]], [[0.0, 0.0], [2.0, 0.0]]]
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
                table.place(row), given, f"demands between different nodes, 0, or {1.0 / LARGEST:g} or more"
            )
        if not np.isnan(found[place]):
            given = f"a second row for {cells[begin]} to {cells[end]} at time {cells[time]}"
            raise InputError(table.place(row), given, "one row for each demand and time")
        found[place] = value
    tables = np.nan_to_num(found, nan=0.0)
    if not (sums := tables.sum(axis=(1, 2)) > 0.0).all():
        empty = list(times)[int(np.flatnonzero(~sums)[0])]
        raise InputError(table.path, f"no demand at time {empty}", "some demand at every time")
    return frozen(tables)
