"""Routing against networkx and a Markov chain on the raw graph; topologies against topohub's files; invalid files."""

import json
import re
import runpy
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import polars as pl
import pytest
import topohub

import advmdp as am
from advmdp.core.streams import stream_key, uniforms
from advmdp.scenarios import make_scenario
from advmdp.scenarios.comparing import compare
from advmdp.scenarios.network.link_costs import costs_from_file
from advmdp.scenarios.network.routing import Routing, generated_costs
from advmdp.scenarios.network.topology import topology_from, topology_names
from tests.helpers import ROOT

EXAMPLE = ROOT / "examples" / "routing.py"
PAGE = ROOT / "docs" / "routing.md"
WORLDS: list[dict[str, Any]] = [
    {"topology": "topozoo/Abilene", "source": "New York", "destination": "Los Angeles", "hops": 8},
    {"topology": "sndlib/nobel-germany", "hops": 7, "deflection": 0.2, "loss": 0.1, "world": 5},
    {"topology": "backbone/africa_nosc", "source": "Cape Town", "destination": "Harare", "hops": 12},
]
worlds = pytest.mark.parametrize("parameters", WORLDS, ids=lambda parameters: parameters["topology"])


@cache
def raw(name: str) -> nx.DiGraph:
    """The file of topohub as networkx reads it, both directions, labelled by number."""
    data = json.loads((Path(topohub.__file__).parent / "data" / f"{name}.json").read_text(encoding="utf-8"))
    return nx.node_link_graph(data, edges="edges").to_directed()


# Topologies.


@pytest.mark.parametrize("name", ["topozoo/Abilene", "sndlib/germany50", "backbone/africa_nosc", "topozoo/Geant2012"])
def test_a_named_topology_is_the_file_of_topohub(name: str) -> None:
    topology, graph = topology_from(name), raw(name)
    number = {node: k for k, node in enumerate(graph.nodes)}
    lengths = {(number[a], number[b]): length for a, b, length in graph.edges(data="dist")}
    assert {
        tuple(link): length for link, length in zip(topology.links.tolist(), topology.length, strict=True)
    } == lengths
    assert [tuple(pos) for pos in topology.positions] == [tuple(pos) for _, pos in graph.nodes(data="pos")]
    assert len(set(topology.nodes)) == len(graph)
    assert topology.links.tolist() == sorted(topology.links.tolist())
    assert topology.capacity is None
    a, b = topology.links[3]
    assert topology.graph.edges[topology.nodes[a], topology.nodes[b]] == {"length": topology.length[3]}
    if name.startswith("sndlib"):
        given = graph.graph["demands"]
        sums = [sum(given.get(str(node), {}).values()) for node in graph.nodes]
        assert topology.demands.sum(axis=1).tolist() == sums
    else:
        assert topology.demands is None


def test_demands_are_where_sndlib_has_them() -> None:
    topology = topology_from("sndlib/germany50")
    demand = topology.demands[topology.node("Dortmund"), topology.node("Muenchen")]
    graph = raw("sndlib/germany50")
    numbers = {data["name"]: str(node) for node, data in graph.nodes(data=True)}
    assert demand == graph.graph["demands"][numbers["Dortmund"]][numbers["Muenchen"]] > 0


def test_repeated_and_missing_names_get_numbers() -> None:
    africa = topology_from("backbone/africa")
    unnamed = [node for node, data in raw("backbone/africa").nodes(data=True) if not data.get("name")]
    assert str(unnamed[0]) in africa.nodes
    assert africa.node(str(unnamed[0])) == list(raw("backbone/africa").nodes).index(unnamed[0])
    assert any(name.endswith(")") for name in africa.nodes)


def test_every_topology_of_the_zoo_and_of_sndlib_can_be_read() -> None:
    names = topology_names("topozoo") + topology_names("sndlib")
    assert len(names) > 200
    assert set(names) < set(topology_names())
    for name in names[::7]:
        assert topology_from(name).name == name


def test_a_graph_keeps_its_labels_directions_and_numbers() -> None:
    graph = nx.DiGraph(demands={1: {"b": 3.5}})
    graph.add_node(1, pos=(0, 1))
    graph.add_node("b", pos=(2.5, 3))
    graph.add_edge("b", 1, weight=2, capacity=10)
    graph.add_edge(1, "b", weight=4.5, capacity=20)
    topology = topology_from(graph, "own")
    assert topology.nodes == ("1", "b")
    assert topology.links.tolist() == [[0, 1], [1, 0]]
    assert topology.length.tolist() == [4.5, 2.0]
    assert topology.capacity.tolist() == [20.0, 10.0]
    assert topology.positions.tolist() == [[0.0, 1.0], [2.5, 3.0]]
    assert topology.demands.tolist() == [[0.0, 3.5], [0.0, 0.0]]
    assert repr(topology) == "Topology(own: 2 nodes, 2 directed links, with positions, capacity, demands)"
    assert topology_from(topology) is topology
    assert topology_from(nx.path_graph(3)).length.tolist() == [1.0] * 4
    with pytest.raises(nx.NetworkXError):
        topology.graph.add_node("c")
    with pytest.raises(ValueError, match="read-only"):
        topology.length[0] = 0.0


def graph_of(edges: list[tuple[Any, ...]], kind: type = nx.Graph, **attributes: Any) -> nx.Graph:
    graph = kind(**attributes)
    for a, b, *more in edges:
        graph.add_edge(a, b, **(more[0] if more else {}))
    return graph


