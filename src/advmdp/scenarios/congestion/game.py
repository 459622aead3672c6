"""Routing that does not flap: every pair of nodes with a demand is a learner, and links get slower as others use them.

A topology with demands (``network/topology.py``) has a commodity i for each demand D_i from a node to another.  Each
routes in a loop-free MDP of its own, that of ``network/routing.py`` with no losses on links, deflections that no
learner is told, and a hop limit of ``slack`` more than the fewest hops.  In an episode every commodity plays
its policy, and with q_i its occupancy measure under the true dynamics

    f_e = sum_i D_i * (how often q_i goes over e)       u_e = f_e / c_e
    d_e = d_e(f_e)                                      increasing and convex: delays.py has the kinds

A learner's loss for a transition over e is d_e / scale, with scale the most that a link can take;
so a loss of the episode, times scale, is a delay.  A packet that runs out of hops is lost and costs
``scale`` once, about what waiting for a retransmission takes; where links go both ways and slack is 2, one deflection
from a shortest way does not lose it, one from a detour can.  After the episode every learner gets the whole loss
vector (every link's delay is measured) and its own packet's path.  The others' choices made that loss: it is
adversarial not by assumption, but because there are others.

Capacities are those of the graph, or equal where it has none (topohub has none), times the one factor for all with
which the best routing there is has a peak utilisation of ``load``: min max_e u_e, a linear program.

The commodities side by side are one MDP again: its first step is drawn, commodity i with probability D_i / D, and its
occupancy measure q is that of a packet drawn from all.  So the flow of everybody is one pass over it, everybody's best
response one backward induction, and the best routing for the system, or an equilibrium, one convex program
(:mod:`advmdp.scenarios.congestion.assignment`).

Demands may change: with ``matrices`` D_{t,i}, commodity i has D_{t,i} to send in episode t, and they begin again when
they are over.  The MDP of the whole has their means; what is measured in an episode counts that episode's demands.

Measured in every episode, exactly, from q:

    delay    the mean of all packets, a lost one counting as ``scale``
    peak     max_e u_e
    changed  sum_i D_i / D * max_k 1/2 |q_{i,t} - q_{i,t-1}|_1 over layer k: for routes without chance the share of the
             traffic that goes another way than in the episode before
    gap      the share of the delay that would be saved if each commodity alone went its best way at these delays: 0 in
             a Wardrop equilibrium and only there.  ``average_gap`` is that of the flow averaged over all episodes.
    full     the share of links at their limit, whose queue is full
    demand   the sum of all demands

and ``p99``, the 99th percentile of the delays of packets, one of each commodity in each episode of the second half,
drawn along its policy and weighted by demand: an estimate, with the same random numbers for every method.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray, whole
from advmdp.core.errors import InputError
from advmdp.core.streams import stream_key, uniforms
from advmdp.core.wording import number
from advmdp.model.mdp import MDP, Trajectory
from advmdp.model.occupancy import best_response, occupancy
from advmdp.scenarios.congestion.delays import LinkDelays
from advmdp.scenarios.network.routing import LOST, by_link
from advmdp.scenarios.network.topology import Topology

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Commodity:
    """A demand, and how its packets move."""

    source: str
    destination: str
    demand: float
    mdp: MDP
    link: Ints
    """(num_transitions,): the link, LOST, or -1 where the packet waits."""
    pairs: Ints
    transitions: Ints
    """Where its pairs and transitions are in the MDP of the whole game."""
    kinds: tuple[int, ...] | None = None
    """Which links are alike, a label for each transition as learners take it."""

    @property
    def name(self) -> str:
        return f"{self.source} -> {self.destination}"


@dataclass(frozen=True, eq=False, repr=False)
class CongestionGame:
    """The game; :func:`congestion_game` makes one."""

    topology: Topology
    commodities: tuple[Commodity, ...]
    mdp: MDP
    """All commodities side by side."""
    link: Ints
    """(num_transitions,) of the whole: the link, LOST, or -1."""
    delays: LinkDelays
    load: float | None = None
    """The peak utilisation of the best routing, where capacities were chosen so."""
    matrices: FloatArray | None = None
    """(periods, commodities): demands that change; their means are those of the commodities."""
    zones: frozenset[int] = frozenset()
    """The nodes that no route passes through."""

    def __repr__(self) -> str:
        many = "commodity" if len(self.commodities) == 1 else "commodities"
        return f"CongestionGame({self.topology!r}, {len(self.commodities):,} {many}, demand {number(self.demand)})"

    @cached_property
    def demand(self) -> float:
        return float(sum(one.demand for one in self.commodities))

    @property
    def unit(self) -> str:
        """Of delays."""
        return self.delays.unit

    @cached_property
    def _demands(self) -> FloatArray:
        return np.array([one.demand for one in self.commodities])

    def demands(self, t: int) -> FloatArray:
        """(commodities,): what each has to send in episode t."""
        return self._demands if self.matrices is None else self.matrices[t % len(self.matrices)]

    def ratios(self, t: int) -> FloatArray:
        """Over the transitions of the whole, the demand of episode t over the mean; 1 where nobody moves."""
        over = np.append(self.demands(t) / self._demands, 1.0)
        return over[self._parts // self.mdp.skeleton.num_steps]

    def at(self, t: int) -> "CongestionGame":
        """The game with the demands of episode t for ever."""
        if self.matrices is None:
            return self
        demands = self.demands(t)
        chance = self.mdp.transition.copy()
        chance[: len(demands)] = demands / demands.sum()
        made = tuple(replace(one, demand=float(d)) for one, d in zip(self.commodities, demands, strict=True))
        return replace(self, commodities=made, mdp=MDP(self.mdp.skeleton, chance), matrices=None)

    @cached_property
    def _parts(self) -> Ints:
        """For each transition of the whole a number of its commodity and layer; the last for none."""
        layers = self.mdp.skeleton.num_steps
        part = np.full(len(self.link), len(self.commodities) * layers)
        for i, one in enumerate(self.commodities):
            sk = one.mdp.skeleton
            layer = np.repeat(np.arange(sk.num_steps), np.diff(sk.layer_transition_ptr))
            part[one.transitions] = i * layers + layer
        return part

    def flow(self, q: FloatArray) -> FloatArray:
        """(links,): the flow of everybody, in the units of the demands."""
        return self.demand * by_link(self.link, len(self.topology.links), q)

    def cost(self, delay: FloatArray) -> FloatArray:
        """Over the transitions of the whole, where links take so long."""
        return np.where(self.link >= 0, delay[np.maximum(self.link, 0)], np.where(self.link == LOST, self.scale, 0.0))

    @property
    def scale(self) -> float:
        return self.delays.scale

    def changed(self, q: FloatArray, before: FloatArray, t: int = 0) -> float:
        """The share of the traffic that goes another way, with the demands of episode t."""
        count, demands = len(self.commodities), self.demands(t)
        apart = np.bincount(self._parts, np.abs(q - before), count * self.mdp.skeleton.num_steps + 1)
        most = apart[:-1].reshape(count, -1).max(axis=1)
        return float(0.5 * (most * (demands / self._demands)).sum() * self.demand / demands.sum())

    def gap(self, q: FloatArray) -> float:
        """The share of the delay that each alone could save at the delays of this flow."""
        cost = self.cost(self.delays.measured(self.flow(q)))
        return max(0.0, 1.0 - best_response(self.mdp, cost)[1] / total(q, cost))

    def whole_policy(self, policies: list[FloatArray]) -> FloatArray:
        """Everybody's policies as one of the whole."""
        policy = np.ones(self.mdp.skeleton.num_pairs)
        for one, pi in zip(self.commodities, policies, strict=True):
            policy[one.pairs] = pi
        return policy

    def play(
        self,
        routers: Mapping[str, "Router"],
        episodes: int,
        seed: int = 0,
        progress: Callable[[float], None] | None = None,
    ) -> "Course":
        """Every router in a game of its own; ``progress`` is told how much of 1 is done."""
        count = whole("episodes", episodes, 2)
        if not routers:
            raise InputError("routers", "none", "at least one, by its name")
        rows: list[dict[str, Any]] = []
        use = np.empty((len(routers), count, len(self.topology.links)))
        p99 = {}
        for m, (name, router) in enumerate(routers.items()):
            play = _Play(self, router, count, seed)
            for t in range(count):
                rows.append({"method": name, "episode": t + 1} | play.episode(t))
                use[m, t] = play.use
                if progress is not None:
                    progress((m + (t + 1) / count) / len(routers))
            p99[name] = play.percentile(0.99)
        known = {name: router.certificate for name, router in routers.items() if router.certificate is not None}
        return Course(self, pl.DataFrame(rows), dict(zip(routers, use, strict=True)), p99, known, seed)


