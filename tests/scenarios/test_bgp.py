"""Traffic between ASes, against walks enumerated with networkx: files, valley-free paths, the world, its costs."""

import bz2
import gzip
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import advmdp as am
from advmdp.scenarios import make_scenario
from advmdp.scenarios.network.as_graph import (
    ACROSS,
    DOWN,
    UP,
    AsGraph,
    generated_as_graph,
    provider_cycles,
    read_as_graph,
)
from advmdp.scenarios.network.bgp import LOST, Routes, generated_costs, routes
from tests.helpers import ROOT

EXAMPLE = ROOT / "examples" / "bgp.py"
SERIAL_1 = "# source: topology\n1|2|0\n1|11|-1\n2|12|-1\n11|12|0\n\n11|111|-1\n12|111|-1\n"
SERIAL_2 = "# a comment\n" + "".join(f"{line}|bgp\n" for line in SERIAL_1.splitlines()[1:] if line)
LETTERS = {UP: "u", ACROSS: "a", DOWN: "d"}


def arrows(graph: AsGraph) -> nx.DiGraph:
    """The graph by AS numbers, each arrow with the letter of its direction."""
    found = nx.DiGraph()
    for tail, head, relation in zip(graph.tail, graph.head, graph.relation, strict=True):
        found.add_edge(int(graph.numbers[tail]), int(graph.numbers[head]), way=LETTERS[int(relation)])
    return found


def walks(net: nx.DiGraph, start: int, goal: int, hops: int, shape: str = "u*a?d*") -> Iterator[list[int]]:
    """All walks of at most so many hops, spelled by their directions as ``shape`` allows, up to the goal."""
    todo = [([start], "")]
    while todo:
        walk, word = todo.pop()
        if walk[-1] == goal:
            yield walk
        elif len(word) < hops:
            onward = [([*walk, v], word + data["way"]) for v, data in net[walk[-1]].items()]
            todo += [(longer, spelled) for longer, spelled in onward if re.fullmatch(shape, spelled)]


def least(net: nx.DiGraph, start: int, goal: int, hops: int, shape: str = "u*a?d*") -> float:
    return min((len(walk) - 1 for walk in walks(net, start, goal, hops, shape)), default=np.inf)


@cache
def small(seed: int, **parameters: Any) -> Routes:
    return routes(generated_as_graph(30, seed), hops=4, seed=seed, **parameters)


def parsed(name: str) -> tuple[int, int, bool]:
    """'2 AS174 up': after two hops, at 174, may still climb."""
    step, label, way = name.split()
    return int(step), int(label[2:]), way == "up"


# Files.


