"""Costs in the caller's units: read from dictionaries, arrays or frames, and scaled to losses from 0 to 1.

With ``units=(low, high)`` a cost c becomes the loss (c - low) / (high - low). Costs outside are clipped and counted, or
rejected. Missing entries of a whole loss are NaN until a rule fills them: with the last cost told for them ("carry"),
or with a number; "error" rejects them.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from advmdp.core.arrays import LARGEST, FloatArray, floats, real
from advmdp.core.errors import InputError
from advmdp.model.by_name import ByName, loss_from_names
from advmdp.model.skeleton import Skeleton

Outside = Literal["clip", "error"]
Missing = Literal["carry", "error"] | float


class Units(NamedTuple):
    """The range of costs, and what to do with costs outside it."""

    low: float
    high: float
    outside: str

    @classmethod
    def of(cls, units: object, outside: object) -> "Units":
        """Checked."""
        ends = list(units) if isinstance(units, tuple | list) else []
        low, high = map(real, ends) if len(ends) == 2 else (np.nan, np.nan)
        if not -LARGEST <= low < high <= LARGEST:
            raise InputError("units", f"{units!r}", "(low, high), the smallest and the largest cost of a step")
        if outside not in ("clip", "error"):
            raise InputError("outside", f"{outside!r}", "'clip' or 'error'")
        return cls(low, high, str(outside))

    def check(self, where: str, cost: object) -> float:
        """Check a single cost."""
        if not abs(number := real(cost)) <= LARGEST:
            raise InputError(where, f"{cost!r}", "a finite number")
        if self.outside == "error" and not self.low <= number <= self.high:
            raise InputError(where, f"{number}", f"a number from {self.low:g} to {self.high:g}, the units")
        return number

    def check_all(self, sk: Skeleton, costs: FloatArray) -> None:
        """Check costs over transitions; NaN means missing."""
        bad = np.abs(costs) > LARGEST
        if self.outside == "error":
            bad |= (costs < self.low) | (costs > self.high)
        if bad.any():
            i = int(np.argmax(bad))
            self.check(f"loss at {sk.where_transition(i)}", float(costs[i]))

    def first_outside(self, costs: FloatArray) -> int | None:
        """The place of the first cost that lies outside; None if there is none."""
        found = np.flatnonzero((costs < self.low) | (costs > self.high))
        return int(found[0]) if found.size else None

    def outsiders(self, costs: FloatArray) -> int:
        """The number of costs outside the units."""
        return int(((costs < self.low) | (costs > self.high)).sum())

    def scaled(self, costs: FloatArray) -> FloatArray:
        """Costs as losses from 0 to 1."""
        return np.clip((costs - self.low) / (self.high - self.low), 0.0, 1.0)

    def costs(self, losses: FloatArray, steps: int = 1) -> FloatArray:
        """Turn sums of losses over ``steps`` steps into costs."""
        return losses * (self.high - self.low) + steps * self.low


def checked_missing(missing: object) -> Missing:
    """Check the rule for missing entries."""
    if isinstance(missing, str) and missing in ("carry", "error"):
        return missing  # type: ignore[return-value]
    if abs(cost := real(missing)) <= LARGEST:
        return cost
    raise InputError("missing", f"{missing!r}", "'carry', 'error' or a cost")


def read_costs(sk: Skeleton, given: ByName | Any, known: set[tuple[Any, ...]]) -> FloatArray:
    """Read costs over transitions, with NaN for missing ones.

    ``known`` holds keys that only earlier worlds have, (state, action) and (state, action, next state); their costs are
    ignored.
    """
    if hasattr(given, "columns"):
        given = _from_frame(sk, given)
    if isinstance(given, Mapping):
        told = {key: cost for key, cost in given.items() if key not in known and cost is not None}
        return loss_from_names(sk, told)
    costs = floats(given, "loss")
    if costs.shape == (sk.num_pairs,):
        costs = sk.over_transitions(costs)
    if costs.shape != (sk.num_transitions,):
        expected = f"({sk.num_transitions},), one for each transition, or ({sk.num_pairs},), one for each pair"
        raise InputError("loss", f"shape {costs.shape}", expected)
    return costs.copy()


def _from_frame(sk: Skeleton, frame: Any) -> dict[Any, Any]:
    """Read a Polars or pandas frame: columns state, action, cost (and next), or one row with a column per pair."""
    names = [str(name) for name in frame.columns]
    if {"state", "action", "cost"} <= set(names):
        keys = ["state", "action", *(["next"] if "next" in names else [])]
        columns = [frame[name].to_list() for name in keys]
        return dict(zip(zip(*columns, strict=True), frame["cost"].to_list(), strict=True))
    if len(frame) != 1:
        expected = "columns state, action, cost (and next), or one row with a column such as 'home/bus' for each pair"
        raise InputError("loss", f"a frame with columns {', '.join(names[:8])} and {len(frame)} rows", expected)
    labels: dict[str, tuple[Any, ...]] = {}
    for p in range(sk.num_pairs):
        x = int(sk.state_of_pair[p])
        labels[sk.pair_label(p)] = (x, p - int(sk.pair_ptr[x]))
        for i in range(int(sk.transition_ptr[p]), int(sk.transition_ptr[p + 1])):
            labels[sk.transition_label(i)] = (x, p - int(sk.pair_ptr[x]), int(sk.successor[i]))
    if strange := [name for name in names if name not in labels]:
        raise InputError("loss", f"column '{strange[0]}'", f"a column such as '{sk.pair_label(0)}'")
    return {labels[name]: frame[name].to_list()[0] for name in names}
