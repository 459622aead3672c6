"""Delay functions, road networks in TNTP, changing demands, hop limits and adaptive steps, against oracles."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import advmdp as am
from advmdp.scenarios.congestion import CongestionGame, congestion_game, demands_from_file
from advmdp.scenarios.congestion.assignment import assignment
from advmdp.scenarios.congestion.delays import RoadDelays, road_delays
from advmdp.scenarios.congestion.report import congestion_report
from advmdp.scenarios.congestion.routers import (
    AdaptiveSteps,
    DelayRouting,
    Fixed,
    Learners,
    reference,
    shortest_by_hops,
    standard_routers,
)
from advmdp.scenarios.congestion.tntp import Roads, read_tntp
from advmdp.scenarios.network.topology import topology_from
from tests.helpers import ROOT
from tests.helpers.cvx import cp

BRAESS_NET = """<NUMBER OF ZONES> 2
<NUMBER OF NODES> 4
<FIRST THRU NODE> 1
<NUMBER OF LINKS> 5
<ORIGINAL HEADER>~ Init node Term node Capacity Length Free Flow Time B Power Speed limit Toll Type ;
<END OF METADATA>

~ init_node term_node capacity length free_flow_time b power speed toll link_type ;
\t1\t3\t1\t100\t0.00000001\t1000000000\t1\t0\t0\t1\t;
\t1\t4\t1\t100\t50\t0.02\t1\t0\t0\t1\t;
\t3\t2\t1\t100\t50\t0.02\t1\t0\t0\t1\t;
\t3\t4\t1\t100\t10\t0.1\t1\t0\t0\t1\t;
\t4\t2\t1\t100\t0.00000001\t1000000000\t1\t0\t0\t1;
"""
BRAESS_TRIPS = """<NUMBER OF ZONES> 2
<TOTAL OD FLOW> 6.0
<END OF METADATA>

Origin 1
    1 : 0.0; 2 : 6.0;
"""
BRAESS_FLOW = "From To Volume Cost\n1 3 4 40\n1 4 2 52\n3 2 2 52\n3 4 2 12\n4 2 4 40\n"


def written(folder: Path, net: str = BRAESS_NET, trips: str = BRAESS_TRIPS, flow: str = BRAESS_FLOW) -> list[Path]:
    paths = [folder / f"braess_{name}.tntp" for name in ("net", "trips", "flow")]
    for path, text in zip(paths, (net, trips, flow), strict=True):
        path.write_text(text)
    return paths


def roads(folder: Path, *changes: tuple[str, str], **options: Any) -> Roads:
    """Braess's network with changes to its text of links."""
    net = BRAESS_NET
    for old, new in changes:
        assert old in net
        net = net.replace(old, new)
    return read_tntp(*written(folder, net), **options)


# TNTP.


def test_braess_has_its_published_equilibrium_and_optimum(tmp_path: Path) -> None:
    """Six vehicles: 92 minutes for each with the road 3 -> 4, and 83 where nobody takes it: Braess 1968."""
    found = roads(tmp_path)
    game = found.game()
    even, best = (assignment(game, kind, gap=1e-8) for kind in ("equilibrium", "optimum"))
    np.testing.assert_allclose(game.flow(even.q), found.flow, atol=1e-5)
    np.testing.assert_allclose(game.flow(best.q), [3.0, 3.0, 3.0, 0.0, 3.0], atol=1e-4)
    assert (even.delay, best.delay) == (pytest.approx(92.0, rel=1e-7), pytest.approx(83.0, rel=1e-7))
    # 5 f^2 on two roads, 50 f + f^2 / 2 on two, 10 f + f^2 / 2 on one.
    assert game.delays.potential(found.flow) == pytest.approx(2 * 80 + 2 * (100 + 2) + 22, rel=1e-9)
    assert game.unit == "min"
    assert even.excluded == 0.0
    assert repr(even).startswith("Assignment(delay 92, gap ")