@pytest.mark.parametrize("text", [SERIAL_1, SERIAL_2, SERIAL_1.replace("\n", "\r\n"), SERIAL_1 + "1|11|-1\n"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
def test_both_formats_are_read_plain_or_packed(tmp_path: Path, text: str, pack: Callable[[bytes], bytes]) -> None:
    file = tmp_path / "relations"
    file.write_bytes(pack(text.encode()))
    graph = read_as_graph(file)
    assert graph.numbers.tolist() == [1, 2, 11, 12, 111]
    assert {(u, v): data["way"] for u, v, data in arrows(graph).edges(data=True)} == {
        (1, 2): "a", (2, 1): "a", (11, 12): "a", (12, 11): "a", (11, 1): "u", (1, 11): "d", (12, 2): "u",
        (2, 12): "d", (111, 11): "u", (11, 111): "d", (111, 12): "u", (12, 111): "d",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1|2|0\n\n3|4\n", "line 3: '3|4'; expected AS|AS|relation (serial-1)"),
        ("1,2,0\n", "line 1: '1,2,0'; expected AS|AS"),
        ("1|2|0\n3|4|0|bgp\n", "line 2: 4 fields; expected 3, as in the first line"),
        ("1|2|0|bgp\n3|4|0\n", "line 2: 3 fields; expected 4"),
        ("# x\n1|AS2|0\n", "line 2: 'AS2'; expected an AS number, 1 to 4294967295"),
        ("1|-2|0\n", "line 1: '-2'"),
        ("1|4294967296|0\n", "line 1: '4294967296'"),
        ("0|2|0\n", "line 1: '0'"),
        ("1|2|\n", "line 1: relation ''; expected -1 (provider|customer) or 0 (peers)"),
        ("1|2|1\n", "line 1: relation '1', which only the older format has; there -1 means 'is customer of'"),
        ("1\t2\t-1\n3\t4\t7\n", "line 2: relation '7'; expected -1 (is customer of), 0 (peers), 1 (is provider"),
        ("1\t2\t-1\n3|4|0\n", "line 2: '3|4|0'; expected AS, AS and relation separated by tabs"),
        ("1\t2\tx\n", "line 1: relation 'x'"),
        ("1|2|-1\n1|3|7\n", "line 2: relation '7'; expected -1"),
        ("1|2|-1\n5|5|0\n", "line 2: a link from AS5 to itself; expected two ASes"),
        ("1|2|-1\n1|3|0\n2|1|-1\n", "line 3: AS2 and AS1, with another relation in line 1"),
        ("1|2|-1\n2|1|0\n", "line 2: AS2 and AS1, with another relation in line 1"),
        ("# nothing\n", "no links"),
    ],
)
def test_what_is_wrong_with_a_file_is_named_by_its_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "relations.txt"
    file.write_text(text)
    with pytest.raises(am.InputError) as caught:
        read_as_graph(file)
    assert said in str(caught.value)


def test_the_older_format_is_recognised_and_read_correctly(tmp_path: Path) -> None:
    """-1 is "customer of", 1 "provider of", 2 siblings, with tabs."""
    file, codes = tmp_path / "relations", {-1: 1, 0: 0}
    rows = [line.split("|") for line in SERIAL_1.splitlines() if line and not line.startswith("#")]
    older = "".join(f"{a}\t{b}\t{codes[int(k)]}\n" for a, b, k in rows)
    turned = "".join(f"{b}\t{a}\t{-codes[int(k)]}\n" for a, b, k in rows)
    file.write_text(SERIAL_1)
    wanted = read_as_graph(file)
    for text in (older, turned, turned.replace("\t", "  ")):
        file.write_bytes(b"# Universit\xe4t\n" + text.encode())
        graph = read_as_graph(file)
        assert all(
            np.array_equal(getattr(graph, x), getattr(wanted, x)) for x in ("numbers", "tail", "head", "relation")
        )
    file.write_text(older + "11\t2\t2\n")
    with pytest.warns(am.AdvMDPWarning, match="dropped 1 link between siblings"):
        assert np.array_equal(read_as_graph(file).head, wanted.head)
    file.write_text("11\t2\t2\n")
    with (
        pytest.warns(am.AdvMDPWarning, match="siblings"),
        pytest.raises(am.InputError, match="links between siblings only"),
    ):
        read_as_graph(file)


def test_a_graph_prints_its_size_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "small.txt"
    path.write_text("1|11|-1\n1|12|-1\n2|12|-1\n1|2|0\n")
    assert repr(read_as_graph(path)) == f"AsGraph({path}: 4 ASes, 3 links to customers, 1 between peers)"


def test_swapped_providers_and_cycles_of_providers_warn(tmp_path: Path) -> None:
    file, graph = tmp_path / "relations", generated_as_graph(200, 1)
    ends = list(zip(graph.numbers[graph.tail], graph.numbers[graph.head], graph.relation, strict=True))
    links = [(a, b, k) for a, b, k in ends if k == DOWN or (k == ACROSS and a < b)]
    file.write_text("".join(f"{a}|{b}|{-1 if k == DOWN else 0}\n" for a, b, k in links))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert provider_cycles(read_as_graph(file)) == []
    file.write_text("".join(f"{b}|{a}|{-1 if k == DOWN else 0}\n" for a, b, k in links))
    with pytest.warns(am.AdvMDPWarning, match="best-connected ASes have fewer customers .* customers swapped"):
        read_as_graph(file)
    file.write_text("1|2|-1\n2|3|-1\n3|1|-1\n3|4|-1\n")
    with pytest.warns(am.AdvMDPWarning, match="3 ASes are their own indirect providers, in a cycle; .* AS1, AS2, AS3"):
        assert provider_cycles(read_as_graph(file)) == [[1, 2, 3]]


@pytest.mark.parametrize(
    "raw",
    [b"BZh9 no archive", gzip.compress(b"1|2|0\n", mtime=0)[:-9], b"\xff\xfe\x00"],
    ids=["no bzip2", "half a gzip", "no text"],
)
def test_files_that_cannot_be_read_are_refused(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "file").write_bytes(raw)
    with pytest.raises(am.InputError, match="unreadable"):
        read_as_graph(tmp_path / "file")
    with pytest.raises(am.InputError, match="No such file"):
        read_as_graph(tmp_path / "none")


# Generated graphs.


@pytest.mark.parametrize("ases", [20, 1000, 12_000])
def test_generated_graphs_are_hierarchies_in_which_all_can_reach_all(ases: int) -> None:
    graph = generated_as_graph(ases, 3)
    net = arrows(graph)
    assert len(net) == ases
    assert net.number_of_edges() == len(graph.tail)
    assert all(net[v][u]["way"] == {"u": "d", "d": "u", "a": "a"}[data["way"]] for u, v, data in net.edges(data=True))
    up = nx.DiGraph([(u, v) for u, v, data in net.edges(data=True) if data["way"] == "u"])
    assert nx.is_directed_acyclic_graph(up)
    top = [u for u in net if u not in up or not up[u]]
    assert all(net.has_edge(a, b) for a in top for b in top if a != b)
    again, other = generated_as_graph(ases, 3), generated_as_graph(ases, 4)
    assert np.array_equal(graph.head, again.head)
    assert not np.array_equal(graph.head, other.head)


def test_networkx_is_needed_only_where_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(
        am.InputError, match=r"networkx is not installed; to install it: pip install 'advmdp\[routing\]'"
    ):
        generated_as_graph(100, 0)
    assert len(generated_as_graph(10_001, 0).numbers) == 10_001


# Valley-free ways.


@pytest.mark.parametrize("seed", range(4))
def test_distances_are_those_of_the_shortest_valley_free_walks(seed: int) -> None:
    graph = generated_as_graph(30, seed)
    net, n = arrows(graph), 30
    for goal in range(0, n, 7):
        found = graph.ways.distances(goal)
        for u in range(n):
            start, end = int(graph.numbers[u]), int(graph.numbers[goal])
            assert found[u] == least(net, start, end, 6) or (found[u] > 6 and least(net, start, end, 6) == np.inf)
            assert found[n + u] == least(net, start, end, n, "d*")


@pytest.mark.parametrize("seed", range(4))
def test_the_choices_of_a_state_are_the_allowed_neighbours_that_can_still_deliver(seed: int) -> None:
    found = small(seed)
    sk, net = found.mdp.skeleton, arrows(found.graph)
    goal = int(found.graph.numbers[found.destination])
    for x, name in enumerate(sk.state_names):
        if "AS" not in name:
            continue
        step, here, climbs = parsed(name)
        onward = {}
        for v, data in net[here].items():
            if climbs or data["way"] == "d":
                shape = "u*a?d*" if data["way"] == "u" else "d*"
                onward[f"AS{v}"] = least(net, v, goal, 3 - step, shape) <= 3 - step
        assert {label for label, able in onward.items() if able} == set(
            sk.action_names[sk.pair_ptr[x] : sk.pair_ptr[x + 1]]
        )
    first = {name for name in sk.state_names if name.startswith("0 ")}
    assert first == {f"0 AS{u} up" for u in net if u != goal and least(net, u, goal, 4) <= 4}


@pytest.mark.parametrize("seed", range(4))
def test_the_outcomes_of_a_choice_are_those_of_the_neighbour(seed: int) -> None:
    found = small(seed)
    sk, net, P = found.mdp.skeleton, arrows(found.graph), found.mdp.transition
    goal = int(found.graph.numbers[found.destination])
    taken: dict[int, set[float]] = {}
    for p in np.flatnonzero(found.pair_place >= 0):
        step, here, climbs = parsed(sk.state_names[sk.state_of_pair[p]])
        v = int(sk.action_names[p][2:])
        row = slice(sk.transition_ptr[p], sk.transition_ptr[p + 1])
        after = [sk.state_names[x] for x in sk.successor[row]]
        still = climbs and net[here][v]["way"] == "u"
        own = f"{step + 1} delivered" if v == goal else f"{step + 1} AS{v} {'up' if still else 'down'}"
        others = set(after) - {own, f"{step + 1} lost"}
        assert len(after) - len(others) == 2
        assert len(others) <= (0 if v == goal else 2)
        for name in others:
            m = goal if name.endswith("delivered") else parsed(name)[1]
            assert m != here
            assert still or net[v][m]["way"] == "d"
            assert name.endswith("delivered") or parsed(name)[2] == (net[v][m]["way"] == "u")
            if net[v][m]["way"] != "d" and len(others) == 2:  # a customer that can be reached would come first
                able = [w for w in net[v] if net[v][w]["way"] == "d" and least(net, w, goal, 30, "d*") < np.inf]
                assert len(able) <= 2 + (here in able)
        if v != goal and len(others) == 2:
            taken.setdefault(v, set()).add(round(float(P[row][after.index(f"{step + 1} lost")]), 12))
    assert taken
    assert all(len(values) == 1 for values in taken.values())  # how much an AS loses is its own, whoever sends
    assert np.allclose(np.add.reduceat(P, sk.transition_ptr[:-1]), 1.0, atol=1e-14)
    assert np.bincount(sk.successor, minlength=sk.num_states)[1:].all()


def test_an_as_deflects_to_its_customer_then_its_peer_and_loses_what_cannot_arrive(tmp_path: Path) -> None:
    file = tmp_path / "relations.txt"  # 2 has a customer 3, a peer 4 (two hops from 9) and a provider 5 with ways to 9
    file.write_text("2|1|-1\n2|8|-1\n2|3|-1\n3|9|-1\n2|4|0\n4|6|-1\n6|9|-1\n5|2|-1\n5|9|-1\n")
    found = {hops: make_scenario("bgp", file=file, destination=9, hops=hops).mdp for hops in (3, 4)}

    def row(hops: int, sender: int) -> dict[str, float]:
        """Where traffic goes that a sender hands to 2, by AS and fate."""
        sk = found[hops].skeleton
        p = sk.pair(f"0 AS{sender} up", "AS2")
        share = range(sk.transition_ptr[p], sk.transition_ptr[p + 1])
        return {sk.state_names[sk.successor[i]][2:]: float(found[hops].transition[i]) for i in share}

    usual = row(4, 1)
    assert set(usual) == {"AS2 up", "AS3 down", "AS4 down", "lost"}
    assert row(4, 8) == usual == row(3, 1)
    # Down from its provider it may go to customers only: all that it deflects goes to the one.
    below = row(4, 5)
    assert set(below) == {"AS2 down", "AS3 down", "lost"}
    assert below["AS3 down"] == pytest.approx(usual["AS3 down"] + usual["AS4 down"])
    assert below["lost"] == pytest.approx(usual["lost"])
    # To whom it came from it does not send it back.
    back = row(4, 3)
    assert set(back) == {"AS2 up", "AS4 down", "lost"}
    assert back["AS2 up"] == pytest.approx(usual["AS2 up"] + usual["AS3 down"])


def test_traffic_that_is_deflected_out_of_reach_is_lost(tmp_path: Path) -> None:
    file = tmp_path / "relations.txt"  # from 2 to 9: directly, or over its customer 4 in three hops, or 3 in two
    file.write_text("2|1|-1\n2|9|-1\n2|3|-1\n3|9|-1\n2|4|-1\n4|3|-1\n")
    lost, kept = {}, {}
    for seed in range(12):
        for hops in (2, 3, 4):
            mdp = make_scenario("bgp", file=file, source=1, destination=9, hops=hops, seed=seed).mdp
            sk = mdp.skeleton
            row = range(sk.transition_ptr[1])
            first = {sk.state_names[sk.successor[i]]: float(mdp.transition[i]) for i in row}
            lost[seed, hops], kept[seed, hops] = first["1 lost"], {name.split()[1] for name in first}
    far = [seed for seed in range(12) if "AS4" in kept[seed, 4]]
    near = [seed for seed in range(12) if "AS4" not in kept[seed, 4]]
    assert far
    assert near
    for seed in far:  # 4 is two hops from 9
        assert "AS4" in kept[seed, 3]
        assert "AS4" not in kept[seed, 2]
        assert lost[seed, 2] > lost[seed, 3] == lost[seed, 4]
    for seed in near:  # it is 9 itself, and 3, one hop from it
        assert kept[seed, 2] == {"AS2", "AS3", "delivered", "lost"}
        assert lost[seed, 2] == lost[seed, 3] == lost[seed, 4]


@pytest.mark.parametrize("seed", range(3))
def test_what_is_delivered_is_what_a_dense_markov_chain_says(seed: int) -> None:
    found = small(seed)
    mdp, sk = found.mdp, found.mdp.skeleton
    policy = found.shortest() * 0.5 + 0.5 * am.uniform_policy(sk)
    chain = np.zeros((sk.num_states, sk.num_states))
    for p, x in enumerate(sk.state_of_pair):
        for i in range(sk.transition_ptr[p], sk.transition_ptr[p + 1]):
            chain[x, sk.successor[i]] += policy[p] * mdp.transition[i]
    visits = np.linalg.matrix_power(chain, sk.num_layers - 1)[0]
    q = am.occupancy(mdp, policy)
    for fate in ("4 delivered", "4 lost"):
        pair = sk.pair(fate, "on")
        assert q[sk.transition_ptr[pair]] == pytest.approx(visits[sk.state(fate)], abs=1e-14)
        assert visits[sk.state(fate)] > 0.01
    assert visits[sk.state("4 delivered")] + visits[sk.state("4 lost")] == pytest.approx(1.0)


@pytest.mark.parametrize("seed", [1, 4, 5])  # with ways equally short through customers, peers and providers
def test_the_shortest_policy_takes_the_fewest_hops_and_customers_first(seed: int) -> None:
    found = small(seed)
    sk, net = found.mdp.skeleton, arrows(found.graph)
    goal = int(found.graph.numbers[found.destination])
    chosen = np.flatnonzero((found.shortest() == 1.0) & (found.pair_place >= 0))
    assert found.shortest().sum() == sk.num_states - 1
    for p in chosen:
        x = sk.state_of_pair[p]
        _, here, _ = parsed(sk.state_names[x])

        def rank(label: str, here: int = here) -> tuple[float, int, int]:
            v = int(label[2:])
            way = net[here][v]["way"]
            return least(net, v, goal, 4, "u*a?d*" if way == "u" else "d*"), "dau".index(way), v

        assert sk.action_names[p] == min(sk.action_names[sk.pair_ptr[x] : sk.pair_ptr[x + 1]], key=rank)


# Costs.


def costs_by_link(found: Routes, seed: int, t: int) -> dict[tuple[int, int], float]:
    """What each link costs in episode t, by its ends."""
    graph, links = found.graph, found.links
    values = LOST * generated_costs(seed, graph.relation[links])(t, t + 1)[0]
    ends = zip(graph.numbers[graph.tail[links]], graph.numbers[graph.head[links]], strict=True)
    return {(int(u), int(v)): float(c) for (u, v), c in zip(ends, values, strict=False)}


@pytest.mark.parametrize("seed", range(3))
def test_with_obedient_neighbours_the_best_policy_is_the_cheapest_valley_free_walk(seed: int) -> None:
    graph = generated_as_graph(30, seed)
    first = routes(graph, hops=5, seed=seed)
    source, goal = int(graph.numbers[first.sources[-1]]), int(graph.numbers[first.destination])
    parameters = {"ases": 30, "source": source, "destination": goal, "hops": 5, "deflect": 0.0, "lose": 0.0}
    scenario = make_scenario("bgp", seed=seed, **parameters)
    found = routes(graph, source, goal, 5, 0.0, 0.0, seed)
    for t in (0, 137):
        price = costs_by_link(found, 7, t)
        cheapest = min(sum(price[hop] for hop in pairwise(walk)) for walk in walks(arrows(graph), source, goal, 5))
        _, value = am.best_response(scenario.mdp, scenario.losses_from(7).at(t))
        assert scenario.money(value) == pytest.approx(cheapest, abs=1e-12)


def test_every_transition_costs_the_links_it_goes_along() -> None:
    found = small(2)
    sk, net = found.mdp.skeleton, arrows(found.graph)
    goal = int(found.graph.numbers[found.destination])
    scenario = make_scenario("bgp", ases=30, hops=4, seed=2)
    assert scenario.mdp == found.mdp
    loss, price, deflections = LOST * scenario.losses_from(5).at(33), costs_by_link(found, 5, 33), 0
    pair = np.repeat(np.arange(sk.num_pairs), np.diff(sk.transition_ptr))
    for i, p in enumerate(pair):
        after = sk.state_names[sk.successor[i]]
        if found.pair_place[p] < 0:
            assert loss[i] == 0.0
        elif after.endswith("lost"):
            assert loss[i] == LOST
        else:
            _, here, _ = parsed(sk.state_names[sk.state_of_pair[p]])
            v, there = int(sk.action_names[p][2:]), goal if after.endswith("delivered") else parsed(after)[1]
            way = [(here, v)] if there == v else [(here, v), (v, there)]
            deflections += len(way) - 1
            assert loss[i] == pytest.approx(sum(price[hop] for hop in way), abs=1e-12)
            assert all(net.has_edge(*hop) for hop in way)
    assert deflections > 10


@given(seed=st.integers(0, 2**40), far=st.integers(0, 10**9), order=st.permutations(range(9)))
@settings(max_examples=30)
def test_losses_are_pure_and_in_range_in_any_block(seed: int, far: int, order: list[int]) -> None:
    scenario = make_small()
    block = scenario.losses_from(seed).block(far, far + 9)
    again = scenario.losses_from(seed)
    assert all(again.at(far + t).tobytes() == block[t].tobytes() for t in order)
    assert block.min() >= 0.0
    assert block.max() <= 1.0
    assert not np.array_equal(scenario.losses_from(seed + 1).at(far), block[0])


@cache
def make_small() -> Any:
    return make_scenario("bgp", ases=25, period=4, repair=3, outages=0.3)


def test_links_are_out_for_whole_stretches_as_often_as_said() -> None:
    costs = LOST * generated_costs(1, np.full(400, DOWN, np.int8), period=10**6, outages=0.2, repair=5)(0, 100)
    out = costs[:, :400] > 2.5  # delay and congestion are at most 2 together
    assert np.array_equal(out, np.repeat(out[::5], 5, axis=0))
    assert abs(out.mean() - 0.2) < 0.02


# Parameters.


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"destination": 99}, "destination: AS99; expected one of the 5 ASes of"),
        ({"source": 99}, "source: AS99"),
        ({"source": 111}, "source: AS111, the destination itself"),
        ({"source": 1, "hops": 1}, "source: AS1, 2 hops from AS111; .* or hops=2"),
        ({"hops": 0}, "hops"),
        ({"deflect": 1.5}, "deflect"),
        ({"lose": -0.1}, "lose"),
        ({"outages": 2}, "outages"),
        ({"repair": 0}, "repair"),
        ({"period": 0}, "period"),
        ({"period": 10**20}, "period"),
        ({"repair": 10**20}, "repair"),
        ({"file": 5}, "file: 5; expected a path"),
        ({"seed": -1}, "seed"),
    ],
)
def test_wrong_parameters_are_named(tmp_path: Path, wrong: dict[str, Any], said: str) -> None:
    file = tmp_path / "relations.txt"
    file.write_text(SERIAL_1)
    with pytest.raises(am.InputError, match=said):
        make_scenario("bgp", **{"file": file, "destination": 111, **wrong})