def with_pos(graph: nx.Graph, **pos: Any) -> nx.Graph:
    nx.set_node_attributes(graph, pos, "pos")
    return graph


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (3, "topology: int; expected the name of a topology ('topozoo/Abilene'), or a networkx graph"),
        ("topozoo/Abilen", "no topology 'topozoo/Abilen' in topohub; expected one of topology_names() (did you mean"),
        ("zoo/germany50", "sndlib/germany50"),
        ("../__init__", "no topology '../__init__' in topohub"),
        (nx.Graph(), "graph: a graph without nodes"),
        (nx.empty_graph(2), "graph: 2 nodes and no link"),
        (graph_of([("a", "b"), ("b", "b")]), "graph, node b: a link to itself"),
        (graph_of([("a", "b"), ("b", "a")], nx.MultiGraph), "graph, link a -> b: parallel links"),
        (graph_of([(1, "1")]), "graph: 2 nodes labelled '1'"),
        (graph_of([("a", "")]), "graph: a node labelled ''"),
        (graph_of([("a", " b")]), "graph: a node labelled ' b'"),
        (
            graph_of([("a", "b", {"weight": float("nan")})]),
            "graph, link a -> b: weight nan; expected a finite number, 0",
        ),
        (graph_of([("a", "b", {"length": -1})]), "graph, link a -> b: length -1"),
        (graph_of([("a", "b", {"length": "far"})]), "graph, link a -> b: length 'far'"),
        (graph_of([("a", "b", {"length": 1}), ("b", "c")]), "graph, link b -> c: no length, but other links have one"),
        (graph_of([("a", "b", {"capacity": 0})]), "graph, link a -> b: capacity 0; expected a finite number above 0"),
        (with_pos(graph_of([("a", "b")]), a=(0, 0)), "graph, node b: pos None; expected two finite numbers"),
        (with_pos(graph_of([("a", "b")]), a=(0, 0), b=(0, float("inf"))), "graph, node b: pos (0, inf)"),
        (with_pos(graph_of([("a", "b")]), a=(0, 0), b=iter((0, 1))), "graph, node b: pos <tuple_iterator"),
        (with_pos(graph_of([("a", "b")]), a=(0, 0), b=(0, 10**400)), "graph, node b: pos (0, 1000"),
        (graph_of([("a", "b", {"length": 10**400})]), "graph, link a -> b: length 1000"),
        (
            graph_of([("a", "b", {"length": 1e200})]),
            "expected a finite number, 0 or more (from 1e-100 to",
        ),
        (graph_of([("a", "b", {"capacity": 1e-320})]), "expected a finite number above 0 (from 1e-100 to 1e+100)"),
        (graph_of([("a", "b")], demands={"a": {"b": 10**400}}), "graph, demand a -> b: 1000"),
        (graph_of([("a", "b")], demands=[1]), "graph, demands: list"),
        (graph_of([("a", "b")], demands={"a": {"c": 1}}), "graph, demands: node 'c'"),
        (graph_of([("a", "b")], demands={"a": {"b": -1}}), "graph, demand a -> b: -1"),
        (graph_of([("a", "b")], demands={"a": {"a": 1}}), "graph, demand a -> a: 1"),
    ],
)
def test_what_is_wrong_with_a_topology_is_named(given: Any, said: str) -> None:
    with pytest.raises(am.InputError) as caught:
        topology_from(given)
    assert said in str(caught.value)


def test_an_unknown_group_or_node_is_named() -> None:
    with pytest.raises(am.InputError, match=r"group: 'zoo'; expected one of backbone, .*topozoo"):
        topology_names("zoo")
    with pytest.raises(
        am.InputError, match=r"no node 'Chcago'; expected one of the nodes of .* \(did you mean Chicago\?\)"
    ):
        topology_from("topozoo/Abilene").node("Chcago")


@pytest.mark.parametrize("package", ["networkx", "topohub"])
def test_a_missing_package_names_the_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    topology_names.cache_clear()
    with pytest.raises(
        am.InputError, match=rf"{package} is not installed; to install it: pip install 'advmdp\[routing\]'"
    ):
        topology_from("gabriel/10/1")


# The world, told on the raw graph.


def drawn(graph: nx.DiGraph, world: int, loss: float, deflection: float) -> dict[tuple[Any, Any], tuple[float, ...]]:
    """By link: how likely it loses, how likely it deflects, and how much deflections prefer it."""
    number = {node: k for k, node in enumerate(graph.nodes)}
    links = sorted(graph.edges, key=lambda edge: (number[edge[0]], number[edge[1]]))
    rows = uniforms(stream_key(world, "routing", "links"), 0, 3, len(links)) + 0.5
    return {edge: (loss * a, deflection * b, c) for edge, a, b, c in zip(links, *rows, strict=True)}


def walked(scenario: Routing, parameters: dict[str, Any], aim: Callable[[int, Any], dict[Any, float]]) -> float:
    """The probability of delivery of a packet that goes on to the hop limit, by a chain with n + 2 states."""
    graph = raw(parameters["topology"])
    nodes = list(graph.nodes)
    source, target = (nodes[scenario.topology.node(end)] for end in (scenario.source, scenario.destination))
    chances = drawn(graph, parameters.get("world", 0), parameters.get("loss", 0.02), parameters.get("deflection", 0.1))
    at = dict.fromkeys(nodes, 0.0) | {source: 1.0}
    delivered = 0.0
    for hop in range(scenario.hops):
        then = dict.fromkeys(nodes, 0.0)
        for node, weight in at.items():
            for aimed, share in aim(hop, node).items() if weight > 0.0 else ():
                lost, turned, _ = chances[node, aimed]
                others = {w: chances[node, w][2] for w in graph.successors(node) if w != aimed}
                then[aimed] += weight * share * (1.0 - lost - (turned if others else 0.0))
                for w, preferred in others.items():
                    then[w] += weight * share * turned * preferred / sum(others.values())
        delivered += then.pop(target)
        at = then
    return delivered


@worlds
def test_the_probability_of_delivery_is_that_of_a_chain_on_the_raw_graph(parameters: dict[str, Any]) -> None:
    scenario = make_scenario("routing", **parameters)
    sk, graph = scenario.mdp.skeleton, raw(parameters["topology"])
    nodes, names = list(graph.nodes), scenario.topology.nodes
    rng = np.random.default_rng(0)
    policy = rng.random(sk.num_pairs) + 0.05
    policy /= np.add.reduceat(policy, sk.pair_ptr[:-2].astype(int))[sk.state_of_pair]

    def aim(hop: int, node: Any) -> dict[Any, float]:
        label = f"{hop} {names[nodes.index(node)]}"
        if label not in sk.state_names:  # pruned: it walks on at random, to no avail
            neighbours = list(graph.successors(node))
            return dict.fromkeys(neighbours, 1.0 / len(neighbours))
        pairs = range(sk.pair_ptr[sk.state(label)], sk.pair_ptr[sk.state(label) + 1])
        return {nodes[names.index(sk.action_names[p])]: float(policy[p]) for p in pairs}

    q = am.occupancy(scenario.mdp, policy)
    assert scenario.delivery(q) == pytest.approx(walked(scenario, parameters, aim), rel=1e-12)
    assert 0.0 < scenario.delivery(q) < 1.0


