"""A finished game, and the account of it."""

from dataclasses import dataclass

import polars as pl

from advmdp.criteria import Criterion
from advmdp.learners.base import Learner
from advmdp.losses import Losses
from advmdp.model.mdp import MDP
from advmdp.planning.hindsight import Comparator


@dataclass(frozen=True, eq=False)
class Outcome:
    """What was paid in some episodes, and what the best fixed policy in hindsight would have paid."""

    episodes: int
    seed: int
    curve: pl.DataFrame
    """A row at each of the :func:`advmdp.game.ledger.marks`: cumulative loss, comparator, regret and its two parts, the
    bound of the learner's guarantee, epochs, the mean radius of the epoch's sets (2: no constraint), and the
    largest gap of a projection so far."""
    comparator: Comparator
    """The best fixed policy in hindsight."""

    @property
    def total_loss(self) -> float:
        """The sum over episodes of the criterion."""
        return float(self.curve["loss"][-1])

    @property
    def regret(self) -> float:
        return float(self.curve["regret"][-1])

    @property
    def _paid(self) -> str:
        return (
            f"loss {self.total_loss:,.2f}, best fixed policy {self.comparator.value:,.2f}, regret {self.regret:+,.2f}"
        )


@dataclass(frozen=True, eq=False)
class Game(Outcome):
    """What was played, and the account of it: criteria are exact, under the true dynamics."""

    mdp: MDP
    losses: Losses
    learner: Learner
    criterion: Criterion

    def __repr__(self) -> str:
        return f"Game({type(self.learner).__name__}, {self.episodes:,} episodes: {self._paid})"
