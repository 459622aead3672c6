"""Traffic to one AS over neighbours that have policies of their own: who learns how to send it?

    python examples/bgp.py                                a generated Internet of 200 ASes, 3 seeds: a minute
    python examples/bgp.py --file as-rel.txt.bz2          CAIDA's AS relationships, serial-1 or serial-2
    python examples/bgp.py --source 17 --destination 20   a single flow
    python examples/bgp.py --out bgp.png                  and a picture

A number is what an episode costs, its regret against the best fixed policy, each as mean and standard error over the
seeds of the costs, and how much of the traffic the last policy delivers.  "Shortest" is what plain BGP would do: the
fewest hops, customers before peers before providers.  Least regret is green.
"""

import argparse
import sys
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import advmdp as am
from advmdp.scenarios import make_scenario
from advmdp.scenarios.comparing import count, example, paper, picture, shown
from advmdp.scenarios.network.bgp import Routes, graph_of, routes

OURS = "UC-O-REPS, practical (30 eta, radii x 0.1)"


class Fixed(am.Learner):
    """Plays one policy for ever."""

    def __init__(self, skeleton: am.Skeleton, policy: np.ndarray) -> None:
        super().__init__(skeleton)
        self._policy = policy

    @property
    def policy(self) -> np.ndarray:
        return self._policy

    def update(self, trajectory: am.Trajectory, loss: np.ndarray) -> None:
        self.episode += 1

    @property
    def parameters(self) -> dict[str, Any]:
        return {}

    def state(self) -> dict[str, np.ndarray]:
        return {}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        pass


def learners(found: Routes, episodes: int) -> dict[str, am.Learner]:
    sk = found.mdp.skeleton
    eta = 30 * am.bounds.eta(sk, episodes)
    return {
        "UC-O-REPS, theory": am.UCOREPS(sk, episodes),
        OURS: am.UCOREPS(sk, episodes, eta=eta, confidence_scale=0.1, successors="possible"),
        "Shortest": Fixed(sk, found.shortest()),
        **{kind.__name__: kind(sk) for kind in (am.Uniform, am.FollowLeader, am.ReplayLast)},
    }


def games(found: Routes, parameters: dict[str, Any], episodes: int, seeds: int) -> dict[str, list[am.Game]]:
    """By learner, a game for each seed of the costs."""
    scenario = make_scenario("bgp", **parameters)
    names = list(learners(found, episodes))
    todo = [(seed, name) for seed in range(1, seeds + 1) for name in names]  # parameters were chosen on seed 0
    played: dict[str, list[am.Game]] = {name: [] for name in names}
    for seed, name in track(todo, "playing", console=Console(stderr=True), disable=not sys.stderr.isatty()):
        learner = learners(found, episodes)[name]
        played[name].append(am.play(scenario.mdp, scenario.losses_from(seed), learner, episodes, seed))
    return played


def fates(mdp: am.MDP, policy: np.ndarray) -> np.ndarray:
    """(hops + 1, 4): the shares of traffic that climb, descend, are lost and are delivered after each hop."""
    sk = mdp.skeleton
    visits = np.bincount(sk.successor, am.occupancy(mdp, policy), sk.num_states)
    visits[0] = 1.0
    assert sk.state_names is not None
    kinds = ("up", "down", "lost", "delivered")
    rows: dict[str, np.ndarray] = {}
    for name, share in zip(sk.state_names, visits, strict=True):
        if name not in ("start", "end"):
            step, *_, kind = name.split()
            rows.setdefault(step, np.zeros(4))[kinds.index(kind)] += share
    return np.array(list(rows.values()))


