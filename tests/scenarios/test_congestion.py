"""Congestion games: flows, delays, optimum and equilibrium against independent computations; the page."""

import json
import re
import runpy
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import polars as pl
import pytest

import advmdp as am
from advmdp.core.wording import number
from advmdp.scenarios.congestion import CongestionGame, Course, congestion_game
from advmdp.scenarios.congestion.assignment import AssignmentError, assignment, least_peak
from advmdp.scenarios.congestion.delays import QueueDelays
from advmdp.scenarios.congestion.report import congestion_report, sentences, write_congestion_report
from advmdp.scenarios.congestion.routers import DelayRouting, Fixed, Learners, shortest_by_hops, standard_routers
from advmdp.scenarios.network.routing import LOST
from tests.helpers import ROOT
from tests.helpers.browser import TEXTS, all_of, contrast, in_browser, luminance, show, started
from tests.helpers.cvx import cp

EXAMPLE = ROOT / "examples" / "congestion.py"
TUNED = "UC-O-REPS, tuned by hand"
HTML = "<b>Bonn & co</b>"
DEMANDS = {"west": {"east": 10.0, "south": 4.0}, "east": {"west": 6.0}, HTML: {"south": 3.0}}


def diamond(**attributes: Any) -> nx.Graph:
    """Four nodes, five cables, demands in both directions, positions, and a name that is no HTML."""
    graph = nx.Graph()
    for name, pos in {"west": (7.0, 51.0), HTML: (9.0, 52.0), "south": (9.0, 50.0), "east": (11.0, 51.0)}.items():
        graph.add_node(name, pos=pos)
    ways = [
        ("west", HTML, 100),
        ("west", "south", 140),
        (HTML, "east", 120),
        ("south", "east", 90),
        (HTML, "south", 60),
    ]
    for a, b, km in ways:
        graph.add_edge(a, b, length=km)
    graph.graph["demands"] = DEMANDS
    graph.graph |= attributes
    return graph


@pytest.fixture(scope="module")
def game() -> CongestionGame:
    return congestion_game(diamond(), deflection=0.1)


@pytest.fixture(scope="module")
def course(game: CongestionGame) -> Course:
    return game.play(standard_routers(game, 40), 40, seed=3)


def pigou(a: float, c: float, demand: float) -> CongestionGame:
    """Two ways: one takes a ms whatever its flow, the other nothing but its queue, with capacity c."""
    graph = nx.DiGraph()
    wide = 1e12
    graph.add_edge("s", "t", length=200.0 * a, capacity=wide)
    graph.add_edge("s", "m", length=0.0, capacity=c)
    graph.add_edge("m", "t", length=0.0, capacity=wide)
    graph.graph["demands"] = {"s": {"t": demand}}
    return congestion_game(graph, load=None, deflection=0.0)


@pytest.mark.parametrize(("a", "c"), [(3.0, 10.0), (0.5, 20.0), (8.0, 6.0)])
def test_two_parallel_links_have_the_equilibrium_and_the_optimum_computed_by_hand(a: float, c: float) -> None:
    demand = 15.0
    game = pigou(a, c, demand)
    narrow = [k for k in range(3) if game.topology.link(k) == "s -> m"]
    # Equilibrium: f / (c - f) = a.  Optimum: the derivative of f^2 / (c - f) is a.
    split = {"equilibrium": c * a / (1.0 + a), "optimum": c * (1.0 - (1.0 + a) ** -0.5)}
    for kind, flow in split.items():
        found = assignment(game, kind, gap=1e-9)
        assert game.flow(found.q)[narrow] == pytest.approx(flow, rel=1e-4), kind
        mean = ((demand - flow) * a + flow * flow / (c - flow)) / demand
        assert found.delay == pytest.approx(mean, rel=1e-8), kind
    # Selfish routing takes a ms on every way; the price of anarchy is this over what the optimum takes.
    assert assignment(game, "equilibrium", gap=1e-9).delay == pytest.approx(a, rel=1e-8)