@worlds
@pytest.mark.parametrize("deflection", [0.0, 0.1])
def test_the_states_are_those_that_brute_force_finds(parameters: dict[str, Any], deflection: float) -> None:
    scenario = make_scenario("routing", **(parameters | {"deflection": deflection}))
    topology, hops = scenario.topology, scenario.hops
    step = np.zeros((len(topology.nodes),) * 2, bool)
    number = {node: k for k, node in enumerate(raw(topology.name).nodes)}
    for a, b in raw(topology.name).edges:
        step[number[a], number[b]] = True
    source, target = topology.node(scenario.source), topology.node(scenario.destination)
    ahead = [np.eye(len(step), dtype=bool)[target]]  # from where the destination is at most so many hops away
    for _ in range(hops):
        ahead.append(ahead[-1] | (step & ahead[-1]).any(axis=1))
    reached = np.eye(len(step), dtype=bool)[source]
    for hop in range(hops + 1):
        found = {f"{hop} {topology.nodes[v]}" for v in np.flatnonzero(reached & ahead[hops - hop]) if v != target}
        layer = scenario.mdp.skeleton.state_names[slice(*scenario.mdp.skeleton.layer_ptr[hop : hop + 2])]
        assert set(layer) - {f"{hop} delivered", f"{hop} lost"} == found
        for label in found:
            x = scenario.mdp.skeleton.state(label)
            node = topology.node(label.split(" ", 1)[1])
            actions = scenario.mdp.skeleton.action_names[slice(*scenario.mdp.skeleton.pair_ptr[x : x + 2])]
            assert {topology.node(a) for a in actions} == set(np.flatnonzero(step[node] & ahead[hops - hop - 1]))
        reached[target] = False
        reached = step[reached].any(axis=0)


@worlds
def test_without_accidents_the_best_policy_is_the_shortest_way_within_the_hops(parameters: dict[str, Any]) -> None:
    scenario = make_scenario("routing", **(parameters | {"deflection": 0.0, "loss": 0.0}), objective="price")
    topology, t = scenario.topology, 17
    price = generated_costs(topology, 3)(t, t + 1)[0, :, 2]
    layered = nx.DiGraph()
    for hop in range(scenario.hops):
        for k, (a, b) in enumerate(topology.links.tolist()):
            layered.add_edge((hop, a), (hop + 1, b), cost=price[k])
    for hop in range(scenario.hops + 1):
        layered.add_edge((hop, topology.node(scenario.destination)), "there", cost=0.0)
    shortest = nx.dijkstra_path_length(layered, (0, topology.node(scenario.source)), "there", weight="cost")
    _, value = am.best_response(scenario.mdp, scenario.losses_from(3).at(t))
    assert scenario.money(value) == pytest.approx(shortest, rel=1e-12)


@pytest.mark.parametrize("hops", [4, 5, 7, 10])
def test_more_hops_allow_more_simple_paths(hops: int) -> None:
    parameters = WORLDS[0] | {"hops": hops, "deflection": 0.0, "loss": 0.0, "objective": "congestion"}
    scenario = make_scenario("routing", **parameters)
    topology, t = scenario.topology, 4
    costs = generated_costs(topology, 8)(t, t + 1)[0, :, 1]
    of = {topology.link(k): costs[k] for k in range(len(topology.links))}
    paths = nx.all_simple_paths(topology.graph, "New York", "Los Angeles", cutoff=hops)
    least = min(sum(of[f"{a} -> {b}"] for a, b in pairwise(path)) for path in paths)
    _, value = am.best_response(scenario.mdp, scenario.losses_from(8).at(t))
    assert scenario.money(value) == pytest.approx(least, rel=1e-12)


def test_a_path_pays_for_its_links_and_a_lost_packet_more_than_any_delivery() -> None:
    scenario = make_scenario("routing", **(WORLDS[0] | {"loss": 0.15}))
    sk, topology = scenario.mdp.skeleton, scenario.topology
    costs, losses = generated_costs(topology, 1), scenario.losses_from(1)
    rng = np.random.default_rng(2)
    seen = {"delivered": 0.0, "lost": np.inf}
    number = {(topology.nodes[a], topology.nodes[b]): k for k, (a, b) in enumerate(topology.links.tolist())}
    for t in range(300):
        path = scenario.mdp.sample(am.uniform_policy(sk), rng)
        places = [sk.state_label(x).split(" ", 1)[-1] for x in path.states[:-1]]
        end = places[-1]
        visited = [place for place in places if place not in ("delivered", "lost")]
        visited += ["Los Angeles"] if end == "delivered" else []
        paid = sum((costs(t, t + 1)[0, number[way]] for way in pairwise(visited)), np.zeros(3))
        paid = paid + 8.0 * (end == "lost")
        total = losses.at(t)[path.transitions].sum(axis=0)
        assert scenario.money(1.0) * total == pytest.approx(paid, abs=1e-12)
        worse = max if end == "delivered" else min
        seen[end] = worse(seen[end], *paid)
    assert 0.0 < seen["delivered"] <= 8.0 <= seen["lost"] < np.inf


