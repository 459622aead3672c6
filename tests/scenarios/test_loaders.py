"""Every loader of scenarios, on a thousand mutated files or graphs each: our errors, or a valid result."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import polars as pl
import pytest

import advmdp as am
from advmdp.scenarios.battery import prices_from_csv
from advmdp.scenarios.congestion import demands_from_file
from advmdp.scenarios.congestion.tntp import read_tntp
from advmdp.scenarios.inventory import costs_from_csv
from advmdp.scenarios.network.as_graph import read_as_graph
from advmdp.scenarios.network.link_costs import costs_from_file, rates_from_file
from advmdp.scenarios.network.topology import topology_from
from tests.helpers.damage import NUMBERS, attempt, damaged, odd_frame, odd_text
from tests.scenarios.test_roads import BRAESS_FLOW, BRAESS_NET, BRAESS_TRIPS

COUNT = 1000
RING = ("north", "east", "south", "west")


def ring() -> nx.Graph:
    graph = nx.cycle_graph(RING)
    for k, (a, b) in enumerate(graph.edges):
        graph.edges[a, b].update(length=100.0 + k, capacity=5.0 + k)
    nx.set_node_attributes(graph, {name: (float(k), 50.0) for k, name in enumerate(RING)}, "pos")
    graph.graph["demands"] = {"north": {"south": 5.0, "east": 2.0}, "east": {"west": 4.0}}
    return graph


NET = topology_from(ring())
LINKS = [(NET.nodes[a], NET.nodes[b]) for a, b in NET.links]


def fuzz(path: Path, use: Callable[[], None], seed: int, count: int = COUNT) -> Counter[object]:
    """Mutate the file again and again, half of the time by its words or cells, half of the time by its bytes."""
    content, rng, found = path.read_bytes(), np.random.default_rng(seed), Counter[object]()
    odd = odd_frame if path.suffix == ".parquet" else odd_text
    for _ in range(count):
        path.write_bytes(odd(content, rng) if rng.random() < 0.5 else damaged(content, rng))
        found[attempt(use)] += 1
    path.write_bytes(content)
    use()
    return found


def inside(values: Any, low: float, high: float = np.inf) -> None:
    """Every number is finite and within the limits."""
    array = np.asarray(values)
    assert np.isfinite(array).all()
    assert (array >= low).all()
    assert (array <= high).all()


def as_table(folder: Path, kind: str, header: str, rows: list[tuple[Any, ...]]) -> Path:
    """The rows as a CSV or Parquet file."""
    path = folder / f"table.{kind}"
    if kind == "csv":
        path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows), ""]))
    else:
        pl.DataFrame(rows, schema=header.split(","), orient="row").write_parquet(path)
    return path


def prices(path: Path) -> Callable[[], None]:
    return lambda: inside(prices_from_csv(path, 3).values, -1.0, 1.0)


def filled_prices(path: Path) -> Callable[[], None]:
    return lambda: inside(prices_from_csv(path, 3, fill=True).values, -1.0, 1.0)


def unit_costs(path: Path) -> Callable[[], None]:
    def use() -> None:
        found = costs_from_csv(path)
        inside(found, 0.0)
        assert found.any()

    return use


def link_costs(path: Path) -> Callable[[], None]:
    return lambda: inside(costs_from_file(path, NET).values, 0.0, 1.0)


def rates(path: Path) -> Callable[[], None]:
    def use() -> None:
        given = np.full(len(NET.links), 0.1)
        loss, deflection = rates_from_file(path, NET, np.arange(len(NET.links)), given, given)
        inside(loss, 0.0)
        inside(deflection, 0.0)
        inside(loss + deflection, 0.0, 0.5)

    return use


def matrices(path: Path) -> Callable[[], None]:
    def use() -> None:
        found = demands_from_file(path, NET)
        inside(found, 0.0)
        assert (found.sum(axis=(1, 2)) > 0.0).all()

    return use


TABLES: dict[str, tuple[Callable[[Path], Callable[[], None]], str, list[tuple[Any, ...]]]] = {
    "prices": (prices, "day,hour,north,south", [(f"d{d}", h, 30.5 + h, 9.0 * d) for d in range(4) for h in range(3)]),
    "prices with gaps": (
        filled_prices,
        "day,hour,zone,price",
        [(f"d{d}", h, "north", 30.5 + h) for d in range(4) for h in range(3) if d != h],
    ),
    "unit costs": (unit_costs, "week,order,hold,waste,short", [(f"w{t}", 0.8, 0.1, 0.3, 2.5 + t) for t in range(6)]),
    "link costs": (
        link_costs,
        "time,from,to,delay,price",
        [(f"10:{t:02}", a, b, 0.1 * t, 0.25) for t in range(3) for a, b in LINKS],
    ),
    "failure rates": (rates, "from,to,loss,deflection", [(a, b, 0.01, 0.05) for a, b in LINKS]),
    "demands": (
        matrices,
        "time,from,to,amount",
        [(f"t{t}", a, b, 1.5 + t) for t in range(3) for a, b in (("north", "south"), ("east", "west"))],
    ),
}


PARQUET = ("link costs", "failure rates", "demands")
FILES = [(name, "csv") for name in TABLES] + [(name, "parquet") for name in PARQUET]
"""Prices and unit costs are read from CSV only."""


@pytest.mark.parametrize(("name", "kind"), FILES)
def test_a_mutated_table_is_refused_or_read(tmp_path: Path, name: str, kind: str) -> None:
    made, header, rows = TABLES[name]
    path = as_table(tmp_path, kind, header, rows)
    found = fuzz(path, made(path), len(name))
    assert found["refused"] > 300
    assert found[None] > (20 if kind == "csv" else 0)


@pytest.mark.parametrize("which", ["net", "trips", "flow"])
def test_a_mutated_road_network_is_refused_or_makes_a_game(tmp_path: Path, which: str) -> None:
    paths = {name: tmp_path / f"b_{name}.tntp" for name in ("net", "trips", "flow")}
    for name, text in zip(paths, (BRAESS_NET, BRAESS_TRIPS, BRAESS_FLOW), strict=True):
        paths[name].write_text(text)

    def use() -> None:
        found = read_tntp(**paths)
        flow = np.full(len(found.topology.links), 3.0)
        for values in (found.delays.convex(flow), found.delays.slope(flow), found.delays.free):
            assert not np.isnan(values).any()
            assert (values >= 0.0).all()
        inside(found.flow, 0.0)
        assert found.topology.demands is None or np.isfinite(found.topology.demands).all()

    with np.errstate(over="ignore"):  # b = 1e308 is a number
        found = fuzz(paths[which], use, len(which))
    assert found["refused"] > 200
    assert found[None] > 20


@pytest.mark.filterwarnings("ignore::advmdp.AdvMDPWarning")
@pytest.mark.parametrize("separator", ["|", "\t"])
def test_a_mutated_as_graph_is_refused_or_read(tmp_path: Path, separator: str) -> None:
    rows = [(a, a + 1 + a % 7, (-1, 0)[a % 2]) for a in range(1, 30)]
    path = tmp_path / "relations"
    path.write_text("# x\n" + "".join(separator.join(map(str, row)) + "\n" for row in rows))

    def use() -> None:
        graph = read_as_graph(path)
        assert len(graph.tail) == len(graph.head) > 0
        inside(graph.tail, 0, len(graph.numbers) - 1)

    found = fuzz(path, use, 7)
    assert found["refused"] > 100
    assert found[None] > 100


def mutated(graph: nx.Graph, rng: np.random.Generator) -> nx.Graph:
    """A graph with an odd attribute of a link, a node or the whole, or an odd node or link."""
    odd: Any = NUMBERS[rng.integers(len(NUMBERS))]
    edges, nodes, kind = list(graph.edges), list(graph.nodes), int(rng.integers(7))
    if kind == 0:
        graph.edges[edges[rng.integers(len(edges))]][("length", "capacity", "dist")[rng.integers(3)]] = odd
    elif kind == 1:
        graph.nodes[nodes[rng.integers(len(nodes))]]["pos"] = [odd, (odd, 1.0), (1.0,), "ab"][rng.integers(4)]
    elif kind == 2:
        graph.graph["demands"]["north"]["south"] = odd
    elif kind == 3:
        graph.graph["demands"] = [odd, {"north": odd}, {"no node": {"north": 1.0}}, {}, None][rng.integers(5)]
    elif kind == 4:
        graph.add_edge(nodes[rng.integers(len(nodes))], nodes[rng.integers(len(nodes))])
    elif kind == 5:
        graph.remove_edge(*edges[rng.integers(len(edges))])
    else:
        graph.add_node([" ", "", 5, "north ", "new", (1, 2)][rng.integers(6)])
    return graph


@pytest.mark.parametrize("directed", [False, True])
def test_a_mutated_graph_is_refused_or_makes_a_topology(directed: bool) -> None:
    rng, found = np.random.default_rng(3), Counter[object]()
    for _ in range(COUNT // 2):
        graph = ring().to_directed() if directed else ring()
        for _ in range(rng.integers(1, 3)):
            graph = attempt_mutation(graph, rng)

        def use(graph: nx.Graph = graph) -> None:
            net = topology_from(graph)
            inside(net.length, 0.0)
            assert net.capacity is None or (net.capacity > 0.0).all()
            assert net.demands is None or np.isfinite(net.demands).all()

        found[attempt(use)] += 1
    assert found["refused"] > 100
    assert found[None] > 50


def attempt_mutation(graph: nx.Graph, rng: np.random.Generator) -> nx.Graph:
    """A mutation that may not fit the last one, for example where demands are no table any more."""
    try:
        return mutated(graph, rng)
    except (TypeError, KeyError, AttributeError):
        return graph


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\x00" * 100, b"\xff\xfe", b"PAR1PAR1"])
def test_every_loader_refuses_empty_files(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "table.csv").write_bytes(content)
    (tmp_path / "table.parquet").write_bytes(content)
    for name, kind in FILES:
        with pytest.raises(am.InputError):
            TABLES[name][0](tmp_path / f"table.{kind}")()
    for k in range(3):
        paths = [tmp_path / f"{n}.tntp" for n in "abc"]
        for path, text in zip(paths, (BRAESS_NET, BRAESS_TRIPS, BRAESS_FLOW), strict=True):
            path.write_text(text)
        paths[k].write_bytes(content)
        with pytest.raises(am.InputError):
            read_tntp(*paths)