def draw(played: dict[str, list[am.Game]], scale: float, out: str) -> None:
    """Regret over the episodes; what becomes of the traffic, hop by hop, under the learned and the best policy."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from advmdp.plot.curves import PALETTE

    figure, (left, *others) = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained", width_ratios=(5, 3, 3))
    for (name, row), colour in zip(played.items(), PALETTE, strict=False):
        curve = scale * np.mean([game.curve["regret"].to_numpy() for game in row], axis=0)
        left.plot(row[0].curve["episode"], curve, color=colour, label=name, lw=2.2 if name == OURS else 1.2)
    left.set(xlabel="episode", ylabel="regret, in money", title="what learning costs")
    left.legend(fontsize=7)
    game = played[OURS][-1]
    for axes, title, policy in zip(
        others, ("learned", "best fixed policy"), (game.learner.policy, game.comparator.policy), strict=True
    ):
        shares = fates(game.mdp, policy)
        below = np.zeros(len(shares))
        for k, (kind, colour) in enumerate(
            {"climbing": "#7fb2d9", "descending": "#0060b0", "lost": "#c04a00", "delivered": "#00785a"}.items()
        ):
            axes.bar(np.arange(len(shares)), shares[:, k], bottom=below, color=colour, label=kind, width=0.85)
            below += shares[:, k]
        axes.set(xlabel="steps taken", ylim=(0, 1), title=title)
        axes.spines[["top", "right"]].set_visible(False)
    others[0].set_ylabel("share of the traffic")
    figure.legend(*others[1].get_legend_handles_labels(), fontsize=7, loc="outside lower right", ncols=4)
    left.spines[["top", "right"]].set_visible(False)
    figure.savefig(out, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", help="AS relationships of your own")
    parser.add_argument("--ases", type=int, default=200, help="how many are generated where there is no file")
    parser.add_argument("--source", type=int, help="the AS whose traffic it is; without it that of all ASes")
    parser.add_argument("--destination", type=int)
    parser.add_argument("--hops", type=int, default=6)
    parser.add_argument("--episodes", type=count, default=1000)
    parser.add_argument("--seeds", type=count, default=3)
    parser.add_argument("--out", type=picture, help="where to write a picture, a PNG")
    arguments = parser.parse_args()
    told = {key: getattr(arguments, key) for key in ("file", "ases", "source", "destination", "hops")}
    try:
        graph = graph_of(arguments.file, arguments.ases, 0)
        found = routes(graph, arguments.source, arguments.destination, arguments.hops)
        played = games(found, told, arguments.episodes, arguments.seeds)
    except am.InputError as error:
        parser.error(str(error))
    console, scale = paper(), make_scenario("bgp", **told).scale
    goal = f"AS{graph.numbers[found.destination]}"
    console.print(f"Traffic to {goal} from {len(found.sources):,} of {len(graph.numbers):,} ASes: {found.mdp}")
    table = Table(title=f"{arguments.seeds} seeds of {arguments.episodes:,} episodes")
    for column in ("learner", "an episode costs", "regret of an episode", "delivered at last"):
        table.add_column(column, justify="left" if column == "learner" else "right")
    regret = {name: [scale * game.regret / game.episodes for game in row] for name, row in played.items()}
    least = min(np.mean(values) for values in regret.values())
    for name, row in played.items():
        text = shown(regret[name])
        table.add_row(
            name,
            shown([scale * game.total_loss / game.episodes for game in row]),
            f"[green]{text}[/]" if np.mean(regret[name]) == least else text,
            f"{np.mean([fates(game.mdp, game.learner.policy)[-1, 3] for game in row]):.1%}",
        )
    table.add_section()
    best = [game.comparator for game in played[OURS]]
    delivered = np.mean([fates(found.mdp, one.policy)[-1, 3] for one in best])
    paid = shown([scale * one.value / arguments.episodes for one in best])
    table.add_row("the best fixed policy", paid, "", f"{delivered:.1%}")
    console.print(table)
    if arguments.out:
        draw(played, scale, arguments.out)
        console.print(f"picture: {arguments.out}", soft_wrap=True)


if __name__ == "__main__":
    example(main)