def test_the_example_compares_its_equilibrium_with_the_flows_of_the_file(tmp_path: Path) -> None:
    """Braess's potential is 386 (see above), which his flows attain."""
    files = [
        text for pair in zip(("--net", "--trips", "--flow"), map(str, written(tmp_path)), strict=True) for text in pair
    ]
    command = [sys.executable, str(ROOT / "examples" / "congestion.py"), *files, "--episodes", "4"]
    done = subprocess.run([*command, "--out", tmp_path / "page.html"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Equilibrium: potential 386.00, gap" in done.stdout
    assert "The file's flows: potential 386.00; volumes differ by at most 0.00% of the largest." in done.stdout


def test_learners_settle_in_braess_equilibrium_and_find_no_way_out_of_the_paradox(tmp_path: Path) -> None:
    game = roads(tmp_path).game()
    course = game.play({"ours": AdaptiveSteps(game), "SelfTuning": Learners(game, am.SelfTuning, pooled=True)}, 150)
    rows = {row["method"]: row for row in course.table().iter_rows(named=True)}
    assert rows["ours"]["delay"] == pytest.approx(92.0, rel=1e-4)
    assert rows["SelfTuning"]["delay"] == pytest.approx(92.0, rel=0.02)


def test_zones_are_not_passed_through(tmp_path: Path) -> None:
    """Node 3 of Braess as a zone: with <FIRST THRU NODE> 4, only the way over 4 is left."""
    found = roads(tmp_path, ("<FIRST THRU NODE> 1", "<FIRST THRU NODE> 4"))
    assert found.zones == ("1", "2", "3")
    game = found.game()
    even = assignment(game, "equilibrium")
    np.testing.assert_allclose(game.flow(even.q), [0.0, 6.0, 0.0, 0.0, 6.0], atol=1e-9)
    assert even.excluded == 0.0  # the ways over node 3 are no ways
    assert even.delay == pytest.approx(56.0 + 60.0)


def test_a_trip_that_begins_in_a_zone_does_not_come_back_to_it(tmp_path: Path) -> None:
    """Ways 1 -> 3 -> 1 -> 4 -> 2 would pass through zone 1."""
    extra = "\t3\t1\t1\t1\t0\t0\t0\t0\t0\t1\t;\n"
    changes = [("<NUMBER OF LINKS> 5", "<NUMBER OF LINKS> 6"), ("<FIRST THRU NODE> 1", "<FIRST THRU NODE> 3")]
    net = BRAESS_NET.replace(";\n\t1\t4", f";\n{extra}\t1\t4")
    for old, new in changes:
        net = net.replace(old, new)
    game = read_tntp(*written(tmp_path, net)[:2]).game()
    assert len(game.topology.links) == 6
    back = [k for k in range(6) if game.topology.link(k) == "3 -> 1"]
    assert not game.flow(am.occupancy(game.mdp, am.uniform_policy(game.mdp.skeleton)))[back].any()


def test_a_road_that_leads_only_back_to_the_zone_of_the_source_is_not_taken(tmp_path: Path) -> None:
    """Node 5 leads only to zone 1: no trip from 1 can pass there, however many roads it may take."""
    net = BRAESS_NET.replace(";\n\t1\t4", ";\n\t3\t5\t1\t1\t0\t0\t0\t;\n\t5\t1\t1\t1\t0\t0\t0\t;\n\t1\t4")
    for old, new in (("LINKS> 5", "LINKS> 7"), ("NODES> 4", "NODES> 5"), ("THRU NODE> 1", "THRU NODE> 3")):
        net = net.replace(old, new)
    game = read_tntp(*written(tmp_path, net)[:2]).game(slack=5)
    flow = game.flow(assignment(game, "equilibrium", gap=1e-8).q)
    used = {game.topology.link(k): round(float(flow[k]), 3) for k in range(7)}
    assert used == {"1 -> 3": 4, "3 -> 5": 0, "5 -> 1": 0, "1 -> 4": 2, "3 -> 2": 2, "3 -> 4": 2, "4 -> 2": 4}


def test_tolls_and_distances_count_with_their_weights(tmp_path: Path) -> None:
    plain = roads(tmp_path)
    tolled = roads(tmp_path, ("10\t0.1\t1\t0\t0\t1", "10\t0.1\t1\t0\t7\t1"), toll_weight=2.0, distance_weight=0.5)
    flow = np.ones(5)
    more = tolled.delays.convex(flow) - plain.delays.convex(flow)
    np.testing.assert_allclose(more, [50.0, 50.0, 50.0, 50.0 + 14.0, 50.0])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("<END OF METADATA>", "", "no line <END OF METADATA>"),
        ("<NUMBER OF NODES> 4", "<NUMBER OF NODES> many", "<NUMBER OF NODES> many; expected a whole number"),
        ("<NUMBER OF LINKS> 5", "<NUMBER OF LINKS> 6", "5 links; expected 6, as <NUMBER OF LINKS> says"),
        ("\t1\t4\t1\t", "\t1\t9\t1\t", "line 10: node '9'; expected a whole number from 1 to 4"),
        ("\t1\t4\t1\t", "\t1\t3\t1\t", "line 10: a second link from 1 to 3"),
        ("\t1\t4\t1\t", "\t1\t1\t1\t", "line 10: a link from 1 to itself"),
        ("\t1\t4\t1\t", "\t1\t4\t0\t", "line 10: capacity 0; expected a number above 0, or b = 0"),
        ("\t1\t4\t1\t", "\t1\t4\tnan\t", "line 10: capacity 'nan'; expected a number from 0"),
        ("0.02\t1\t0", "0.02\t0.5\t0", "line 10: power 0.5; expected 0, or 1 or more"),
        ("\t3\t4\t1\t100\t10\t0.1\t1\t0\t0\t1\t;", "3 4 1", "line 12: 3 columns"),
    ],
)
def test_what_is_wrong_with_links_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(am.InputError, match=said.replace("(", r"\(")):
        roads(tmp_path, (old, new))


