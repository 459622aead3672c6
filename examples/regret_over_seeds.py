"""UC-O-REPS against what anyone would try first, over many seeds, with the theory's parameters and with practical ones.

    python examples/regret_over_seeds.py                 20 seeds of 5,000 episodes: a minute or two on one core
    python examples/regret_over_seeds.py --seeds 3 --episodes 1000

Three adversaries: one that reacts to the player, one that alternates from episode to episode, faster than anyone can
follow, and one that switches four times in all.  The first table shows what was paid, the second the regret: what was
paid above the best fixed policy on the losses that the learner met.  Those that react are other losses for each
learner, so compare learners by what they paid.  Numbers are means with their standard errors; the least is green.
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
"""By learner and adversary, one for each seed."""


def accounts(episodes: int, seeds: int, console: Console) -> tuple[Numbers, Numbers]:
    """What was paid, and regret."""
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
    """A row for each learner, a column for each adversary."""
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
            cells.append(f"[green]{text}[/]" if values.mean() == least[world] else text)
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
