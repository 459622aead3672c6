"""Making a congestion game: a topology with demands, and capacities fitted to a load."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import frozen, is_number, whole
from advmdp.core.errors import InputError
from advmdp.core.optional import optional
from advmdp.model.mdp import MDP
from advmdp.model.skeleton import Skeleton
from advmdp.scenarios.base import MOST_STEPS, at_most, positive
from advmdp.scenarios.congestion.assignment import least_peak
from advmdp.scenarios.congestion.game import Commodity, CongestionGame, LinkDelays
from advmdp.scenarios.network.routing import KM_PER_MS, network
from advmdp.scenarios.network.topology import Topology, topology_from

Ints = NDArray[np.int64]
Part = tuple[str, str, float, MDP, Ints]


def congestion_game(
    topology: Any = "sndlib/nobel-germany",
    load: float | None = 0.75,
    slack: int = 2,
    pairs: int | None = None,
    deflection: float = 0.02,
    world: int = 0,
    service: float = 1.0,
    buffer: float = 250.0,
) -> CongestionGame:
    """The game on a topology with demands: a name in topohub, a networkx graph or a Topology.

    ``pairs`` keeps the largest so many demands.  ``load`` none takes the capacities of the graph as they are.
    """
    net = topology_from(topology)
    if load is not None and (not is_number(load) or not 0.0 < load < 1.0):
        raise InputError("load", f"{load!r}", "a number above 0 and below 1, or none")
    if load is None and net.capacity is None:
        raise InputError(net.name, "no capacities", "a load, or a graph with the attribute capacity at its links")
    extra = at_most("slack", slack, 0, MOST_STEPS)
    shape = positive("service", service), positive("buffer", buffer)
    parts = [_part(net, i, j, extra, deflection, world) for i, j in _wanted(net, pairs)]
    capacity = np.ones(len(net.links)) if net.capacity is None else net.capacity
    game = _side_by_side(net, parts, LinkDelays(net.length / KM_PER_MS, capacity, *shape))
    if load is None:
        return game
    fitted = frozen(capacity * (least_peak(game) / load))
    return replace(game, delays=replace(game.delays, capacity=fitted), load=float(load))


def _wanted(net: Topology, pairs: int | None) -> list[tuple[int, int]]:
    """Who sends to whom, in the order of the nodes."""
    if net.demands is None or not net.demands.any():
        raise InputError(net.name, "no demands", "a graph with demands {node: {node: amount}}, as those of sndlib have")
    found = [(int(i), int(j)) for i, j in np.argwhere(net.demands > 0.0)]
    if pairs is not None:
        table = net.demands
        found = sorted(sorted(found, key=lambda way: -table[way])[: whole("pairs", pairs, 1)])
    return found


def _part(net: Topology, i: int, j: int, slack: int, deflection: float, world: int) -> Part:
    with optional:
        import networkx as nx

    source, destination = net.nodes[i], net.nodes[j]
    if not nx.has_path(net.graph, source, destination):
        given = f"a demand from {source} to {destination}, and no way"
        raise InputError(net.name, given, "destinations that can be reached")
    hops = nx.shortest_path_length(net.graph, source, destination) + slack
    mdp, link = network(net, source, destination, hops, deflection, 0.0, world).mdp()
    assert net.demands is not None
    return source, destination, float(net.demands[i, j]), mdp, link


def _side_by_side(net: Topology, parts: list[Part], delays: LinkDelays) -> CongestionGame:
    """One MDP: a start, from which commodity i is drawn by its demand; who has ended waits in one common state."""
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
        made.append(Commodity(source, destination, demand, mdp, frozen(link), frozen(where), frozen(moves)))
    mdp = MDP(Skeleton(layer_ptr, pair_ptr, transition_ptr, successor), chance)
    return CongestionGame(net, tuple(made), mdp, frozen(links), delays)


def _places(skeletons: list[Skeleton]) -> tuple[list[int], list[Ints], Ints]:
    """Layers of the whole; where each commodity's states are in it; the states in which those wait who have ended."""
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
                place[-1] = -1 - k  # its number is known when all others of the layer are
        if any(sk.num_steps <= k for sk in skeletons):
            for place in states:
                place[-1] = count if place[-1] == -1 - k else place[-1]
            ends.append(count)
            count += 1
        layer_ptr.append(count)
    return layer_ptr, states, np.array(ends)


def _within(ptr: Ints, owner: Ints, own_ptr: Ints, own: Ints) -> Ints:
    """The places of things of the whole that belong to ``owner``, in the order that they have in their own MDP."""
    return ptr[owner] + np.arange(len(own)) - own_ptr[own]