def test_a_destination_that_cannot_be_reached_is_named(tmp_path: Path) -> None:
    file = tmp_path / "relations.txt"
    file.write_text("1|2|0\n2|3|0\n4|5|-1\n")  # from 1 to 3 there are two peer links: a valley
    with pytest.raises(am.InputError, match="source: AS1, without a valley-free path to AS3"):
        make_scenario("bgp", file=file, source=1, destination=3)
    assert make_scenario("bgp", file=file, source=2, destination=3).mdp.skeleton.action_names[0] == "AS3"
    with pytest.raises(am.InputError, match="ases: 5; expected a whole number, 20 or more"):
        make_scenario("bgp", ases=5)
    file.write_text("1|2|0\n")
    with pytest.raises(am.InputError, match="destination: none, and no AS of .* has providers but no customers"):
        make_scenario("bgp", file=file)


# Playing.


def test_twelve_thousand_ases_are_built_and_learned() -> None:
    scenario = make_scenario("bgp", ases=12_000, hops=5)
    sk = scenario.mdp.skeleton
    assert sk.layer_sizes[1] > 11_500  # nearly all ASes send
    learner = am.UCOREPS(sk, 100, eta=5.0, confidence_scale=0.1, successors="possible")
    game = am.play(scenario.mdp, scenario.losses_from(1), learner, 4)
    assert 0.0 < game.regret < 4 * sk.num_layers
    assert game.curve["projection_gap"].max() < 1e-8


