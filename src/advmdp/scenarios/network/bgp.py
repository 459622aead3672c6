"""Traffic between autonomous systems: which neighbour to hand it to, if neighbours have policies of their own.

An episode delivers traffic to ``destination``.  It starts at the AS ``source``; without one, at an AS drawn by its
share of all traffic (in a random order, the k-th AS has a share proportional to 1 / k).  In each of at most ``hops``
steps the current AS hands the traffic to a neighbour, along a valley-free path (see ``as_graph.py``).  A state is
(step, AS, whether the path may still climb).  The actions are the allowed neighbours from which the destination can
still be reached in time.  The chosen neighbour v then does one of three things, with probabilities unknown to the
learner:

    it takes the traffic, and the next state is v               1 - d_v - e_v
    it deflects it, in the same step, to one of its favourites  d_v, split between up to two
    it loses it                                                 e_v, plus deflections from which no path is in time

The favourites of v are neighbours through which it has a valley-free path to the destination.  v prefers customers to
peers to providers, since customers pay, peers are free, and providers charge; ties are broken at random, once for each
world.  v does not return traffic to the AS that sent it; it takes it instead.  With independent uniforms u for each AS,
d_v = ``deflect`` * u and e_v = ``lose`` * u (1 - d_v), drawn from the ``seed`` of the world.  The destination deflects
nothing.

The unit of cost is a provider's average price.  A step costs the sum over its links: one link, or two if traffic is
deflected.  Lost traffic costs LOST and nothing else.  In episode t link i costs

    c_t[i] = price[i] + delay[i] + congestion_t[i] + OUTAGE * out_t[i]
    price       fixed; 0 to 2 up, PEERING across, 0 down, where the other side pays
    delay       fixed, from 0 to 1
    congestion  from 0 to 1, with random knots every ``period`` episodes, joined smoothly
    out         in each stretch of ``repair`` episodes a link is out with probability ``outages``

all drawn from the seed of the losses; l_t = cost / LOST, so money = LOST * loss.  LOST exceeds the cost of any step, so
losses lie in [0, 1].
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
"""Packages whose versions can change the world."""

Ints = NDArray[np.int64]
PEERING, OUTAGE, LOST = 0.2, 3.0, 15.0
FAVOURITES = 2


@dataclass(frozen=True, eq=False)
class Routes:
    """The MDP of traffic to one destination, and how its parts map to the graph."""

    graph: AsGraph
    destination: int
    """The index of the destination in the graph."""
    sources: Ints
    """The ASes where traffic starts; all can reach the destination within the hop limit."""
    mdp: MDP
    distance: FloatArray
    """The hops to the destination from each place of ``graph.ways``."""
    state_place: Ints
    """The place of each state in ``graph.ways``; -1 for the start, the end, delivered and lost."""
    pair_place: Ints
    """The place that each pair aims at; -1 if there is no choice."""
    links: Ints
    """The links of the graph that any transition uses."""
    items: Ints
    """(transitions, 2): indices into ``links``; len(links) means lost, len(links) + 1 means no link."""

    def shortest(self) -> FloatArray:
        """The policy of plain BGP: fewest hops, then customers before peers before providers, then lowest number."""
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
    """Make the scenario; ``source`` and ``destination`` are AS numbers.

    With ``file``, :func:`read_as_graph` reads the graph; otherwise a graph of ``ases`` ASes is generated.
    ``destination`` defaults to a random AS without customers, with several providers if there is one.
    """
    found = routes(graph_of(file, ases, seed), source, destination, hops, deflect, lose, seed)
    sk, relation = found.mdp.skeleton, found.graph.relation[found.links]

    def costs(loss_seed: int) -> UnitCosts:
        return generated_costs(loss_seed, relation, period, outages, repair)

    costs(0)  # so that bad parameters raise now
    return Scenario(
        "bgp", found.mdp, lambda loss_seed: LinkLosses(sk, found.items, costs(loss_seed)), TotalLoss(), LOST, 0.0,
        unit="cost", kinds=neighbour_kinds(found),
    )  # fmt: skip


def neighbour_kinds(found: Routes) -> tuple[int, ...]:
    """Label the outcomes: neighbours with equally many outcomes are alike (take, deflect to a favourite, or lose)."""
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
    """The costs of one or two links.

    It does what :class:`advmdp.scenarios.base.Accounted` does in one pass; with a million transitions, passes are slow.
    """

    def __init__(self, skeleton: Skeleton, items: Ints, costs: UnitCosts) -> None:
        """``costs`` are in units of LOST; the last two are 1, for lost traffic, and 0, for no link."""
        super().__init__(skeleton)
        self._first = frozen(np.ascontiguousarray(items[:, 0]))
        self._deflected = frozen(np.flatnonzero(items[:, 1] < items.max()))
        self._second = frozen(items[self._deflected, 1])
        self._costs = costs

    def _block(self, first: int, stop: int, policies: Policies | None) -> FloatArray:
        costs = self._costs(first, stop)
        losses = np.empty((stop - first, self.skeleton.num_transitions))
        for row, cost in zip(losses, costs, strict=True):
            np.take(cost, self._first, out=row, mode="clip")  # other modes allocate a buffer
            row[self._deflected] += cost[self._second]
        return losses


def graph_of(file: str | PathLike[str] | None, ases: int, seed: int) -> AsGraph:
    """The user's graph, or a generated one."""
    return generated_as_graph(ases, seed) if file is None else read_as_graph(file)


