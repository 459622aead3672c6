"""One flow through a network: each node chooses the next hop, and link costs change.

An episode sends a packet, or a flow as a whole, from ``source`` to ``destination`` in a topology (``topology.py``)
within ``hops`` hops.  A layer is a hop, a state is a hop and a node, and an action is the neighbour to forward to.
On link k from v to u the packet is

    lost         with probability loss * (1/2 + a_k)
    deflected    with probability deflection * (1/2 + b_k), to another neighbour w of v that is drawn in proportion to
                 1/2 + c of the link v -> w; with probability 0 if v has no other neighbour
    else it arrives at u; since loss + deflection <= 1/3, this has probability at least 1/2

with a, b, c uniform in [0, 1) for each link, drawn from the seed ``world``.  The learner knows none of them.  After
delivery or loss the packet waits at no cost.

Irrelevant states are omitted.  A node that is further from the destination than the remaining hops is not a state: a
packet that is deflected there counts as lost at once.  Delivery probabilities are therefore exact; only the costs of
such a hopeless walk are not charged.  No action aims at such a node.  Unreachable states are omitted too.  Every other
state has an action, since the distance to the destination falls by one along a shortest path.

Link costs are delay, congestion and price, each in [0, 1].  A delivered packet pays the costs of its links.  A lost
packet pays ``penalty`` in each kind, and the costs of its links except the last one.  Losses are costs divided by the
penalty,

    l_t[i] = c_t[link of i] / penalty,     1 if i loses the packet,     0 if it waits.

A delivery costs at most 1 per hop.  With penalty >= hops, which is the default, every loss is therefore worse than any
delivery.  The criteria are

    objective   "worst": the largest of the three expected costs of an episode (WorstCase)
                "delay", "congestion", "price": the expected cost of that kind (TotalLoss, or Risk over the hops)
    weights     one cost, the weighted mean with weights (delay, congestion, price)

    money = scale * loss,   scale = penalty * (the worth of a cost of 1): in milliseconds for delay, else 1.

The generator is a pure function of (seed, episode).  For each link,

    delay       is 0.6 * length / longest + 0.4 * queue: light in fibre takes 1 ms for 200 km, so a cost of 1 is
                longest / 120 ms; the queue drifts through uniform knots every ``period`` episodes, joined smoothly
    congestion  is min(1, 0.6 * load + 0.4 * burst): the load rises and falls every ``day`` episodes, with a height and
                a phase of its own for each link; a burst has probability ``bursts`` in each episode
    price       is uniform from 0.1 to 1, redrawn every ``period`` episodes, at different times for different links

``rivals`` are other traffic that changes queue and load:  x -> (1 - strength) x + strength * pressure,

    "alternate" the pressure is 1 on one half of the links in even episodes, 1 on the other half in odd episodes, and
                0 elsewhere: the others all follow the last measurement, as in the first delay-based routing
    "answer"    the pressure on a link is the share of our own flow that used it in the previous episode.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from os import PathLike
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.core.arrays import FloatArray, exact_floats, floats, fraction, frozen
from advmdp.core.errors import InputError
from advmdp.core.optional import optional
from advmdp.core.streams import stream_key, uniforms
from advmdp.criteria import TotalLoss, WorstCase
from advmdp.losses import Losses, Policies, drift
from advmdp.model.mdp import MDP
from advmdp.model.occupancy import occupancy
from advmdp.model.policy import checked_policy, uniform_policy
from advmdp.model.skeleton import Skeleton
from advmdp.scenarios.base import (
    MOST_STEPS,
    Accounted,
    Scenario,
    UnitCosts,
    at_most,
    cycled,
    labels,
    positive,
    recorded,
    span,
)
from advmdp.scenarios.network.link_costs import COSTS, costs_from_file, rates_from_file
from advmdp.scenarios.network.topology import Topology, topology_from

PACKAGES = ("networkx", "topohub")
"""Packages whose versions can change the world."""

DELIVERED, LOST = -1, -2
"""Places of a packet that are not nodes."""
ENDS = {DELIVERED: "delivered", LOST: "lost"}
KM_PER_MS = 200.0
PROPAGATION = 0.6
"""The share of propagation in a delay; the rest is queueing."""


class Costs(Protocol):
    """Link costs of episodes first, ..., stop - 1: (episodes, links, 3); pressure is (episodes, links)."""

    def __call__(self, first: int, stop: int, pressure: FloatArray | None = None, /) -> FloatArray: ...


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Routing(Scenario):
    """The routing scenario, with the link of each transition."""

    topology: Topology
    source: str
    destination: str
    hops: int
    link: NDArray[np.int64]
    """(num_transitions,): the link that a transition uses, or -1 if the packet waits or is lost."""

    def flow(self, q: ArrayLike) -> FloatArray:
        """(links,): the expected number of times that an episode with occupancy measure ``q`` uses each link."""
        return by_link(self.link, len(self.topology.links), exact_floats(q, "q", self.link.shape))

    def delivery(self, q: ArrayLike) -> float:
        """The probability that the packet is delivered."""
        sk = self.mdp.skeleton
        ends = range(int(sk.layer_ptr[self.hops]), int(sk.layer_ptr[self.hops + 1]))
        (x,) = (x for x in ends if sk.state_label(x).endswith(ENDS[DELIVERED]))
        first = int(sk.transition_ptr[sk.pair_ptr[x]])
        return float(exact_floats(q, "q", self.link.shape)[first])


@dataclass(frozen=True, eq=False)
class Network:
    """The dynamics of a packet."""

    topology: Topology
    source: int
    destination: int
    hops: int
    distance: Mapping[int, int]
    """The number of hops to the destination, for each node that can reach it."""
    lost: FloatArray
    deflected: FloatArray
    preferred: FloatArray
    """(links,) each: the probabilities and the weights of the module docstring."""
    closed: frozenset[int] = frozenset()
    """Nodes that no path passes through; paths may start or end there."""

    @cached_property
    def links_from(self) -> list[dict[int, int]]:
        """For each node: neighbour -> link."""
        found: list[dict[int, int]] = [{} for _ in self.topology.nodes]
        for k, (source, target) in enumerate(self.topology.links.tolist()):
            found[source][target] = k
        return found

    def comes_to(self, hop: int, node: int) -> int:
        """The place of a packet that reaches a node after ``hop`` hops."""
        if node == self.destination:
            return DELIVERED
        return node if node not in self.closed and self.distance.get(node, math.inf) <= self.hops - hop else LOST

    def name(self, hop: int, place: int) -> str:
        return f"{hop} {ENDS[place] if place in ENDS else self.topology.nodes[place]}"

    def steps(self) -> Iterator[tuple[tuple[str, str, str, float], int]]:
        """Every possible transition as a row of MDP.from_steps, and its link, or LOST, or DELIVERED if it waits."""
        places = {self.source}
        for hop in range(self.hops):
            following = set()
            for place in sorted(places, reverse=True):
                for action, there, probability, link in self.outcomes(hop, place):
                    following.add(there)
                    yield (self.name(hop, place), action, self.name(hop + 1, there), probability), link
            places = following
        for place in sorted(places, reverse=True):
            yield (self.name(self.hops, place), "end", "end", 1.0), DELIVERED

    def mdp(self) -> tuple[MDP, NDArray[np.int64]]:
        """The loop-free MDP, and for each transition its link, or LOST, or DELIVERED if it waits."""
        steps = list(self.steps())
        made = MDP.from_steps([row for row, _ in steps])
        return made, _aligned(made, steps)

    def outcomes(self, hop: int, place: int) -> Iterator[tuple[str, int, float, int]]:
        """(action, next place, probability, link) of every outcome."""
        if place in ENDS:
            yield "wait", place, 1.0, DELIVERED
            return
        ways = self.links_from[place]
        for aimed, link in ways.items():
            if self.comes_to(hop + 1, aimed) == LOST:
                continue
            others = {node: self.preferred[k] for node, k in ways.items() if node != aimed}
            turned = self.deflected[link] if others else 0.0
            chances = {aimed: 1.0 - self.lost[link] - turned}
            chances |= {node: turned * weight / sum(others.values()) for node, weight in others.items()}
            lost = float(self.lost[link])
            for node, chance in chances.items():
                there = self.comes_to(hop + 1, node)
                if there == LOST:
                    lost += float(chance)
                elif chance > 0.0:
                    yield self.topology.nodes[aimed], there, float(chance), ways[node]
            if lost > 0.0:
                yield self.topology.nodes[aimed], LOST, lost, LOST


def scenario(
    topology: Any = "topozoo/Abilene",
    source: str | None = None,
    destination: str | None = None,
    hops: int | None = None,
    deflection: float = 0.1,
    loss: float = 0.02,
    world: int = 0,
    penalty: float | None = None,
    objective: str | None = None,
    weights: Sequence[float] | None = None,
    period: int = 50,
    day: int = 100,
    bursts: float = 0.1,
    rivals: Literal["alternate", "answer"] | None = None,
    strength: float = 0.8,
    file: str | PathLike[str] | None = None,
    scale: float | Mapping[str, float] | None = None,
    failures: str | PathLike[str] | None = None,
    cycle: bool = False,
) -> Routing:
    """Make the routing scenario; ``topology`` is a name in topohub, a networkx graph or a Topology.

    By default, source and destination are the connected pair of nodes that are most hops apart (the first such pair, or
    the node farthest from the given end).  ``hops`` defaults to two more than the fewest possible, ``penalty`` to
    ``hops``, and the objective to "worst".

    With ``file``, ``link_costs.py`` reads the costs with ``scale``, and the parameters of the generator are ignored.
    The objective then defaults to "worst" over the kinds of cost in the file, or to its only kind.  With ``cycle``, the
    file repeats when it ends.  ``failures`` is a file of measured rates of loss and deflection (``link_costs.py``); a
    rate without a column is drawn.
    """
    net = network(topology_from(topology), source, destination, hops, deflection, loss, world)
    mdp, link = net.mdp()
    if failures is not None:
        used = np.unique(link[link >= 0])
        lost, deflected = rates_from_file(failures, net.topology, used, net.lost, net.deflected)
        net = replace(net, lost=lost, deflected=deflected)
        mdp, link = net.mdp()
    price = float(net.hops) if penalty is None else positive("penalty", penalty)
    if price < 1.0:
        raise InputError("penalty", f"{penalty!r}", "a number, 1 or more: one link can cost 1")
    given = None if file is None else costs_from_file(file, net.topology, np.unique(link[link >= 0]), scale)
    if given is None and scale is not None:
        raise InputError("scale", f"{scale!r}", "a file too, or no scale")
    kinds = COSTS if given is None else given.kinds
    mix = _mix(kinds, objective, weights)
    several = len(kinds) if mix is None else None
    items = np.where(link == LOST, len(net.topology.links), np.maximum(link, 0))[:, None]
    quantities = np.where(link == LOST, 1.0, np.where(link >= 0, 1.0 / price, 0.0))[:, None]
    episodes = None if given is None or _flag("cycle", cycle) else len(given.times)

    def losses_from(seed: int) -> Losses:
        costs: Costs | UnitCosts = (
            (cycled if cycle else recorded)(given.values)
            if given is not None
            else generated_costs(net.topology, seed, period, day, bursts, rivals, strength)
        )

        def priced(*place: Any) -> FloatArray:
            return _priced(costs(*place), mix)

        if rivals == "answer" and given is None:
            return Answering(mdp, partial(by_link, link, len(net.topology.links)), items, quantities, priced, several)
        return Accounted(mdp.skeleton, items, quantities, priced, several, 0.0, episodes)

    losses_from(0)  # so that bad parameters raise now
    single = [kind for kind, weight in zip(kinds, mix, strict=True) if weight == 1.0] if mix is not None else []
    units = {"delay": delay_unit(net.topology)} if given is None else given.scale
    return Routing(
        "routing",
        mdp,
        losses_from,
        WorstCase() if mix is None else TotalLoss(),
        price * (units.get(single[0], 1.0) if single else 1.0),
        0.0,
        episodes,
        unit="ms" if single == ["delay"] and given is None else "cost",
        kinds=link_kinds(mdp.skeleton, net.topology, link),
        topology=net.topology,
        source=net.topology.nodes[net.source],
        destination=net.topology.nodes[net.destination],
        hops=net.hops,
        link=frozen(np.maximum(link, -1)),
    )


def _flag(name: str, value: bool) -> bool:
    if not isinstance(value, bool):
        raise InputError(name, f"{value!r}", "true or false")
    return value


def network(
    topology: Topology,
    source: str | None,
    destination: str | None,
    hops: int | None,
    deflection: float,
    loss: float,
    world: int,
) -> Network:
    """Make the dynamics of a packet; parameters and defaults are those of :func:`scenario`."""
    if ends := [name for name in topology.nodes if name in ENDS.values()]:
        raise InputError(f"{topology.name}, node {ends[0]}", "a reserved name", "another label")
    begin, end, ways = _ends(topology, source, destination)
    fewest = ways[begin]
    limit = fewest + 2 if hops is None else at_most("hops", hops, 1, MOST_STEPS)
    if limit < fewest:
        route = f"{topology.nodes[begin]} to {topology.nodes[end]}"
        raise InputError("hops", f"{limit}", f"{fewest} or more: {route} takes {fewest}")
    if fraction("deflection", deflection) + fraction("loss", loss) > 1.0 / 3.0:
        raise InputError("deflection and loss", f"{deflection} and {loss}", "a sum of at most 1/3")
    lost, deflected, preferred = uniforms(stream_key(world, "routing", "links"), 0, 3, len(topology.links)) + 0.5
    return Network(topology, begin, end, limit, ways, loss * lost, deflection * deflected, preferred)


def _ends(topology: Topology, source: str | None, destination: str | None) -> tuple[int, int, dict[int, int]]:
    """Source, destination, and the number of hops to the destination from each node that can reach it."""
    with optional:
        import networkx as nx

    graph, ways_from = topology.graph, nx.single_source_shortest_path_length
    begin, end = (None if name is None else topology.nodes[topology.node(str(name))] for name in (source, destination))
    if end is None:
        starts = topology.nodes if begin is None else (begin,)
        found = ((length, a, b) for a in starts for b, length in ways_from(graph, a).items())
        _, begin, end = max(found, key=lambda way: way[0])
    back: dict[str, int] = ways_from(graph.reverse(copy=False), end)
    if begin is None:
        begin = max(back, key=back.__getitem__)
    if begin == end and None in (source, destination):
        given = (
            f"no path from {begin} to another node" if destination is None else f"no path from another node to {end}"
        )
        raise InputError(topology.name, given, "a connected source and destination")
    if begin == end:
        raise InputError(topology.name, f"source and destination {begin}", "two different connected nodes")
    if begin not in back:
        raise InputError(topology.name, f"no path from {begin} to {end}", "a reachable destination")
    return topology.node(begin), topology.node(end), {topology.node(name): length for name, length in back.items()}


def _aligned(mdp: MDP, steps: list[tuple[tuple[str, str, str, float], int]]) -> NDArray[np.int64]:
    """The link of every transition, in the skeleton's order."""
    sk = mdp.skeleton
    found = {row[:3]: link for row, link in steps}
    states, actions = sk.state_names or (), sk.action_names or ()
    pairs = sk.over_transitions(np.arange(sk.num_pairs))
    before = sk.state_of_pair[pairs]
    return np.array(
        [
            found[states[x], actions[p], states[y]]
            for x, p, y in zip(before.tolist(), pairs.tolist(), sk.successor.tolist(), strict=True)
        ]
    )