class Router(Protocol):
    """Everybody's routes: a policy of the whole, moved on after each episode."""

    certificate: float | None
    """For a reference that knows everybody's demands, how exactly it was computed; none for a method."""

    @property
    def policy(self) -> FloatArray:
        """Over the pairs of the whole."""

    def learn(self, loss: FloatArray, paths: list[Trajectory]) -> None:
        """``loss`` is over the transitions of the whole, in [0, 1]; ``paths`` are of each commodity's own MDP."""


def total(q: FloatArray, cost: FloatArray) -> float:
    """<q, cost>, without BLAS: its threads wait for each other, and the bytes should not depend on their number."""
    return float((q * cost).sum())


class _Play:
    """One router's game."""

    def __init__(self, game: CongestionGame, router: Router, episodes: int, seed: int) -> None:
        self.game, self.router = game, router
        self.keys = [stream_key(seed, "congestion", one.source, one.destination) for one in game.commodities]
        self.half = episodes // 2
        self.before: FloatArray | None = None
        self.total = np.zeros(len(game.link))
        self.packets: list[FloatArray] = []
        self.weights: list[FloatArray] = []
        self.use = np.zeros(len(game.topology.links))

    def episode(self, t: int) -> dict[str, float]:
        game, policy = self.game, self.router.policy
        q = occupancy(game.mdp, policy)
        now = q if game.matrices is None else q * game.ratios(t)
        flow = game.flow(now)
        cost = game.cost(game.delays.measured(flow))
        self.use = flow / game.delays.capacity
        self.total += q
        demand = float(game.demands(t).sum())
        mean = total(now, cost) * game.demand / demand
        paths = [self._path(i, policy, t) for i in range(len(self.keys))]
        if t >= self.half:
            taken = zip(game.commodities, paths, strict=True)
            self.packets.append(np.array([cost[one.transitions[path.transitions]].sum() for one, path in taken]))
            self.weights.append(game.demands(t))
        changed = 0.0 if self.before is None else game.changed(q, self.before, t)
        self.before = q
        self.router.learn(np.minimum(cost / game.scale, 1.0), paths)
        return {
            "delay": mean,
            "peak": float(self.use.max()),
            "changed": changed,
            "gap": max(0.0, 1.0 - self._least(cost, t) / mean),
            "average_gap": game.gap(self.total / (t + 1)),
            "full": game.delays.full(flow),
            "demand": demand,
        }

    def _least(self, cost: FloatArray, t: int) -> float:
        """What a packet would take on average if each commodity alone went its best way."""
        game = self.game
        response, least = best_response(game.mdp, cost)
        if game.matrices is None:
            return least
        best = occupancy(game.mdp, response) * game.ratios(t)
        return total(best, cost) * game.demand / float(game.demands(t).sum())

    def _path(self, i: int, policy: FloatArray, t: int) -> Trajectory:
        """The packet of commodity i in episode t."""
        one = self.game.commodities[i]
        drawn = uniforms(self.keys[i], t, 1, 2 * one.mdp.skeleton.num_steps)[0]
        return one.mdp.sample_from(policy[one.pairs], drawn)

    def percentile(self, share: float) -> float:
        """The least delay that so much of the traffic in the second half did not exceed."""
        values = np.concatenate(self.packets)
        weights = np.concatenate(self.weights)
        order = np.argsort(values, kind="stable")
        reached = np.cumsum(weights[order])
        return float(values[order][np.searchsorted(reached, share * reached[-1])])