def generated_costs(
    seed: int, relation: NDArray[np.int8], period: int = 200, outages: float = 0.05, repair: int = 20
) -> UnitCosts:
    """(first, stop) -> the costs of links in units of LOST, then 1 and 0: (episodes, links + 2)."""
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
    """Build the MDP layer by layer, with array operations."""
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
    """A random AS without customers, with several providers if possible."""
    buys = np.where(graph.degrees(DOWN) == 0, np.minimum(graph.degrees(UP), 2), 0)
    if not buys.any():
        raise InputError(
            "destination", f"none, and no AS of {graph.name} has providers but no customers", "an AS number"
        )
    return int(generator(seed, "bgp", "destination").choice(np.flatnonzero(buys == buys.max())))


def _sources(graph: AsGraph, distance: FloatArray, source: int | None, goal: int, hops: int) -> Ints:
    """The ASes where traffic starts: the source, or all that can reach the destination."""
    label = f"AS{graph.numbers[goal]}"
    if source is None:
        able = np.flatnonzero((distance[: len(graph.numbers)] <= hops) & (np.arange(len(graph.numbers)) != goal))
        if not len(able):
            given = f"{label}, which no AS can reach by a valley-free path of at most {hops} hops"
            raise InputError("destination", given, "a reachable AS")
        return able
    place = graph.place("source", source)
    if place == goal:
        raise InputError("source", f"{label}, the destination itself", "another AS")
    if not distance[place] <= hops:
        far = np.isinf(distance[place])
        length = f"{distance[place]:.0f}"
        given = f"AS{source}, " + (f"without a valley-free path to {label}" if far else f"{length} hops from {label}")
        raise InputError("source", given, "another source" if far else f"another source, or hops={length}")
    return np.array([place])


@dataclass(frozen=True, eq=False)
class _Layer:
    """The states of a layer, as codes, and their transitions.

    A code is a place of the ways, 2 n for delivered, 2 n + 1 for lost, 2 n + 2 for the end, or -1 for the start.
    """

    states: Ints
    pairs: Ints
    """The number of pairs of each state."""
    aim: Ints
    """The place that each pair aims at, or -1."""
    widths: Ints
    """The number of successors of each pair."""
    successor: Ints
    links: Ints
    """(transitions, 2): the links used; -1 for none, -2 if lost."""
    probability: FloatArray

    @classmethod
    def stay(cls, states: Ints, code: int) -> "_Layer":
        """Move all states to one code at no cost."""
        ones, nothing = np.ones(len(states), np.int64), np.full((len(states), 2), -1)
        return cls(states, ones, -ones, ones, np.full(len(states), code), nothing, np.ones(len(states)))


def _drawn_source(n: int, sources: Ints, seed: int) -> _Layer:
    """The first layer: draw the AS where traffic starts by its share."""
    weights = 1.0 / (1.0 + generator(seed, "bgp", "shares").permutation(n)[sources])
    count, one = len(sources), np.ones(1, np.int64)
    nothing = np.full((count, 2), -1)
    return _Layer(-one, one, -one, np.array([count]), sources, nothing, weights / weights.sum())


class _Neighbours:
    """The outcomes of handing traffic to an AS, for each place."""

    def __init__(self, graph: AsGraph, goal: int, distance: FloatArray, deflect: float, lose: float, seed: int) -> None:
        n, ways = len(graph.numbers), graph.ways
        world = generator(seed, "bgp", "policies")
        taste, share = world.random(len(graph.tail)), world.random(n)
        deflected = deflect * world.random(n)
        lost = lose * world.random(n) * (1.0 - deflected)
        self.ways, self.delivered, self.lost = ways, 2 * n, 2 * n + 1
        self.distance = np.concatenate([distance, [0.0, 0.0]])
        # The best edges of each place, by (kind, taste), among those that lead to the destination; it has none itself.
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
        """The layer of these states, with ``left`` steps left after it."""
        ways = self.ways
        moving = states < self.delivered
        some = np.where(moving, states, 0)
        counts = np.where(moving, ways.ptr[some + 1] - ways.ptr[some], 0)
        edge = np.repeat(ways.ptr[some] - running(counts)[:-1], counts) + np.arange(counts.sum())
        good = self.distance[ways.head[edge]] <= left
        owner, edge = np.repeat(np.arange(len(states)), counts)[good], edge[good]
        codes, links, chance = self.outcomes(edge, left)
        kept = chance > 0.0
        # Delivered and lost traffic stays so; these codes are the largest, so they come last.
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
        """The FAVOURITES + 2 outcomes of each edge, sorted by code: codes, links, probabilities."""
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
    """Assemble the layers to one MDP."""
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