def link_kinds(sk: Skeleton, topology: Topology, link: NDArray[np.int64]) -> tuple[int, ...]:
    """Label the outcomes: links with the same number of outcomes are alike (arrive, be lost, or be deflected).

    ``link`` is the link of each transition, or a negative number.
    """
    aimed = [topology.nodes[target] for target in topology.links[:, 1]]
    actions, found = sk.action_names or (), []
    for p, (first, last) in enumerate(pairwise(sk.transition_ptr.tolist())):
        turned = 0
        for k in link[first:last].tolist():
            arrives = k >= 0 and aimed[k] == actions[p]
            role = -2 if k < 0 else -1 if arrives else turned
            turned += role >= 0
            found.append((last - first, role))
    return labels(found)


def _mix(kinds: tuple[str, ...], objective: str | None, weights: Sequence[float] | None) -> tuple[float, ...] | None:
    """The weight of each kind in one cost; None if all are kept apart for the worst case."""
    if weights is not None:
        if objective is not None:
            raise InputError("weights", f"with objective {objective!r}", "weights or an objective, not both")
        given = floats(weights, "weights")
        if given.shape != (len(kinds),) or not (given >= 0.0).all() or not 0.0 < given.sum() < np.inf:
            raise InputError("weights", f"{weights!r}", f"numbers of 0 or more for {', '.join(kinds)}, not all 0")
        return tuple(float(weight) for weight in given / given.sum())
    if objective is None:
        return None if len(kinds) > 1 else (1.0,)
    if not isinstance(objective, str) or objective not in ("worst", *kinds):
        raise InputError("objective", f"{objective!r}", f"one of worst, {', '.join(kinds)}")
    return None if objective == "worst" else tuple(float(kind == objective) for kind in kinds)


