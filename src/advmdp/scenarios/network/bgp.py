"""Traffic between autonomous systems: which neighbour to hand it to, when neighbours have policies of their own.

An episode is one delivery of traffic to ``destination``, from the AS ``source`` or, without one, from an AS that is
drawn by its share of all traffic (AS number k in a random order has a share in proportion to 1 / k).  In each of at
most ``hops`` steps the AS that has the traffic hands it to a neighbour, along a path that is valley-free (see
``as_graph.py``).  So a state is (step, AS, whether the path may still climb), and the actions are
the neighbours that are allowed and from which the destination can be reached in the steps that remain.  What then
happens is up to the neighbour v, and unknown to the learner:

    it takes the traffic, and the next state is v               1 - d_v - e_v
    it deflects it, in the same step, to one of its favourites  d_v, split between up to two
    it loses it                                                 e_v,  as does everyone who can no longer deliver in time

The favourites of v are neighbours over which it has a valley-free way to the destination: customers before peers
before providers, who pay, cost nothing and are paid; between equals its taste decides.  It does not send traffic
back to whom it came from, but takes it then.  With u uniform, for each AS, d_v = ``deflect`` * u and
e_v = ``lose`` * u (1 - d_v): a function of the ``seed`` of the world.  The destination deflects nothing.

Costs, in units of what a provider takes on average: a step costs the sum over the links it goes along, one, or two
where traffic is deflected, and what is lost costs LOST and nothing else.  In episode t link i costs

    c_t[i] = price[i] + delay[i] + congestion_t[i] + OUTAGE * out_t[i]
    price       up from 0 to 2, by link; PEERING across; 0 down, where the other side pays
    delay       from 0 to 1, by link; both are fixed
    congestion  from 0 to 1, knots every ``period`` episodes, joined smoothly
    out         a link is out for stretches of ``repair`` episodes, each with probability ``outages``

by the seed of the losses; l_t = cost / LOST, so money = LOST * loss.  LOST is more than any step can cost, so losses
are in [0, 1] as they come.
"""

from dataclasses import dataclass
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray, fraction, frozen
from advmdp.core.errors import InputError
from advmdp.core.streams import generator, stream_key, uniforms
from advmdp.criteria import TotalLoss
from advmdp.losses import Losses, Policies, drift
from advmdp.model.mdp import MDP
from advmdp.model.skeleton import Skeleton
from advmdp.model.tables import running
from advmdp.scenarios.base import MOST_STEPS, Scenario, UnitCosts, at_most, span
from advmdp.scenarios.network.as_graph import ACROSS, DOWN, UP, AsGraph, generated_as_graph, read_as_graph

PACKAGES = ("networkx",)
"""What a world is made with, whose versions count."""

Ints = NDArray[np.int64]
PEERING, OUTAGE, LOST = 0.2, 3.0, 15.0
FAVOURITES = 2


@dataclass(frozen=True, eq=False)
class Routes:
    """The MDP of traffic to one destination, and what its parts are in the graph."""

    graph: AsGraph
    destination: int
    """As a place in the graph, as is every AS here."""
    sources: Ints
    """Where traffic begins; without ASes that cannot reach the destination in so many hops."""
    mdp: MDP
    distance: FloatArray
    """Of every place of ``graph.ways`` the hops to the destination."""
    state_place: Ints
    """Of every state its place in ``graph.ways``; -1 for the start, the end, and what is delivered or lost."""
    pair_place: Ints
    """Of every pair the place it aims at; -1 where there is no choice."""
    links: Ints
    """The links of the graph that some transition goes along."""
    items: Ints
    """(transitions, 2): the links of each, as numbers in ``links``; len(links) is being lost, one more is nothing."""

    def shortest(self) -> FloatArray:
        """The policy of plain BGP: the fewest hops, customers before peers before providers, then the lowest number."""
        sk, ways = self.mdp.skeleton, self.graph.ways
        n, aim = ways.ases, self.pair_place
        origin = self.state_place[sk.state_of_pair]
        free = np.flatnonzero(aim >= 0)
        key = (ways.tail * (2 * n) + ways.head)[order := np.argsort(ways.tail * (2 * n) + ways.head)]
        link = ways.link[order[np.searchsorted(key, origin[free] * (2 * n) + aim[free])]]
        rank = np.zeros((2, sk.num_pairs))
        rank[0, free], rank[1, free] = self.distance[aim[free]], -self.graph.relation[link].astype(float)
        best = np.lexsort((np.arange(sk.num_pairs), rank[1], rank[0], sk.state_of_pair))[sk.pair_ptr[:-2]]
        policy = np.zeros(sk.num_pairs)
        policy[best] = 1.0
        return policy


