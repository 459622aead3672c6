"""One play of a congestion game with each method that chooses routes, and the results of it.

Each episode measures, exactly, from q:

    delay    the mean over all packets; a lost packet counts as ``scale``
    peak     max_e u_e
    changed  sum_i D_i / D * max_k 1/2 |q_{i,t} - q_{i,t-1}|_1 over layers k; for deterministic routes, the share of the
             traffic that takes another route than in the previous episode
    gap      the share of the delay that commodities would save if each alone took its best routes at these delays; 0
             exactly in a Wardrop equilibrium.  ``average_gap`` is the gap of the flow averaged over all episodes.
    full     the share of links whose queue is full
    demand   the sum of all demands

``p99`` is the 99th percentile of packet delays.  It is an estimate from one packet of each commodity in each episode of
the second half, weighted by demand; all methods use the same random numbers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import polars as pl

from advmdp.core.arrays import FloatArray, whole
from advmdp.core.errors import InputError
from advmdp.core.streams import stream_key, uniforms
from advmdp.core.wording import number
from advmdp.model.mdp import Trajectory
from advmdp.model.occupancy import best_response, occupancy
from advmdp.scenarios.congestion.game import CongestionGame, total


class Router(Protocol):
    """A method that chooses the routes of all commodities. Write a class like this to add your own.

    Attributes
    ----------
    certificate
        The certified gap of a reference that knows all demands; None for a method.
    """

    certificate: float | None

    @property
    def policy(self) -> FloatArray:
        """The policy to play next, over the pairs of the whole game."""

    def learn(self, loss: FloatArray, paths: list[Trajectory]) -> None:
        """Learn from an episode.

        Parameters
        ----------
        loss
            The losses in [0, 1], over the transitions of the whole game.
        paths
            The path of one packet of each commodity, in its own MDP.
        """


@dataclass(frozen=True, eq=False, repr=False)
class Course:
    """The results of :meth:`scenarios.congestion.CongestionGame.play`.

    Attributes
    ----------
    game
        The game.
    frame
        A row for each method and episode: delay, peak, changed, gap, average_gap, full, demand.
    use
        The utilisation of each link, (episodes, links), by method.
    p99
        The 99th percentile of packet delays, by method.
    references
        The certified gaps of the references, by name.
    seed
        The seed of the packets' paths.

    Examples
    --------
    >>> import networkx as nx
    >>> from advmdp.scenarios.congestion import congestion_game
    >>> from advmdp.scenarios.congestion.routers import shortest_by_hops
    >>> ring = nx.cycle_graph(["a", "b", "c", "d"])
    >>> ring.graph["demands"] = {"a": {"b": 5.0}}
    >>> game = congestion_game(ring)
    >>> game.play({"fewest hops": shortest_by_hops(game)}, episodes=4).table()["changed"].to_list()
    [0.0]
    """

    game: CongestionGame
    frame: pl.DataFrame
    use: dict[str, FloatArray]
    p99: dict[str, float]
    references: dict[str, float]
    seed: int

    def __repr__(self) -> str:
        means = self.frame.group_by("method", maintain_order=True).agg(pl.col("delay").mean())
        paid = ", ".join(f"{method} {number(delay)}" for method, delay in means.iter_rows())
        return f"Course({self.game!r}, {self.episodes:,} episodes: mean delay in {self.game.unit}: {paid})"

    @property
    def episodes(self) -> int:
        """The number of episodes."""
        return int(self.frame["episode"].max())  # type: ignore[arg-type]

    def table(self) -> pl.DataFrame:
        """Summarise each method.

        Returns
        -------
        polars.DataFrame
            A row for each method, with means over the second half of the episodes, except that ``delay_all`` and
            ``full`` are means over all episodes and ``average_gap`` is the last value.
        """
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


def played(
    game: CongestionGame,
    routers: Mapping[str, Router],
    episodes: int,
    seed: int,
    progress: Callable[[float], None] | None,
) -> Course:
    """Play a game once with each router; see :meth:`CongestionGame.play`."""
    count = whole("episodes", episodes, 2)
    if not isinstance(routers, Mapping) or not routers:
        raise InputError("routers", f"{routers!r}" if routers else "none", "at least one, by its name")
    for name, router in routers.items():
        if not callable(getattr(router, "learn", None)):
            raise InputError(f"router {name!r}", f"{router!r}", "a router, such as AdaptiveSteps(game)")
    rows: list[dict[str, Any]] = []
    use = np.empty((len(routers), count, len(game.topology.links)))
    p99 = {}
    for m, (name, router) in enumerate(routers.items()):
        play = _Play(game, router, count, seed)
        for t in range(count):
            rows.append({"method": name, "episode": t + 1} | play.episode(t))
            use[m, t] = play.use
            if progress is not None:
                progress((m + (t + 1) / count) / len(routers))
        p99[name] = play.percentile(0.99)
    known = {name: router.certificate for name, router in routers.items() if router.certificate is not None}
    return Course(game, pl.DataFrame(rows), dict(zip(routers, use, strict=True)), p99, known, seed)


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
        """The mean delay if each commodity alone took its best routes."""
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
        """The percentile of packet delays in the second half, weighted by demand."""
        values = np.concatenate(self.packets)
        weights = np.concatenate(self.weights)
        order = np.argsort(values, kind="stable")
        reached = np.cumsum(weights[order])
        return float(values[order][np.searchsorted(reached, share * reached[-1])])