def arc_oracle(game: CongestionGame, kind: str) -> float:
    """The least objective over flows of links, without hop limits, MDPs or Frank and Wolfe: CVXPY with Clarabel."""
    net, delays = game.topology, game.delays
    n, m = len(net.nodes), len(net.links)
    leaves = np.zeros((n, m))
    leaves[net.links[:, 0], np.arange(m)] = 1.0
    leaves[net.links[:, 1], np.arange(m)] -= 1.0
    flows = cp.Variable((m, len(game.commodities)), nonneg=True)
    supply = np.zeros((n, len(game.commodities)))
    for i, one in enumerate(game.commodities):
        supply[net.node(one.source), i] = one.demand
        supply[net.node(one.destination), i] = -one.demand
    total = cp.sum(flows, axis=1)
    u = cp.multiply(total, 1.0 / delays.capacity)
    # f u / (1 - u) = c (1 / (1 - u) - 1 - u);  the integral of u / (1 - u) is -ln(1 - u) - u.
    waiting = cp.inv_pos(1.0 - u) - 1.0 - u if kind == "optimum" else -cp.log(1.0 - u) - u
    cost = delays.propagation @ total + delays.service * (delays.capacity @ waiting)
    problem = cp.Problem(cp.Minimize(cost / game.demand), [leaves @ flows == supply])
    problem.solve(solver=cp.CLARABEL)
    assert (np.asarray(u.value) < 0.9).all()  # below the knee, where the formulas are those of the game
    return float(problem.value)


def objective(game: CongestionGame, kind: str, flow: np.ndarray) -> float:
    u = flow / game.delays.capacity
    waiting = u * u / (1.0 - u) if kind == "optimum" else -np.log(1.0 - u) - u
    return float(game.delays.propagation @ flow + game.delays.service * game.delays.capacity @ waiting) / game.demand


@pytest.mark.parametrize("kind", ["optimum", "equilibrium"])
def test_frank_and_wolfe_find_what_a_conic_solver_finds(kind: str) -> None:
    game = congestion_game(diamond(), load=0.5, slack=3, deflection=0.0)
    found = assignment(game, kind, gap=1e-5)
    least, ours = arc_oracle(game, kind), objective(game, kind, game.flow(found.q))
    assert least - 1e-6 <= ours <= least + 1e-5 * found.delay + 1e-6


@pytest.mark.parametrize("threads", ["2", "3"])
def test_learners_on_several_threads_choose_the_same_routes(
    game: CongestionGame, monkeypatch: pytest.MonkeyPatch, threads: str
) -> None:
    frames = []
    for count in ("1", threads):
        monkeypatch.setenv("OMP_NUM_THREADS", count)
        monkeypatch.setattr("advmdp.core.threads.cores", lambda: 4)
        frames.append(game.play({"learners": Learners(game, am.SelfTuning, pooled=True)}, episodes=12).frame)
    assert frames[0].equals(frames[1])


def test_what_is_not_certified_is_an_error(game: CongestionGame) -> None:
    with pytest.raises(AssignmentError, match="optimum: a gap of .* after 2 iterations"):
        assignment(game, "optimum", gap=1e-9, most=2)
    with pytest.raises(am.InputError, match="kind: 'best'; expected 'optimum' or 'equilibrium'"):
        assignment(game, "best")


def test_the_least_peak_is_that_of_a_flow_problem_on_the_graph() -> None:
    game = congestion_game(diamond(), load=0.6, slack=3, deflection=0.0)
    net = game.topology
    m = len(net.links)
    flows, peak = cp.Variable((m, len(game.commodities)), nonneg=True), cp.Variable()
    rules = [cp.sum(flows, axis=1) <= peak * game.delays.capacity]
    for i, one in enumerate(game.commodities):
        for x, name in enumerate(net.nodes):
            out = cp.sum(flows[np.flatnonzero(net.links[:, 0] == x), i]) - cp.sum(
                flows[np.flatnonzero(net.links[:, 1] == x), i]
            )
            rules.append(out == one.demand * ((name == one.source) - (name == one.destination)))
    assert cp.Problem(cp.Minimize(peak), rules).solve(solver=cp.CLARABEL) == pytest.approx(0.6, rel=1e-6)
    assert least_peak(game) == pytest.approx(0.6, rel=1e-9)


@pytest.mark.parametrize("unit", [1e-30, 1e-10, 1e18])
def test_the_least_peak_is_the_same_in_all_units_of_demands(unit: float) -> None:
    usual = {source: {goal: amount * unit for goal, amount in row.items()} for source, row in DEMANDS.items()}
    game, other = congestion_game(diamond()), congestion_game(diamond(demands=usual))
    assert other.delays.capacity == pytest.approx(unit * game.delays.capacity, rel=1e-7)