def test_accidents_are_as_likely_as_they_should_be() -> None:
    graph = nx.star_graph(["hub", "a", "b", "c"])
    scenario = make_scenario("routing", topology=graph, source="a", destination="c", hops=4, world=9)
    sk = scenario.mdp.skeleton
    chances = drawn(graph.to_directed(), 9, 0.02, 0.1)
    alone = sk.pair("0 a", "hub")  # there is no other neighbour to be deflected to
    assert scenario.mdp.transition[slice(*sk.transition_ptr[alone : alone + 2])].min() == chances["a", "hub"][0]
    p = sk.pair("1 hub", "c")
    row = slice(*sk.transition_ptr[p : p + 2])
    found = {sk.state_label(x): v for x, v in zip(sk.successor[row], scenario.mdp.transition[row], strict=True)}
    lost, turned, _ = chances["hub", "c"]
    share = chances["hub", "a"][2] / (chances["hub", "a"][2] + chances["hub", "b"][2])
    told = {"2 delivered": 1 - lost - turned, "2 lost": lost, "2 a": turned * share, "2 b": turned * (1 - share)}
    assert found == pytest.approx(told)
    last = sk.pair("3 hub", "c")  # a deflection comes too late here, and is a loss
    row = slice(*sk.transition_ptr[last : last + 2])
    found = {sk.state_label(x): v for x, v in zip(sk.successor[row], scenario.mdp.transition[row], strict=True)}
    assert found == pytest.approx({"4 delivered": 1 - lost - turned, "4 lost": lost + turned})


def test_arrival_is_at_least_as_likely_as_not() -> None:
    scenario = make_scenario("routing", topology="sndlib/polska", deflection=0.2, loss=0.13)
    sk = scenario.mdp.skeleton
    for p, aimed in enumerate(sk.action_names):
        hop, _, place = sk.pair_label(p).partition("/")[0].partition(" ")
        if place not in ("delivered", "lost") and aimed != "end":
            there = "delivered" if aimed == scenario.destination else aimed
            row = slice(*sk.transition_ptr[p : p + 2])
            arrive = sk.state(f"{int(hop) + 1} {there}")
            assert scenario.mdp.transition[row][sk.successor[row] == arrive].item() >= 0.5


def test_the_flow_counts_links_and_loses_nothing() -> None:
    scenario = make_scenario("routing", **WORLDS[0])
    q = am.occupancy(scenario.mdp, am.uniform_policy(scenario.mdp.skeleton))
    flow, topology = scenario.flow(q), scenario.topology
    into = flow[topology.links[:, 1] == topology.node("Los Angeles")].sum()
    assert into == pytest.approx(scenario.delivery(q))
    assert flow[topology.links[:, 0] == topology.node("Los Angeles")].sum() == 0.0
    assert (flow >= 0.0).all()


# Objectives and units.


def test_omitted_parameters_have_sensible_values() -> None:
    scenario = make_scenario("routing")
    lengths = dict(nx.all_pairs_shortest_path_length(scenario.topology.graph))
    apart = lengths[scenario.source][scenario.destination]
    assert apart == nx.diameter(scenario.topology.graph)
    assert scenario.hops == apart + 2
    assert scenario.criterion == am.WorstCase()
    assert scenario.losses_from(0).dimensions == 3
    assert scenario.scale == scenario.hops
    one = make_scenario("routing", source="Denver")
    assert lengths["Denver"][one.destination] == max(lengths["Denver"].values())
    other = make_scenario("routing", destination="Denver")
    assert lengths[other.source]["Denver"] == max(lengths["Denver"].values())


def test_objectives_and_weights_choose_among_the_three() -> None:
    three = make_scenario("routing", **WORLDS[0]).losses_from(2).block(0, 5)
    for j, kind in enumerate(("delay", "congestion", "price")):
        one = make_scenario("routing", **WORLDS[0], objective=kind)
        assert one.criterion == am.TotalLoss()
        assert one.losses_from(2).block(0, 5).tolist() == three[:, :, j].tolist()
    mixed = make_scenario("routing", **WORLDS[0], weights=[2, 1, 1])
    assert np.allclose(mixed.losses_from(2).block(0, 5), three @ [0.5, 0.25, 0.25])
    assert mixed.criterion == am.TotalLoss()


def test_a_delay_is_in_milliseconds() -> None:
    quiet = nx.Graph()
    quiet.add_edge("a", "b", length=600.0)
    quiet.add_edge("b", "c", length=1200.0)
    scenario = make_scenario(
        "routing", topology=quiet, source="a", destination="c", hops=2, loss=0.0, objective="delay"
    )
    _, value = am.best_response(scenario.mdp, scenario.losses_from(0).at(50))
    queue = uniforms(stream_key(0, "routing", "queues"), 1, 1, 4)[0]  # knots lie every 50 episodes
    # 1,800 km of fibre take 9 ms; a queue takes up to 0.4 of the longest link's 6 ms / 0.6.
    turned = drawn(quiet.to_directed(), 0, 0.0, 0.1)["b", "c"][1]
    delivered = 9.0 + 4.0 * (queue[0] + queue[2])
    lost = 3.0 + 4.0 * queue[0] + 2 * 10.0
    assert scenario.money(value) == pytest.approx((1 - turned) * delivered + turned * lost)


def test_uc_o_reps_learns_each_criterion() -> None:
    for options in ({"objective": "worst"}, {"objective": "delay"}, {"weights": (1, 1, 1)}):
        scenario = make_scenario("routing", **WORLDS[0], **options)
        sk, T = scenario.mdp.skeleton, 800
        learner = am.UCOREPS(sk, T, criterion=scenario.criterion, eta=100 * am.bounds.eta(sk, T), confidence_scale=0.1)
        game = am.play(scenario.mdp, scenario.losses_from(1), learner, T, seed=1, comparator_at="end")
        at_random = am.occupancy(scenario.mdp, am.uniform_policy(sk))
        assert scenario.delivery(game.comparator.q) > 0.88 > scenario.delivery(at_random) + 0.2
        assert scenario.delivery(am.occupancy(scenario.mdp, learner.policy)) > 0.85
    risk = am.Risk(alpha=0.0, c=2.0)
    learner = am.UCOREPS(sk, 50, criterion=risk)
    assert am.play(scenario.mdp, scenario.losses_from(1), learner, 50, comparator_at="end").regret > 0.0


# The generator.


