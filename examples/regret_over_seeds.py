"""Compare UC-O-REPS, with the theory's and with practical parameters, with simple rules over many seeds.

    python examples/regret_over_seeds.py                 20 seeds of 5,000 episodes: a minute or two on one core
    python examples/regret_over_seeds.py --seeds 3 --episodes 1000

There are three adversaries: one reacts to the player, one alternates from episode to episode, too fast to follow, and
one switches every quarter of the game.  The first table shows the cost.  The second shows the regret: the excess cost
over the best fixed policy on the losses that the learner met.  Losses that react are different for each learner, so
compare costs there.  Numbers are means with standard errors; the least is green.
"""

import argparse

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import advmdp as am
from advmdp.scenarios.comparing import count, example


def adversaries(sk: am.Skeleton, episodes: int, seed: int) -> dict[str, am.losses.Losses]:
    return {
        "reacts": am.losses.Adaptive(sk, seed=seed, strength=0.8),
        "alternates": am.losses.Switching(sk, period=1, seed=seed),
        "switches slowly": am.losses.Switching(sk, period=max(1, episodes // 4), seed=seed),
    }


def learners(sk: am.Skeleton, episodes: int) -> dict[str, am.Learner]:
    eta = am.bounds.eta(sk, episodes)
    tight = {"successors": "possible", "confidence_scale": 0.2}
    return {
        "UC-O-REPS, theory": am.UCOREPS(sk, horizon=episodes),
        "UC-O-REPS, practical (5 eta, radii x 0.2)": am.UCOREPS(sk, horizon=episodes, eta=5 * eta, **tight),
        "UC-O-REPS, Bernstein (5 eta, widths x 0.1)": am.UCOREPS(
            sk, horizon=episodes, eta=5 * eta, confidence="bernstein", confidence_scale=0.1
        ),
        "UC-O-REPS, fixed share (20 eta, 0.001)": am.UCOREPS(sk, horizon=episodes, eta=20 * eta, share=1e-3, **tight),
        "Uniform": am.Uniform(sk),
        "FollowLeader": am.FollowLeader(sk),
        "ReplayLast": am.ReplayLast(sk),
    }


Numbers = dict[tuple[str, str], np.ndarray]
"""Numbers by (learner, adversary), one for each seed."""


def accounts(episodes: int, seeds: int, console: Console) -> tuple[Numbers, Numbers]:
    """Costs and regrets."""
    mdp = am.MDP.random([1, 5, 5, 5, 5, 1], 4, seed=0, concentration=0.3)
    sk = mdp.skeleton
    paid: dict[tuple[str, str], list[float]] = {}
    regret: dict[tuple[str, str], list[float]] = {}
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("playing", total=seeds * len(adversaries(sk, 1, 0)) * len(learners(sk, 1)))
        for seed in range(seeds):
            for world, losses in adversaries(sk, episodes, seed).items():
                for name, learner in learners(sk, episodes).items():
                    game = am.play(mdp, losses, learner, episodes, seed)
                    paid.setdefault((name, world), []).append(game.total_loss)
                    regret.setdefault((name, world), []).append(game.regret)
                    bar.advance(task)
    first, second = ({key: np.array(values) for key, values in found.items()} for found in (paid, regret))
    return first, second


def show(found: Numbers, title: str, console: Console) -> None:
    """Print a table with a row for each learner and a column for each adversary."""
    names, worlds = (list(dict.fromkeys(key[k] for key in found)) for k in (0, 1))
    table = Table(title=title)
    table.add_column("learner")
    for world in worlds:
        table.add_column(world, justify="right")
    least = {world: min(found[name, world].mean() for name in names) for world in worlds}
    for name in names:
        cells = []
        for world in worlds:
            values = found[name, world]
            text = f"{values.mean():,.0f} ± {values.std() / np.sqrt(len(values)):,.0f}"
            alike = "Regret" not in title or world != "reacts"  # regrets about different losses are not compared
            cells.append(f"[green]{text}[/]" if alike and values.mean() == least[world] else text)
        table.add_row(name, *cells)
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=count, default=5000)
    parser.add_argument("--seeds", type=count, default=20)
    arguments = parser.parse_args()
    console = Console()
    of = f"{arguments.seeds} seeds of {arguments.episodes:,} episodes: mean and standard error"
    for what, found in zip(("Paid", "Regret"), accounts(arguments.episodes, arguments.seeds, console), strict=True):
        show(found, f"{what} over {of}", console)


if __name__ == "__main__":
    example(main)
