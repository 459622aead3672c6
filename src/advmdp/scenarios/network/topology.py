"""Network topologies: nodes, directed links with lengths, and optional capacities and demands.

A :class:`Topology` is made from

    a name      in the package topohub, "group/name": ``topozoo/Abilene`` (Internet Topology Zoo),
                ``sndlib/germany50`` (SNDlib, with its demand matrix), ``backbone/africa``, ``caida/...``, and the
                synthetic ``gabriel/...``; lengths are kilometres, positions are longitude and latitude
    a graph     of networkx, directed or not; an undirected edge becomes a link in each direction

An attribute of a graph is read if all edges (or nodes) have it; if only some have it, that is an error:

    edges       ``length``, or ``dist``, or ``weight``: a finite number, 0 or more; 1 if absent
                ``capacity``: a finite number above 0; numbers are at most 1e100, capacities at least 1e-100
    nodes       the label, as text: distinct, not empty;  ``pos``: two finite numbers
    the graph   ``demands``: {node: {node: amount}}

Nodes are numbered in the order of the graph; links are sorted by (from, to).  In topohub, a node without a name is
called by its number, and nodes that share a name get their numbers added: "London (12)".  topohub has no capacities.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import LARGEST, FloatArray, frozen, is_number, real
from advmdp.core.errors import InputError
from advmdp.core.optional import optional

LENGTHS = ("length", "dist", "weight")
"""Names of the length attribute; the first one that any edge has is used."""


@dataclass(frozen=True, eq=False, repr=False)
class Topology:
    """A network of n nodes and m directed links."""

    name: str
    graph: Any
    """A frozen ``networkx.DiGraph`` over the names, each edge with its ``length`` and, where known, ``capacity``."""
    nodes: tuple[str, ...]
    positions: FloatArray | None
    """(n, 2): longitude and latitude in the topologies of topohub."""
    links: NDArray[np.int64]
    """(m, 2): from and to, by node number, ascending."""
    length: FloatArray
    """(m,), in kilometres in the topologies of topohub."""
    capacity: FloatArray | None
    """(m,)."""
    demands: FloatArray | None
    """(n, n): the amount to send from one node to another, in the units of the data source."""

    def node(self, name: str) -> int:
        """The number of a node."""
        if not isinstance(name, str) or name not in self._numbers:
            raise InputError(
                self.name, f"no node {name!r}", f"one of the nodes of {self.name}{_alike(name, self.nodes)}"
            )
        return self._numbers[name]

    def link(self, i: int) -> str:
        """'Denver -> Seattle': for messages and tables."""
        source, target = self.links[i]
        return f"{self.nodes[source]} -> {self.nodes[target]}"

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: k for k, name in enumerate(self.nodes)}

    def __repr__(self) -> str:
        known = [name for name in ("positions", "capacity", "demands") if getattr(self, name) is not None]
        extra = f", with {', '.join(known)}" if known else ""
        return f"Topology({self.name}: {len(self.nodes)} nodes, {len(self.links)} directed links{extra})"


def topology_from(source: Any, name: str = "graph") -> Topology:
    """Make a topology from a name in topohub, or from a networkx graph to be called ``name``."""
    if isinstance(source, Topology):
        return source
    if isinstance(source, str):
        return _named(source)
    networkx = _needed("networkx")
    if not isinstance(source, networkx.Graph):
        given = f"{type(source).__name__}"
        raise InputError("topology", given, "the name of a topology ('topozoo/Abilene'), or a networkx graph")
    return _checked(source, name)


@cache
def topology_names(group: str | None = None) -> tuple[str, ...]:
    """List the topologies of topohub, or of one of its groups: topozoo, sndlib, backbone, caida, gabriel."""
    data = _data()
    names = tuple(sorted(path.relative_to(data).with_suffix("").as_posix() for path in data.rglob("*.json")))
    groups = sorted({name.partition("/")[0] for name in names})
    if group is not None and group not in groups:
        raise InputError("group", f"{group!r}", f"one of {', '.join(groups)}")
    return tuple(name for name in names if group is None or name.startswith(f"{group}/"))


def _data() -> Path:
    return Path(_needed("topohub").__file__).parent / "data"


def _needed(package: str) -> Any:
    """Import a package of the extra [routing]."""
    with optional:
        return import_module(package)


@cache
def _named(name: str) -> Topology:
    names = topology_names()
    if name not in names:
        # The group may be wrong too, so compare the rest of the name on its own.
        short = {known.partition("/")[2]: known for known in names}
        hint = _alike(name, names) or _alike(name.rpartition("/")[2], short)
        raise InputError("topology", f"no topology {name!r} in topohub", f"one of topology_names(){hint}")
    # topohub.get leaves the file open and relies on the locale's encoding.
    data = json.loads((_data() / f"{name}.json").read_text(encoding="utf-8"))
    graph = _needed("networkx").DiGraph() if data["directed"] else _needed("networkx").Graph()
    called = _called(data["nodes"])
    for node in data["nodes"]:
        graph.add_node(called[str(node["id"])], pos=node["pos"])
    for edge in data["edges"]:
        graph.add_edge(called[str(edge["source"])], called[str(edge["target"])], length=edge["dist"])
    graph.graph["demands"] = {
        called[source]: {called[target]: amount for target, amount in row.items()}
        for source, row in data["graph"]["demands"].items()
    }
    return _checked(graph, name)


def _called(nodes: list[dict[str, Any]]) -> dict[str, str]:
    """Number -> distinct name."""
    wanted = {str(node["id"]): str(node.get("name") or node["id"]).strip() for node in nodes}
    often = Counter(wanted.values())
    return {key: name if often[name] == 1 else f"{name} ({key})" for key, name in wanted.items()}


def _checked(graph: Any, name: str) -> Topology:
    nodes = _labels(graph, name)
    number = {label: k for k, label in enumerate(graph.nodes)}
    edges = {}
    for source, target, values in graph.edges(data=True):
        ways = [(number[source], number[target])]
        if not graph.is_directed():
            ways.append((number[target], number[source]))
        for way in ways:
            where = f"{name}, link {nodes[way[0]]} -> {nodes[way[1]]}"
            if way[0] == way[1]:
                raise InputError(f"{name}, node {nodes[way[0]]}", "a link to itself", "links between different nodes")
            if way in edges:
                raise InputError(where, "parallel links", "one link in each direction")
            edges[way] = values
    if not edges:
        raise InputError(name, f"{len(nodes)} nodes and no link", "at least one link")
    links = sorted(edges)
    ordered = {f"{nodes[i]} -> {nodes[j]}": edges[i, j] for i, j in links}
    lengths = next((key for key in LENGTHS if any(key in values for values in ordered.values())), "length")
    length = _attribute(name, ordered, lengths, 0.0)
    capacity = _attribute(name, ordered, "capacity", 1.0 / LARGEST)
    length = np.ones(len(links)) if length is None else length
    made = _needed("networkx").DiGraph()
    made.add_nodes_from(nodes)
    for k, (i, j) in enumerate(links):
        known = {} if capacity is None else {"capacity": float(capacity[k])}
        made.add_edge(nodes[i], nodes[j], length=float(length[k]), **known)
    return Topology(
        name,
        _needed("networkx").freeze(made),
        nodes,
        _positions(name, graph, nodes),
        frozen(np.array(links, np.int64)),
        frozen(length),
        None if capacity is None else frozen(capacity),
        demand_table(name, graph.graph.get("demands"), number, nodes),
    )


def _labels(graph: Any, name: str) -> tuple[str, ...]:
    nodes = tuple(str(label) for label in graph.nodes)
    if not nodes:
        raise InputError(name, "a graph without nodes", "nodes and links")
    for label, often in Counter(nodes).items():
        if often > 1:
            given = f"{often} nodes labelled '{label}'"
            raise InputError(name, given, "labels that differ as text")
        if not label or label != label.strip():
            raise InputError(name, f"a node labelled '{label}'", "non-empty labels without surrounding spaces")
    return nodes


def _attribute(name: str, links: Mapping[str, Mapping[str, Any]], key: str, least: float) -> FloatArray | None:
    """The values of an attribute over all links, or None if no link has it."""
    if not any(key in values for values in links.values()):
        return None
    for link, values in links.items():
        value: Any = values.get(key)
        if not least <= real(value) <= LARGEST:
            given = f"{key} {value!r}" if key in values else f"no {key}, but other links have one"
            expected = "a finite number, 0 or more" if least == 0.0 else "a finite number above 0"
            raise InputError(f"{name}, link {link}", given, expected + _limits(value))
    return np.array([float(values[key]) for values in links.values()])


def _positions(name: str, graph: Any, nodes: tuple[str, ...]) -> FloatArray | None:
    given = list(graph.nodes(data="pos"))
    if all(pos is None for _, pos in given):
        return None
    for (_, pos), label in zip(given, nodes, strict=True):
        pair = list(pos) if isinstance(pos, Sequence | np.ndarray) else []
        if len(pair) != 2 or not all(abs(real(x)) <= LARGEST for x in pair):
            raise InputError(f"{name}, node {label}", f"pos {pos!r}", "two finite numbers, as other nodes have")
    return frozen(np.array([[float(x) for x in pos] for _, pos in given]))


def _limits(value: Any) -> str:
    """The limits to add to a message about a number that is finite but too large or too small."""
    return f" (from {1.0 / LARGEST:g} to {LARGEST:g})" if is_number(value) and 0 < value < math.inf else ""


def demand_table(name: str, given: Any, number: Mapping[Any, int], nodes: tuple[str, ...]) -> FloatArray | None:
    """Convert {node: {node: amount}} to an array (n, n); None if there are no demands."""
    if given is None or (isinstance(given, Mapping) and not given):
        return None
    if not isinstance(given, Mapping) or not all(isinstance(row, Mapping) for row in given.values()):
        raise InputError(f"{name}, demands", f"{type(given).__name__}", "{node: {node: amount}}")
    table = np.zeros((len(nodes), len(nodes)))
    for source, row in given.items():
        for target, amount in row.items():
            for node in (source, target):
                if node not in number:
                    raise InputError(f"{name}, demands", f"node {node!r}", "nodes of the graph")
            where = f"{name}, demand {nodes[number[source]]} -> {nodes[number[target]]}"
            if not (real(amount) == 0.0 or 1.0 / LARGEST <= real(amount) <= LARGEST):
                raise InputError(where, f"{amount!r}", f"a finite number, 0 or more{_limits(amount)}")
            if source == target:
                raise InputError(where, f"{amount!r}", "demands between different nodes")
            table[number[source], number[target]] = amount
    return frozen(table)


def _alike(name: str, known: Iterable[str] | Mapping[str, str]) -> str:
    """' (did you mean ...?)' for messages, if a known name is similar."""
    folded = {text.casefold(): text for text in known}
    near = get_close_matches(str(name).casefold(), folded, n=3, cutoff=0.6)
    shown = [known[folded[key]] if isinstance(known, Mapping) else folded[key] for key in near]
    return f" (did you mean {', '.join(shown)}?)" if shown else ""
