"""A perishable stock with unit costs that drift: who orders well, and where yesterday's best is enough.

    python examples/inventory.py                    5 seeds of 1,000 weeks: half a minute
    python examples/inventory.py --csv costs.csv    your own unit costs, a line a week: order,hold,waste,short

Generated costs come in two kinds: those that drift over many weeks, and those that are drawn anew each week.  A
number is the regret of a week in money, its mean and standard error over the seeds: what the best fixed policy of
all these weeks would have saved; below zero is better than every fixed policy.  Least is green.
"""

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table

import advmdp as am
from advmdp.scenarios import Scenario, make_scenario


def learners(sk: am.Skeleton, weeks: int) -> dict[str, am.Learner]:
    eta = am.bounds.eta(sk, weeks)
    practical = {"eta": 100 * eta, "successors": "possible"}
    return {
        "UC-O-REPS, theory": am.UCOREPS(sk, weeks),
        "UC-O-REPS, practical (100 eta, radii x 0.03)": am.UCOREPS(sk, weeks, confidence_scale=0.03, **practical),
        "UC-O-REPS, fixed share (100 eta, radii x 0.1, 0.001)": am.UCOREPS(
            sk, weeks, confidence_scale=0.1, share=1e-3, **practical
        ),
        "Uniform": am.Uniform(sk),
        "FollowLeader": am.FollowLeader(sk),
        "ReplayLast": am.ReplayLast(sk),
    }


def worlds(csv: str | None) -> dict[str, Scenario]:
    if csv is not None:
        return {"your costs": make_scenario("inventory", file=csv)}
    return {
        "costs drift": make_scenario("inventory", period=50),
        "costs jump": make_scenario("inventory", period=1),
    }


def regrets(
    found: dict[str, Scenario], weeks: int, seeds: int
) -> tuple[dict[tuple[str, str], np.ndarray], dict[str, list[float]], am.Game]:
    """Regret of a week by learner and world, one a seed; what the best fixed policy pays; the last game."""
    rows: dict[tuple[str, str], list[float]] = {}
    best: dict[str, list[float]] = {}
    for world, scenario in found.items():
        for seed in range(1, seeds + 1):  # 0 is the seed on which the practical parameters were chosen
            losses = scenario.losses_from(seed)
            for name, learner in learners(scenario.mdp.skeleton, weeks).items():
                game = am.play(scenario.mdp, losses, learner, weeks, seed)
                rows.setdefault((name, world), []).append(scenario.scale * game.regret / weeks)
            best.setdefault(world, []).append(scenario.money(game.comparator.value, weeks) / weeks)
    return {key: np.array(values) for key, values in rows.items()}, best, game


def orders(game: am.Game) -> str:
    """What the best fixed policy orders on an empty shelf, day by day."""
    sk, shown = game.mdp.skeleton, []
    for x, name in enumerate(sk.state_names[:-1]):
        if name.endswith(" 0 left") and not name.startswith("closing"):
            first, last = sk.pair_ptr[x], sk.pair_ptr[x + 1]
            p = first + int(np.argmax(game.comparator.policy[first:last]))
            shown.append(f"{name.split()[0]} {sk.action_names[p].split()[1]}")
    return ", ".join(shown)


def standard_error(values: np.ndarray) -> float:
    """Of the mean; of a single seed there is none."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weeks", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--csv", help="a file of your own unit costs, each week of which is played once")
    arguments = parser.parse_args()
    try:
        found = worlds(arguments.csv)
        weeks = next(iter(found.values())).episodes or arguments.weeks
        rows, best, last = regrets(found, weeks, arguments.seeds)
    except am.InputError as error:
        parser.error(str(error))
    table = Table(title=f"Regret of a week in money: {arguments.seeds} seeds of {weeks:,} weeks")
    table.add_column("learner")
    for world in found:
        table.add_column(world, justify="right")
    for name in dict.fromkeys(name for name, _ in rows):
        cells = []
        for world in found:
            values = rows[name, world]
            text = f"{values.mean():,.3f} ± {standard_error(values):,.3f}"
            least = min(row.mean() for (_, where), row in rows.items() if where == world)
            cells.append(f"[green]{text}[/]" if values.mean() == least else text)
        table.add_row(name, *cells)
    table.add_section()
    table.add_row("a week of the best fixed policy costs", *(f"{np.mean(best[world]):,.3f}" for world in found))
    console = Console()
    console.print(table)
    console.print(f"What the best fixed policy of the last world orders on an empty shelf: {orders(last)}")


if __name__ == "__main__":
    main()
