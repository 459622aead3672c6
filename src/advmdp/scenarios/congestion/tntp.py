"""Reads road networks in TNTP, the format of transport research: files of links, of trips and of flows.

    <NUMBER OF ZONES> 2                                          <NUMBER OF ZONES> 2
    <NUMBER OF NODES> 4                                          <TOTAL OD FLOW> 6.0
    <FIRST THRU NODE> 1                                          <END OF METADATA>
    <NUMBER OF LINKS> 5
    <END OF METADATA>                                            Origin 1
    ~ init_node term_node capacity length free_flow_time b power speed toll link_type ;        2 : 6.0;
      1  3  1  100  0.00000001  1000000000  1  0  0  1 ;

Lines that start with ~ are comments.  The columns have the order above; those after power are optional.  Nodes below
the first through node are zones: trips start and end there, and no route passes through.  Trips within a zone use no
road and are dropped.  The time of a link is BPR,

    time * (1 + b * (flow / capacity)^power)  +  toll_weight * toll  +  distance_weight * length

A file of flows is a solution to compare with.  It has a header line and rows  from, to, volume, cost;  colons and
semicolons are ignored.
"""

import math
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from advmdp.core.arrays import LARGEST, FloatArray, frozen, real
from advmdp.core.errors import InputError
from advmdp.core.files import path_of
from advmdp.core.optional import optional
from advmdp.scenarios.congestion.delays import RoadDelays, road_delays
from advmdp.scenarios.congestion.game import CongestionGame
from advmdp.scenarios.congestion.making import congestion_game
from advmdp.scenarios.network.topology import Topology, topology_from

END = "<END OF METADATA>"
COLUMNS = ("init_node", "term_node", "capacity", "length", "free_flow_time", "b", "power", "speed", "toll")
NEEDED = 7
"""The number of required columns of links."""
MOST_NODES = 10**6
MOST_ZONES = 5_000


class Line(NamedTuple):
    """A line of a file, and where it is."""

    where: str
    text: str


@dataclass(frozen=True, eq=False, repr=False)
class Roads:
    """A road network with its trips, and flows to compare with.

    Attributes
    ----------
    topology
        The network, with the trips as demands.
    delays
        The times of its roads.
    zones
        Nodes that no route passes through.
    flow
        The volumes of the file of flows, (links,), or None.

    Examples
    --------
    >>> from pathlib import Path
    >>> from advmdp.scenarios.congestion.tntp import read_tntp
    >>> head = "<NUMBER OF ZONES> 2\\n<NUMBER OF NODES> 2\\n<FIRST THRU NODE> 1\\n<NUMBER OF LINKS> 1\\n"
    >>> _ = Path("two_net.tntp").write_text(head + "<END OF METADATA>\\n1 2 10 1 5 0.15 4 ;\\n")
    >>> read_tntp("two_net.tntp").delays.free.tolist()
    [5.0]
    """

    topology: Topology
    delays: RoadDelays
    zones: tuple[str, ...]
    flow: FloatArray | None

    def game(self, slack: int = 3, pairs: int | None = None) -> CongestionGame:
        """Make the congestion game, without deflections and with the capacities of the file.

        Parameters
        ----------
        slack
            The number of roads that a trip may take beyond the fewest.
        pairs
            Keep only this many demands, the largest ones.

        Returns
        -------
        CongestionGame
            The game.
        """
        return congestion_game(
            self.topology, load=None, slack=slack, pairs=pairs, deflection=0.0, delays=self.delays, zones=self.zones
        )

    def __repr__(self) -> str:
        return f"Roads({self.topology!r}, {len(self.zones)} zones that no route passes through)"