def _priced(costs: FloatArray, mix: tuple[float, ...] | None) -> FloatArray:
    """The relevant costs, and one more item for the cost of a lost packet, in units of the penalty."""
    if mix is not None:
        # Summing term by term gives an episode the same bytes in any block.
        costs = sum((weight * costs[:, :, j : j + 1] for j, weight in enumerate(mix) if weight), np.zeros(()))
    return np.concatenate([costs, np.ones((len(costs), 1, costs.shape[2]))], axis=1)


def delay_unit(topology: Topology) -> float:
    """The milliseconds of a delay cost of 1, for lengths in kilometres."""
    return float(topology.length.max()) / KM_PER_MS / PROPAGATION or 1.0


def by_link(link: NDArray[np.int64], links: int, q: FloatArray) -> FloatArray:
    """The expected number of times that an episode with occupancy measure ``q`` uses each link."""
    used = link >= 0
    return np.bincount(link[used], q[used], links).astype(np.float64)


class Answering(Accounted):
    """Costs that react to our own flow in the previous episode; before the first, to the uniform policy's flow."""

    memory = 1

    def __init__(
        self,
        mdp: MDP,
        flow: Callable[[FloatArray], FloatArray],
        items: NDArray[np.int64],
        quantities: FloatArray,
        costs: Costs,
        dimensions: int | None,
    ) -> None:
        """``flow`` maps an occupancy measure to the use of each link; ``costs`` takes this as pressure."""
        super().__init__(mdp.skeleton, items, quantities, lambda *_: np.empty(0), dimensions)
        self._mdp, self._flow, self._answer = mdp, flow, costs

    def _block(self, first: int, stop: int, policies: Policies | None) -> FloatArray:
        shares = [self._share(t, policies) for t in range(first, stop)]
        return self._accounted(self._answer(first, stop, np.array(shares) if shares else None))

    def _share(self, t: int, policies: Policies | None) -> FloatArray:
        """The share of the flow of episode t - 1 that used each link."""
        sk = self.skeleton
        try:
            policy = uniform_policy(sk) if t == 0 else checked_policy(sk, policies[t - 1])  # type: ignore[index]
        except (LookupError, TypeError):
            raise InputError("policies", f"nothing for episode {t - 1}", "the policy played in it") from None
        return np.minimum(self._flow(occupancy(self._mdp, policy)), 1.0)  # a packet may use a link twice