def test_flow_is_conserved_at_every_node(game: CongestionGame) -> None:
    """What leaves a node, less what enters, is what it sends less what it gets and what is lost there."""
    rng = np.random.default_rng(0)
    sk = game.mdp.skeleton
    weights = rng.random(sk.num_pairs) + 0.01
    policy = weights / np.repeat(np.add.reduceat(weights, sk.pair_ptr[:-2]), np.diff(sk.pair_ptr)[:-1])
    q = am.occupancy(game.mdp, policy)
    flow, net = game.flow(q), game.topology
    balance = np.bincount(net.links[:, 0], flow, 4) - np.bincount(net.links[:, 1], flow, 4)
    expected = np.zeros(4)
    for one in game.commodities:
        own = q[one.transitions] * game.demand
        states = one.mdp.skeleton.state_of_pair[
            one.mdp.skeleton.over_transitions(np.arange(one.mdp.skeleton.num_pairs))
        ]
        expected[net.node(one.source)] += one.demand
        for i in np.flatnonzero(one.link == LOST):
            expected[net.node(one.mdp.skeleton.state_label(int(states[i])).split(" ", 1)[1])] -= own[i]
        expected[net.node(one.destination)] -= one.demand - own[one.link == LOST].sum()
    assert balance == pytest.approx(expected, abs=1e-9)


def test_the_game_consists_of_its_commodities_side_by_side(game: CongestionGame) -> None:
    rng = np.random.default_rng(1)
    policies = []
    for one in game.commodities:
        weights = rng.random(one.mdp.skeleton.num_pairs)
        ptr = one.mdp.skeleton.pair_ptr
        policies.append(weights / np.repeat(np.add.reduceat(weights, ptr[:-2]), np.diff(ptr)[:-1]))
    q = am.occupancy(game.mdp, game.whole_policy(policies))
    for one, policy in zip(game.commodities, policies, strict=True):
        own = am.occupancy(one.mdp, policy) * one.demand / game.demand
        assert q[one.transitions] == pytest.approx(own, abs=1e-15)
    cost = rng.random(len(game.link))
    alone = [one.demand * am.best_response(one.mdp, cost[one.transitions])[1] for one in game.commodities]
    cost[np.setdiff1d(np.arange(len(cost)), np.concatenate([one.transitions for one in game.commodities]))] = 0.0
    assert am.best_response(game.mdp, cost)[1] == pytest.approx(sum(alone) / game.demand)


def test_delays_are_convex_with_the_derivative_that_is_said() -> None:
    delays = QueueDelays(np.array([10.0]), 100.0, "ms", np.array([2.0]), 0.5)
    assert delays.convex(np.array([5.0])) == pytest.approx(2.0 + 0.5 * 1.0)
    flows = np.linspace(0.0, 40.0, 4001)
    values = np.array([delays.convex(np.array([f]))[0] for f in flows])
    assert (np.diff(values, 2) >= -1e-9).all()
    numeric = np.gradient(flows * values, flows)[1:-1]
    marginal = np.array([delays.marginal(np.array([f]))[0] for f in flows])[1:-1]
    smooth = np.abs(flows[1:-1] - 9.0) > 0.02  # where it bends
    assert marginal[smooth] == pytest.approx(numeric[smooth], rel=1e-3)
    assert delays.measured(np.array([1e6])) == pytest.approx(102.0)
    assert (delays.full(np.array([1e6])), delays.full(np.array([5.0]))) == (1.0, 0.0)


def test_delay_based_routing_flaps_between_two_equal_ways_and_nobody_gains() -> None:
    """By hand: both ways alike, so all traffic is on one, then on the other; each time at the delay of all on one."""
    graph = nx.DiGraph()
    for a, b in (("s", "up"), ("up", "t"), ("s", "down"), ("down", "t")):
        graph.add_edge(a, b, length=0.0, capacity=10.0)
    graph.graph["demands"] = {"s": {"t": 8.0}}
    game = congestion_game(graph, load=None, deflection=0.0)
    halves = assignment(game, "optimum", gap=1e-9)
    found = game.play({"last": DelayRouting(game), "halves": Fixed(halves.policy)}, 10, seed=0)
    last, halved = (found.frame.filter(method=name)["delay"].mean() for name in ("last", "halves"))
    assert repr(found).endswith(f"mean delay in {game.unit}: last {number(last)}, halves {number(halved)})")
    last, even = (found.frame.filter(method=name) for name in ("last", "halves"))
    assert last["delay"].to_list() == pytest.approx([2 * 0.8 / 0.2] * 10)
    assert last["changed"].to_list() == pytest.approx([0.0] + [1.0] * 9)
    assert last["peak"].to_list() == pytest.approx([0.8] * 10)
    assert last["gap"].to_list() == pytest.approx([1.0] * 10)  # the other way is empty
    assert last["average_gap"][-1] == pytest.approx(0.0, abs=1e-12)  # on average it is half and half
    assert even["delay"].to_list() == pytest.approx([2 * 0.4 / 0.6] * 10, rel=1e-6)
    assert even["changed"].to_list() == [0.0] * 10
    assert found.p99["last"] == pytest.approx(8.0)


