"""Makes a congestion game from a topology with demands, with capacities fitted to a load."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray, frozen, is_number, whole
from advmdp.core.errors import InputError
from advmdp.core.optional import optional
from advmdp.model.mdp import MDP
from advmdp.model.skeleton import Skeleton
from advmdp.scenarios.base import MOST_STEPS, at_most, positive
from advmdp.scenarios.congestion.assignment import least_peak
from advmdp.scenarios.congestion.delays import (
    Function,
    LinkDelays,
    OwnDelays,
    QueueDelays,
    check_function,
    crowded,
    road_delays,
)
from advmdp.scenarios.congestion.game import Commodity, CongestionGame
from advmdp.scenarios.congestion.matrices import matrices_of
from advmdp.scenarios.network.routing import KM_PER_MS, link_kinds, network
from advmdp.scenarios.network.topology import Topology, topology_from

BUFFER = 250.0
"""The default limit of a queue, in milliseconds."""
B, POWER = 0.15, 4.0
"""The usual parameters of BPR."""
Ints = NDArray[np.int64]
Part = tuple[str, str, float, MDP, Ints]


def congestion_game(
    topology: Any = "sndlib/nobel-germany",
    load: float | None = 0.75,
    slack: int = 3,
    pairs: int | None = None,
    deflection: float = 0.02,
    world: int = 0,
    service: float = 1.0,
    buffer: float | None = None,
    delays: Literal["mm1", "bpr"] | Function | LinkDelays = "mm1",
    derivative: Function | None = None,
    demands: Any = None,
    zones: Collection[str] = (),
) -> CongestionGame:
    """Make a congestion game on a topology with demands.

    Parameters
    ----------
    topology
        A name in topohub, a networkx graph or a Topology.
    load
        The peak utilisation of the best possible routing; one factor scales all capacities to reach it, for the mean
        demands if demands change. None keeps the capacities of the graph.
    slack
        The number of hops that a packet may take beyond the fewest.
    pairs
        Keep only this many demands, the largest ones.
    deflection, world
        The mean probability that a link deflects a packet, and the seed from which each link's probability is drawn.
    service
        The service time of an "mm1" queue, in ms.
    buffer
        The most that a queue adds to the delay of an empty link. The default is 250 ms for "mm1", and ten times the
        longest free delay otherwise.
    delays
        "mm1": propagation and a queue. "bpr": propagation as free-flow time, with b = 0.15 and power 4. Or a function
        of (flow, capacity), both arrays over ``topology.links``, that is increasing and convex in the flow. Or a
        :class:`scenarios.congestion.LinkDelays`.
    derivative
        The derivative of such a function by the flow. The default is finite differences. Only the optimum needs it.
    demands
        Demands that change from episode to episode and replace the topology's: a table {node: {node: amount}} for each
        episode, or an array (episodes, nodes, nodes). They repeat when they end.
    zones
        Nodes that no route passes through.

    Returns
    -------
    CongestionGame
        The game.

    Raises
    ------
    InputError
        If the topology, its demands or a parameter is invalid.

    Examples
    --------
    >>> import networkx as nx
    >>> from advmdp.scenarios.congestion import congestion_game
    >>> ring = nx.cycle_graph(["north", "east", "south", "west"])
    >>> ring.graph["demands"] = {"north": {"south": 5.0}}
    >>> game = congestion_game(ring, delays=lambda flow, capacity: 1.0 + (flow / capacity) ** 2)
    >>> len(game.commodities), game.delays.free.tolist()[:2]
    (1, [1.0, 1.0])
    """
    net = topology_from(topology)
    if load is not None and (not is_number(load) or not 0.0 < load < 1.0):
        raise InputError("load", f"{load!r}", "a number above 0 and below 1, or none")
    if load is None and net.capacity is None and not isinstance(delays, LinkDelays):
        raise InputError(net.name, "no capacities", "a load, or a graph whose edges have a capacity")
    extra = at_most("slack", slack, 0, MOST_STEPS)
    capacity = np.ones(len(net.links)) if net.capacity is None else net.capacity
    made = _delays(net, capacity, delays, derivative, positive("service", service), buffer)
    closed = frozenset(net.node(name) for name in zones)
    tables = net.demands[None] if demands is None and net.demands is not None else matrices_of(net, demands)
    ways = _wanted(net, tables.mean(axis=0), pairs)
    parts = [_part(net, i, j, amount, extra, deflection, world, closed) for i, j, amount in ways]
    game = replace(_side_by_side(net, parts, made), zones=closed)
    if demands is not None:
        game = replace(game, matrices=frozen(np.array([tables[:, i, j] for i, j, _ in ways]).T))
    if load is not None:
        fitted = frozen(capacity * (least_peak(game) / load))
        game = replace(game, delays=game.delays.with_capacity(fitted), load=float(load))
    if isinstance(game.delays, OwnDelays):
        game = replace(game, delays=replace(game.delays, buffer=_limit(buffer) or crowded(game.delays)))
        check_function(game.delays, float(max(game.demands(t).sum() for t in range(len(tables)))), net.link)
    return game


def _limit(buffer: float | None) -> float | None:
    return None if buffer is None else positive("buffer", buffer)


def _delays(
    net: Topology, capacity: FloatArray, given: Any, derivative: Function | None, service: float, buffer: float | None
) -> LinkDelays:
    free, ones, limit = net.length / KM_PER_MS, np.ones(len(capacity)), _limit(buffer)
    if derivative is not None and not (callable(given) and callable(derivative)):
        raise InputError("derivative", f"{derivative!r}", "a function, and only if delays are a function too")
    if isinstance(given, LinkDelays):
        if given.capacity.shape != capacity.shape:
            raise InputError("delays", f"{len(given.capacity)} links", f"the {len(capacity)} links of {net.name}")
        return given
    if callable(given):
        return OwnDelays(capacity, 1.0, "ms", given, derivative)
    if given == "mm1":
        return QueueDelays(capacity, limit or BUFFER, "ms", free, service)
    if given == "bpr":
        return road_delays(capacity, free, B * ones, POWER * ones, 0.0 * ones, limit, "ms")
    raise InputError("delays", f"{given!r}", "'mm1', 'bpr', a function of (flow, capacity), or LinkDelays")


def _wanted(net: Topology, table: FloatArray, pairs: int | None) -> list[tuple[int, int, float]]:
    """(source, destination, amount) of each demand, in the order of the nodes."""
    found = [(int(i), int(j), float(table[i, j])) for i, j in np.argwhere(table > 0.0)]
    if not found:
        raise InputError(net.name, "no demands", "a graph with demands {node: {node: amount}}, such as those of sndlib")
    if pairs is not None:
        found = sorted(sorted(found, key=lambda way: -way[2])[: whole("pairs", pairs, 1)])
    return found


def _part(
    net: Topology, i: int, j: int, demand: float, slack: int, deflection: float, world: int, closed: frozenset[int]
) -> Part:
    with optional:
        import networkx as nx

    source, destination = net.nodes[i], net.nodes[j]
    shut = [net.nodes[k] for k in closed - {i, j}]
    returns = list(net.graph.in_edges(source)) if i in closed else []  # a source that is a zone is not passed through
    back = nx.restricted_view(net.graph, shut, returns).reverse(copy=False)
    hops = nx.single_source_shortest_path_length(back, destination)
    if source not in hops:
        given = f"a demand from {source} to {destination}, but no path"
        raise InputError(net.name, given, "reachable destinations")
    moving = network(net, source, destination, hops[source] + slack, deflection, 0.0, world)
    distance = {net.node(name): length for name, length in hops.items()}
    mdp, link = replace(moving, distance=distance, closed=closed).mdp()
    return source, destination, demand, mdp, link


def _side_by_side(net: Topology, parts: list[Part], delays: LinkDelays) -> CongestionGame:
    """Combine all commodities into one MDP: its first step draws a commodity by demand; finished ones share a state."""
    skeletons = [mdp.skeleton for *_, mdp, _ in parts]
    layer_ptr, states, ends = _places(skeletons)
    count = layer_ptr[-1]
    actions = np.ones(count, np.int64)
    actions[-1] = 0
    for sk, place in zip(skeletons, states, strict=True):
        actions[place[:-1]] = np.diff(sk.pair_ptr)[:-1]
    pair_ptr = np.append(0, np.cumsum(actions))
    pairs = [
        _within(pair_ptr, place[sk.state_of_pair], sk.pair_ptr, sk.state_of_pair)
        for sk, place in zip(skeletons, states, strict=True)
    ]
    rows = np.ones(pair_ptr[-1], np.int64)
    rows[0] = len(parts)
    for sk, place in zip(skeletons, pairs, strict=True):
        rows[place] = np.diff(sk.transition_ptr)
    transition_ptr = np.append(0, np.cumsum(rows))
    successor = np.zeros(transition_ptr[-1], np.int64)
    chance, links = np.ones(len(successor)), np.full(len(successor), -1)
    successor[transition_ptr[pair_ptr[ends[:-1]]]] = ends[1:]
    successor[: len(parts)] = [place[0] for place in states]
    demands = np.array([demand for _, _, demand, _, _ in parts])
    chance[: len(parts)] = demands / demands.sum()
    made = []
    for part, sk, place, where in zip(parts, skeletons, states, pairs, strict=True):
        source, destination, demand, mdp, link = part
        pair = sk.over_transitions(np.arange(sk.num_pairs))
        moves = _within(transition_ptr, where[pair], sk.transition_ptr, pair)
        successor[moves], chance[moves], links[moves] = place[sk.successor], mdp.transition, link
        kinds = link_kinds(sk, net, link)
        made.append(Commodity(source, destination, demand, mdp, frozen(link), frozen(where), frozen(moves), kinds))
    mdp = MDP(Skeleton(layer_ptr, pair_ptr, transition_ptr, successor), chance)
    return CongestionGame(net, tuple(made), mdp, frozen(links), delays)


def _places(skeletons: list[Skeleton]) -> tuple[list[int], list[Ints], Ints]:
    """The layers of the whole game, the indices of each commodity's states, and the shared states of ended packets."""
    states = [np.empty(sk.num_states, np.int64) for sk in skeletons]
    layer_ptr, ends = [0, 1], []
    for k in range(max(sk.num_steps for sk in skeletons) + 1):
        count = layer_ptr[-1]
        for sk, place in zip(skeletons, states, strict=True):
            if k < sk.num_steps:
                first, last = (int(n) for n in sk.layer_ptr[k : k + 2])
                place[first:last] = np.arange(count, count + last - first)
                count += last - first
            elif k == sk.num_steps:
                place[-1] = -1 - k  # numbered below, after all other states of the layer
        if any(sk.num_steps <= k for sk in skeletons):
            for place in states:
                place[-1] = count if place[-1] == -1 - k else place[-1]
            ends.append(count)
            count += 1
        layer_ptr.append(count)
    return layer_ptr, states, np.array(ends)


def _within(ptr: Ints, owner: Ints, own_ptr: Ints, own: Ints) -> Ints:
    """The indices in the whole game of a commodity's pairs or transitions, in the order of its own MDP."""
    return ptr[owner] + np.arange(len(own)) - own_ptr[own]
