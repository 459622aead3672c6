"""Alarms of an agent: what a person should check.

Drifting dynamics.  The visits of a pair are split in half by time, without the last of an odd number.  Let N be the
number of visits in a half, and S the number of possible successors.  If P(.|x, a) is the same in both halves, then with
probability 1 - delta, simultaneously for all pairs and all times of checking (Weissman et al. 2003, a union over pairs,
halves and N),

    |first - second|_1  <=  2 sqrt(2 (ln(2^S - 2) + ln(2 pairs N (N + 1) / delta)) / N).

A larger distance raises an alarm, which names the pair.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from advmdp.core.wording import number, plural
from advmdp.live.history import History
from advmdp.model.skeleton import Skeleton

CHANGED = "have changed"
SILENT = 0.2
"""The share of outstanding or dropped losses that raises an alarm."""


@dataclass
class Watch:
    """The findings from one pass over a log."""

    costs: int = 0
    outside: int = 0
    furthest: float = np.nan
    """The cost farthest outside the units."""
    episodes: int = 0
    untold: int = 0
    order: dict[int, list[int]] = field(default_factory=dict)
    """By pair of the current world, the transitions taken, in order."""


def watch(history: History) -> Watch:
    """Read the log once."""
    found, now, units = Watch(), history.worlds[-1], history.terms.units
    sk = now.skeleton
    for episode in history.episodes():
        given = [step.cost for step in episode.steps if step.cost is not None]
        costs = np.concatenate(episode.given())
        found.costs += len(costs)
        away = np.maximum(units.low - costs, costs - units.high)
        if (away > 0.0).any():
            found.outside += int((away > 0.0).sum())
            worst = float(costs[np.argmax(away)])
            if np.isnan(found.furthest) or away.max() > max(units.low - found.furthest, found.furthest - units.high):
                found.furthest = worst
        if not episode.observed and episode.ended is not None:
            found.episodes += 1
            found.untold += episode.loss is None and len(given) < len(episode.steps)
        path = np.array([step.transition for step in episode.steps if step.transition is not None], np.int64)
        for i in episode.world.map_to(now)[path].tolist():
            if i >= 0:
                found.order.setdefault(int(np.searchsorted(sk.transition_ptr, i, side="right")) - 1, []).append(i)
    return found


def alarms(history: History, delta: float = 0.05) -> list[str]:
    """The alarms, as sentences; empty if all is well."""
    found, units, said = watch(history), history.terms.units, []
    if found.outside:
        share = f"{plural(found.outside, 'cost')} of {found.costs:,} lie outside the units"
        range_ = f"{number(units.low)} to {number(units.high)}; the furthest is {number(found.furthest)}"
        said.append(f"{share}, {range_}. The agent learns clipped costs; units= sets the range when an agent is made.")
    if found.episodes and found.untold > SILENT * found.episodes:
        said.append(f"The costs of {found.untold:,} of {plural(found.episodes, 'ended episode')} are not known.")
    sk = history.skeleton
    for p, distance, radius in drifted(sk, found.order, delta):
        moved = f"{distance:.2f} apart in L1, where chance explains {radius:.2f}"
        said.append(
            f"The outcomes of {sk.pair_label(p)} have changed: first and second half of its visits are {moved}."
        )
    return said


def drifted(sk: Skeleton, order: dict[int, list[int]], delta: float) -> list[tuple[int, float, float]]:
    """Pairs whose outcomes have changed, with the distance of the halves and what chance explains; worst first."""
    found = []
    for p, taken in order.items():
        first, width = int(sk.transition_ptr[p]), int(sk.transition_ptr[p + 1] - sk.transition_ptr[p])
        n = len(taken) // 2
        if width == 1 or n == 0:
            continue
        halves = [_shares(taken[:n], first, width), _shares(taken[n : 2 * n], first, width)]
        distance = float(np.abs(halves[0] - halves[1]).sum())
        log_sets = width * np.log(2.0) + np.log1p(-np.exp2(1.0 - width))
        term = log_sets + np.log(2.0 * sk.num_pairs * n * (n + 1.0) / delta)
        radius = 2.0 * float(np.sqrt(2.0 * term / n))
        if distance > radius:
            found.append((p, distance, radius))
    return sorted(found, key=lambda one: one[2] - one[1])


def _shares(taken: list[int], first: int, width: int) -> NDArray[np.float64]:
    return np.bincount(np.array(taken) - first, minlength=width) / len(taken)