@pytest.mark.parametrize(
    ("trips", "flow", "said"),
    [
        (BRAESS_TRIPS.replace("2 : 6.0", "7 : 6.0"), BRAESS_FLOW, "line 6: node '7'"),
        (BRAESS_TRIPS.replace("2 : 6.0", "2 : -6.0"), BRAESS_FLOW, "line 6: amount '-6.0'"),
        (BRAESS_TRIPS.replace("Origin 1", ""), BRAESS_FLOW, "expected Origin n, then entries"),
        (BRAESS_TRIPS.replace("1 : 0.0", "2 : 1.0"), BRAESS_FLOW, "a second entry from 1 to 2"),
        (BRAESS_TRIPS, BRAESS_FLOW.replace("3 4 2 12\n", ""), "no row for 3 -> 4"),
        (BRAESS_TRIPS, BRAESS_FLOW.replace("3 4 2 12\n", "3 1 2 12\n"), "no link from 3 to 1"),
        (BRAESS_TRIPS, BRAESS_FLOW.replace("4 2 4 40\n", "1 3 4 40\n"), "a second row from 1 to 3"),
        (BRAESS_TRIPS, BRAESS_FLOW.replace("3 4 2 12\n", "3 4\n"), "2 columns"),
    ],
)
def test_what_is_wrong_with_trips_and_flows_is_named(tmp_path: Path, trips: str, flow: str, said: str) -> None:
    with pytest.raises(am.InputError, match=said):
        read_tntp(*written(tmp_path, BRAESS_NET, trips, flow))


