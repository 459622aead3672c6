"""The congestion game: each demand of a network is a learner, and links slow down under load.

Each demand D_i of a topology (``network/topology.py``), from one node to another, is a commodity i.  It routes in its
own loop-free MDP, which ``network/routing.py`` makes without losses on links.  Learners do not know the deflections.
The hop limit is ``slack`` more than the fewest hops.  In an episode each commodity plays its policy.  With q_i its
occupancy measure under the true dynamics,

    f_e = sum_i D_i * (expected uses of e under q_i)    u_e = f_e / c_e
    d_e = d_e(f_e)                                      increasing and convex; see delays.py

The loss of a transition over e is d_e / scale, with scale the largest possible delay of a link.  A loss of the episode
times scale is therefore a delay.  A packet that runs out of hops is lost and costs ``scale`` once, roughly the time of
a retransmission.  If links go both ways and slack is 2, a deflection from a shortest path cannot lose a packet; one
from a detour can.  After the episode each learner sees the whole loss vector, since the delay of every link is
measured, and the path of its own packet.  The losses are adversarial because other learners cause them.

Capacities are those of the graph, or equal if it has none (as in topohub).  One common factor scales them so that the
best possible routing has a peak utilisation of ``load``; min max_e u_e is a linear program.

All commodities together form one MDP.  Its first step draws commodity i with probability D_i / D, so its occupancy
measure q is that of a random packet.  The total flow is then one pass over q, the best responses of all commodities are
one backward induction, and an optimum or an equilibrium is one convex program
(:mod:`advmdp.scenarios.congestion.assignment`).

Demands may change: with ``matrices`` D_{t,i}, commodity i sends D_{t,i} in episode t, and the matrices repeat when they
end.  The MDP of the whole has their means.  Measurements of an episode use its own demands.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray
from advmdp.core.wording import number
from advmdp.model.mdp import MDP
from advmdp.model.occupancy import best_response
from advmdp.scenarios.congestion.delays import LinkDelays
from advmdp.scenarios.network.routing import LOST, by_link
from advmdp.scenarios.network.topology import Topology

if TYPE_CHECKING:
    from advmdp.scenarios.congestion.playing import Course, Router

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Commodity:
    """A demand and the MDP of its packets.

    Attributes
    ----------
    source
        The node where its packets start.
    destination
        The node where they end.
    demand
        The amount to send in an episode; the mean if demands change.
    mdp
        The MDP of its packets.
    link
        For each transition the link, -2 if it loses the packet, or -1 if the packet waits.
    pairs
        The indices of its pairs in the MDP of the whole game.
    transitions
        The indices of its transitions in the MDP of the whole game.
    kinds
        A label for each transition that says which links are alike, for learners that pool.

    Examples
    --------
    >>> import networkx as nx
    >>> from advmdp.scenarios.congestion import congestion_game
    >>> ring = nx.cycle_graph(["a", "b", "c", "d"])
    >>> ring.graph["demands"] = {"a": {"c": 5.0}}
    >>> congestion_game(ring).commodities[0].name
    'a -> c'
    """

    source: str
    destination: str
    demand: float
    mdp: MDP
    link: Ints
    pairs: Ints
    transitions: Ints
    kinds: tuple[int, ...] | None = None

    @property
    def name(self) -> str:
        """Its ends, for tables."""
        return f"{self.source} -> {self.destination}"


@dataclass(frozen=True, eq=False, repr=False)
class CongestionGame:
    """A congestion game; :func:`scenarios.congestion.congestion_game` makes one.

    Attributes
    ----------
    topology
        The network.
    commodities
        The demands; each is a learner.
    mdp
        One MDP with all commodities; "the whole game" below.
    link
        For each transition of the whole game the link, -2 if it loses the packet, or -1 otherwise.
    delays
        The delays of links.
    load
        The peak utilisation of the best routing, if capacities were scaled to it.
    matrices
        Demands that change, (episodes, commodities), or None.
    zones
        Nodes that no route passes through.

    Examples
    --------
    >>> import networkx as nx
    >>> from advmdp.scenarios.congestion import congestion_game
    >>> from advmdp.scenarios.congestion.routers import DelayRouting
    >>> ring = nx.cycle_graph(["a", "b", "c", "d"])
    >>> ring.graph["demands"] = {"a": {"c": 5.0}, "b": {"d": 2.0}}
    >>> game = congestion_game(ring)
    >>> game.play({"last delay": DelayRouting(game)}, episodes=10).episodes
    10
    """

    topology: Topology
    commodities: tuple[Commodity, ...]
    mdp: MDP
    link: Ints
    delays: LinkDelays
    load: float | None = None
    matrices: FloatArray | None = None
    zones: frozenset[int] = frozenset()

    def __repr__(self) -> str:
        many = "commodity" if len(self.commodities) == 1 else "commodities"
        return f"CongestionGame({self.topology!r}, {len(self.commodities):,} {many}, demand {number(self.demand)})"

    @cached_property
    def demand(self) -> float:
        """The sum of all demands."""
        return float(sum(one.demand for one in self.commodities))

    @property
    def unit(self) -> str:
        """The unit of delays."""
        return self.delays.unit

    @cached_property
    def _demands(self) -> FloatArray:
        return np.array([one.demand for one in self.commodities])

    def demands(self, t: int) -> FloatArray:
        """Return the demands of an episode.

        Parameters
        ----------
        t
            The episode, from 0.

        Returns
        -------
        FloatArray
            The demand of each commodity.
        """
        return self._demands if self.matrices is None else self.matrices[t % len(self.matrices)]

    def ratios(self, t: int) -> FloatArray:
        """Compute the demands of an episode relative to their means.

        Parameters
        ----------
        t
            The episode, from 0.

        Returns
        -------
        FloatArray
            The ratio for each transition of the whole game; 1 for transitions of no commodity.
        """
        over = np.append(self.demands(t) / self._demands, 1.0)
        return over[self._parts // self.mdp.skeleton.num_steps]

    def at(self, t: int) -> "CongestionGame":
        """Make the game with the demands of one episode, without changes.

        Parameters
        ----------
        t
            The episode, from 0.

        Returns
        -------
        CongestionGame
            The game.
        """
        if self.matrices is None:
            return self
        demands = self.demands(t)
        chance = self.mdp.transition.copy()
        chance[: len(demands)] = demands / demands.sum()
        made = tuple(replace(one, demand=float(d)) for one, d in zip(self.commodities, demands, strict=True))
        return replace(self, commodities=made, mdp=MDP(self.mdp.skeleton, chance), matrices=None)

    @cached_property
    def _parts(self) -> Ints:
        """Number the commodity and layer of each transition; the last number is for no commodity."""
        layers = self.mdp.skeleton.num_steps
        part = np.full(len(self.link), len(self.commodities) * layers)
        for i, one in enumerate(self.commodities):
            sk = one.mdp.skeleton
            layer = np.repeat(np.arange(sk.num_steps), np.diff(sk.layer_transition_ptr))
            part[one.transitions] = i * layers + layer
        return part

    def flow(self, q: FloatArray) -> FloatArray:
        """Compute the total flow of all commodities.

        Parameters
        ----------
        q
            An occupancy measure of the whole game.

        Returns
        -------
        FloatArray
            The flow on each link, in units of demand.
        """
        return self.demand * by_link(self.link, len(self.topology.links), q)

    def cost(self, delay: FloatArray) -> FloatArray:
        """Compute the cost of transitions.

        Parameters
        ----------
        delay
            The delay of each link.

        Returns
        -------
        FloatArray
            The delay of each transition of the whole game; ``scale`` if it loses the packet.
        """
        return np.where(self.link >= 0, delay[np.maximum(self.link, 0)], np.where(self.link == LOST, self.scale, 0.0))

    @property
    def scale(self) -> float:
        """The largest possible delay of a link, and the cost of a lost packet."""
        return self.delays.scale

    def changed(self, q: FloatArray, before: FloatArray, t: int = 0) -> float:
        """Compute the share of the traffic that takes another route.

        Parameters
        ----------
        q, before
            The occupancy measures of this episode and of the previous one.
        t
            The episode whose demands count.

        Returns
        -------
        float
            From 0 to 1.
        """
        count, demands = len(self.commodities), self.demands(t)
        apart = np.bincount(self._parts, np.abs(q - before), count * self.mdp.skeleton.num_steps + 1)
        most = apart[:-1].reshape(count, -1).max(axis=1)
        return float(0.5 * (most * (demands / self._demands)).sum() * self.demand / demands.sum())

    def gap(self, q: FloatArray) -> float:
        """Compute the distance from an equilibrium.

        Parameters
        ----------
        q
            An occupancy measure of the whole game.

        Returns
        -------
        float
            The share of the delay that commodities would save if each alone took its best routes.
        """
        cost = self.cost(self.delays.measured(self.flow(q)))
        return max(0.0, 1.0 - best_response(self.mdp, cost)[1] / total(q, cost))

    def whole_policy(self, policies: list[FloatArray]) -> FloatArray:
        """Combine the policies of all commodities.

        Parameters
        ----------
        policies
            A policy for each commodity.

        Returns
        -------
        FloatArray
            A policy of the whole game.
        """
        policy = np.ones(self.mdp.skeleton.num_pairs)
        for one, pi in zip(self.commodities, policies, strict=True):
            policy[one.pairs] = pi
        return policy

    def play(
        self,
        routers: "Mapping[str, Router]",
        episodes: int,
        seed: int = 0,
        progress: Callable[[float], None] | None = None,
    ) -> "Course":
        """Play the game once with each router.

        Parameters
        ----------
        routers
            Methods that choose the routes, by name.
        episodes
            The number of episodes, 2 or more.
        seed
            The seed of the packets' paths.
        progress
            A function that is called with the completed share, from 0 to 1.

        Returns
        -------
        Course
            The results.

        Raises
        ------
        InputError
            If there are no routers, or too few episodes.
        """
        from advmdp.scenarios.congestion.playing import played

        return played(self, routers, episodes, seed, progress)


def total(q: FloatArray, cost: FloatArray) -> float:
    """<q, cost> without BLAS, whose threads are slow here and whose result depends on their number."""
    return float((q * cost).sum())