def test_the_percentile_is_weighted_by_demand(course: Course, game: CongestionGame) -> None:
    """Fixed routes: the exact distribution of delays, by enumeration of all paths, against the drawn packets."""
    router = shortest_by_hops(game)
    found = game.play({"hops": router}, 2500, seed=5)
    cost = game.cost(game.delays.measured(game.flow(am.occupancy(game.mdp, router.policy))))
    exact: dict[float, float] = {}
    for one in game.commodities:
        sk, policy = one.mdp.skeleton, router.policy[one.pairs]

        def walk(x: int, chance: float, paid: float, one=one, sk=sk, policy=policy) -> None:
            if x == sk.num_states - 1:
                exact[round(paid, 9)] = exact.get(round(paid, 9), 0.0) + chance
                return
            for p in range(sk.pair_ptr[x], sk.pair_ptr[x + 1]):
                for i in range(sk.transition_ptr[p], sk.transition_ptr[p + 1]):
                    more = policy[p] * one.mdp.transition[i]
                    if more > 0.0:
                        walk(int(sk.successor[i]), chance * more, paid + cost[one.transitions[i]])

        walk(0, one.demand / game.demand, 0.0)
    values = np.array(sorted(exact))
    reached = np.cumsum([exact[v] for v in values])
    assert reached[-1] == pytest.approx(1.0)
    low, high = (values[np.searchsorted(reached, share)] for share in (0.987, 0.993))
    assert low - 1e-6 <= found.p99["hops"] <= high + 1e-6
    assert found.table()["delay"][0] == pytest.approx(float(sum(v * exact[v] for v in values)), rel=1e-6)


def test_a_small_demand_counts_little_in_the_percentile() -> None:
    graph = nx.DiGraph()
    for a, b, km in (("far", "hub", 2000.0), ("near", "hub", 200.0)):
        graph.add_edge(a, b, length=km, capacity=1e9)
    graph.graph["demands"] = {"far": {"hub": 1.0}, "near": {"hub": 199.0}}
    game = congestion_game(graph, load=None, deflection=0.0)
    assert game.play({"hops": shortest_by_hops(game)}, 4).p99["hops"] == pytest.approx(1.0)  # not the 10 ms of 0.5%


class Recording(Fixed):
    """Uniform routes, and the paths that were drawn."""

    def __init__(self, game: CongestionGame) -> None:
        super().__init__(am.uniform_policy(game.mdp.skeleton))
        self.paths: list[list[list[int]]] = []

    def learn(self, loss: np.ndarray, paths: list[am.Trajectory]) -> None:
        self.paths.append([path.transitions.tolist() for path in paths])


def test_the_random_numbers_of_a_pair_do_not_depend_on_other_pairs() -> None:
    graph = nx.DiGraph()
    for end in ("one", "two"):
        for way in ("left", "right"):
            graph.add_edge("s", f"{way} {end}", length=1.0, capacity=9.0)
            graph.add_edge(f"{way} {end}", end, length=1.0, capacity=9.0)
    graph.graph["demands"] = {"s": {"one": 2.0, "two": 1.0}}
    both, first = (congestion_game(graph, load=None, deflection=0.0, pairs=pairs) for pairs in (2, 1))
    here, there = Recording(both), Recording(first)
    for game, router in ((both, here), (first, there)):
        game.play({"uniform": router}, 60, seed=2)
    assert [paths[0] for paths in here.paths] == [paths[0] for paths in there.paths]
    apart = sum(one != two for one, two in here.paths)  # the two are built alike
    assert 15 <= apart <= 45