def grid(width: int, seed: int) -> nx.DiGraph:
    """A grid of roads both ways, with random lengths, capacities and demands."""
    rng = np.random.default_rng(seed)
    graph = nx.DiGraph(nx.grid_2d_graph(width, width))
    graph = nx.relabel_nodes(graph, {node: str(k) for k, node in enumerate(graph)})
    for _, _, values in graph.edges(data=True):
        values["length"], values["capacity"] = rng.uniform(200.0, 2000.0), rng.uniform(5.0, 15.0)
    nodes = list(graph)
    pairs = [(a, b) for a in nodes for b in nodes if a != b]
    chosen = rng.choice(len(pairs), 10, replace=False)
    demands: dict[str, dict[str, float]] = {}
    for k in chosen:
        demands.setdefault(pairs[k][0], {})[pairs[k][1]] = float(rng.uniform(2.0, 6.0))
    graph.graph["demands"] = demands
    return graph


def bpr_oracle(game: CongestionGame, kind: str) -> float:
    """The least potential, or total time, of flows on links, without a hop limit: CVXPY with Clarabel."""
    net, delays = game.topology, game.delays
    assert isinstance(delays, RoadDelays)
    n, m = len(net.nodes), len(net.links)
    leaves = np.zeros((n, m))
    leaves[net.links[:, 0], np.arange(m)] = 1.0
    leaves[net.links[:, 1], np.arange(m)] -= 1.0
    supply = np.zeros((n, len(game.commodities)))
    for i, one in enumerate(game.commodities):
        supply[net.node(one.source), i], supply[net.node(one.destination), i] = one.demand, -one.demand
    flows = cp.Variable((m, len(game.commodities)), nonneg=True)
    u = cp.multiply(cp.sum(flows, axis=1), 1.0 / delays.capacity)
    weight = delays.time * delays.capacity
    share = 1.0 / 5.0 if kind == "equilibrium" else 1.0  # the integral of u^4, or u * u^4
    problem = cp.Problem(
        cp.Minimize(weight @ u + share * (weight * delays.b) @ cp.power(u, 5)), [leaves @ flows == supply]
    )
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kind", ["equilibrium", "optimum"])
def test_bpr_has_the_equilibrium_and_the_optimum_of_a_conic_solver(kind: Any, seed: int) -> None:
    game = congestion_game(grid(3, seed), load=None, slack=4, deflection=0.0, delays="bpr")
    found = assignment(game, kind, gap=1e-6)
    flow = game.flow(found.q)
    ours = game.delays.potential(flow) if kind == "equilibrium" else float(flow @ game.delays.convex(flow))
    least = bpr_oracle(game, kind)
    assert least * (1.0 - 1e-6) <= ours <= least * (1.0 + 1e-5)
    assert found.excluded <= 1e-6


# Delay functions.


def test_a_function_is_the_kind_of_delay_that_it_spells_out() -> None:
    graph = grid(3, 2)
    free = topology_from(graph).length / 200.0
    known = congestion_game(graph, load=None, slack=4, deflection=0.0, delays="bpr")

    def spelled(flow: np.ndarray, capacity: np.ndarray) -> np.ndarray:
        return free * (1.0 + 0.15 * (flow / capacity) ** 4)

    def its_slope(flow: np.ndarray, capacity: np.ndarray) -> np.ndarray:
        return free * 0.6 * (flow / capacity) ** 3 / capacity

    for options in ({}, {"derivative": its_slope}):
        own = congestion_game(graph, load=None, slack=4, deflection=0.0, delays=spelled, **options)
        flow = np.linspace(0.0, 30.0, len(free))
        for name in ("convex", "slope", "marginal", "measured"):
            np.testing.assert_allclose(getattr(own.delays, name)(flow), getattr(known.delays, name)(flow), rtol=1e-6)
        assert own.delays.potential(flow) == pytest.approx(known.delays.potential(flow))
        assert own.scale == pytest.approx(known.scale)
    for kind in ("equilibrium", "optimum"):
        assert assignment(own, kind).delay == pytest.approx(assignment(known, kind).delay, rel=1e-4)
    fitted = congestion_game(graph, load=0.5, slack=4, deflection=0.0, delays=spelled)
    again = congestion_game(graph, load=0.5, slack=4, deflection=0.0, delays="bpr")
    np.testing.assert_allclose(fitted.delays.convex(flow), again.delays.convex(flow))


