"""The log by episodes: the decisions with their probabilities, where they led, and what they cost.

    for episode in History.read("commute.db").episodes():
        for step in episode.steps:
            step.pair, step.probabilities, step.transition, step.cost

Reading needs no agent, and does not disturb a running one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from os import PathLike
from typing import NamedTuple

import numpy as np

from advmdp.core.arrays import FloatArray
from advmdp.core.errors import LogError
from advmdp.live.agent import Agent
from advmdp.live.log import Event, Log
from advmdp.live.state import FINISHED, Terms
from advmdp.live.worlds import WorldVersion
from advmdp.model.skeleton import Skeleton


class LoggedStep(NamedTuple):
    """One step, with numbers of its world's skeleton."""

    pair: int
    probabilities: FloatArray | None
    """The probabilities of all actions of the state, in order; None if somebody else decided."""
    version: int | None
    """The version of the policy."""
    transition: int | None
    """The transition; None if unknown."""
    cost: float | None
    """The cost as told, in the caller's units."""


@dataclass(frozen=True, eq=False)
class LoggedEpisode:
    """An episode, as far as the log knows it."""

    id: int
    world: WorldVersion
    steps: list[LoggedStep] = field(default_factory=list)
    ended: str | None = None
    """"finished", "stopped" (by the caller) or "patience" (it took too long); None if it has not ended."""
    loss: FloatArray | None = None
    """The whole loss in the caller's units, NaN where it was not told, over the transitions of ``loss_world``."""
    loss_world: WorldVersion | None = None
    observed: bool = False
    """Whether somebody else decided it."""
    dropped: bool = False
    """Whether its loss was given up."""
    time: float = 0.0
    """When it began, in seconds since 1970."""

    @property
    def skeleton(self) -> Skeleton:
        """The skeleton of its world."""
        return self.world.skeleton

    def given(self) -> list[FloatArray]:
        """All costs reported, in the caller's units: of steps, and of the whole loss."""
        steps = np.array([step.cost for step in self.steps if step.cost is not None], float)
        return [steps] if self.loss is None else [steps, self.loss[~np.isnan(self.loss)]]

    @property
    def costs(self) -> FloatArray:
        """The cost of each step in the caller's units: its own, else from the whole loss; NaN if unknown."""
        found = np.array([np.nan if step.cost is None else step.cost for step in self.steps])
        if self.loss is None or self.loss_world is None:
            return found
        place = self.world.map_to(self.loss_world)
        for k, step in enumerate(self.steps):
            if step.cost is None and step.transition is not None and (i := int(place[step.transition])) >= 0:
                found[k] = self.loss[i]
        return found

    @property
    def paid(self) -> float | None:
        """What the episode paid in the caller's units; None unless it reached the end and all its costs are known."""
        if self.ended != FINISHED or np.isnan(costs := self.costs).any():
            return None
        return float(costs.sum())


class History:
    """The log of an agent, read by episodes; :meth:`read` opens one.

    Parameters
    ----------
    log
        An open log.

    Examples
    --------
    >>> import advmdp as am
    >>> sk = am.Skeleton.from_steps([("home", "bus", "work"), ("home", "walk", "work")])
    >>> with am.Agent.open(":memory:", skeleton=sk, units=(0, 90)) as agent:
    ...     agent.begin().arrive("work", cost=30)
    ...     for episode in am.History.read(agent).episodes():
    ...         print(episode.id, episode.ended, [step.cost for step in episode.steps])
    0 finished [30.0]
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self.worlds: list[WorldVersion] = []
        """The agent's first world, and one for each extension."""
        for event in self._about_worlds():
            self.worlds.append(WorldVersion.of(len(self.worlds), event.body["world"]))
        self.terms = Terms.of(self._opened.body["terms"])
        """The learner, the units and the rules."""

    @classmethod
    def read(cls, source: "str | PathLike[str] | Agent | History") -> "History":
        """Read the history of an agent, or of its file.

        Parameters
        ----------
        source
            An agent, or the path of its file. The file of a running agent can be read too.

        Returns
        -------
        History
            The history up to now.
        """
        if isinstance(source, History):
            return source
        return cls(source.log if isinstance(source, Agent) else Log.read(source))

    @property
    def skeleton(self) -> Skeleton:
        """The current world."""
        return self.worlds[-1].skeleton

    def episodes(self) -> Iterator[LoggedEpisode]:
        """Iterate over all episodes in the order of their ids.

        Returns
        -------
        iterator of LoggedEpisode
            Each with its steps, its whole loss if told, and how it ended.
        """
        events: list[Event] = []
        for event in self._log.by_episode():
            if events and event.episode != events[0].episode:
                yield self._episode(events)
                events = []
            events.append(event)
        if events:
            yield self._episode(events)

    def events(self) -> Iterator[Event]:
        """Iterate over all events in chronological order.

        Returns
        -------
        Iterator
            Events as they are in the log.
        """
        return (event for _, event in self._log.events())

    def check(self) -> int:
        """Read all events and check their seals.

        Returns
        -------
        int
            The number of events. A changed or missing event raises :class:`LogError`.
        """
        return sum(1 for _ in self.events())

    def _about_worlds(self) -> Iterable[Event]:
        found = self._log.about_agent()
        if not found or found[0].kind != "opened":
            raise LogError(f"{self._log.path}", "a log without its first event", "the log of an agent")
        self._opened = found[0]
        return [event for event in found if event.kind in ("opened", "extended")]

    def _episode(self, events: list[Event]) -> LoggedEpisode:
        first = events[0]
        assert first.episode is not None
        world = self.worlds[first.body["world"]]
        if first.kind == "observed":
            costs = first.body["costs"] or [None] * len(first.body["pairs"])
            taken = zip(first.body["pairs"], first.body["transitions"], costs, strict=True)
            steps = [LoggedStep(p, None, None, i, cost) for p, i, cost in taken]
            ended = "finished" if len(steps) == world.skeleton.num_steps else "stopped"
            return LoggedEpisode(first.episode, world, steps, ended, observed=True, time=first.time)
        by_kind: dict[str, dict[int, Event]] = {}
        for event in events:
            by_kind.setdefault(event.kind, {})[event.step] = event
        decided, arrived, paid = (by_kind.get(kind, {}) for kind in ("decided", "arrived", "cost"))
        steps = [
            LoggedStep(
                event.body["pair"], event.numbers, event.body["version"],
                arrived[k].body["transition"] if k in arrived else None, paid[k].body["cost"] if k in paid else None,
            )
            for k, event in sorted(decided.items())
        ]  # fmt: skip
        why = by_kind["ended"][0].body["why"] if "ended" in by_kind else None
        told = by_kind.get("told", {}).get(0)
        loss, place = (None, None) if told is None else (told.numbers, self.worlds[told.body["world"]])
        dropped = "dropped" in by_kind
        return LoggedEpisode(first.episode, world, steps, why, loss, place, False, dropped, first.time)


def losses_of(episode: LoggedEpisode, terms: Terms) -> FloatArray | None:
    """The whole loss of an episode scaled to [0, 1], NaN where it was not told; None without one."""
    if episode.loss is None:
        return None
    return np.where(np.isnan(episode.loss), np.nan, terms.units.scaled(episode.loss))
