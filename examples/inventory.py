"""Compare a learner with simple rules and perfect foresight: the weekly cost of a perishable stock.

    python examples/inventory.py                    5 seeds of 1,000 weeks: a minute or two
    python examples/inventory.py --seeds 20         the table of the documentation
    python examples/inventory.py --csv costs.csv    your own unit costs, a line per week: order,hold,waste,short

There are two kinds of generated costs: they drift over many weeks, or they are redrawn each week.  The first table
shows the cost per week.  The second shows the regret: how much the best fixed policy of all these weeks would have
saved; a negative regret is better than every fixed policy.  The best is green.
"""

import argparse

import numpy as np

import advmdp as am
from advmdp.scenarios import Scenario, make_scenario
from advmdp.scenarios.comparing import compare, count, example, paper, picture
from advmdp.scenarios.rules import Fixed, Recent, chosen_policy

OURS = "SelfTuning"
RULES = ("replay last week", "4-week average", "average of all weeks", "order up to 3")
UP_TO = 3


def learners(scenario: Scenario, criterion: am.Criterion, weeks: int) -> dict[str, am.Learner]:
    """All rules know that demand has the same distribution on every weekday (``kinds``), but not which one."""
    sk, kinds = scenario.mdp.skeleton, scenario.kinds
    tuned = {"eta": 100 * am.bounds.eta(sk, weeks), "confidence_scale": 0.03, "successors": "possible"}
    return {
        OURS: scenario.learner(),
        "UC-O-REPS, tuned by hand": am.UCOREPS(sk, weeks, **tuned),
        "replay last week": am.ReplayLast(sk, kinds=kinds),
        "4-week average": Recent(sk, kinds=kinds, episodes=4),
        "average of all weeks": am.FollowLeader(sk, kinds=kinds),
        "order up to 3": Fixed(sk, chosen_policy(sk, up_to_three)),
        "Uniform": am.Uniform(sk),
    }


def up_to_three(state: str, orders: list[str]) -> str:
    """The order for a state such as "Tue 1 left, 1 short"."""
    if len(orders) == 1:
        return orders[0]
    left = int(state.split()[1])
    return orders[min(max(UP_TO - left, 0), len(orders) - 1)]


def worlds(csv: str | None) -> dict[str, Scenario]:
    if csv is not None:
        return {"your costs": make_scenario("inventory", file=csv)}
    return {
        "costs drift": make_scenario("inventory", period=50),
        "costs jump": make_scenario("inventory", period=1),
    }


def orders(game: am.Game) -> str:
    """The orders of the best fixed policy if nothing is left, day by day."""
    sk, shown = game.mdp.skeleton, []
    for x, name in enumerate(sk.state_names[:-1]):
        if name.endswith(" 0 left") and not name.startswith("closing"):
            first, last = sk.pair_ptr[x], sk.pair_ptr[x + 1]
            p = first + int(np.argmax(game.comparator.policy[first:last]))
            shown.append(f"{name.split()[0]} {sk.action_names[p].split()[1]}")
    return ", ".join(shown)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weeks", type=count, default=1000)
    parser.add_argument("--seeds", type=count, default=5)
    parser.add_argument("--csv", help="a file of your own unit costs; each week is played once")
    parser.add_argument("--out", type=picture, help="a PNG file for the curves of cost and regret")
    arguments = parser.parse_args()
    try:
        found = worlds(arguments.csv)
        weeks = next(iter(found.values())).episodes or arguments.weeks
        # UC-O-REPS was tuned on seed 0.
        compared = compare(found, learners, weeks, range(1, arguments.seeds + 1))
    except am.InputError as error:
        parser.error(str(error))
    console, length = paper(), f"{arguments.seeds} seeds of {weeks:,} weeks"
    console.print(compared.paid_table(f"Cost per week in money: {length}", ours=OURS, rules=RULES))
    console.print(compared.table(f"Regret per week in money: {length}", "weekly cost of the best fixed policy"))
    if arguments.out is not None:
        compared.draw(arguments.out)
    last = compared.last["Uniform", next(reversed(found))]
    console.print(f"Orders of the best fixed policy of the last world if nothing is left: {orders(last)}")


if __name__ == "__main__":
    example(main)