@pytest.mark.parametrize(
    ("delays", "said"),
    [
        ("bp", "delays: 'bp'; expected 'mm1', 'bpr', a function of"),
        (lambda flow, capacity: 1.0, "values of shape"),
        (lambda flow, capacity: 1.0 - flow / 100.0, "delays that do not fall with the flow"),
        (lambda flow, capacity: np.sqrt(flow), "delays that are convex in the flow"),
        (lambda flow, capacity: np.where(flow > 3.0, np.inf, 1.0), "inf at a flow of .* on .* -> .*; expected finite"),
        (lambda flow, capacity: flow * 0.0 - 1.0, "finite numbers, 0 or more"),
    ],
)
def test_invalid_delay_functions_are_refused(delays: Any, said: str) -> None:
    with pytest.raises(am.InputError, match=said):
        congestion_game(grid(3, 0), load=None, delays=delays)


def test_delays_for_other_links_and_stray_derivatives_are_refused() -> None:
    ones = np.ones(3)
    with pytest.raises(am.InputError, match="delays: 3 links"):
        congestion_game(grid(3, 0), load=None, delays=road_delays(ones, ones, ones, ones, ones, None))
    with pytest.raises(
        am.InputError, match="derivative: .*; expected a function, and only if delays are a function too"
    ):
        congestion_game(grid(3, 0), load=None, delays="bpr", derivative=lambda flow, capacity: flow)


def test_bpr_is_what_it_says_with_its_derivative_and_its_limit() -> None:
    two = np.array([1.0, 1.0])
    delays = road_delays(10.0 * two, 3.0 * two, np.array([0.15, 0.5]), np.array([4.0, 0.0]), 2.0 * two, 20.0)
    assert delays.convex(10.0 * two) == pytest.approx([3.0 * 1.15 + 2.0, 3.0 * 1.5 + 2.0])
    assert delays.free == pytest.approx([5.0, 6.5])  # a power of 0 is there from the beginning
    assert delays.slope(10.0 * two) == pytest.approx([3.0 * 0.15 * 4.0 / 10.0, 0.0])
    assert delays.measured(1e6 * two) == pytest.approx([25.0, 6.5])
    assert delays.scale == pytest.approx(26.5)
    assert road_delays(two, 3.0 * two, two, two, 0.0 * two, None).buffer == 30.0


# Hop limits.


def detour() -> nx.DiGraph:
    """One short road, and a long way round of five hops that pays under load."""
    graph = nx.DiGraph()
    graph.add_edge("a", "z", length=200.0, capacity=4.0)
    for one, other in zip(("a", "b", "c", "d", "e"), ("b", "c", "d", "e", "z"), strict=True):
        graph.add_edge(one, other, length=100.0, capacity=100.0)
    graph.graph["demands"] = {"a": {"z": 8.0}}
    return graph


def test_a_hop_limit_that_excludes_routes_of_the_equilibrium_warns() -> None:
    known: dict[str, Any] = {"load": None, "deflection": 0.0, "delays": "bpr"}
    tight = congestion_game(detour(), slack=3, **known)
    with pytest.warns(am.AdvMDPWarning, match="the hop limit excludes routes of the equilibrium: .* more slack"):
        found = assignment(tight, "equilibrium")
    # All 8 on the short road: 1 * (1 + 0.15 * 2^4) = 3.4 ms, where the way round takes 2.5 ms when it is empty.
    assert found.excluded == pytest.approx(1.0 - 2.5 / 3.4)
    wide = congestion_game(detour(), slack=4, **known)
    free = assignment(wide, "equilibrium")  # a warning would be an error here
    assert free.excluded == 0.0
    assert free.delay == pytest.approx(2.5, rel=1e-3)


