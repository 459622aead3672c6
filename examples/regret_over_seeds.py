"""UC-O-REPS against what anyone would try first, over many seeds, with the theory's parameters and with practical ones.

    python examples/regret_over_seeds.py                 20 seeds of 5,000 episodes: a minute or two on one core
    python examples/regret_over_seeds.py --seeds 3 --episodes 1000

Three adversaries: one that reacts to the player, one that alternates from episode to episode, faster than anyone can
follow, and one that switches four times in all.  The table shows the mean regret and its standard error; the lowest of
each column is green, and regret below zero means better than every fixed policy.
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


def regrets(episodes: int, seeds: int, console: Console) -> dict[tuple[str, str], np.ndarray]:
    """Regret by learner and adversary, one number for each seed."""
    mdp = am.MDP.random([1, 5, 5, 5, 5, 1], 4, seed=0, concentration=0.3)
    sk = mdp.skeleton
    found: dict[tuple[str, str], list[float]] = {}
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("playing", total=seeds * len(adversaries(sk, 1, 0)) * len(learners(sk, 1)))
        for seed in range(seeds):
            for world, losses in adversaries(sk, episodes, seed).items():
                for name, learner in learners(sk, episodes).items():
                    found.setdefault((name, world), []).append(am.play(mdp, losses, learner, episodes, seed).regret)
                    bar.advance(task)
    return {key: np.array(values) for key, values in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=count, default=5000)
    parser.add_argument("--seeds", type=count, default=20)
    arguments = parser.parse_args()
    console = Console()
    found = regrets(arguments.episodes, arguments.seeds, console)
    names, worlds = (list(dict.fromkeys(key[k] for key in found)) for k in (0, 1))
    table = Table(
        title=f"Regret over {arguments.seeds} seeds of {arguments.episodes:,} episodes: mean and standard error"
    )
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


if __name__ == "__main__":
    example(main)