def read_tntp(
    net: str | PathLike[str],
    trips: str | PathLike[str] | None = None,
    flow: str | PathLike[str] | None = None,
    toll_weight: float = 0.0,
    distance_weight: float = 0.0,
    buffer: float | None = None,
    unit: str = "min",
) -> Roads:
    """Read a road network in TNTP.

    Parameters
    ----------
    net, trips, flow
        The files of links, of trips and of flows. A game needs trips.
    toll_weight, distance_weight
        The time that one unit of toll, or of length, is worth.
    buffer
        The most that congestion adds to the free-flow time of a road. The default is ten times the longest free-flow
        time.
    unit
        The unit of time, for tables. TNTP files do not contain it.

    Returns
    -------
    Roads
        The network.

    Raises
    ------
    InputError
        If a file is invalid; the error names the line.

    Examples
    --------
    >>> from pathlib import Path
    >>> from advmdp.scenarios.congestion.tntp import read_tntp
    >>> head = "<NUMBER OF ZONES> 2\\n<NUMBER OF NODES> 2\\n<FIRST THRU NODE> 1\\n<NUMBER OF LINKS> 1\\n"
    >>> _ = Path("two_net.tntp").write_text(head + "<END OF METADATA>\\n1 2 10 1 5 0.15 4 ;\\n")
    >>> read_tntp("two_net.tntp")
    Roads(Topology(two: 2 nodes, 1 directed links, with capacity), 0 zones that no route passes through)
    """
    with optional:
        import networkx as nx

    weights = {name: real(value) for name, value in (("toll", toll_weight), ("distance", distance_weight))}
    for name, value in weights.items():
        if not 0.0 <= value <= LARGEST:
            raise InputError(f"{name}_weight", f"{value!r}", "a number, 0 or more")
    limit = None if buffer is None else real(buffer)
    if limit is not None and not 0.0 < limit <= LARGEST:
        raise InputError("buffer", f"{buffer!r}", "a number above 0")
    about, lines = _parts(net, "links")
    nodes = _count(net, about, "NUMBER OF NODES", MOST_NODES)
    first = _count(net, about, "FIRST THRU NODE", MOST_NODES + 1)
    links = _links(lines, nodes)
    if len(links) != (said := _count(net, about, "NUMBER OF LINKS", MOST_NODES * 10)):
        raise InputError(str(net), f"{len(links)} links", f"{said}, as <NUMBER OF LINKS> says")
    graph = nx.DiGraph()
    graph.add_nodes_from(map(str, range(1, nodes + 1)))
    for (begin, end), row in links.items():
        graph.add_edge(str(begin), str(end), length=row[3], capacity=row[2])
    if trips is not None:
        graph.graph["demands"] = _trips(trips, nodes)
    made = topology_from(graph, Path(str(net)).stem.removesuffix("_net"))
    table = np.array([links[int(made.nodes[i]), int(made.nodes[j])] for i, j in made.links])
    _, _, capacity, length, time, b, power, _, toll = table.T
    fixed = weights["toll"] * toll + weights["distance"] * length
    delays = road_delays(frozen(capacity), time, b, power, fixed, limit, unit)
    zones = tuple(str(k) for k in range(1, min(first, nodes + 1)))
    return Roads(made, delays, zones, None if flow is None else frozen(_flows(flow, made)))


def _lines(path: str | PathLike[str]) -> list[Line]:
    """The lines without empty lines and comments; comments may be in Latin-1."""
    name = str(path_of("file", path))
    try:
        raw = Path(name).read_bytes()
    except OSError as error:
        raise InputError(name, f"{error.strerror}", "a readable file") from None
    text = raw.decode("utf-8-sig", errors="replace")
    found = (Line(f"{name}, line {k + 1}", line.strip()) for k, line in enumerate(text.splitlines()))
    return [line for line in found if line.text and not line.text.startswith("~")]


def _parts(path: str | PathLike[str], what: str) -> tuple[dict[str, str], list[Line]]:
    """The metadata, and the lines after it."""
    lines = _lines(path)
    ends = [k for k, line in enumerate(lines) if line.text.upper().startswith(END)]
    if not ends:
        raise InputError(str(path), f"no line {END}", f"metadata such as <NUMBER OF ZONES> 24, then {END}, then {what}")
    about = {}
    for line in lines[: ends[0]]:
        key, closed, value = line.text.removeprefix("<").partition(">")
        if not line.text.startswith("<") or not closed:
            raise InputError(line.where, f"'{line.text[:40]}'", "metadata such as <NUMBER OF ZONES> 24")
        about[key.strip().upper()] = value.strip()
    return about, lines[ends[0] + 1 :]


def _count(path: str | PathLike[str], about: dict[str, str], key: str, most: int) -> int:
    text = about.get(key, "")
    if not (text.isascii() and text.isdecimal() and len(text) < 12 and 1 <= int(text) <= most):
        given = f"<{key}> {text[:40]}" if key in about else f"no <{key}>"
        raise InputError(str(path), given, f"a whole number from 1 to {most}")
    return int(text)


def _number(line: Line, text: str, what: str, least: float = 0.0) -> float:
    try:
        value = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        value = math.nan
    if not least <= value <= LARGEST:
        raise InputError(line.where, f"{what} '{text[:40]}'", f"a number from {least:g} to {LARGEST:g}")
    return value