def test_costs_follow_their_description() -> None:
    topology = topology_from("topozoo/Abilene")
    costs = generated_costs(topology, 4, period=20, day=40, bursts=0.0)(0, 800)
    assert costs.min() >= 0.0
    assert costs.max() <= 1.0
    delay, congestion, price = np.moveaxis(costs, 2, 0)
    floor = 0.6 * topology.length / topology.length.max()
    assert (delay >= floor).all()
    assert (delay <= floor + 0.4).all()
    assert (np.abs(np.diff(delay, axis=0)) <= 0.4 * 1.5 / 20).all()
    assert np.allclose(congestion[40:], congestion[:-40])  # one day is like another
    assert ((congestion.max(axis=0) > 0.29) & (congestion.max(axis=0) <= 0.6)).all()
    assert np.ptp(congestion.max(axis=0)) > 0.2  # each to its own height
    assert np.allclose(congestion.min(axis=0), 0.2 * congestion.max(axis=0), rtol=0.05)
    jumps = np.diff(price, axis=0) != 0.0
    assert (jumps.sum(axis=0) >= 38).all()
    assert all(len({int(t) % 20 for t in np.flatnonzero(column)}) == 1 for column in jumps.T)  # each at its own time
    assert len({int(np.flatnonzero(column)[0]) for column in jumps.T}) > 5
    assert 0.1 <= price.min() < 0.15
    bursting = generated_costs(topology, 4, period=20, day=40, bursts=0.3)(0, 800)[:, :, 1]
    assert ((bursting - congestion) > 0.39).mean() == pytest.approx(0.3, abs=0.02)


def test_an_episode_has_the_same_bytes_alone_and_in_a_block_over_days_and_periods() -> None:
    costs = generated_costs(topology_from("topozoo/Abilene"), 89, period=50, day=100, rivals="alternate")
    block = costs(71, 351)
    assert all(costs(t, t + 1).tobytes() == block[t - 71].tobytes() for t in range(71, 351))


def test_rivals_that_alternate_are_on_one_half_of_the_links_and_then_on_the_other() -> None:
    topology = topology_from("sndlib/germany50")
    delay = generated_costs(topology, 4, rivals="alternate", strength=1.0)(0, 6)[:, :, 0]
    queue = (delay - 0.6 * topology.length / topology.length.max()) / 0.4
    assert np.allclose(queue, np.round(queue))
    assert np.allclose(queue[::2], queue[0])
    assert np.allclose(queue[1::2], 1.0 - queue[0])
    assert 0.3 < queue[0].mean() < 0.7
    calm, pressed = (generated_costs(topology, 4, rivals=rivals, strength=0.25)(7, 8) for rivals in (None, "alternate"))
    assert np.array_equal(calm[:, :, 2], pressed[:, :, 2])