# Demands that change.


def two_ways() -> nx.DiGraph:
    graph = nx.DiGraph()
    for a, b in (("s", "up"), ("up", "t"), ("s", "down"), ("down", "t"), ("r", "s")):
        graph.add_edge(a, b, length=0.0, capacity=10.0)
    return graph


MATRICES = [{"s": {"t": 8.0}}, {"s": {"t": 2.0}, "r": {"t": 2.0}}, {"r": {"t": 6.0}}]


def test_the_account_of_changing_demands_is_that_of_each_episode() -> None:
    graph = two_ways()
    game = congestion_game(graph, load=None, deflection=0.0, demands=MATRICES)
    assert [one.name for one in game.commodities] == ["s -> t", "r -> t"]
    assert game.demand == pytest.approx((8 + 4 + 6) / 3)
    course = game.play({"hops": shortest_by_hops(game), "last": DelayRouting(game)}, 7, seed=2)
    for t, table in enumerate([*MATRICES, *MATRICES, MATRICES[0]]):
        graph.graph["demands"] = table
        alone = congestion_game(graph, load=None, deflection=0.0)
        rows = alone.play({"hops": shortest_by_hops(alone)}, 2).frame
        ours = course.frame.filter(method="hops", episode=t + 1).row(0, named=True)
        for key in ("delay", "peak", "gap", "demand"):
            assert ours[key] == pytest.approx(rows[key][0]), (t, key)
        assert ours["changed"] == 0.0
    np.testing.assert_allclose(course.use["hops"][3], course.use["hops"][0])
    assert course.frame.filter(method="last")["changed"].max() == pytest.approx(1.0)


def test_references_of_changing_demands_are_those_of_each_episode() -> None:
    graph = two_ways()
    game = congestion_game(graph, load=None, deflection=0.0, demands=MATRICES)
    best = game.play({"optimum": reference(game, "optimum")}, 6)
    for t, table in enumerate(MATRICES * 2):
        graph.graph["demands"] = table
        alone = assignment(congestion_game(graph, load=None, deflection=0.0), "optimum")
        assert best.frame["delay"][t] == pytest.approx(alone.delay, rel=1e-3)
    assert best.references["optimum"] <= 1e-4


def test_the_percentile_counts_the_demands_of_each_episode() -> None:
    """Half of the episodes have nothing but the far pair, by far the larger demand in the others is the near one."""
    graph = nx.DiGraph()
    graph.add_edge("far", "hub", length=2000.0, capacity=1e9)
    graph.add_edge("near", "hub", length=200.0, capacity=1e9)
    tables = [{"far": {"hub": 1.0}}, {"near": {"hub": 199.0}}]
    game = congestion_game(graph, load=None, deflection=0.0, demands=tables)
    assert game.play({"hops": shortest_by_hops(game)}, 8).p99["hops"] == pytest.approx(1.0)
    assert game.play({"hops": shortest_by_hops(game)}, 8).frame["delay"].to_list() == pytest.approx([10.0, 1.0] * 4)


def test_the_page_says_that_demands_change_and_in_which_unit(tmp_path: Path) -> None:
    game = congestion_game(two_ways(), load=None, deflection=0.0, demands=MATRICES)
    page = congestion_report(game.play({"hops": shortest_by_hops(game)}, 6))
    assert "Demands change: 3 traffic matrices in a cycle, from 67% to 133% of their mean." in page
    assert '"demand":[1.333,0.6667,1.0,1.333,0.6667,1.0]' in page
    braess = roads(tmp_path).game()
    page = congestion_report(braess.play({"hops": shortest_by_hops(braess)}, 4))
    assert '"unit":"min"' in page
    assert "Mean delay, min" in page
    assert '"demand":null' in page


