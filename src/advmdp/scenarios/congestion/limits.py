"""How much delay a hop limit adds: compares shortest paths with and without it, by the Bellman-Ford method.

For a destination w and link costs d, over paths of at most h hops that pass through no zone,

    V_{w,h}(v) = min over links v -> u of  d + V_{w,h-1}(u),      V_{w,0}(w) = 0,  V_{w,0}(v) = infinity for others.

The cost of a commodity is V_{w,H} with a hop limit of H, and V_{w,n-1} without one, with n the number of nodes.
Deflections are ignored: they make packets run out of hops on any route.
"""

import numpy as np

from advmdp.core.arrays import FloatArray
from advmdp.scenarios.congestion.game import CongestionGame


def excluded_share(game: CongestionGame, delay: FloatArray) -> float:
    """The share of the delay that shortest paths would save without the hop limits."""
    net, nodes = game.topology, len(game.topology.nodes)
    ends = sorted({net.node(one.destination) for one in game.commodities})
    place = {w: k for k, w in enumerate(ends)}
    begin, end = net.links.T
    order = np.argsort(begin, kind="stable")
    leaving, starts = np.unique(begin[order], return_index=True)
    closed = np.isin(end, list(game.zones))[:, None] & (end[:, None] != np.array(ends))
    wanted = [
        (one.demand, net.node(one.source), place[net.node(one.destination)], one.mdp.skeleton.num_steps - 1)
        for one in game.commodities
    ]
    value = np.full((nodes, len(ends)), np.inf)
    value[ends, np.arange(len(ends))] = 0.0
    limited = 0.0
    for hop in range(1, max(nodes, *(hops + 1 for *_, hops in wanted))):
        over = np.where(closed, np.inf, delay[:, None] + value[end])
        value[leaving] = np.minimum(value[leaving], np.minimum.reduceat(over[order], starts, axis=0))
        limited += sum(demand * value[v, w] for demand, v, w, hops in wanted if hops == hop)
    least = sum(demand * value[v, w] for demand, v, w, _ in wanted)
    return max(0.0, 1.0 - float(least) / float(limited)) if limited > 0.0 else 0.0