@dataclass(frozen=True, eq=False, repr=False)
class Course:
    """What happened, episode by episode and method by method."""

    game: CongestionGame
    frame: pl.DataFrame
    """A row for each method and episode: delay, peak, changed, gap, average_gap, full, demand."""
    use: dict[str, FloatArray]
    """By method (episodes, links): the utilisation of each link."""
    p99: dict[str, float]
    references: dict[str, float]
    """Those that are no methods but what could be known by knowing all, and their certified gaps."""
    seed: int

    def __repr__(self) -> str:
        return f"Course({self.game!r}, {self.episodes:,} episodes of {', '.join(self.use)})"

    @property
    def episodes(self) -> int:
        return int(self.frame["episode"].max())  # type: ignore[arg-type]

    def table(self) -> pl.DataFrame:
        """A row for each method: means over the second half, over all episodes where it says ``all``."""
        late = pl.col("episode") > self.episodes // 2
        return self.frame.group_by("method", maintain_order=True).agg(
            delay=pl.col("delay").filter(late).mean(),
            delay_all=pl.col("delay").mean(),
            p99=pl.col("method").first().replace_strict(self.p99, return_dtype=pl.Float64),
            peak=pl.col("peak").filter(late).mean(),
            changed=pl.col("changed").filter(late).mean(),
            gap=pl.col("gap").filter(late).mean(),
            average_gap=pl.col("average_gap").last(),
            full=pl.col("full").mean(),
        )
