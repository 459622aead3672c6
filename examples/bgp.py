"""Compare learners that send traffic to one AS, through neighbours with policies of their own, with simple rules.

    python examples/bgp.py                                a generated Internet of 200 ASes, 3 seeds: a minute
    python examples/bgp.py --seeds 20                     the table of the documentation
    python examples/bgp.py --file as-rel.txt.bz2          CAIDA's AS relationships, serial-1 or serial-2
    python examples/bgp.py --source 17 --destination 20   a single flow
    python examples/bgp.py --out bgp.png                  and a picture

The first table shows the cost per episode, with the mean and standard error over the seeds of the costs.  "shortest" is
what plain BGP would do: the fewest hops, then customers before peers before providers.  The second table shows the
regret against the best fixed policy.  The least is green.
"""

import argparse

import numpy as np

import advmdp as am
from advmdp.scenarios import Scenario, make_scenario
from advmdp.scenarios.comparing import Comparison, compare, count, example, paper, picture
from advmdp.scenarios.network.bgp import LOST, graph_of, routes
from advmdp.scenarios.rules import Fixed, Smoothed

OURS = "SelfTuning"
WORLD = "traffic"
RULES = ("last cost, pooled", "smoothed cost, pooled", "mean cost, pooled", "shortest")


def learners(scenario: Scenario, criterion: am.Criterion, episodes: int, shortest: np.ndarray) -> dict[str, am.Learner]:
    """Pooled rules expect an untried neighbour to behave like the others; nobody knows how neighbours behave."""
    sk, kinds = scenario.mdp.skeleton, scenario.kinds
    eta = 30 * am.bounds.eta(sk, episodes)
    return {
        OURS: scenario.learner(),
        "UC-O-REPS, tuned by hand": am.UCOREPS(sk, episodes, eta=eta, confidence_scale=0.1, successors="possible"),
        "last cost, pooled": am.ReplayLast(sk, kinds=kinds),
        "smoothed cost, pooled": Smoothed(sk, kinds=kinds),
        "mean cost, pooled": am.FollowLeader(sk, kinds=kinds),
        "shortest": Fixed(sk, shortest),
        "Uniform": am.Uniform(sk),
    }


def fates(mdp: am.MDP, policy: np.ndarray) -> np.ndarray:
    """(hops + 1, 4): the shares of traffic climbing, descending, lost and delivered after each hop."""
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


def draw(compared: Comparison, out: str) -> None:
    """Draw what was paid so far (last seed), and the traffic hop by hop under the learned and the best policy."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from advmdp.plot.curves import PALETTE

    figure, (left, *others) = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained", width_ratios=(5, 3, 3))
    for ((name, _), game), colour in zip(compared.last.items(), PALETTE, strict=False):
        episode, paid = game.curve["episode"], LOST * game.curve["loss"] / game.curve["episode"]
        left.plot(episode, paid, color=colour, label=name, lw=2.2 if name == OURS else 1.2)
    left.set(xlabel="episode", xscale="log", ylabel="cost per episode so far", title="what was paid")
    left.set_ylim(top=1.3 * left.get_ylim()[1])  # room for the legend
    left.legend(fontsize=7, ncols=2, loc="upper right")
    game = compared.last[OURS, WORLD]
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
    parser.add_argument("--file", help="your own file of AS relationships")
    parser.add_argument("--ases", type=int, default=200, help="the number of ASes to generate without a file")
    parser.add_argument("--source", type=int, help="the AS that sends; the default is all ASes")
    parser.add_argument("--destination", type=int)
    parser.add_argument("--hops", type=int, default=6)
    parser.add_argument("--episodes", type=count, default=1000)
    parser.add_argument("--seeds", type=count, default=3)
    parser.add_argument("--out", type=picture, help="a PNG file for the picture")
    arguments = parser.parse_args()
    told = {key: getattr(arguments, key) for key in ("file", "ases", "source", "destination", "hops")}
    try:
        graph = graph_of(arguments.file, arguments.ases, 0)
        found = routes(graph, arguments.source, arguments.destination, arguments.hops)
        scenario = make_scenario("bgp", **told)
        compared = compare(
            {WORLD: scenario},
            lambda *known: learners(*known, found.shortest()),
            arguments.episodes,
            range(1, arguments.seeds + 1),  # UC-O-REPS was tuned on seed 0
        )
    except am.InputError as error:
        parser.error(str(error))
    console, goal = paper(), f"AS{graph.numbers[found.destination]}"
    console.print(f"Traffic to {goal} from {len(found.sources):,} of {len(graph.numbers):,} ASes: {found.mdp}")
    length = f"{arguments.seeds} seeds of {arguments.episodes:,} episodes"
    console.print(compared.paid_table(f"Cost per episode: {length}", ours=OURS, rules=RULES))
    console.print(compared.table(f"Regret per episode: {length}", "cost per episode of the best fixed policy"))
    last = {name: game for (name, _), game in compared.last.items()}
    delivered = {name: fates(game.mdp, game.learner.policy)[-1, 3] for name, game in last.items()}
    delivered["the best fixed policy"] = fates(found.mdp, last[OURS].comparator.policy)[-1, 3]
    console.print("Delivered at the end, last seed: " + ", ".join(f"{k} {v:.1%}" for k, v in delivered.items()))
    if arguments.out:
        draw(compared, arguments.out)
        console.print(f"picture: {arguments.out}", soft_wrap=True)


if __name__ == "__main__":
    example(main)
