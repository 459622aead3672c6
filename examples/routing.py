"""Compare learners that route one flow through a real network with simple rules and perfect foresight.

    python examples/routing.py                               Hamburg to Muenchen over SNDlib's germany50: a minute
    python examples/routing.py --objective worst             the worst of delay, congestion and price counts
    python examples/routing.py --topology topozoo/Abilene --source "New York" --destination "Los Angeles" --hops 8
    python examples/routing.py --csv links.csv               your own costs: time,from,to,delay (congestion, price)

There are four worlds.  "links obey": links never fail, so there is nothing to learn about them.  "links fail": they
lose and deflect packets.  "rivals alternate": also, other traffic fills one half of the links, then the other half.
"rivals answer": instead, it follows our flow of the previous episode.  The first table shows the cost per episode, in
milliseconds for delays, with the mean and standard error over seeds.  The second shows the regret: how much the best
fixed policy of all these episodes would have saved.  The least is green.  If rivals answer, each learner provokes its
own costs: compare costs, not regrets.
"""

import argparse
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke
from matplotlib.transforms import Bbox
from PIL import Image

import advmdp as am
from advmdp.scenarios import Scenario, make_scenario
from advmdp.scenarios.comparing import OnTheMean, compare, count, example, paper, picture
from advmdp.scenarios.network.routing import Routing
from advmdp.scenarios.rules import Fixed, Smoothed, Told, chosen_policy

OURS = "SelfTuning"
TUNED = "UC-O-REPS, tuned by hand"
RULES = ("last delay, pooled", "smoothed delay, pooled", "mean delay, pooled", "fewest hops")
WORLDS: dict[str, dict[str, Any]] = {
    "links obey": {"deflection": 0.0, "loss": 0.0},
    "links fail": {},
    "rivals alternate": {"rivals": "alternate"},
    "rivals answer": {"rivals": "answer"},
}

SIDES = ((4, 4, "left"), (-4, 4, "right"), (4, -4, "left"), (-4, -4, "right"), (0, 9, "center"), (0, -9, "center"))
"""Possible positions of a node's name, in points from the node."""


def learners(scenario: Scenario, criterion: am.Criterion, episodes: int) -> dict[str, am.Learner]:
    """Pooled rules expect untried links to be as reliable as the others; only the last rule knows the reliabilities."""
    sk, kinds = scenario.mdp.skeleton, scenario.kinds
    eta = am.bounds.eta(sk, episodes, criterion.lipschitz(sk))
    rules: dict[str, am.Learner] = {
        "last delay, pooled": am.ReplayLast(sk, kinds=kinds),
        "smoothed delay, pooled": Smoothed(sk, kinds=kinds),
        "mean delay, pooled": am.FollowLeader(sk, kinds=kinds),
        "fewest hops": Fixed(sk, fewest_hops(scenario)),
        **{kind.__name__: kind(sk) for kind in (am.Uniform, am.FollowLeader, am.ReplayLast)},
    }
    if criterion == am.WorstCase():
        rules = {name: OnTheMean(learner, criterion) for name, learner in rules.items()}
    tuned = {"eta": 100 * eta, "confidence_scale": 0.1, "successors": "possible"}
    return {
        OURS: scenario.learner(criterion=criterion),
        "UC-O-REPS, theory": am.UCOREPS(sk, episodes, criterion=criterion),
        TUNED: am.UCOREPS(sk, episodes, criterion=criterion, **tuned),
        **rules,
        "ReplayLast, told how often links fail": Told(scenario.mdp, criterion),
    }


def fewest_hops(scenario: Scenario) -> np.ndarray:
    """Choose at each node the neighbour with the fewest hops to the destination."""
    assert isinstance(scenario, Routing)
    graph = scenario.topology.graph.reverse(copy=False)
    hops = nx.single_source_shortest_path_length(graph, scenario.destination)
    return chosen_policy(scenario.mdp.skeleton, lambda _, ways: min(ways, key=lambda way: hops.get(way, 0)))


def worlds(csv: str | None, **options: Any) -> dict[str, Routing]:
    if csv is not None:
        return {"your costs": make_scenario("routing", **options, file=csv)}
    return {name: make_scenario("routing", **(options | kind)) for name, kind in WORLDS.items()}


def figure(scenario: Routing, game: am.Game, out: Path) -> None:
    """Draw the flow of a random policy, of the learned policy, and of the best fixed policy."""
    sk, mdp = scenario.mdp.skeleton, scenario.mdp
    measures = {
        "random": am.occupancy(mdp, am.uniform_policy(sk)),
        f"SelfTuning after {game.episodes:,} episodes": am.occupancy(mdp, game.learner.policy),
        "best fixed policy": game.comparator.q,
    }
    drawn, axes = plt.subplots(1, 3, figsize=(11, 5), layout="constrained")
    for ax, (title, q) in zip(axes, measures.items(), strict=True):
        draw(ax, scenario, scenario.flow(q))
        ax.set_title(f"{title}: {scenario.delivery(q):.0%} delivered", fontsize=10)
    drawn.draw_without_rendering()  # fixes the layout, so that names can be fitted in
    for ax, q in zip(axes, measures.values(), strict=True):
        label(ax, scenario, scenario.flow(q))
    picture = BytesIO()
    drawn.savefig(picture, dpi=110)
    plt.close(drawn)
    Image.open(picture).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(out, optimize=True)


