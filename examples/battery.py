"""Compare a learner with simple rules and perfect foresight: the earnings of a battery that trades at hourly prices.

    python examples/battery.py                      5 seeds of 1,000 days with generated prices: a minute
    python examples/battery.py --seeds 20           the table of the documentation
    python examples/battery.py --zones 3            one order for three zones; the most expensive one counts
    python examples/battery.py --risk 2             minimise a risk; larger numbers penalise expensive hours more
    python examples/battery.py --csv prices.csv     your own prices: day,hour,price or day,hour,north,south,...
    python examples/battery.py --csv prices.csv --fill     the same, with missing prices taken from the day before

There are three kinds of generated prices.  "prices persist": each day resembles the last.  "days are upset": on two
days in five, cheap and expensive hours are swapped.  "real-time prices": about 10 $ in most hours, thousands in a few.
The first table shows the money earned per day.  The last shows the regret: how much more the best fixed policy of all
these days would have earned.  With --risk, learners minimise the risk; a table between the two shows how high it was,
and the regret is in risk.  The best is green.  Day-ahead prices are known and need no learning: see best_schedule.
"""

import argparse

import numpy as np

import advmdp as am
from advmdp.scenarios import Scenario, make_scenario
from advmdp.scenarios.comparing import OnTheMean, compare, count, example, paper, picture
from advmdp.scenarios.rules import Fixed, Recent, chosen_policy

OURS = "SelfTuning"
TUNED = "UC-O-REPS, tuned by hand"
RULES = ("replay yesterday", "7-day average", "average of all days", "fixed hours")
HOURS = {"charge": range(2, 6), "discharge": range(17, 21)}
"""The hours that an engineer would set on a timer."""


def learners(scenario: Scenario, criterion: am.Criterion, days: int) -> dict[str, am.Learner]:
    """All rules know that orders fail equally often in all hours (``kinds``), but not how often."""
    sk, kinds = scenario.mdp.skeleton, scenario.kinds
    eta = am.bounds.eta(sk, days, criterion.lipschitz(sk))
    rules: dict[str, am.Learner] = {
        "replay yesterday": am.ReplayLast(sk, kinds=kinds),
        "7-day average": Recent(sk, kinds=kinds, episodes=7),
        "average of all days": am.FollowLeader(sk, kinds=kinds),
        "fixed hours": Fixed(sk, chosen_policy(sk, at_fixed_hours)),
        "Uniform": am.Uniform(sk),
    }
    if scenario.criterion == am.WorstCase():
        rules = {name: OnTheMean(learner, criterion) for name, learner in rules.items()}
    tuned = {"eta": 300 * eta, "confidence_scale": 0.1, "successors": "possible"}
    return {
        OURS: scenario.learner(criterion=criterion),
        TUNED: am.UCOREPS(sk, days, criterion=criterion, **tuned),
        **rules,
    }


def at_fixed_hours(state: str, orders: list[str]) -> str:
    """The order for a state such as "18h 3/4"."""
    hour = int(state[:2]) if state[:2].isdecimal() else -1
    wanted = next((order for order, hours in HOURS.items() if hour in hours and order in orders), "hold")
    return wanted if wanted in orders else orders[0]


def worlds(zones: int, csv: str | None, fill: bool = False) -> dict[str, Scenario]:
    if csv is not None:
        return {"your prices": make_scenario("battery", file=csv, fill=fill)}
    return {
        "prices persist": make_scenario("battery", zones=zones),
        "days are upset": make_scenario("battery", zones=zones, upset=0.4),
        "real-time prices": make_scenario("battery", zones=zones, tail=300.0, scale=9000.0),
    }


def orders(game: am.Game) -> str:
    """The learner's likeliest order for each hour: + charge, - discharge, . hold."""
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
    parser.add_argument("--csv", help="a file of your own prices; each day is played once")
    parser.add_argument("--fill", action="store_true", help="take missing prices of the file from the day before")
    parser.add_argument("--out", type=picture, help="a PNG file for the curves of cost and regret")
    arguments = parser.parse_args()
    try:
        found = worlds(arguments.zones, arguments.csv, arguments.fill)
        if arguments.risk is not None and next(iter(found.values())).criterion == am.WorstCase():
            parser.error("--risk is for one zone")
        days = next(iter(found.values())).episodes or arguments.days
        criterion = None if arguments.risk is None else am.Risk(alpha=0.0, c=arguments.risk)
        # UC-O-REPS was tuned on seed 0.
        seeds = range(1, arguments.seeds + 1)
        money = compare(found, lambda world, own, days: learners(world, criterion or own, days), days, seeds)
        risk = None if criterion is None else compare(found, learners, days, seeds, criterion)
    except am.InputError as error:
        parser.error(str(error))
    console, length = paper(), f"{arguments.seeds} seeds of {days:,} days"
    console.print(money.paid_table(f"Money earned per day: {length}", earned=True, ours=OURS, rules=RULES))
    if risk is not None:
        console.print(risk.paid_table(f"Risk per day: {length}"))
    unit = "in money" if risk is None else "in risk"
    console.print((risk or money).table(f"Regret per day {unit}: {length}", "the best fixed policy, per day"))
    if arguments.out is not None:
        money.draw(arguments.out)
    last = money.last[OURS, next(reversed(found))]
    console.print(f"SelfTuning's orders for tomorrow, from 0h on (+ charge, - discharge): {orders(last)}")


if __name__ == "__main__":
    example(main)