def test_rivals_that_answer_use_our_last_links() -> None:
    scenario = make_scenario("routing", **WORLDS[0], rivals="answer", strength=0.5, objective="delay")
    calm = make_scenario("routing", **WORLDS[0], objective="delay")
    sk, losses = scenario.mdp.skeleton, scenario.losses_from(3)
    policy = am.deterministic_policy(sk, [int(n) - 1 for n in np.diff(sk.pair_ptr)[:-1]])
    flow = np.minimum(1.0, scenario.flow(am.occupancy(scenario.mdp, policy)))
    assert flow.max() > 0.8
    used = scenario.link >= 0
    length = 0.6 * (scenario.topology.length / scenario.topology.length.max())[scenario.link[used]]
    before = calm.losses_from(3).at(6)[used] * 8.0 - length
    after = losses.at(6, {5: policy})[used] * 8.0 - length
    assert np.allclose(after, 0.5 * before + 0.5 * 0.4 * flow[scenario.link[used]])
    assert losses.at(6, {5: policy})[~used].tolist() == calm.losses_from(3).at(6)[~used].tolist()
    assert losses.block(6, 8, {5: policy, 6: am.uniform_policy(sk)})[0].tobytes() == losses.at(6, {5: policy}).tobytes()
    assert losses.block(6, 6).shape == (0, sk.num_transitions)
    with pytest.raises(am.InputError, match="policies: nothing for episode 5"):
        losses.at(6, {})
    with pytest.raises(am.InputError, match="policies: nothing for episode 5"):
        losses.at(6)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            {"source": "Boston"},
            "topozoo/Abilene: no node 'Boston'; expected one of the nodes of topozoo/Abilene (did you mean Houston?)",
        ),
        ({"file": 5}, "file: 5; expected a path"),
        ({"period": 10**20}, "period"),
        ({"day": 10**20}, "day"),
        (
            {"destination": "New York"},
            "topozoo/Abilene: source and destination New York; expected two different connected nodes",
        ),
        ({"hops": 3}, "hops: 3; expected 4 or more: New York to Los Angeles takes 4"),
        ({"hops": 0}, "hops: 0; expected a whole number"),
        ({"hops": 10**9}, "hops: 1000000000; expected a whole number, 1 to 10000"),
        ({"objective": np.array([1, 2])}, "objective: array([1, 2]); expected one of worst"),
        ({"rivals": np.array([1, 2])}, "rivals: array([1, 2]); expected 'alternate'"),
        ({"penalty": np.complex128(1)}, "penalty: np.complex128(1+0j); expected a number above 0"),
        ({"deflection": 0.3, "loss": 0.1}, "deflection and loss: 0.3 and 0.1; expected a sum of at most 1/3"),
        ({"deflection": -0.1}, "deflection: -0.1"),
        ({"loss": 2}, "loss: 2; expected a number from 0 to 1"),
        ({"world": -1}, "seed: -1"),
        ({"penalty": 0.5}, "penalty: 0.5; expected a number, 1 or more"),
        ({"objective": "speed"}, "objective: 'speed'; expected one of worst, delay, congestion, price"),
        ({"weights": [1, 1]}, "weights: [1, 1]; expected numbers of 0 or more for delay, congestion, price"),
        ({"weights": [0, 0, 0]}, "weights: [0, 0, 0]"),
        (
            {"weights": [1, 1, 1], "objective": "delay"},
            "weights: with objective 'delay'; expected weights or an objective, not both",
        ),
        ({"period": 0}, "period: 0"),
        ({"day": 0}, "day: 0"),
        ({"bursts": 1.5}, "bursts: 1.5"),
        ({"rivals": "nobody"}, "rivals: 'nobody'; expected 'alternate', 'answer' or none"),
        ({"rivals": "answer", "strength": 2}, "strength: 2"),
        ({"scale": 2.0}, "scale: 2.0; expected a file too, or no scale"),
    ],
)
def test_wrong_parameters_are_named(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(am.InputError) as caught:
        make_scenario("routing", **(WORLDS[0] | wrong))
    assert said in str(caught.value)


def test_destinations_that_cannot_be_reached_are_named() -> None:
    graph = graph_of([("a", "b"), ("b", "c"), ("d", "c")], nx.DiGraph)
    with pytest.raises(am.InputError, match="graph: no path from a to d; expected a reachable destination"):
        make_scenario("routing", topology=graph, source="a", destination="d")
    with pytest.raises(am.InputError, match="graph: no path from c to another node"):
        make_scenario("routing", topology=graph, source="c")
    with pytest.raises(am.InputError, match="graph: no path from another node to a"):
        make_scenario("routing", topology=graph, destination="a")
    assert make_scenario("routing", topology=graph).source == "a"
    with pytest.raises(am.InputError, match="graph, node lost: a reserved name"):
        make_scenario("routing", topology=graph_of([("a", "lost")]))


def test_in_a_disconnected_graph_the_default_ends_are_the_farthest_connected_pair() -> None:
    graph = graph_of([("a", "b"), ("c", "d"), ("d", "e")])
    found = make_scenario("routing", topology=graph)
    assert (found.source, found.destination) == ("c", "e")
    assert make_scenario("routing", topology=graph, source="a").destination == "b"


# Files of the user's own.

TRIANGLE = graph_of([("a", "b"), ("b", "c"), ("a", "c")])
GOOD = "time,from,to,delay\n" + "".join(
    f"10:0{t},{a},{b},0.{t}{k}\n" for t in (0, 1) for k, (a, b) in enumerate(["ab", "ac", "bc", "ba"])
)


def triangle(**options: Any) -> Routing:
    return make_scenario("routing", topology=TRIANGLE, source="a", destination="c", hops=3, **options)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_recorded_costs_come_back_and_are_what_is_paid(tmp_path: Path, kind: str) -> None:
    topology = topology_from("topozoo/Abilene")
    rng = np.random.default_rng(0)
    values = rng.random((6, 28, 3)) * [80.0, 1.0, 5.0]
    rows = []
    days = [3, 0, 5, 1, 4, 2]  # which come in no order that a sort would give
    for t in range(6):
        for k in rng.permutation(28).tolist():
            a, b = (topology.nodes[v] for v in topology.links[k])
            costs = dict(zip(("delay", "congestion", "price"), values[t, k].tolist(), strict=True))
            rows.append({"to": b, "time": f"day {days[t]}", "from": a} | costs)
    file = tmp_path / f"links.{kind}"
    getattr(pl.DataFrame(rows), f"write_{kind}")(file)
    scale = {"delay": 80.0, "price": 5.0}
    found = costs_from_file(file, topology, scale=scale)
    assert found.times == tuple(f"day {day}" for day in days)
    assert found.kinds == ("delay", "congestion", "price")
    assert np.allclose(found.values * [80.0, 1.0, 5.0], values, rtol=1e-15)
    options = WORLDS[0] | {"deflection": 0.0, "loss": 0.0, "file": str(file), "scale": scale}
    scenario = make_scenario("routing", **options, objective="delay")
    assert scenario.episodes == scenario.losses_from(0).episodes == 6
    for t in range(6):
        graph = nx.DiGraph()
        for k, (a, b) in enumerate(topology.links.tolist()):
            graph.add_edge(topology.nodes[a], topology.nodes[b], cost=values[t, k, 0])
        paths = nx.all_simple_paths(graph, "New York", "Los Angeles", cutoff=8)
        least = min(nx.path_weight(graph, path, "cost") for path in paths)
        _, value = am.best_response(scenario.mdp, scenario.losses_from(t).at(t))
        assert scenario.money(value) == pytest.approx(least, rel=1e-12)
    assert make_scenario("routing", **options).losses_from(0).dimensions == 3


def test_a_file_with_one_kind_of_cost_has_one_loss(tmp_path: Path) -> None:
    file = tmp_path / "links.csv"
    file.write_text(GOOD)
    scenario = triangle(file=file)  # no row for c -> b, c -> a: no packet goes there
    assert scenario.criterion == am.TotalLoss()
    assert scenario.losses_from(0).block(0, 2).tobytes() == scenario.losses_from(9).block(0, 2).tobytes()
    with pytest.raises(am.InputError, match="objective: 'price'; expected one of worst, delay"):
        triangle(file=file, objective="price")
    with pytest.raises(am.InputError, match=r"no row for c -> a at time 10:00; expected every link"):
        costs_from_file(file, scenario.topology)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ": an empty file; expected a header line"),
        ("time,from,to,delay\n", ": a header line and no rows"),
        (GOOD.replace("time,", "when,"), ", line 1: no column 'time' among when, from, to, delay"),
        (GOOD.replace("from,", "here,"), ", line 1: no column 'from'"),
        (GOOD.replace("to,", "there,"), ", line 1: no column 'to'"),
        (GOOD.replace("delay", "dleay"), ", line 1: column 'dleay'; expected time, from, to, delay, congestion, price"),
        ("time,from,to\n1,a,b\n", ", line 1: no cost column; expected at least one of delay, congestion, price"),
        (GOOD.replace("0.12", "1.2"), ", line 8, column delay: '1.2'; expected a number from 0 to 1"),
        (GOOD.replace("0.12", "-0.1"), ", line 8, column delay: '-0.1'; expected a number from 0 to 1"),
        (GOOD.replace("0.12", "nan"), ", line 8, column delay: 'nan'"),
        (GOOD.replace("0.12", ""), ", line 8, column delay: nothing"),
        (GOOD.replace("10:01,b,c", ",b,c"), ", line 8, column time: nothing; expected a time"),
        (
            GOOD.replace("10:01,b,c", "10:01,x,c"),
            ", line 8, column from: no node 'x'; expected one of the nodes of graph",
        ),
        (GOOD.replace("10:01,b,c", "10:01,b,b"), ", line 8: no link b -> b in graph; expected links of the topology"),
        (
            GOOD.replace("10:01,b,c", "10:01,a,b"),
            ", line 8: a second row for a -> b at time 10:01; expected one row for each link",
        ),
        (
            GOOD.replace("10:01,b,c", "10:00,c,b"),
            ": no row for b -> c at time 10:01; expected every link that the flow",
        ),
        (GOOD + "10:02,a\n", ", line 10: 2 cells; expected 4"),
    ],
)
def test_faults_in_a_file_of_costs_are_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "links.csv"
    file.write_text(text)
    with pytest.raises(am.InputError) as caught:
        triangle(file=file)
    assert str(caught.value).startswith(f"{file}{said}")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"delay": [0.1, None]}, ", row 1, column delay: nothing; expected a number from 0 to 1"),
        ({"delay": [0.1, 7.0]}, ", row 1, column delay: '7.0'"),
        ({"from": ["a", "z"]}, ", row 1, column from: no node 'z'"),
        ({"to": ["b", "b"]}, ", row 1: a second row for a -> b at time 0"),
        ({"speed": [1, 1]}, ", columns: column 'speed'"),
    ],
)
def test_faults_in_a_parquet_file_are_named_by_row(tmp_path: Path, change: dict[str, list[Any]], said: str) -> None:
    file = tmp_path / "links.parquet"
    columns: dict[str, list[Any]] = {"time": [0, 0], "from": ["a", "a"], "to": ["b", "c"], "delay": [0.1, 0.2]}
    pl.DataFrame(columns | change).write_parquet(file)
    with pytest.raises(am.InputError) as caught:
        triangle(file=file)
    assert str(caught.value).startswith(f"{file}{said}")


