"""A battery, or a flexible load, that trades at hourly prices in one zone or several.

An episode is a day.  The layers are its hours and then its settlement.  A state is the number of stored units, from 0
to ``capacity``.  In each hour the learner orders to charge one unit, to hold, or to discharge one unit; infeasible
orders are omitted.  An order to charge or discharge fails with probability ``failure``, and then nothing happens.
The learner does not know this probability.

    charge      buys e = 1 / efficiency units of energy          discharge      sells: e = -efficiency
    settle      buys each unit below ``target`` at the day's highest price, sells each unit above it at the lowest

With p the price of the hour in zone j, |p| <= scale, and E the most energy that one step can move,

    l_t[i, j] = (1 + (e_i / E) * (p_t[hour of i, j] / scale)) / 2        money = 2 E scale * loss - E scale * steps.

Prices may be negative.  They are scaled but never shifted, since a shift would change the cost of charging losses.
With several zones one battery follows the orders, and the most expensive zone counts (WorstCase): the bill should be
small in whichever zone it is settled.  A flexible load that needs 4 units by the end of the day is
``start=0, target=4, discharge=False``.

The generator, in units of ``scale`` = 1, is a pure function of (seed, day, hour, zone):

    p = min(1, 0.6 * level_t,z * shape_t(h) * (1 + noise (2u - 1)) + spike)
    shape_t     (1 - s_t) winter(h) + s_t summer(h): two humps in winter, a midday dip from solar power in summer;
                s_t goes smoothly from 0 to 1 and back over ``season`` days
    level_t,z   from 0.5 to 1, independent for each zone: random knots every ``period`` days, joined smoothly
    spike       with probability ``spikes`` for each day and zone, one hour chosen uniformly costs 0.4 more
    tail        if above 1, p is divided by it and multiplied by tail^(k shape^2), k = (1/2 + u/2) d^6; d drifts like a
                level and u is uniform, drawn daily.  Some spells of days then have very expensive hours.  tail = 300
                and scale = 9,000 resemble real-time prices: about 10 in most hours, thousands in a few.

With probability ``upset`` a day is shifted by half a day, in all zones at once: hour h has the shape of the hour half
a day later, as when a storm makes the evening cheap.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from os import PathLike

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.core.arrays import LARGEST, FloatArray, floats, fraction, frozen
from advmdp.core.errors import InputError
from advmdp.core.streams import stream_key, uniforms
from advmdp.criteria import TotalLoss, WorstCase
from advmdp.losses import drift
from advmdp.model.mdp import MDP
from advmdp.model.occupancy import best_response
from advmdp.model.skeleton import Skeleton
from advmdp.scenarios.base import (
    LONGEST,
    MOST_STEPS,
    Accounted,
    Scenario,
    UnitCosts,
    at_most,
    labels,
    positive,
    recorded,
    span,
)
from advmdp.scenarios.user_tables import CsvTable, read_csv

WINTER = (
    0.45, 0.42, 0.40, 0.40, 0.42, 0.50, 0.65, 0.85, 0.95, 0.90, 0.80, 0.75,
    0.72, 0.70, 0.70, 0.75, 0.85, 0.97, 1.00, 0.95, 0.85, 0.70, 0.60, 0.50,
)  # fmt: skip
SUMMER = (
    0.55, 0.50, 0.48, 0.47, 0.48, 0.52, 0.60, 0.65, 0.58, 0.45, 0.33, 0.25,
    0.20, 0.20, 0.22, 0.30, 0.42, 0.60, 0.80, 0.95, 1.00, 0.90, 0.75, 0.62,
)  # fmt: skip
MISSING = ("", "nan", "na", "n/a", "null", "none", "-")
"""Cells that mean a missing price, in lower case."""
Step = tuple[tuple[str, str, str, float], int, float]
"""(a row of MDP.from_steps; its item, which is the hour or the day's highest or lowest price; the energy it buys)."""


@dataclass(frozen=True)
class Plant:
    """What the battery can do."""

    hours: int
    capacity: int
    start: int
    target: int
    discharge: bool
    failure: float
    efficiency: float

    @cached_property
    def most(self) -> float:
        """E: the most energy that one step can move."""
        missing = self.target / self.efficiency
        return max(1.0 / self.efficiency, missing, (self.capacity - self.target) * self.efficiency)

    def energy(self, change: int) -> float:
        """The energy bought to change the level by ``change`` units; negative if energy is sold."""
        return change / self.efficiency if change > 0 else change * self.efficiency

    def name(self, hour: int, level: int) -> str:
        clock = f"{hour:02d}h" if hour < self.hours else "night"
        return f"{clock} {level}/{self.capacity}"

    def steps(self) -> Iterator[Step]:
        """Every possible transition, hour by hour."""
        levels = {self.start}
        for hour in range(self.hours):
            following = set()
            for level in sorted(levels):
                for order, change, probability in self.outcomes(level):
                    there = level + change
                    following.add(there)
                    row = (self.name(hour, level), order, self.name(hour + 1, there), probability)
                    yield row, hour, self.energy(change)
            levels = following
        for level in sorted(levels):
            missing = self.target - level
            item = self.hours + (missing < 0)
            yield (self.name(self.hours, level), "settle", "end", 1.0), item, self.energy(missing)

    def outcomes(self, level: int) -> Iterator[tuple[str, int, float]]:
        """(order, change of level, probability) of every outcome."""
        orders = [("charge", 1)] * (level < self.capacity) + [("hold", 0)]
        orders += [("discharge", -1)] * (self.discharge and level > 0)
        for order, change in orders:
            works = 1.0 - self.failure if change else 1.0
            yield from ((order, c, p) for c, p in ((change, works), (0, 1.0 - works)) if p > 0.0)


@dataclass(frozen=True, eq=False)
class Prices:
    """Recorded prices, divided by ``scale``: (days, hours, zones), from -1 to 1."""

    values: FloatArray
    days: tuple[str, ...]
    zones: tuple[str, ...]
    scale: float


def scenario(
    hours: int = 24,
    capacity: int = 4,
    start: int | None = None,
    target: int | None = None,
    discharge: bool = True,
    failure: float = 0.1,
    efficiency: float = 0.9,
    zones: int = 1,
    season: int = 365,
    period: int = 30,
    spikes: float = 0.1,
    noise: float = 0.2,
    upset: float = 0.0,
    tail: float = 1.0,
    file: str | PathLike[str] | None = None,
    scale: float | None = None,
    fill: bool = False,
) -> Scenario:
    """Make the battery scenario; ``start`` defaults to half the capacity, ``target`` to ``start``.

    With ``file``, :func:`prices_from_csv` reads the prices with ``scale`` and ``fill``; ``zones`` and the parameters of
    the generator are ignored.  Without it, ``scale`` is the money that a generated price of 1 is worth; it defaults
    to 1.
    """
    plant = _plant(hours, capacity, start, target, discharge, failure, efficiency)
    steps = list(plant.steps())
    mdp = MDP.from_steps([row for row, _, _ in steps])
    items, energy = _aligned(mdp.skeleton, steps)
    given = None if file is None else prices_from_csv(file, plant.hours, scale, fill)
    count = at_most("zones", zones, 1, MOST_STEPS) if given is None else len(given.zones)
    if given is None and scale is not None:
        positive("scale", scale)

    def costs(seed: int) -> UnitCosts:
        if given is not None:
            return recorded(_with_extremes(given.values))
        hourly = generated_prices(seed, plant.hours, count, season, period, spikes, noise, upset, tail)
        return lambda first, stop: _with_extremes(hourly(first, stop))

    costs(0)  # so that bad parameters raise now
    several = count if count > 1 else None
    quantities = energy / (2.0 * plant.most)
    episodes = None if given is None else len(given.days)
    unit = plant.most * (given.scale if given is not None else 1.0 if scale is None else scale)
    return Scenario(
        "battery",
        mdp,
        lambda seed: Accounted(mdp.skeleton, items, quantities, costs(seed), several, 0.5, episodes),
        TotalLoss() if several is None else WorstCase(),
        2.0 * unit,
        -unit * mdp.skeleton.num_steps,
        episodes,
        kinds=_kinds(mdp.skeleton, energy[:, 0]),
    )


def _plant(
    hours: int,
    capacity: int,
    start: int | None,
    target: int | None,
    discharge: bool,
    failure: float,
    efficiency: float,
) -> Plant:
    """Check the parameters of the battery."""
    size = at_most("capacity", capacity, 1, LONGEST)
    begin = size // 2 if start is None else at_most("start", start, 0, size)
    end = begin if target is None else at_most("target", target, 0, size)
    if (share := fraction("efficiency", efficiency)) < 1.0 / LARGEST:
        raise InputError("efficiency", f"{share:g}", "a number above 0, up to 1")
    if not isinstance(discharge, bool):
        raise InputError("discharge", f"{discharge!r}", "true or false")
    length = at_most("hours", hours, 1, MOST_STEPS)
    return Plant(length, size, begin, end, discharge, fraction("failure", failure), share)


@dataclass(frozen=True)
class Schedule:
    """The best orders for known prices."""

    orders: tuple[str, ...]
    """For each hour "charge", "hold" or "discharge", if no order fails."""
    levels: tuple[int, ...]
    """The stored units before each hour and at the end."""
    earned: float
    """The expected money earned, including settlement."""


def best_schedule(
    prices: ArrayLike,
    capacity: int = 4,
    start: int | None = None,
    target: int | None = None,
    discharge: bool = True,
    failure: float = 0.0,
    efficiency: float = 0.9,
) -> Schedule:
    """Compute the best schedule for a day with known prices, such as day-ahead prices; this needs no learning.

    Parameters
    ----------
    prices
        One for each hour, in any unit of money. They may be negative.
    capacity, start, target, discharge, failure, efficiency
        As in :func:`scenario`, but orders do not fail by default.

    Returns
    -------
    Schedule
        The orders, the levels and the money earned.

    Examples
    --------
    >>> best = best_schedule([20.0, 10.0, 50.0, 30.0], capacity=1, start=0, efficiency=1.0)
    >>> best.orders, best.earned
    (('hold', 'charge', 'discharge', 'hold'), 40.0)
    """
    hourly = floats(prices, "prices")
    if hourly.ndim != 1 or not len(hourly) or not (np.abs(hourly) <= LARGEST).all():
        raise InputError("prices", f"{prices!r}", "a finite number for each hour of a day")
    plant = _plant(len(hourly), capacity, start, target, discharge, failure, efficiency)
    steps = list(plant.steps())
    mdp = MDP.from_steps([row for row, _, _ in steps])
    sk = mdp.skeleton
    items, energy = _aligned(sk, steps)
    paid = energy[:, 0] * _with_extremes(hourly[None, :, None])[0, items[:, 0], 0]
    policy, value = best_response(mdp, paid)
    orders, levels = [], [plant.start]
    for hour in range(plant.hours):
        x = sk.state_names.index(plant.name(hour, levels[-1])) if sk.state_names else 0
        p = int(sk.pair_ptr[x] + np.argmax(policy[sk.pair_ptr[x] : sk.pair_ptr[x + 1]]))
        orders.append(sk.action_names[p] if sk.action_names else "")
        levels.append(levels[-1] + {"charge": 1, "hold": 0, "discharge": -1}[orders[-1]])
    return Schedule(tuple(orders), tuple(levels), -float(value))


def _aligned(sk: Skeleton, steps: list[Step]) -> tuple[NDArray[np.int64], FloatArray]:
    """The item and the energy of each transition, as two columns in the skeleton's order."""
    found = {"/".join(row[:3]): (item, energy) for row, item, energy in steps}
    columns = [found[sk.transition_label(i)] for i in range(sk.num_transitions)]
    items, energy = zip(*columns, strict=True)
    return np.array(items, np.int64)[:, None], np.array(energy)[:, None]


def _kinds(sk: Skeleton, energy: FloatArray) -> tuple[int, ...]:
    """Label the outcomes: an order works or fails in the same way in every hour and at every level."""
    pair = sk.over_transitions(np.arange(sk.num_pairs))
    rows = np.diff(sk.transition_ptr)[pair]
    names = sk.action_names or ()
    return labels((names[p], bool(e) if n > 1 else None) for p, e, n in zip(pair, energy, rows, strict=True))


def _with_extremes(hourly: FloatArray) -> FloatArray:
    """The hourly prices, then the day's highest and lowest, which settlement uses."""
    extremes = [hourly.max(axis=1, keepdims=True), hourly.min(axis=1, keepdims=True)]
    return np.concatenate([hourly, *extremes], axis=1)


def generated_prices(
    seed: int,
    hours: int = 24,
    zones: int = 1,
    season: int = 365,
    period: int = 30,
    spikes: float = 0.1,
    noise: float = 0.2,
    upset: float = 0.0,
    tail: float = 1.0,
) -> UnitCosts:
    """(first, stop) -> prices (days, hours, zones) from 0 to 1, by the generator in the module docstring."""
    span("season", season)
    span("period", period)
    fraction("spikes", spikes)
    fraction("noise", noise)
    fraction("upset", upset)
    if positive("tail", tail) < 1.0:
        raise InputError("tail", f"{tail!r}", "a number, 1 or more")
    winter, summer = (np.interp(np.arange(hours) * 24 / hours, np.arange(24), shape) for shape in (WINTER, SUMMER))
    level, rough, rare, tight, short = (
        stream_key(seed, "battery", name) for name in ("level", "noise", "rare", "tight", "short")
    )

    def prices(first: int, stop: int) -> FloatArray:
        count = stop - first
        # Reduce modulo the season in integers, so that distant days lose no digits.
        x = 1.0 - np.abs(2.0 * (((first % season) + np.arange(count)) % season) / season - 1.0)
        s = (x * x * (3.0 - 2.0 * x))[:, None]
        shape = (1.0 - s) * winter + s * summer
        events = uniforms(rare, first, count, 1 + 2 * zones)
        turned = events[:, :1] < upset
        shape = np.where(turned, np.roll(shape, -(hours // 2), axis=1), shape)
        level_t = 0.5 + 0.5 * drift(level, period, zones, first, stop)
        u = uniforms(rough, first, count, hours * zones).reshape(count, hours, zones)
        smooth = 0.6 * shape[:, :, None] * level_t[:, None, :] * (1.0 + noise * (2.0 * u - 1.0))
        hour = np.floor(events[:, 1 + zones :] * hours)[:, None, :]
        struck = (events[:, None, 1 : 1 + zones] < spikes) & (np.arange(hours)[:, None] == hour)
        p = smooth + 0.4 * struck
        if tail > 1.0:
            k = (0.5 + 0.5 * uniforms(short, first, count, zones)) * drift(tight, period, zones, first, stop) ** 6
            p = p / tail * tail ** (k[:, None, :] * shape[:, :, None] ** 2)
        capped: FloatArray = np.minimum(1.0, p)
        return capped

    return prices


def prices_from_csv(
    path: str | PathLike[str], hours: int = 24, scale: float | None = None, fill: bool = False
) -> Prices:
    """Read hourly prices from a CSV file with a header line, in one of two layouts:

        day,hour,price  or  day,hour,zone,price        one price per line
        day,hour,north,south                           one column per zone, with any names

    A day is any label; days are ordered by their first line.  Each hour, 0 to ``hours`` - 1, occurs once for every day
    and zone, in any order.  (When clocks change, drop or repeat an hour first.)  Prices are divided by ``scale``, which
    no price may exceed in absolute value; it defaults to the largest.

    With ``fill``, prices may be missing: an hour without a line, or a cell that is empty, nan, na, n/a, null, none or
    -.  The price then comes from the last day that has one for that hour and zone, or else from the next such day.
    """
    if not isinstance(fill, bool):
        raise InputError("fill", f"{fill!r}", "true or false")
    limit = np.inf if scale is None else positive("scale", scale)
    table = read_csv(path)
    day, hour = table.column("day"), table.column("hour")
    entries = _entries(table, {day, hour})
    days = {label: k for k, label in enumerate(dict.fromkeys(row[day] for row in table.rows))}
    zones = {label: k for k, label in enumerate(dict.fromkeys(zone for _, zone, _ in entries))}
    values = np.full((len(days), hours, len(zones)), np.nan)
    for row, zone, column in entries:
        place = days[table.rows[row][day]], table.whole(row, hour, 0, hours - 1), zones[zone]
        if not np.isnan(values[place]):
            given = f"a second price for day {table.rows[row][day]}, hour {place[1]}{_of(zone)}"
            raise InputError(table.where(row, column), given, "one price each")
        if not (fill and table.rows[row][column].lower() in MISSING):
            values[place] = table.number(row, column, -limit, limit)
    if fill:
        values = _filled(values)
    if (missing := np.isnan(values)).any():
        k, h, z = (int(n) for n in np.argwhere(missing)[0])
        when = f"on any day, hour {h}" if fill else f"for day {list(days)[k]}, hour {h}"
        expected = f"hours 0 to {hours - 1} of every day and zone{'' if fill else ', or fill=True'}"
        raise InputError(table.path, f"no price {when}{_of(list(zones)[z])}", expected)
    largest = float(np.abs(values).max())
    if largest == 0.0:
        raise InputError(table.path, "only prices of 0", "at least one other price")
    unit = largest if scale is None else limit
    return Prices(frozen(values / unit), tuple(days), tuple(zones), unit)


def _filled(values: FloatArray) -> FloatArray:
    """Fill each missing price from the last day that has one for its hour and zone, or else from the next."""
    day = np.arange(len(values))[:, None, None]
    known = ~np.isnan(values)
    last = np.maximum.accumulate(np.where(known, day, -1), axis=0)
    following = np.minimum.accumulate(np.where(known, day, len(values) - 1)[::-1], axis=0)[::-1]
    return np.take_along_axis(values, np.where(last >= 0, last, following), axis=0)


def _entries(table: CsvTable, known: set[int]) -> list[tuple[int, str, int]]:
    """(row, zone, column) of every price in the file."""
    others = [k for k in range(len(table.header)) if k not in known]
    if "price" not in table.header:
        if "zone" in table.header or not others:
            table.column("price")
        return [(row, table.header[k], k) for row in range(len(table.rows)) for k in others]
    price = table.column("price")
    zone = table.header.index("zone") if "zone" in table.header else None
    if strange := [k for k in others if k not in (price, zone)]:
        given = f"both columns '{table.header[strange[0]]}' and 'price'"
        raise InputError(f"{table.path}, line 1", given, "day, hour, zone, price, or a column for each zone")
    return [(row, "" if zone is None else cells[zone], price) for row, cells in enumerate(table.rows)]


def _of(zone: str) -> str:
    return f", zone {zone}" if zone else ""
