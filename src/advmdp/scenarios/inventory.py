"""A perishable stock: how much to order each morning of a week, with unit costs that drift from week to week.

An episode is a week.  In the morning o old units are left from yesterday.  The learner orders a fresh units, from 0 to
``most``, and they arrive at once.  Then customers demand d units, and old units are sold first.  In the evening unsold
old units are thrown away; unsold fresh units are old tomorrow:

    wasted w = max(o - d, 0)      left o' = max(a - max(d - o, 0), 0)      short s = max(d - o - a, 0)

    cost of the day   order * a + hold * o' + waste * w + short * s

On the last evening all that is left is thrown away too.  Demand is independent across days: d units with probability
``demand[d]``, or ``weekend[d]`` on Saturdays and Sundays.  The learner knows neither distribution.  The state in the
morning holds the units left, and also the waste or unmet demand of the day before: so every cost is a function of the
transition, and the losses reveal nothing about the demand.  With C the largest cost of a step at the highest unit
costs,

    l_t = cost / C        money = C * loss.

The generator is a pure function of (seed, week): each of the four unit costs drifts within its range in COSTS,
through uniform knots every ``period`` weeks, joined smoothly.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import LARGEST, FloatArray, frozen
from advmdp.core.errors import InputError
from advmdp.core.streams import stream_key
from advmdp.criteria import TotalLoss
from advmdp.losses import drift
from advmdp.model.mdp import MDP
from advmdp.model.skeleton import Skeleton
from advmdp.scenarios.base import (
    MOST_STEPS,
    Accounted,
    Scenario,
    UnitCosts,
    at_most,
    checked_distribution,
    labels,
    recorded,
    span,
)
from advmdp.scenarios.user_tables import read_csv

COSTS: dict[str, tuple[float, float]] = {
    "order": (0.2, 1.0),
    "hold": (0.05, 0.2),
    "waste": (0.1, 0.8),
    "short": (0.5, 2.0),
}
"""The unit costs, and the range in which each drifts."""
MOST_ORDERED = 200
"""The most units per day: states grow linearly with it, transitions quadratically."""
NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
Quantities = tuple[int, int, int, int]
"""(ordered, held, wasted, short)."""


@dataclass(frozen=True)
class Shop:
    """How the stock moves."""

    days: int
    most: int
    demands: tuple[tuple[float, ...], ...]
    """P(d) for each day."""

    def name(self, day: int, left: int, wasted: int, short: int) -> str:
        when = "closing" if day == self.days else NAMES[day] if self.days <= 7 else f"day {day + 1},"
        record = f", {wasted} wasted" if wasted else f", {short} short" if short else ""
        return f"{when} {left} left{record}"

    def steps(self) -> Iterator[tuple[tuple[str, str, str, float], Quantities]]:
        """Every possible transition as a row of MDP.from_steps, and its quantities."""
        mornings: set[tuple[int, int, int]] = {(0, 0, 0)}
        for day in range(self.days):
            evenings = set()
            for morning in sorted(mornings):
                for ordered in range(self.most + 1):
                    for evening, p in self.evenings(day, morning[0], ordered).items():
                        evenings.add(evening)
                        row = (self.name(day, *morning), f"order {ordered}", self.name(day + 1, *evening), p)
                        yield row, (ordered, *evening)
            mornings = evenings
        for evening in sorted(mornings):
            yield (self.name(self.days, *evening), "close", "end", 1.0), (0, 0, evening[0], 0)

    def evenings(self, day: int, old: int, fresh: int) -> dict[tuple[int, int, int], float]:
        """(left, wasted, short) -> probability."""
        found: dict[tuple[int, int, int], float] = {}
        for asked, p in enumerate(self.demands[day]):
            if p > 0.0:
                left = max(fresh - max(asked - old, 0), 0)
                evening = left, max(old - asked, 0), max(asked - old - fresh, 0)
                found[evening] = found.get(evening, 0.0) + p
        return found


def scenario(
    days: int = 7,
    most: int = 3,
    demand: Sequence[float] = (0.2, 0.4, 0.3, 0.1),
    weekend: Sequence[float] | None = (0.05, 0.2, 0.4, 0.35),
    period: int = 50,
    file: str | PathLike[str] | None = None,
) -> Scenario:
    """Make the inventory scenario; if ``weekend`` is None, demand is the same every day.

    With ``file``, :func:`costs_from_csv` reads the unit costs; the generator is not used.
    """
    count = at_most("days", days, 1, MOST_STEPS)
    usual = tuple(checked_distribution("demand", demand))
    busy = usual if weekend is None else tuple(checked_distribution("weekend", weekend))
    demands = tuple(busy if day % 7 >= 5 else usual for day in range(count))
    shop = Shop(count, at_most("most", most, 1, MOST_ORDERED), demands)
    steps = list(shop.steps())
    mdp = MDP.from_steps([row for row, _ in steps])
    sk = mdp.skeleton
    found = {"/".join(row[:3]): moved for row, moved in steps}
    moved = np.array([found[sk.transition_label(i)] for i in range(sk.num_transitions)], float)
    span("period", period)
    given = None if file is None else costs_from_csv(file)
    highest = np.array([high for _, high in COSTS.values()]) if given is None else given.max(axis=0)
    scale = float((moved * highest).sum(axis=1).max())
    if scale < 1.0 / LARGEST:
        raise InputError("costs", f"at most {scale:g} for every transition", f"some of {1.0 / LARGEST:g} or more")
    items = np.broadcast_to(np.arange(len(COSTS)), moved.shape)
    episodes = None if given is None else len(given)

    def costs(seed: int) -> UnitCosts:
        return generated_costs(seed, period) if given is None else recorded(given[:, :, None])

    return Scenario(
        "inventory",
        mdp,
        lambda seed: Accounted(sk, items, moved / scale, costs(seed), episodes=episodes),
        TotalLoss(),
        scale,
        0.0,
        episodes,
        kinds=_kinds(shop, sk),
    )


def _kinds(shop: Shop, sk: Skeleton) -> tuple[int, ...]:
    """Label the outcomes: a day depends on its stock, order and demand, not on yesterday's waste or unmet demand."""
    first = {demand: day for day, demand in reversed(list(enumerate(shop.demands)))}
    day_of = np.repeat(np.arange(sk.num_steps), np.diff(sk.layer_pair_ptr))
    pairs = sk.over_transitions(np.arange(sk.num_pairs)).tolist()
    states, orders = sk.state_names or (), sk.action_names or ()

    def outcome(pair: int, there: int) -> tuple[object, ...]:
        day, words = int(day_of[pair]), states[int(sk.state_of_pair[pair])].split(" left")[0].split()
        if day == shop.days:
            return ("close",)
        # Without the day: "1 left, 2 short".
        result = states[there].removeprefix(states[there].split(" left")[0].rsplit(" ", 1)[0])
        return first[shop.demands[day]], words[-1], orders[pair], result

    return labels(outcome(p, y) for p, y in zip(pairs, sk.successor.tolist(), strict=True))


def generated_costs(seed: int, period: int = 50) -> UnitCosts:
    """(first, stop) -> unit costs (weeks, 4, 1), by the generator in the module docstring."""
    key = stream_key(seed, "inventory", "costs")
    low, high = np.array(list(COSTS.values())).T

    def costs(first: int, stop: int) -> FloatArray:
        values: FloatArray = low + (high - low) * drift(key, period, len(COSTS), first, stop)
        return values[:, :, None]

    return costs


def costs_from_csv(path: str | PathLike[str]) -> NDArray[np.float64]:
    """Read unit costs (weeks, 4) from a CSV file: columns order, hold, waste, short in any order, one line per week.

    An optional column ``week`` is a label and is ignored.  Costs are 0 or more, in any unit.
    """
    table = read_csv(path)
    columns = [table.column(name) for name in COSTS]
    if strange := [name for name in table.header if name not in COSTS and name != "week"]:
        raise InputError(f"{table.path}, line 1", f"column '{strange[0]}'", f"week, {', '.join(COSTS)}")
    rows = [[table.number(row, column, 0.0, np.inf) for column in columns] for row in range(len(table.rows))]
    return frozen(np.array(rows))