@pytest.mark.parametrize("keeps", [0.0, 0.5, 1.0])
def test_delay_routing_takes_shortest_paths_by_its_estimates(keeps: float) -> None:
    game = congestion_game(diamond(), slack=3, deflection=0.0)
    router, rng = DelayRouting(game, keeps), np.random.default_rng(7)
    graph, links = game.topology.graph.copy(), game.topology.links
    weight = np.zeros(len(links))
    for _ in range(6):
        delays = rng.random(len(links)) * 9.0 + 1.0
        weight = keeps * weight + delays
        router.learn(game.cost(delays) / game.scale, [])
        nx.set_edge_attributes(
            graph,
            {(game.topology.nodes[a], game.topology.nodes[b]): w for (a, b), w in zip(links, weight, strict=True)},
            "w",
        )
        expected = np.zeros(len(links))
        for one in game.commodities:
            way = [game.topology.node(name) for name in nx.shortest_path(graph, one.source, one.destination, "w")]
            for a, b in pairwise(way):
                expected[(links == (a, b)).all(axis=1)] += one.demand
        assert game.flow(am.occupancy(game.mdp, router.policy)) == pytest.approx(expected)


def test_hops_are_the_fewest() -> None:
    game = congestion_game(diamond(), deflection=0.0)
    use = game.flow(am.occupancy(game.mdp, shortest_by_hops(game).policy))
    graph = game.topology.graph
    fewest = sum(one.demand * nx.shortest_path_length(graph, one.source, one.destination) for one in game.commodities)
    assert use.sum() == pytest.approx(fewest)


def test_the_references_bound_the_methods(course: Course) -> None:
    rows = {row["method"]: row for row in course.table().iter_rows(named=True)}
    assert set(course.references) == {"equilibrium", "optimum"}
    for row in rows.values():
        assert row["delay"] >= rows["optimum"]["delay"] * (1.0 - 1.001e-4)
        assert row["peak"] >= 0.75 - 1e-9
    assert rows["equilibrium"]["gap"] <= 1.001e-4
    assert rows["optimum"]["full"] == 0.0


def test_learners_settle_where_measuring_flaps() -> None:
    game = congestion_game("sndlib/polska", pairs=25)
    episodes = 120
    course = game.play(standard_routers(game, episodes), episodes, seed=1)
    rows = {row["method"]: row for row in course.table().iter_rows(named=True)}
    last, even = (rows[name] for name in ("shortest, last delay", "equilibrium"))
    assert last["changed"] > 0.5
    for name in ("SelfTuning", "UC-O-REPS, adaptive step", TUNED):
        ours = rows[name]
        assert ours["changed"] < 0.02
        assert ours["delay"] < 1.15 * even["delay"]
        assert ours["delay"] < min(rows[name]["delay"] for name in rows if name.startswith("shortest"))
        assert last["delay"] > 3.0 * ours["delay"]


def test_the_same_seed_gives_the_same_bytes(course: Course) -> None:
    names = (TUNED, "shortest, last delay", "optimum")
    again = congestion_game(diamond(), deflection=0.1)
    routers = standard_routers(again, 40)
    twice = again.play({name: routers[name] for name in names}, 40, seed=3)
    assert twice.frame.equals(course.frame.filter(pl.col("method").is_in(names)))
    assert twice.p99 == {name: course.p99[name] for name in names}
    other = again.play({TUNED: standard_routers(again, 40)[TUNED]}, 40, seed=4)
    assert not other.frame.equals(course.frame.filter(method=TUNED))
    routers = standard_routers(again, 40)
    assert congestion_report(again.play({name: routers[name] for name in names}, 40, seed=3)) == congestion_report(
        twice
    )


def test_what_is_wrong_is_named() -> None:
    split = nx.Graph()
    split.add_edges_from([("here", "there"), ("far", "away")])
    split.graph["demands"] = {"here": {"far": 1.0}}
    cases = [
        ("topozoo/Abilene", {}, "topozoo/Abilene: no demands"),
        (diamond(demands={"west": {"east": 0.0}}), {}, "graph: no demands"),
        (split, {}, "graph: a demand from here to far, but no path"),
        (diamond(), {"load": 1.2}, "load: 1.2; expected a number above 0 and below 1"),
        (diamond(), {"load": True}, "load: True"),
        (diamond(), {"load": None}, "graph: no capacities"),
        (diamond(), {"slack": -1}, "slack: -1"),
        (diamond(), {"pairs": 0}, "pairs: 0"),
        (diamond(), {"deflection": 0.5}, "deflection and loss: 0.5"),
        (diamond(), {"service": 0}, "service: 0"),
        (diamond(), {"buffer": float("nan")}, "buffer: nan"),
    ]
    shown = (EXAMPLE.parent.parent / "docs" / "congestion.md").read_text()
    for k, (graph, options, said) in enumerate(cases):
        with pytest.raises(am.InputError, match=re.escape(said)) as caught:
            congestion_game(graph, **options)
        assert k not in (0, 2, 3) or str(caught.value) in shown
    with pytest.raises(am.InputError, match="episodes: 1"):
        congestion_game(diamond()).play({}, 1)
    with pytest.raises(am.InputError, match="routers: none; expected at least one"):
        congestion_game(diamond()).play({}, 3)
    for routers in (5, {"a": 5}):
        with pytest.raises(am.InputError, match="router.*5; expected"):
            congestion_game(diamond()).play(routers, 3)  # type: ignore[arg-type]