def test_invalid_files_and_scales_are_named(tmp_path: Path) -> None:
    for name in ("none.csv", "none.parquet"):
        with pytest.raises(am.InputError, match=name):
            triangle(file=tmp_path / name)
    (tmp_path / "text.parquet").write_text(GOOD)
    with pytest.raises(am.InputError, match=r"text\.parquet: unreadable"):
        triangle(file=tmp_path / "text.parquet")
    pl.read_csv(GOOD.encode()).write_parquet(tmp_path / "whole.parquet")
    whole, random = (tmp_path / "whole.parquet").read_bytes(), np.random.default_rng(0)
    for _ in range(60):  # some of these make Polars panic, which is no Exception
        damaged = np.frombuffer(whole, np.uint8).copy()
        damaged[random.integers(len(whole), size=3)] = random.integers(256, size=3)
        (tmp_path / "damaged.parquet").write_bytes(damaged.tobytes())
        with suppress(am.InputError):
            triangle(file=tmp_path / "damaged.parquet")
    pl.DataFrame({"time": []}).write_parquet(tmp_path / "empty.parquet")
    with pytest.raises(am.InputError, match=r"empty\.parquet: no rows"):
        triangle(file=tmp_path / "empty.parquet")
    (tmp_path / "links.csv").write_text(GOOD)
    with pytest.raises(am.InputError, match="scale: 'price'; expected one of the cost columns: delay"):
        triangle(file=tmp_path / "links.csv", scale={"price": 2.0})
    with pytest.raises(am.InputError, match="scale of delay: -2"):
        triangle(file=tmp_path / "links.csv", scale={"delay": -2})
    with pytest.raises(am.InputError, match="column delay: '0.11'; expected a number from 0 to 0.1"):
        triangle(file=tmp_path / "links.csv", scale=0.1)


# The example and its page.


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> None:
    """The script's ``main``, here and not in a process of its own: half of the time would go into imports."""
    line = ["routing.py", "--episodes", "20", "--seeds", "1", *map(str, arguments)]
    monkeypatch.setattr(sys, "argv", line)
    monkeypatch.setenv("COLUMNS", "150")
    runpy.run_path(str(EXAMPLE), run_name="__main__")


def test_the_example_prints_its_table_and_draws_its_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    way = ("--topology", "sndlib/polska", "--source", "Gdansk", "--destination", "Krakow", "--hops")
    run(monkeypatch, *way, "4", "--out", tmp_path / "flow.png")
    printed = capsys.readouterr().out
    assert "Cost per episode, in ms for delays: 1 seeds of 20 episodes" in printed
    assert "Gdansk to Krakow, sndlib/polska, 4 hops, delay" in printed
    assert all(world in printed for world in ("links obey", "links fail", "rivals alternate", "rivals answer"))
    assert "nan" not in printed
    assert "±" not in printed
    assert (tmp_path / "flow.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(SystemExit, match="2"):
        run(monkeypatch, *way, "1")
    assert "hops: 1; expected 2 or more: Gdansk to Krakow takes 2" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["sndlib/germany50", "topozoo/Aarnet"])
def test_the_picture_names_both_ends_and_no_name_covers_another(name: str) -> None:
    example = runpy.run_path(str(EXAMPLE))  # in Aarnet linked nodes share a place
    scenario = make_scenario("routing", topology=name, objective="delay")
    flow = scenario.flow(am.occupancy(scenario.mdp, am.uniform_policy(scenario.mdp.skeleton)))
    drawn, ax = plt.subplots(figsize=(4, 5))
    example["draw"](ax, scenario, flow)
    drawn.draw_without_rendering()
    example["label"](ax, scenario, flow)
    named = {text.get_text(): text.get_window_extent() for text in ax.texts if text.get_text()}
    plt.close(drawn)
    assert {scenario.source, scenario.destination} < set(named)
    assert not any(a.overlaps(b) for a, b in combinations(named.values(), 2))


def test_the_example_takes_a_file_and_the_worst_of_its_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    topology = topology_from("sndlib/polska")
    lines = ["time,from,to,delay,price"]
    for t in range(12):
        for k, (a, b) in enumerate(topology.links):
            lines.append(f"{t},{topology.nodes[a]},{topology.nodes[b]},0.{(t + k) % 10},0.{(t * k) % 10}")
    file = tmp_path / "links.csv"
    file.write_text("\n".join(lines))
    run(monkeypatch, "--topology", "sndlib/polska", "--csv", file, "--objective", "worst")
    printed = capsys.readouterr().out
    assert "1 seeds of 12 episodes" in printed
    assert "your costs" in printed
    file.write_text("\n".join(lines).replace("11,Gdansk,Kolobrzeg", "11,Gdansk,Gdansk"))
    with pytest.raises(SystemExit, match="2"):
        run(monkeypatch, "--topology", "sndlib/polska", "--csv", file)
    assert ": no link Gdansk -> Gdansk in sndlib/polska" in capsys.readouterr().err


