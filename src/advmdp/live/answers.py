"""What an agent answers: a choice, its status, and an explanation."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor, isfinite, log10
from typing import NamedTuple

from advmdp.model.by_name import Label


class Choice(NamedTuple):
    """What to do in a state."""

    state: Label
    action: Label
    probability: float
    """The probability with which the action was drawn."""
    probabilities: dict[Label, float]
    """The probabilities of all actions of the state."""
    version: int
    """The version of the policy, a number that changes when the agent learns."""
    step: int


@dataclass(frozen=True)
class Status:
    """What was paid, and what has happened so far."""

    paid: float
    """The sum of all known costs of the steps taken, in your units."""
    begun: int
    """Episodes that began."""
    finished: int
    """Episodes that reached the end."""
    unfinished: int
    """Episodes that ended early."""
    running: int
    """Episodes that have not ended."""
    told: int
    """Episodes whose loss was learned."""
    outstanding: int
    """Episodes whose loss may still arrive."""
    dropped: int
    """Episodes whose loss never arrived, or only in part."""
    late: int
    """Losses that arrived after their episode was dropped; they are logged but not learned."""
    observed: int
    """Episodes that somebody else decided."""
    clipped: int
    """Costs outside the units."""
    epochs: int
    """The number of epochs, each with its own confidence set."""
    radius: float | None
    """The mean radius of the confidence set: 2 is no constraint, 0 is certainty."""
    gap: float
    """An upper bound on the distance of the last projection from its optimum."""
    version: int
    """The version of the policy."""
    world: int
    """The number of extensions of the world."""
    events: int
    """The number of events in the log."""

    def __repr__(self) -> str:
        return f"Status({_fields(vars(self))})"


class Explanation(NamedTuple):
    """Why an action has its probability; costs are from here to the end, in your units."""

    probability: float
    cost: float
    """Expected, under the estimated probabilities, at the mean costs of all episodes learned.

    The learner may expect others today, such as those of this weekday, and then prefers an action that looks dearer.
    """
    low: float
    """The smallest expected cost over the confidence set."""
    high: float
    """The largest expected cost over the confidence set."""
    visits: int
    """How often the action was taken here, by this agent or in observed episodes."""

    def __repr__(self) -> str:
        return f"Explanation({_fields(self._asdict())})"


def _fields(values: Mapping[str, object]) -> str:
    """The fields of an answer, with numbers as short as they are useful: six digits, and at least two decimals."""
    return ", ".join(f"{name}={_short(value) if isinstance(value, float) else value}" for name, value in values.items())


def _short(value: float) -> float:
    if value == 0.0 or not isfinite(value):
        return float(value)
    return round(float(value), max(2, 5 - floor(log10(abs(value)))))
