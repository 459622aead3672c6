"""What an agent answers: a choice, its status, and an explanation."""

from dataclasses import dataclass
from typing import NamedTuple

from advmdp.model.by_name import Label


class Choice(NamedTuple):
    """What to do in a state."""

    state: Label
    action: Label
    probability: float
    """With which the action was drawn."""
    probabilities: dict[Label, float]
    """Of all actions of the state."""
    version: int
    """Of the policy; each is a number, and episodes that begin without anything learned in between share one."""
    step: int


@dataclass(frozen=True)
class Status:
    """What has happened so far."""

    begun: int
    """Episodes that began."""
    finished: int
    """Episodes that reached the end."""
    unfinished: int
    """Episodes that ended before it."""
    running: int
    """Episodes that have not ended."""
    told: int
    """Episodes whose loss was learned."""
    outstanding: int
    """Episodes whose loss may still come."""
    dropped: int
    """Episodes whose loss never came, or came in part."""
    late: int
    """Losses that came after their episode was dropped; they are logged and not learned."""
    observed: int
    """Episodes that somebody else decided."""
    clipped: int
    """Costs that were outside the units."""
    paid: float
    """The sum of all costs that are known of the steps taken, in your units."""
    epochs: int
    """How often the confidence set was made anew."""
    radius: float | None
    """The mean radius of the confidence set: 2 is no constraint, 0 is certainty."""
    gap: float
    """An upper bound on how far the last projection is from its optimum."""
    version: int
    """Of the policy."""
    world: int
    """How often the world was extended."""
    events: int
    """In the log."""


class Explanation(NamedTuple):
    """Why an action has its probability; costs are those from here to the end, in your units."""

    probability: float
    cost: float
    """Expected, under the estimated probabilities, at the mean costs of all episodes learned.

    The learner may expect others today, such as those of this weekday, and then prefers an action that looks dearer.
    """
    low: float
    """The least over the confidence set."""
    high: float
    """The greatest."""
    visits: int
    """How often the action was taken here, by this agent or in observed episodes."""