def draw(ax: Axes, scenario: Routing, flow: np.ndarray) -> None:
    """Draw links as grey lines and flows as arrows on the right-hand side, with widths in proportion."""
    topology, at = scenario.topology, places(scenario)
    side = 0.008 * np.ptp(at, axis=0).max()
    for (a, b), amount in zip(topology.links, flow, strict=True):
        ax.plot(*at[[a, b]].T, color="0.85", lw=1, zorder=0)
        if amount >= 0.01:
            way = at[b] - at[a]
            shift = side * np.array([way[1], -way[0]]) / (np.hypot(*way) or 1.0)  # two nodes may share a position
            style = {"arrowstyle": "-|>", "lw": 0.4 + 4 * min(amount, 1.0), "color": "tab:blue", "alpha": 0.8}
            ends = {"shrinkA": 4, "shrinkB": 4, "mutation_scale": 6 + 8 * min(amount, 1.0)}
            ax.annotate("", at[b] + shift, at[a] + shift, arrowprops=style | ends)
    marked = {scenario.source: "tab:green", scenario.destination: "tab:red"}
    ax.scatter(*at.T, s=18, color=[marked.get(name, "0.3") for name in topology.nodes], zorder=3)
    ax.margins(0.12)
    if np.abs(at[:, 1]).max() < 80:  # latitudes: degrees of longitude are shorter than degrees of latitude
        ax.set_aspect(1.0 / np.cos(np.radians(at[:, 1].mean())))
    ax.set_axis_off()


def label(ax: Axes, scenario: Routing, flow: np.ndarray) -> None:
    """Name the nodes on the path of the flow, where a name fits: the ends first, then by flow."""
    topology, at = scenario.topology, places(scenario)
    marked = {topology.node(scenario.source): "tab:green", topology.node(scenario.destination): "tab:red"}
    through = np.bincount(topology.links[:, 1], flow, len(at))
    through[list(marked)] = np.inf
    halo = [withStroke(linewidth=2, foreground="white")]
    taken = [Bbox.from_bounds(x - 3, y - 3, 6, 6) for x, y in ax.transData.transform(at)]
    for v in np.argsort(-through, kind="stable")[: np.count_nonzero(through >= 0.15)]:
        look = {"color": marked.get(v, "0.2"), "fontsize": 7.5, "path_effects": halo, "zorder": 5}
        for across, up, way in SIDES:
            where = {"xytext": (across, up), "textcoords": "offset points", "ha": way, "va": "center"}
            text = ax.annotate(topology.nodes[v], at[v], **where, **look)
            box = text.get_window_extent()
            if not any(box.overlaps(other) for k, other in enumerate(taken) if k != v):
                taken.append(box)
                break
            text.remove()


def places(scenario: Routing) -> np.ndarray:
    """The positions of the nodes."""
    topology = scenario.topology
    if topology.positions is not None:
        return topology.positions
    return np.array(list(nx.spring_layout(topology.graph, seed=0).values()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topology", default="sndlib/germany50", help="a name in topohub")
    parser.add_argument("--source")
    parser.add_argument("--destination")
    parser.add_argument("--hops", type=int, help="the hop limit; the default is two more than needed")
    parser.add_argument("--objective", default="delay", help="delay, congestion, price or worst")
    parser.add_argument("--csv", help="a CSV or Parquet file of your own costs; each time is played once")
    parser.add_argument("--episodes", type=count, default=1000)
    parser.add_argument("--seeds", type=count, default=5)
    parser.add_argument("--out", type=picture, help="a PNG file for the flow in the world 'links fail'")
    told = parser.parse_args()
    options = {"topology": told.topology, "source": told.source, "destination": told.destination, "hops": told.hops}
    if told.topology == parser.get_default("topology") and told.source is None and told.destination is None:
        options |= {"source": "Hamburg", "destination": "Muenchen"}
    try:
        found = worlds(told.csv, **options, objective=told.objective)
        first = next(iter(found.values()))
        episodes = first.episodes or told.episodes
        # UC-O-REPS was tuned on seed 0.
        compared = compare(found, learners, episodes, range(1, told.seeds + 1))
    except am.InputError as error:
        parser.error(str(error))
    way = f"{first.source} to {first.destination}, {first.topology.name}, {first.hops} hops, {told.objective}"
    length = f"{told.seeds} seeds of {episodes:,} episodes\n{way}"
    paper().print(compared.paid_table(f"Cost per episode, in ms for delays: {length}", ours=OURS, rules=RULES))
    paper().print(compared.table(f"Regret per episode: {length}", "cost per episode of the best fixed policy"))
    if told.out is not None:
        world = "links fail" if told.csv is None else "your costs"
        figure(found[world], compared.last[OURS, world], told.out)


if __name__ == "__main__":
    example(main)