def test_the_largest_demands_are_kept() -> None:
    game = congestion_game(diamond(), pairs=2)
    assert [one.name for one in game.commodities] == ["west -> east", "east -> west"]


def test_capacities_of_the_graph_keep_their_proportions() -> None:
    graph = diamond()
    for k, (a, b) in enumerate(graph.edges):
        graph.edges[a, b]["capacity"] = 5.0 + k
    given = congestion_game(graph, load=None)
    scaled = congestion_game(graph, load=0.5)
    assert sorted(set(given.delays.capacity)) == [5.0, 6.0, 7.0, 8.0, 9.0]
    ratio = scaled.delays.capacity / given.delays.capacity
    assert ratio == pytest.approx(np.full(10, least_peak(given) / 0.5))


def told(**rows: tuple[float, float]) -> list[str]:
    """The sentences about methods with this delay and share of changes; `best` is a reference."""
    game = congestion_game(diamond(), pairs=1)
    others = dict.fromkeys(("peak", "gap", "average_gap"), 0.8) | {"full": 0.0}
    lines = [
        {"method": name, "episode": t, "delay": delay, "changed": changed} | others
        for name, (delay, changed) in rows.items()
        for t in (1, 2)
    ]
    return sentences(
        Course(game, pl.DataFrame(lines), {}, dict.fromkeys(rows, 1.0), {"best": 0.001} if "best" in rows else {}, 0)
    )


def test_sentences_say_what_the_numbers_do() -> None:
    first, second = told(ours=(12.0, 0.01), theirs=(30.0, 0.8), best=(10.0, 0.0))
    assert first.startswith("'ours' has the least mean delay in the second half: 12 ms; 'theirs' follows with 30 ms.")
    assert "20.0% above the 'best' (10 ms, certified within 0.10%)" in first
    assert second.startswith("'theirs' flaps the most: 80% of the traffic")
    assert second.endswith("'ours' changes 1.0%.")
    first, second = told(ours=(12.0, 0.01), theirs=(9.0, 0.02), best=(10.0, 0.0))
    assert first.startswith("'theirs' has the least mean delay in the second half: 9 ms; 'ours' follows with 12 ms.")
    assert "10.0% below the 'best'" in first
    assert second == "No method flaps: none changes more than 2.0% of the routes in an episode."
    first, second = told(alone=(12.0, 0.3))
    assert first == "'alone' has the least mean delay in the second half: 12 ms."
    assert second.endswith("a peak load of 80%.")
    (only,) = told(best=(10.0, 0.0))
    assert "no method to compare" in only