def test_the_page_says_who_wins_where() -> None:
    example = runpy.run_path(str(EXAMPLE))
    way = {"topology": "sndlib/germany50", "source": "Hamburg", "destination": "Muenchen"}
    found = example["worlds"](None, **way, objective="delay")
    del found["rivals answer"]  # which takes longest, and says no more
    compared = compare(found, example["learners"], 300, [1])
    regret = {key: float(values[0]) for key, values in compared.regret.items()}
    assert regret["ReplayLast", "links obey"] < 0.0 < regret[example["TUNED"], "links obey"]
    for world in ("links fail", "rivals alternate"):
        assert regret[example["TUNED"], world] < 0.5 * min(
            regret[name, world] for name in ("Uniform", "FollowLeader", "ReplayLast", "UC-O-REPS, theory")
        )
    told = "ReplayLast, told how often links fail"
    assert regret[told, "links fail"] < 0.0
    assert regret[told, "rivals alternate"] > 0.3
    paid = {key: float(values[0]) for key, values in compared.paid.items()}
    for world in found:
        assert paid["SelfTuning", world] < min(paid["Uniform", world], paid["ReplayLast", world] + 0.1)
    assert paid["last delay, pooled", "links fail"] < 0.9 * paid["ReplayLast", "links fail"]


def test_the_page_shows_what_its_code_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    text = PAGE.read_text()
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL)[:2]:
        exec(compile(code, PAGE.name, "exec"), names)
    rows = re.findall(r"\d\.\d\d(?: \| \d\.\d\d){4}", capsys.readouterr().out)
    assert len(rows) == 6
    assert all(row in text.replace("*", "") for row in rows)
    left = [name for name in names["sk"].state_names if name.split(" ")[-1] not in ("delivered", "lost", "end")]
    assert f"Of the {50 * 9} pairs of a hop and a node in the example, {len(left)} are left" in text
    assert f"{names['routing'].scale:.1f} ms, eight hops at the highest delay" in text


@pytest.mark.parametrize(
    "wrong",
    [
        {"topology": "sndlib/germny50"},
        {"topology": "sndlib/germany50", "source": "Hamburg", "destination": "Munchen"},
        {"topology": "sndlib/germany50", "source": "Hamburg", "destination": "Muenchen", "hops": 5},
        {"topology": graph_of([("here", "left", {"length": float("nan")})])},
    ],
)
def test_the_errors_shown_on_the_page_are_those_raised(wrong: dict[str, Any]) -> None:
    with pytest.raises(am.InputError) as caught:
        make_scenario("routing", **wrong)
    assert f"{caught.value}\n" in PAGE.read_text()


def triangle_rates(tmp_path: Path, text: str) -> Any:
    (tmp_path / "rates.csv").write_text(text)
    net = graph_of([("a", "b", {}), ("b", "c", {}), ("a", "c", {})])
    return make_scenario("routing", topology=net, source="a", destination="c", failures=tmp_path / "rates.csv")


LINKS = [("a", "b"), ("b", "a"), ("b", "c"), ("c", "b"), ("a", "c")]
RATES = "from,to,loss,deflection\n" + "".join(f"{x},{y},{0.01 * k},0.125\n" for k, (x, y) in enumerate(LINKS))


def test_measured_failures_are_the_probabilities_of_the_world(tmp_path: Path) -> None:
    made = triangle_rates(tmp_path, RATES)
    sk, P = made.mdp.skeleton, made.mdp.transition
    first = next(p for p in range(sk.num_pairs) if sk.action_names[p] == "c" and sk.state_names[0] == "0 a")
    row = P[sk.transition_ptr[first] : sk.transition_ptr[first + 1]]
    assert sorted(row) == pytest.approx(sorted([1.0 - 0.04 - 0.125, 0.125, 0.04]))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("from,to\na,b\n", "no rate column"),
        ("from,to,los\na,b,0\n", "column 'los'; expected from, to, loss, deflection"),
        ("from,to,loss\na,b,2\n", "line 2, column loss: '2'"),
        ("from,to,loss\na,b,0.6\n", "line 2: rates of 0.6 and .*; expected a sum of at most 1/2"),
        ("from,to,loss\na,b,0.1\na,b,0.1\n", "line 3: a second row for a -> b"),
        ("from,to,loss\na,b,0.1\n", "no row for"),
        ("from,to,loss\na,x,0.1\n", "no node 'x'"),
    ],
)
def test_wrong_rates_are_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(am.InputError, match=said):
        triangle_rates(tmp_path, text)


def test_a_file_can_be_played_again_from_its_beginning(tmp_path: Path) -> None:
    net, file = graph_of([("a", "b", {}), ("b", "c", {}), ("a", "c", {})]), tmp_path / "costs.csv"
    ways = [(x, y) for x in "abc" for y in "abc" if x != y]
    rows = [f"{t},{x},{y},{(t + k) % 5 / 5}" for t in range(3) for k, (x, y) in enumerate(ways)]
    file.write_text("\n".join(["time,from,to,delay", *rows]))
    options = {"topology": net, "source": "a", "destination": "c", "file": file}
    once, again = make_scenario("routing", **options), make_scenario("routing", **options, cycle=True)
    assert (once.episodes, again.episodes) == (3, None)
    losses = again.losses_from(0)
    assert losses.block(0, 3).tobytes() == once.losses_from(0).block(0, 3).tobytes()
    assert (
        losses.block(2, 8).tobytes()
        == np.concatenate([losses.block(2, 3), losses.block(0, 3), losses.block(0, 2)]).tobytes()
    )
    with pytest.raises(am.InputError, match="cycle: 1; expected true or false"):
        make_scenario("routing", **options, cycle=1)