def test_matrices_come_from_a_file(tmp_path: Path) -> None:
    net = topology_from(two_ways())
    lines = ["time,from,to,amount"]
    lines += [
        f"{t},{a},{b},{d}" for t, table in enumerate(MATRICES) for a, row in table.items() for b, d in row.items()
    ]
    path = tmp_path / "matrices.csv"
    path.write_text("\n".join(lines))
    found = demands_from_file(path, net)
    game, same = (congestion_game(net, load=None, demands=demands) for demands in (found, MATRICES))
    np.testing.assert_array_equal(game.matrices, same.matrices)
    for bad, said in (
        ("0,s,t,-1", "line 2, column amount: '-1'"),
        ("0,s,x,1", "line 2, column to: no node 'x'"),
        ("0,s,s,1", "1 from s to s; expected demands between different nodes"),
        ("0,s,t,0", "no demand at time 0"),
        ("0,s,t,1\n0,s,t,1", "line 3: a second row for s to t at time 0"),
        (",s,t,1", "line 2, column time: nothing"),
    ):
        path.write_text(f"time,from,to,amount\n{bad}\n")
        with pytest.raises(am.InputError, match=said):
            demands_from_file(path, net)


@pytest.mark.parametrize(
    ("demands", "said"),
    [
        ([], "demands: no episodes"),
        ([{"s": {"t": 0.0}}], "an episode without demand"),
        ([{"s": {"x": 1.0}}], "node 'x'"),
        ([{"s": {"t": -1.0}}], "-1.0"),
        ({"s": {"t": 1.0}}, "demands: dict; expected tables"),
        (np.ones((2, 5, 5)), "demands, episode 0"),
        (np.ones((2, 3, 3)), "demands"),
        (np.full((1, 5, 5), np.nan), "demands"),
    ],
)
def test_invalid_demands_are_refused(demands: Any, said: str) -> None:
    with pytest.raises(am.InputError, match=said):
        congestion_game(two_ways(), load=None, demands=demands)


# Steps that adapt.


@pytest.mark.parametrize("crowd", [0.5, 1.0, 3.0])
def test_a_step_that_adapts_settles_where_a_fixed_one_swings(crowd: float) -> None:
    """On roads the curvature changes by orders of magnitude with the demand; nothing is tuned."""
    graph = grid(3, 4)
    demands = graph.graph["demands"]
    graph.graph["demands"] = {a: {b: crowd * d for b, d in row.items()} for a, row in demands.items()}
    game = congestion_game(graph, load=None, slack=4, deflection=0.0, delays="bpr")
    fixed = Learners(game, lambda sk: am.UCOREPS(sk, 200, eta=3000 * am.bounds.eta(sk, 200), confidence_scale=0.03))
    course = game.play({"adapts": AdaptiveSteps(game), "fixed": fixed}, 200)
    gaps = {name: course.frame.filter(method=name)["gap"].tail(20).mean() for name in ("adapts", "fixed")}
    assert gaps["adapts"] < 1e-3
    if crowd == 3.0:
        assert gaps["fixed"] > 20.0 * gaps["adapts"]


def test_pooled_learners_know_which_links_are_alike() -> None:
    game = congestion_game("sndlib/polska", pairs=12)
    pooled, alone = (Learners(game, am.SelfTuning, pooled) for pooled in (True, False))
    rows = game.play({"pooled": pooled, "alone": alone, "even": Fixed(am.uniform_policy(game.mdp.skeleton))}, 60)
    paid = dict(zip(*(rows.table()[key] for key in ("method", "delay_all")), strict=True))
    assert paid["pooled"] < paid["alone"] < paid["even"]


def test_standard_routers_take_references_that_are_known() -> None:
    game = congestion_game(two_ways(), load=None, deflection=0.0, demands=MATRICES)
    known = {"best": reference(game, "optimum")}
    assert list(standard_routers(game, 10, references=known))[-1] == "best"
    assert "optimum" not in standard_routers(game, 10, references={})
