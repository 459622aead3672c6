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

import numpy as np

import advmdp as am
from advmdp.scenarios import Scenario, make_scenario
from advmdp.scenarios.comparing import OnTheMean, compare, count, example, paper, picture

OURS = "UC-O-REPS, practical (300 eta, radii x 0.1)"


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
        OURS: am.UCOREPS(sk, days, criterion=criterion, eta=300 * eta, **practical),
        **baselines,
    }


def worlds(zones: int, csv: str | None) -> dict[str, Scenario]:
    if csv is not None:
        return {"your prices": make_scenario("battery", file=csv)}
    return {
        "prices persist": make_scenario("battery", zones=zones),
        "days are upset": make_scenario("battery", zones=zones, upset=0.4),
    }


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=count, default=1000)
    parser.add_argument("--seeds", type=count, default=5)
    parser.add_argument("--zones", type=int, default=1)
    parser.add_argument("--risk", type=float, help="the power c of the risk criterion, above 1; for one zone")
    parser.add_argument("--csv", help="a file of your own prices, each day of which is played once")
    parser.add_argument("--out", type=picture, help="where to draw regret over time, a PNG")
    arguments = parser.parse_args()
    try:
        found = worlds(arguments.zones, arguments.csv)
        if arguments.risk is not None and next(iter(found.values())).criterion == am.WorstCase():
            parser.error("--risk is for one zone")
        days = next(iter(found.values())).episodes or arguments.days
        criterion = None if arguments.risk is None else am.Risk(alpha=0.0, c=arguments.risk)
        # 0 is the seed on which the practical parameters were chosen.
        compared = compare(found, learners, days, range(1, arguments.seeds + 1), criterion)
    except am.InputError as error:
        parser.error(str(error))
    unit = "in money" if arguments.risk is None else "in risk"
    title = f"Regret of a day {unit}: {arguments.seeds} seeds of {days:,} days"
    console = paper()
    console.print(compared.table(title, "a day of the best fixed policy costs"))
    if arguments.out is not None:
        compared.draw(arguments.out, "regret so far")
    last = compared.last[OURS, next(reversed(found))]
    console.print(f"What UC-O-REPS would order tomorrow, from 0h on (+ charge, - discharge): {orders(last)}")


if __name__ == "__main__":
    example(main)