def _node(line: Line, text: str, nodes: int) -> int:
    value = _number(line, text, "node")
    if value != int(value) or not 1 <= value <= nodes:
        raise InputError(line.where, f"node '{text[:40]}'", f"a whole number from 1 to {nodes}")
    return int(value)


def _links(lines: list[Line], nodes: int) -> dict[tuple[int, int], list[float]]:
    """The columns of each link, by its ends."""
    found: dict[tuple[int, int], list[float]] = {}
    for line in lines:
        cells = line.text.replace(";", " ").split()
        if not cells:
            continue
        if len(cells) < NEEDED:
            raise InputError(line.where, f"{len(cells)} columns", f"at least {', '.join(COLUMNS[:NEEDED])}")
        way = _node(line, cells[0], nodes), _node(line, cells[1], nodes)
        row = [_number(line, text, name) for name, text in zip(COLUMNS, cells, strict=False)]
        row += [0.0] * (len(COLUMNS) - len(row))
        _, _, capacity, _, _, b, power, *_ = row
        if 0.0 < power < 1.0:
            raise InputError(line.where, f"power {power:g}", "0, or 1 or more: times must be convex in the flow")
        if b == 0.0 and capacity == 0.0:
            row[2] = 1.0  # the time does not depend on it
        elif capacity < 1.0 / LARGEST:
            raise InputError(line.where, f"capacity {capacity:g}", "a number above 0, or b = 0")
        if way[0] == way[1]:
            raise InputError(line.where, f"a link from {way[0]} to itself", "links between different nodes")
        if way in found:
            raise InputError(line.where, f"a second link from {way[0]} to {way[1]}", "one link in each direction")
        found[way] = row
    return found


def _trips(path: str | PathLike[str], nodes: int) -> dict[str, dict[str, float]]:
    """Demands {origin: {destination: amount}}, without trips within a zone."""
    about, lines = _parts(path, "trips")
    _count(path, about, "NUMBER OF ZONES", MOST_ZONES)
    found: dict[str, dict[str, float]] = {}
    origin = 0
    for line in lines:
        if line.text.casefold().startswith("origin"):
            origin = _node(line, line.text[6:].strip(), nodes)
            found.setdefault(str(origin), {})
            continue
        for entry in filter(str.strip, line.text.split(";")):
            goal, colon, amount = entry.partition(":")
            if not colon or not origin:
                raise InputError(line.where, f"'{entry.strip()[:40]}'", "Origin n, then entries  destination : amount;")
            end, value = _node(line, goal.strip(), nodes), _number(line, amount.strip(), "amount")
            if str(end) in found[str(origin)]:
                raise InputError(line.where, f"a second entry from {origin} to {end}", "each pair once")
            if 0.0 < value < 1.0 / LARGEST:
                raise InputError(line.where, f"amount {value:g}", f"0, or {1.0 / LARGEST:g} or more")
            found[str(origin)][str(end)] = value
    return {a: {b: value for b, value in row.items() if a != b} for a, row in found.items()}


def _flows(path: str | PathLike[str], net: Topology) -> FloatArray:
    """The volume of each link."""
    number = {(net.nodes[i], net.nodes[j]): k for k, (i, j) in enumerate(net.links.tolist())}
    found = np.full(len(number), np.nan)
    for line in _lines(path):
        cells = line.text.replace(";", " ").replace(":", " ").split()
        if not cells or line.text.startswith("<") or not cells[0].isdecimal():
            if cells and line.text[0] != "<" and not cells[0].isalpha():
                raise InputError(line.where, f"'{line.text[:40]}'", "from, to, volume, cost")
            continue  # the header, and metadata
        if len(cells) < 3:
            raise InputError(line.where, f"{len(cells)} columns", "from, to, volume, cost")
        begin, end = (str(_node(line, text, len(net.nodes))) for text in cells[:2])
        if (begin, end) not in number:
            raise InputError(line.where, f"no link from {begin} to {end}", "links of the network")
        k = number[begin, end]
        if not np.isnan(found[k]):
            raise InputError(line.where, f"a second row from {begin} to {end}", "each link once")
        found[k] = _number(line, cells[2], "volume")
    if np.isnan(found).any():
        raise InputError(str(path), f"no row for {net.link(int(np.isnan(found).argmax()))}", "a row for each link")
    return found