def test_the_example_prints_its_table_and_writes_its_page(tmp_path: Path) -> None:
    small = ("--topology", "sndlib/abilene", "--pairs", "8", "--episodes", "20")
    files = ("--out", tmp_path / "page.html", "--parquet", tmp_path / "all.parquet")
    done = subprocess.run([sys.executable, EXAMPLE, *small, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "sndlib/abilene: 8 demands" in done.stdout
    assert "shortest, last" in done.stdout
    assert "page.html" in done.stdout
    assert len(pl.read_parquet(tmp_path / "all.parquet")) == 9 * 20
    assert "<svg" in (tmp_path / "page.html").read_text()


def test_the_example_says_what_is_wrong(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["congestion.py", "--topology", "topozoo/Abilene"])
    with pytest.raises(SystemExit, match="2"):
        runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert "topozoo/Abilene: no demands" in capsys.readouterr().err


def test_the_page_of_the_docs_shows_what_the_command_prints() -> None:
    text = (EXAMPLE.parent.parent / "docs" / "congestion.md").read_text()
    example = runpy.run_path(str(EXAMPLE))
    game = congestion_game()
    found = game.play(
        {"shortest, last delay": DelayRouting(game), "shortest, hops": shortest_by_hops(game)}, 300, seed=1
    )
    for row in found.table().iter_rows(named=True):
        cells = [f"{row[key]:.1%}" if key in example["SHARES"] else f"{row[key]:,.2f}" for key in example["COLUMNS"]]
        assert f"| {row['method']} | {' | '.join(cells)} |" in text
    assert found.table()["full"].to_list() == [0.0, 0.0]
    best = assignment(game, "optimum")
    assert f"| *optimum* | {best.delay:.2f} | {best.delay:.2f} |" in text


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SelfTuning", "UC-O-REPS, adaptive step"])
def test_the_learners_rows_of_the_docs_are_what_the_command_prints(name: str) -> None:
    text = (EXAMPLE.parent.parent / "docs" / "congestion.md").read_text().replace("**", "")
    example, game = runpy.run_path(str(EXAMPLE)), congestion_game()
    router = standard_routers(game, 300, references={})[name]
    (row,) = game.play({name: router}, 300, seed=1).table().iter_rows(named=True)
    cells = [f"{row[key]:.1%}" if key in example["SHARES"] else f"{row[key]:,.2f}" for key in example["COLUMNS"]]
    assert f"| {name} | {' | '.join(cells)} |" in text


@pytest.fixture(scope="module")
def page(course: Course, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_congestion_report(course, tmp_path_factory.mktemp("page") / "page.html")


def test_the_page_is_small_and_holds_every_load(page: Path, course: Course) -> None:
    text = page.read_text()
    assert len(text) < 200_000
    assert HTML not in text
    data = json.loads(re.findall(r'id="data">(.*?)</script>', text, re.DOTALL)[0])
    for method, (name, use) in zip(data["methods"], course.use.items(), strict=True):
        digits = [int(method["use"][k : k + 2], 36) / 100 for k in range(0, len(method["use"]), 2)]
        assert method["name"] == name
        rows = use[:1] if method["still"] else use
        assert np.array(digits) == pytest.approx(rows.ravel(), abs=0.0051)
    assert [method["still"] for method in data["methods"]][-3:] == [True] * 3


def test_a_long_game_is_cut_and_the_page_says_so(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("advmdp.scenarios.congestion.report.MOST", 2 * 9 * 10 * 12)
    text = congestion_report(course)
    assert "Shown are the first 12 of 40 episodes." in text
    data = json.loads(re.findall(r'id="data">(.*?)</script>', text, re.DOTALL)[0])
    assert {len(method["delay"]) for method in data["methods"]} == {data["episodes"]} == {12}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with started(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def opened(browser: Any, page: Path) -> Any:
    show(browser, page, 1366)
    return browser


def painted(browser: Any, side: str = "two") -> list[tuple[str, str]]:
    lines = f"[...document.querySelectorAll('#map-{side} line')]"
    asked = f"return {lines}.map(e => [e.getAttribute('class'), e.getAttribute('stroke-width')])"
    return [(kind, width) for kind, width in browser.execute_script(asked)]


def widths(use: np.ndarray) -> list[str]:
    rounded = np.rint(100 * use) / 100
    return [f"{1.2 + 3.4 * min(u, 2.0):.2f}" for u in rounded]


@in_browser
def test_the_slider_moves_the_picture_by_keyboard(opened: Any, course: Course) -> None:
    assert opened.get_log("browser") == []
    assert opened.execute_script("return performance.getEntriesByType('resource').length") == 0
    before = painted(opened)
    slider = opened.find_element("id", "at")
    slider.send_keys("\ue010")  # to the end
    for step, t in enumerate((40, 39, 38)):
        assert opened.find_element("id", "episode").text == f"{t} of 40", step
        name = opened.find_element("css selector", "#two option:checked").text
        assert [float(w) for _, w in painted(opened)] == pytest.approx(
            [float(w) for w in widths(course.use[name][t - 1])], abs=0.036
        )
        slider.send_keys("\ue012")  # the arrow to the left
    assert (
        painted(opened) != before
        or opened.find_element("css selector", "#two option:checked").text in course.references
    )
    delay = course.frame.filter(method=name, episode=37)["delay"][0]
    shown = re.search(r"mean delay ([\d.,]+) ms", opened.find_element("id", "now-two").text)
    assert shown
    assert float(shown[1].replace(",", "")) == pytest.approx(delay, rel=0.01)
    assert opened.get_log("browser") == []


@in_browser
def test_another_method_is_another_picture(opened: Any, course: Course) -> None:
    from selenium.webdriver.support.ui import Select

    for name in ("shortest, hops", "optimum", TUNED):
        Select(opened.find_element("id", "one")).select_by_visible_text(name)
        now = [float(w) for _, w in painted(opened, "one")]
        assert now == pytest.approx([float(w) for w in widths(course.use[name][19])], abs=0.036), name
    assert len({kind for kind, _ in painted(opened, "one")}) > 1


@in_browser
def test_play_runs_and_stops(opened: Any) -> None:
    slider, button = opened.find_element("id", "at"), opened.find_element("id", "play")
    slider.send_keys("\ue011")  # to the beginning
    assert slider.get_attribute("value") == "1"
    button.click()
    assert button.text == "Pause"
    late = time.monotonic() + 10.0
    while int(slider.get_attribute("value")) < 4:
        assert time.monotonic() < late
        time.sleep(0.05)
    button.click()
    held = slider.get_attribute("value")
    time.sleep(0.4)
    assert slider.get_attribute("value") == held
    assert (button.text, button.get_attribute("aria-pressed")) == ("Play", "false")
    for name, step in (("on", 1), ("back", 0)):
        opened.find_element("id", name).click()
        assert int(slider.get_attribute("value")) == int(held) + step
    slider.send_keys("\ue010", "\ue012")  # one before the end
    button.click()
    while button.text == "Pause":
        assert time.monotonic() < late
        time.sleep(0.05)
    assert slider.get_attribute("value") == "40"  # and there it stops


@in_browser
def test_curves_follow_their_boxes_and_the_cursor_the_slider(opened: Any) -> None:
    assert len(all_of(opened, "#delay .curve")) == len(all_of(opened, "#changed .curve")) == 9
    all_of(opened, "#learners input")[3].click()
    assert "3" not in [one.get_attribute("data-method") for one in all_of(opened, "#gap .curve")]
    assert len(all_of(opened, "#delay .curve")) == 8
    places = []
    for key in ("\ue011", "\ue010"):
        opened.find_element("id", "at").send_keys(key)
        places.append(float(opened.find_element("css selector", "#delay .cursor").get_attribute("x1")))
    assert places[1] > places[0] + 500
    for box in all_of(opened, "#learners input"):
        if box.is_selected():
            box.click()
    assert all_of(opened, ".curve") == []
    assert opened.get_log("browser") == []


@in_browser
@pytest.mark.parametrize("width", [390, 1366])
def test_it_fits_the_screen_and_names_are_text(browser: Any, page: Path, width: int) -> None:
    show(browser, page, width)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    over = browser.execute_script(
        "return [...document.querySelectorAll('svg text')].filter(e => { const r = e.getBoundingClientRect(), "
        "b = e.closest('svg').getBoundingClientRect(); return r.left < b.left - 1 || r.right > b.right + 1; })"
        ".map(e => e.textContent)"
    )
    assert over == []
    assert HTML in [one.text for one in all_of(browser, "#map-one text")]
    assert all_of(browser, "#map-one b") == []
    for one in all_of(browser, "input, select, button, [tabindex], svg[role=img]"):
        assert one.accessible_name.strip(), one.get_attribute("outerHTML")[:80]


@in_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_in_light_and_dark(browser: Any, page: Path, scheme: str) -> None:
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    show(browser, page, 1366)
    paper, panel = browser.execute_script(
        "return [document.body, document.getElementById('map-one')].map(e => getComputedStyle(e).backgroundColor)"
    )
    assert (luminance(paper) < 0.05) == (scheme == "dark")
    texts = browser.execute_script(TEXTS)
    assert len(texts) > 60
    for what, ink, behind in texts:
        assert contrast(ink, behind) >= 4.5, what
    strokes = "return [...document.querySelectorAll('.scale line')].map(e => getComputedStyle(e).stroke)"
    for stroke in browser.execute_script(strokes):
        assert contrast(stroke, panel) >= 3.0, stroke
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_references_are_not_called_certified_if_queues_are_full() -> None:
    graph = nx.DiGraph()
    for a, b, capacity in (("s", "t", 10.0), ("s", "u", 1000.0), ("u", "t", 60.0)):
        graph.add_edge(a, b, length=0.0, capacity=capacity)
    graph.graph["demands"] = {"s": {"t": 100.0}, "u": {"t": 50.0}}
    game = congestion_game(graph, load=None, deflection=0.0, buffer=20.0)
    best = assignment(game, "optimum")
    course = game.play({"shortest, hops": shortest_by_hops(game), "optimum": Fixed(best.policy, best.gap)}, 4)
    assert "not certified, since queues are full" in sentences(course)[0]