def scenario(
    file: str | PathLike[str] | None = None,
    ases: int = 1000,
    source: int | None = None,
    destination: int | None = None,
    hops: int = 6,
    deflect: float = 0.8,
    lose: float = 0.1,
    seed: int = 0,
    period: int = 200,
    outages: float = 0.05,
    repair: int = 20,
) -> Scenario:
    """Traffic to one AS; ``source`` and ``destination`` are AS numbers.

    With ``file`` the graph is the user's own, as :func:`read_as_graph` reads it, else one of
    so many ``ases`` is generated.  ``destination`` is drawn, by ``seed``, among those that only buy, from several where
    there are such, unless it is said.
    """
    found = routes(graph_of(file, ases, seed), source, destination, hops, deflect, lose, seed)
    sk, relation = found.mdp.skeleton, found.graph.relation[found.links]

    def costs(loss_seed: int) -> UnitCosts:
        return generated_costs(loss_seed, relation, period, outages, repair)

    costs(0)  # what is wrong with the parameters is said now
    return Scenario(
        "bgp", found.mdp, lambda loss_seed: LinkLosses(sk, found.items, costs(loss_seed)), TotalLoss(), LOST, 0.0,
        unit="cost", kinds=neighbour_kinds(found),
    )  # fmt: skip


def neighbour_kinds(found: Routes) -> tuple[int, ...]:
    """All neighbours with as many outcomes are alike: they take the traffic, deflect it to a favourite, or lose it."""
    sk, none = found.mdp.skeleton, len(found.links) + 1
    width = sk.over_transitions(np.diff(sk.transition_ptr))
    place = np.arange(sk.num_transitions) - sk.over_transitions(sk.transition_ptr[:-1])
    lost, turned = found.items[:, 0] == none - 1, found.items[:, 1] < none
    before: Ints = np.cumsum(turned) - turned
    nth: Ints = before - before[sk.over_transitions(sk.transition_ptr[:-1])]
    role = np.where(lost, -1, np.where(turned, 1 + nth, 0))
    chosen = sk.over_transitions(found.pair_place >= 0)
    codes = np.column_stack([width, np.where(chosen, role, place), chosen])
    return tuple(np.unique(codes, axis=0, return_inverse=True)[1].ravel().tolist())


class LinkLosses(Losses):
    """The costs of one link or two.

    What :class:`advmdp.scenarios.base.Accounted` does, in one pass: with a million transitions each pass counts.
    """

    def __init__(self, skeleton: Skeleton, items: Ints, costs: UnitCosts) -> None:
        """``costs`` are in units of LOST and end with that of being lost, 1, and of nothing, 0."""
        super().__init__(skeleton)
        self._first = frozen(np.ascontiguousarray(items[:, 0]))
        self._deflected = frozen(np.flatnonzero(items[:, 1] < items.max()))
        self._second = frozen(items[self._deflected, 1])
        self._costs = costs

    def _block(self, first: int, stop: int, policies: Policies | None) -> FloatArray:
        costs = self._costs(first, stop)
        losses = np.empty((stop - first, self.skeleton.num_transitions))
        for row, cost in zip(losses, costs, strict=True):
            np.take(cost, self._first, out=row, mode="clip")  # the mode that needs no buffer
            row[self._deflected] += cost[self._second]
        return losses


