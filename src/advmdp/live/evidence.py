"""The evidence of a log about the current world: visits, whole losses, and paths with their decision probabilities.

All arrays are over the skeleton of the agent's current world; transitions of earlier worlds are matched by name. Losses
are scaled to [0, 1]. What was paid is as logged, in the caller's units, and does not depend on the current world.

A path with an action that was removed since is kept: policies of today take that action with probability 0, so the path
has weight 0 from there on.  Without it the weights of the other paths would not have mean 1.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advmdp.confidence import Counts, RowSet, confidence_set
from advmdp.core.arrays import FloatArray
from advmdp.live.history import History, LoggedEpisode, losses_of
from advmdp.live.worlds import WorldVersion
from advmdp.model.mdp import MDP
from advmdp.model.skeleton import Skeleton

Ints = NDArray[np.int64]


class ToldLoss(NamedTuple):
    """The whole loss of an episode."""

    episode: int
    loss: FloatArray
    """Over transitions; NaN where no cost is known, now or earlier."""


class LoggedPath(NamedTuple):
    """A finished path of the agent, with the cost of every step."""

    episode: int
    pairs: Ints
    """-1 for removed ones."""
    transitions: Ints
    """-1 for removed ones."""
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
    paid: dict[int, float]
    """What each of the agent's episodes paid, in the caller's units, if it ended with all costs known."""
    clipped: int = 0
    """Costs outside the units; as losses they are clipped."""

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
    seen, told, paths, paid, count, clipped = np.zeros(sk.num_transitions, np.int64), [], [], {}, 0, 0
    last = np.full(sk.num_transitions, np.nan if isinstance(terms.missing, str) else _scaled(history, terms.missing))
    for episode in history.episodes():
        count += 1
        clipped += sum(terms.units.outsiders(given) for given in episode.given())
        taken = _taken(episode, now)
        np.add.at(seen, taken[taken >= 0], 1)
        if (given := losses_of(episode, terms)) is not None and episode.loss_world is not None:
            loss = _moved(given, episode.loss_world, now)
            loss = np.where(np.isnan(loss), last, loss)
            last = loss if isinstance(terms.missing, str) else last
            told.append(ToldLoss(episode.id, loss))
        if episode.observed or (total := episode.paid) is None:
            continue
        paid[episode.id] = total
        if len(taken) == sk.num_steps and not _replaced(episode, taken, now):
            losses = terms.units.scaled(episode.costs)
            paths.append(LoggedPath(episode.id, pairs_of(sk, taken), taken, _chances(episode), losses))
    return Evidence(sk, count, seen, told, paths, paid, clipped)


def pairs_of(sk: Skeleton, transitions: Ints) -> Ints:
    """The pair of each transition; -1 for removed transitions."""
    found: Ints = np.searchsorted(sk.transition_ptr, transitions, side="right") - 1
    return found


def _taken(episode: LoggedEpisode, now: WorldVersion) -> Ints:
    """The transitions of its path so far, in the current world; -1 for removed ones."""
    path = np.array([step.transition for step in episode.steps if step.transition is not None], np.int64)
    return episode.world.map_to(now)[path]


def _moved(values: FloatArray, old: WorldVersion, now: WorldVersion) -> FloatArray:
    place, out = old.map_to(now), np.full(now.skeleton.num_transitions, np.nan)
    out[place[place >= 0]] = values[place >= 0]
    return out


def _replaced(episode: LoggedEpisode, taken: Ints, now: WorldVersion) -> bool:
    """Whether an action of the path leads elsewhere today: it was removed, and added again with other successors."""
    gone = [episode.world.steps[step.transition][:2] for step, i in zip(episode.steps, taken, strict=True) if i < 0]  # type: ignore[index]
    return any(pair in now.pairs for pair in gone)


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
