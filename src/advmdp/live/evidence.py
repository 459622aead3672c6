"""The evidence of a log about the current world: visits, whole losses, and paths with their decision probabilities.

All arrays are over the skeleton of the agent's current world; transitions of earlier worlds are matched by name.
Losses are scaled to [0, 1].
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advmdp.confidence import Counts, RowSet, confidence_set
from advmdp.core.arrays import FloatArray
from advmdp.live.history import History, LoggedEpisode, losses_of
from advmdp.live.worlds import World
from advmdp.model.mdp import MDP
from advmdp.model.skeleton import Skeleton

Ints = NDArray[np.int64]


class ToldLoss(NamedTuple):
    """The whole loss of an episode."""

    episode: int
    loss: FloatArray
    """Over transitions; NaN where no cost is known, now or earlier."""
    paid: float | None
    """What the episode paid, as a sum of losses; None if its path is not known to the end."""


class LoggedPath(NamedTuple):
    """A finished path of the agent, with the cost of every step."""

    episode: int
    pairs: Ints
    transitions: Ints
    chances: FloatArray
    """The probability with which the agent took each action."""
    losses: FloatArray


@dataclass(frozen=True, eq=False)
class Evidence:
    """The result of :func:`gather`."""

    skeleton: Skeleton
    episodes: int
    """The number of episodes in the log."""
    seen: Ints
    """How often each transition was seen, including in episodes of others."""
    told: list[ToldLoss]
    paths: list[LoggedPath]

    @property
    def world(self) -> MDP:
        """The estimate Pbar, with uniform rows for untried pairs."""
        return estimated(self.skeleton, self.seen)

    def row_set(self, delta: float) -> RowSet:
        """A set that contains all true rows with probability 1 - delta."""
        counts = Counts(self.skeleton)
        counts.seen[:] = self.seen
        counts.visits[:] = np.add.reduceat(self.seen, self.skeleton.transition_ptr[:-1])
        return confidence_set("chernoff", self.skeleton, counts, max(1, self.episodes), delta)


def estimated(sk: Skeleton, seen: Ints) -> MDP:
    """Pbar from counts of transitions, with uniform rows for untried pairs."""
    first, widths = sk.transition_ptr[:-1], np.diff(sk.transition_ptr)
    visits = np.add.reduceat(seen, first)
    rows = np.where(sk.over_transitions(visits > 0), seen, 1.0)
    return MDP(sk, rows / sk.over_transitions(np.where(visits > 0, visits, widths)))


def gather(history: History) -> Evidence:
    """Read the whole log once."""
    now = history.worlds[-1]
    sk, terms = now.skeleton, history.terms
    seen, told, paths, count = np.zeros(sk.num_transitions, np.int64), [], [], 0
    last = np.full(sk.num_transitions, np.nan if isinstance(terms.missing, str) else _scaled(history, terms.missing))
    for episode in history.episodes():
        count += 1
        taken = _taken(episode, now)
        np.add.at(seen, taken[taken >= 0], 1)
        loss = None
        if (given := losses_of(episode, terms)) is not None and episode.loss_world is not None:
            loss = _moved(given, episode.loss_world, now)
            loss = np.where(np.isnan(loss), last, loss)
            last = loss if isinstance(terms.missing, str) else last
        costs = _costs(episode, taken, loss, history)
        whole = len(taken) == sk.num_steps and bool((taken >= 0).all())
        if loss is not None:
            known = whole and not np.isnan(costs).any()
            told.append(ToldLoss(episode.id, loss, float(costs.sum()) if known else None))
        if whole and not episode.observed and not np.isnan(costs).any():
            paths.append(LoggedPath(episode.id, pairs_of(sk, taken), taken, _chances(episode), costs))
    return Evidence(sk, count, seen, told, paths)


def pairs_of(sk: Skeleton, transitions: Ints) -> Ints:
    """The pair of each transition."""
    found: Ints = np.searchsorted(sk.transition_ptr, transitions, side="right") - 1
    return found


def _taken(episode: LoggedEpisode, now: World) -> Ints:
    """The transitions of its path so far, in the current world; -1 for removed ones."""
    path = np.array([step.transition for step in episode.steps if step.transition is not None], np.int64)
    return episode.world.map_to(now)[path]


def _moved(values: FloatArray, old: World, now: World) -> FloatArray:
    place, out = old.map_to(now), np.full(now.skeleton.num_transitions, np.nan)
    out[place[place >= 0]] = values[place >= 0]
    return out


def _costs(episode: LoggedEpisode, taken: Ints, loss: FloatArray | None, history: History) -> FloatArray:
    """The loss of each finished step: from its own cost, else from the whole loss; NaN if unknown."""
    single = [np.nan if step.cost is None else step.cost for step in episode.steps[: len(taken)]]
    costs = np.array([_scaled(history, cost) for cost in single])
    if loss is None or not len(taken):
        return costs
    return np.where(np.isnan(costs) & (taken >= 0), loss[np.maximum(taken, 0)], costs)


def _scaled(history: History, cost: float) -> float:
    return cost if np.isnan(cost) else float(history.terms.units.scaled(np.array(cost)))


def _chances(episode: LoggedEpisode) -> FloatArray:
    """The probability of each action that the agent took."""
    sk, found = episode.skeleton, []
    for step in episode.steps:
        assert step.probabilities is not None
        first = int(sk.pair_ptr[sk.state_of_pair[step.pair]])
        found.append(step.probabilities[step.pair - first])
    return np.array(found)
