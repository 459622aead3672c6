"""A battery against hourly prices: what it earns, what it could have earned, and who learns it.

    python examples/battery.py                      5 seeds of 1,000 days with generated prices: half a minute
    python examples/battery.py --zones 3            one order for three zones; the dearest of each day counts
    python examples/battery.py --risk 2             a dial: the larger it is, the less a single hour may cost
    python examples/battery.py --csv prices.csv     your own prices: day,hour,price or day,hour,north,south,...

Generated prices come in two kinds: those that persist, each day much like the last, and those of which two days in
five are turned over, dear hours cheap and cheap ones dear.  A number is the regret of a day in money, its mean and
standard error over the seeds: what the best fixed policy of all these days would have saved.  Least is green.
"""

import argparse
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import advmdp as am
from advmdp.scenarios import Scenario, make_scenario


class OnTheMean(am.Learner):
    """A baseline for one loss, shown the mean over zones of several."""

    optimises = "any"

    def __init__(self, inner: am.Learner, criterion: am.Criterion) -> None:
        super().__init__(inner.skeleton, criterion)
        self.inner = inner

    @property
    def policy(self) -> np.ndarray:
        return self.inner.policy

    def update(self, trajectory: am.Trajectory, loss: np.ndarray) -> None:
        self.inner.update(trajectory, loss.mean(axis=1))
        self.episode += 1

    @property
    def parameters(self) -> dict[str, Any]:
        return {}

    def state(self) -> dict[str, np.ndarray]:
        return self.inner.state()

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.inner.restore(state)


def learners(scenario: Scenario, criterion: am.Criterion, days: int) -> dict[str, am.Learner]:
    sk = scenario.mdp.skeleton
    eta = am.bounds.eta(sk, days, criterion.lipschitz(sk))
    baselines: dict[str, am.Learner] = {
        kind.__name__: kind(sk) for kind in (am.Uniform, am.FollowLeader, am.ReplayLast)
    }
    if scenario.criterion == am.WorstCase():
        baselines = {name: OnTheMean(learner, criterion) for name, learner in baselines.items()}
    practical = {"confidence_scale": 0.1, "successors": "possible"}
    return {
        "UC-O-REPS, theory": am.UCOREPS(sk, days, criterion=criterion),
        "UC-O-REPS, practical (300 eta, radii x 0.1)": am.UCOREPS(
            sk, days, criterion=criterion, eta=300 * eta, **practical
        ),
        **baselines,
    }


def worlds(zones: int, csv: str | None) -> dict[str, Scenario]:
    if csv is not None:
        return {"your prices": make_scenario("battery", file=csv)}
    return {
        "prices persist": make_scenario("battery", zones=zones),
        "days are upset": make_scenario("battery", zones=zones, upset=0.4),
    }


def regrets(
    found: dict[str, Scenario], days: int, seeds: int, risk: float | None
) -> tuple[dict[tuple[str, str], np.ndarray], dict[str, list[float]], am.Game]:
    """Regret of a day by learner and world, one a seed; what the best fixed policy pays; our last game."""
    rows: dict[tuple[str, str], list[float]] = {}
    best: dict[str, list[float]] = {}
    for world, scenario in found.items():
        criterion = scenario.criterion if risk is None else am.Risk(alpha=0.0, c=risk)
        for seed in range(1, seeds + 1):  # 0 is the seed on which the practical parameters were chosen
            losses = scenario.losses_from(seed)
            for name, learner in learners(scenario, criterion, days).items():
                game = am.play(scenario.mdp, losses, learner, days, seed, criterion=criterion, comparator_at="end")
                unit = scenario.scale if risk is None else 1.0  # a risk is no money
                rows.setdefault((name, world), []).append(unit * game.regret / days)
                if name.startswith("UC-O-REPS, practical"):
                    ours = game
            value = game.comparator.value
            best.setdefault(world, []).append((scenario.money(value, days) if risk is None else value) / days)
    return {key: np.array(values) for key, values in rows.items()}, best, ours


def orders(game: am.Game) -> str:
    """Hour by hour what the learner is most likely to order now: + charge, - discharge, . hold."""
    sk = game.mdp.skeleton
    visits = np.add.reduceat(am.occupancy(game.mdp, game.learner.policy), sk.transition_ptr[:-1])
    marks = {"charge": "+", "hold": ".", "discharge": "-"}
    shown = ""
    for first, last in zip(sk.layer_pair_ptr[:-2], sk.layer_pair_ptr[1:-1], strict=True):
        share = {
            mark: sum(visits[p] for p in range(first, last) if sk.action_names[p] == order)
            for order, mark in marks.items()
        }
        shown += max(share, key=share.__getitem__)
    return shown


def standard_error(values: np.ndarray) -> float:
    """Of the mean; of a single seed there is none."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--zones", type=int, default=1)
    parser.add_argument("--risk", type=float, help="the power c of the risk criterion, above 1; for one zone")
    parser.add_argument("--csv", help="a file of your own prices, each day of which is played once")
    arguments = parser.parse_args()
    try:
        found = worlds(arguments.zones, arguments.csv)
        if arguments.risk is not None and next(iter(found.values())).criterion == am.WorstCase():
            parser.error("--risk is for one zone")
        days = next(iter(found.values())).episodes or arguments.days
        rows, best, last = regrets(found, days, arguments.seeds, arguments.risk)
    except am.InputError as error:
        parser.error(str(error))
    unit = "in money" if arguments.risk is None else "in risk"
    table = Table(title=f"Regret of a day {unit}: {arguments.seeds} seeds of {days:,} days")
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
    table.add_row("a day of the best fixed policy costs", *(f"{np.mean(best[world]):,.3f}" for world in found))
    console = Console()
    console.print(table)
    console.print(f"What UC-O-REPS would order tomorrow, from 0h on (+ charge, - discharge): {orders(last)}")


if __name__ == "__main__":
    main()