def test_a_single_flow_is_learned_better_than_by_chance(tmp_path: Path) -> None:
    scenario = make_scenario("bgp", ases=200, seed=3, source=150)
    losses, T = scenario.losses_from(1), 300
    paid = {}
    for name, learner in {
        "ours": am.UCOREPS(scenario.mdp.skeleton, T, eta=3.0, confidence_scale=0.1, successors="possible"),
        "chance": am.Uniform(scenario.mdp.skeleton),
    }.items():
        paid[name] = am.play(scenario.mdp, losses, learner, T, comparator_at="end").regret
    assert paid["ours"] < 0.5 * paid["chance"]


# The example.


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, EXAMPLE, *arguments], capture_output=True, text=True, check=False)


def test_the_example_prints_its_table_and_draws_its_picture(tmp_path: Path) -> None:
    file = tmp_path / "relations.bz2"
    file.write_bytes(bz2.compress(SERIAL_2.encode()))
    out = tmp_path / "bgp.png"
    small_game = ("--episodes", "20", "--seeds", "2", "--destination", "111")
    done = run("--file", str(file), *small_game, "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert "Traffic to AS111 from 4 of 5 ASes" in done.stdout
    assert all(
        name in done.stdout
        for name in ("SelfTuning", "shortest", "last cost, pooled", "best fixed policy", "behind the best rule")
    )
    assert out.read_bytes().startswith(b"\x89PNG")
    file.write_text(SERIAL_1.replace("11|111|-1", "11|111|x"))
    done = run("--file", str(file), *small_game)
    assert done.returncode == 2
    assert "line 7: relation 'x'; expected -1 (provider|customer) or 0 (peers)" in done.stderr


def test_spaces_within_a_line_do_not_matter_and_long_numbers_are_named(tmp_path: Path) -> None:
    file = tmp_path / "rel.txt"
    file.write_text("1| 2 |-1\n2|3|-1\n")
    assert read_as_graph(file).numbers.tolist() == [1, 2, 3]
    file.write_text(f"1|2|-1\n1|{'9' * 5000}|-1\n")
    with pytest.raises(am.InputError, match="line 2: '999.*an AS number"):
        read_as_graph(file)