def generated_costs(
    topology: Topology,
    seed: int,
    period: int = 50,
    day: int = 100,
    bursts: float = 0.1,
    rivals: Literal["alternate", "answer"] | None = None,
    strength: float = 0.8,
) -> Costs:
    """The generator of the module docstring; with rivals="answer" the costs need the pressure."""
    span("period", period)
    span("day", day)
    fraction("bursts", bursts)
    if not isinstance(rivals, str | None) or rivals not in (None, "alternate", "answer"):
        raise InputError("rivals", f"{rivals!r}", "'alternate', 'answer' or none")
    share = 0.0 if rivals is None else fraction("strength", strength)
    m, longest = len(topology.links), float(topology.length.max())
    queues, struck, prices = (stream_key(seed, "routing", name) for name in ("queues", "bursts", "prices"))
    height, phase, offset, half = uniforms(stream_key(seed, "routing", "habits"), 0, 4, m)
    propagation = topology.length / longest if longest > 0.0 else np.zeros(m)
    turn = np.floor(offset * period).astype(np.int64)

    def costs(first: int, stop: int, pressure: FloatArray | None = None) -> FloatArray:
        t = np.arange(stop - first)[:, None]
        queue = drift(queues, period, m, first, stop)
        load = (0.5 + 0.5 * height) * _wave((first % day + t) % day / day + phase)
        if rivals == "alternate":
            pressure = ((first % 2 + t) % 2 == (half < 0.5)).astype(np.float64)
        if pressure is not None:
            queue, load = (1.0 - share) * queue + share * pressure, (1.0 - share) * load + share * pressure
        burst = uniforms(struck, first, stop - first, m) < bursts
        epoch = (first % period + t + turn) // period
        drawn = uniforms(prices, first // period, int(epoch.max(initial=0)) + 1, m)
        kinds = (
            PROPAGATION * propagation + (1.0 - PROPAGATION) * queue,
            np.minimum(1.0, 0.6 * load + 0.4 * burst),
            0.1 + 0.9 * drawn[epoch, np.arange(m)],
        )
        return np.stack(kinds, axis=2)

    return costs


def _wave(turns: FloatArray) -> FloatArray:
    """Rise smoothly from 0.2 to 1 and back in every turn."""
    up = 1.0 - np.abs(2.0 * (turns % 1.0) - 1.0)
    risen: FloatArray = 0.2 + 0.8 * up * up * (3.0 - 2.0 * up)
    return risen