def graph_of(file: str | PathLike[str] | None, ases: int, seed: int) -> AsGraph:
    """The user's own graph, or a generated one."""
    return generated_as_graph(ases, seed) if file is None else read_as_graph(file)


def generated_costs(
    seed: int, relation: NDArray[np.int8], period: int = 200, outages: float = 0.05, repair: int = 20
) -> UnitCosts:
    """(first, stop) -> what each link costs over LOST, then 1 and 0: (episodes, links + 2); see the head."""
    span("period", period)
    span("repair", repair)
    fraction("outages", outages)
    fixed_key, crowd, broken = (stream_key(seed, "bgp", name) for name in ("fixed", "congestion", "outages"))
    count = len(relation)
    drawn = uniforms(fixed_key, 0, 2, count)
    fixed = np.select([relation == UP, relation == ACROSS], [2.0 * drawn[0], PEERING], 0.0) + drawn[1]

    def costs(first: int, stop: int) -> FloatArray:
        values = np.empty((stop - first, count + 2))
        stretch = (first % repair + np.arange(stop - first)) // repair
        out = OUTAGE * (uniforms(broken, first // repair, int(stretch.max(initial=-1)) + 1, count) < outages)
        values[:, :count] = (fixed + drift(crowd, period, count, first, stop) + out[stretch]) / LOST
        values[:, count:] = 1.0, 0.0
        return values

    return costs


def routes(
    graph: AsGraph,
    source: int | None = None,
    destination: int | None = None,
    hops: int = 6,
    deflect: float = 0.8,
    lose: float = 0.1,
    seed: int = 0,
) -> Routes:
    """The MDP, layer by layer, each by whole-array operations."""
    n, limit = len(graph.numbers), at_most("hops", hops, 1, MOST_STEPS)
    goal = _drawn_destination(graph, seed) if destination is None else graph.place("destination", destination)
    distance = graph.ways.distances(goal)
    sources = _sources(graph, distance, source, goal, limit)
    neighbours = _Neighbours(graph, goal, distance, fraction("deflect", deflect), fraction("lose", lose), seed)
    here: Ints = sources
    layers = [] if source is not None else [_drawn_source(n, sources, seed)]
    for left in range(limit - 1, -1, -1):
        layers.append(neighbours.step(here, left))
        here = np.unique(layers[-1].successor)
    layers.append(_Layer.stay(here, 2 * n + 2))
    return _assembled(graph, goal, sources, distance, layers)


def _drawn_destination(graph: AsGraph, seed: int) -> int:
    """One of those that only buy, and if possible from several."""
    buys = np.where(graph.degrees(DOWN) == 0, np.minimum(graph.degrees(UP), 2), 0)
    if not buys.any():
        raise InputError("destination", f"none, and no AS of {graph.name} only buys", "the number of an AS")
    return int(generator(seed, "bgp", "destination").choice(np.flatnonzero(buys == buys.max())))


def _sources(graph: AsGraph, distance: FloatArray, source: int | None, goal: int, hops: int) -> Ints:
    """Where traffic begins: at the source, or at all that can reach the destination."""
    label = f"AS{graph.numbers[goal]}"
    if source is None:
        able = np.flatnonzero((distance[: len(graph.numbers)] <= hops) & (np.arange(len(graph.numbers)) != goal))
        if not len(able):
            given = f"{label}, which no AS can reach by a valley-free way of at most {hops} hops"
            raise InputError("destination", given, "an AS that some can reach")
        return able
    place = graph.place("source", source)
    if place == goal:
        raise InputError("source", f"{label}, the destination itself", "another AS")
    if not distance[place] <= hops:
        far = np.isinf(distance[place])
        given = f"AS{source}, from which " + ("no" if far else f"only a way of {distance[place]:.0f} hops")
        given += f"{' valley-free way' if far else ''} leads to {label}"
        raise InputError("source", given, "another source" if far else f"another source, or hops={distance[place]:.0f}")
    return np.array([place])


@dataclass(frozen=True, eq=False)
class _Layer:
    """The states of a layer, as codes, and what they lead to.

    A code is a place of the ways, 2 n for what is delivered, 2 n + 1 for what is lost, 2 n + 2 for the end; -1 is the
    start.
    """

    states: Ints
    pairs: Ints
    """How many each state has."""
    aim: Ints
    """The place each pair aims at, or -1."""
    widths: Ints
    """How many successors each pair has."""
    successor: Ints
    links: Ints
    """(transitions, 2): the links it goes along; -1 for none, -2 for being lost."""
    probability: FloatArray

    @classmethod
    def stay(cls, states: Ints, code: int) -> "_Layer":
        """All lead to one place for nothing."""
        ones, nothing = np.ones(len(states), np.int64), np.full((len(states), 2), -1)
        return cls(states, ones, -ones, ones, np.full(len(states), code), nothing, np.ones(len(states)))


def _drawn_source(n: int, sources: Ints, seed: int) -> _Layer:
    """The start: traffic begins at an AS by its share."""
    weights = 1.0 / (1.0 + generator(seed, "bgp", "shares").permutation(n)[sources])
    count, one = len(sources), np.ones(1, np.int64)
    nothing = np.full((count, 2), -1)
    return _Layer(-one, one, -one, np.array([count]), sources, nothing, weights / weights.sum())


class _Neighbours:
    """What becomes of traffic that is handed to an AS: one row of outcomes for each place it may arrive at."""

    def __init__(self, graph: AsGraph, goal: int, distance: FloatArray, deflect: float, lose: float, seed: int) -> None:
        n, ways = len(graph.numbers), graph.ways
        world = generator(seed, "bgp", "policies")
        taste, share = world.random(len(graph.tail)), world.random(n)
        deflected = deflect * world.random(n)
        lost = lose * world.random(n) * (1.0 - deflected)
        self.ways, self.delivered, self.lost = ways, 2 * n, 2 * n + 1
        self.distance = np.concatenate([distance, [0.0, 0.0]])
        # The best edges of every place, by (kind, taste), among those with a way to the destination, which has none.
        usable = np.flatnonzero(np.isfinite(distance[ways.head]) & (ways.tail % n != goal))
        link = ways.link[usable]
        order = usable[np.lexsort((taste[link], -graph.relation[link], ways.tail[usable]))]
        first = running(np.bincount(ways.tail[order], minlength=2 * n))
        self.edge = np.full((2 * n, FAVOURITES), -1)
        for k in range(FAVOURITES):
            has = np.flatnonzero(np.diff(first) > k)
            self.edge[has, k] = order[first[has] + k]
        own = np.tile(np.arange(n), 2)
        split = np.where(self.edge[:, 1] < 0, 1.0, 0.5 + 0.5 * share[own])
        weights = deflected[own, None] * np.stack([split, 1.0 - split], axis=1)
        self.deflected = np.where(self.edge < 0, 0.0, weights)
        self.losing = lost[own]
        self.goal = goal

    def step(self, states: Ints, left: int) -> _Layer:
        """All that can be done in these states, with so many steps left after it."""
        ways = self.ways
        moving = states < self.delivered
        some = np.where(moving, states, 0)
        counts = np.where(moving, ways.ptr[some + 1] - ways.ptr[some], 0)
        edge = np.repeat(ways.ptr[some] - running(counts)[:-1], counts) + np.arange(counts.sum())
        good = self.distance[ways.head[edge]] <= left
        owner, edge = np.repeat(np.arange(len(states)), counts)[good], edge[good]
        codes, links, chance = self.outcomes(edge, left)
        kept = chance > 0.0
        # What is delivered or lost already stays so; its codes are the largest, so it comes last.
        still = _Layer.stay(states[~moving], 0)
        return _Layer(
            states,
            np.where(moving, np.bincount(owner, minlength=len(states)), 1),
            np.concatenate([ways.head[edge], still.aim]),
            np.concatenate([kept.sum(axis=1), still.widths]),
            np.concatenate([codes[kept], states[~moving]]),
            np.concatenate([links[kept], still.links]),
            np.concatenate([chance[kept], still.probability]),
        )

    def outcomes(self, edge: Ints, left: int) -> tuple[Ints, Ints, FloatArray]:
        """For each edge its FAVOURITES + 2 outcomes in the order of their codes: codes, links, probabilities."""
        ways, n = self.ways, self.ways.ases
        at = ways.head[edge]
        onward = self.edge[at]
        there = np.where(onward < 0, self.lost, ways.head[onward])
        chance = np.where(there % n == ways.tail[edge, None] % n, 0.0, self.deflected[at])
        hopeless = self.distance[there] > left
        lost = self.losing[at] + np.where(hopeless, chance, 0.0).sum(axis=1)
        taken = 1.0 - self.losing[at] - chance.sum(axis=1)
        chance = np.where(hopeless, 0.0, chance)
        codes = np.column_stack([at, there, np.full(len(at), self.lost)])
        codes[(codes < self.delivered) & (codes % n == self.goal)] = self.delivered
        links = np.full((*codes.shape, 2), -1)
        links[:, :-1, 0] = ways.link[edge, None]
        links[:, 1:-1, 1] = np.where(onward < 0, -1, ways.link[onward])
        links[:, -1, 0] = -2
        order = np.argsort(codes, axis=1, kind="stable")
        rows = np.arange(len(at))[:, None]
        return codes[rows, order], links[rows, order], np.column_stack([taken, chance, lost])[rows, order]


def _assembled(graph: AsGraph, goal: int, sources: Ints, distance: FloatArray, layers: list[_Layer]) -> Routes:
    """The layers as one MDP."""
    n = len(graph.numbers)
    end = 2 * n + 2
    states = [layer.states for layer in layers] + [np.array([end])]
    layer_ptr = running([len(codes) for codes in states])
    number = np.empty(end + 1, np.int64)
    successor = []
    for k, layer in enumerate(layers):
        number[states[k + 1]] = layer_ptr[k + 1] + np.arange(len(states[k + 1]))
        successor.append(number[layer.successor])
    pair_ptr = running(np.concatenate([*(layer.pairs for layer in layers), [0]]))
    transition_ptr = running(np.concatenate([layer.widths for layer in layers]))
    code, aim = np.concatenate(states), np.concatenate([layer.aim for layer in layers])
    names = _state_names(graph, states), _action_names(graph, aim)
    skeleton = Skeleton(layer_ptr, pair_ptr, transition_ptr, np.concatenate(successor), *names)
    mdp = MDP(skeleton, np.concatenate([layer.probability for layer in layers]))
    used = np.concatenate([layer.links for layer in layers])
    links = np.unique(used[used >= 0])
    items = np.where(used >= 0, np.searchsorted(links, used), len(links) + np.where(used == -2, 0, 1))
    place = np.where(code < 2 * n, code, -1)
    kept = (frozen(array) for array in (place, aim, links, items))
    return Routes(graph, goal, frozen(sources), mdp, frozen(distance), *kept)


def _state_names(graph: AsGraph, states: list[Ints]) -> list[str]:
    """'2 AS174 up' may still climb after two hops; 'down' may not."""
    n = len(graph.numbers)
    numbers, rest = graph.numbers.tolist(), {-1: "start", 2 * n: "delivered", 2 * n + 1: "lost", 2 * n + 2: "end"}
    drawn = states[0][0] == -1
    names = []
    for k, codes in enumerate(states):
        step = k - int(drawn)
        for code in codes.tolist():
            if 0 <= code < 2 * n:
                names.append(f"{step} AS{numbers[code % n]} {'up' if code < n else 'down'}")
            else:
                names.append(rest[code] if code in (-1, 2 * n + 2) else f"{step} {rest[code]}")
    return names


def _action_names(graph: AsGraph, aim: Ints) -> list[str]:
    n, numbers = len(graph.numbers), graph.numbers.tolist()
    return [f"AS{numbers[place % n]}" if place >= 0 else "on" for place in aim.tolist()]
