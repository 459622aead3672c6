"""The result of a finished game."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from advmdp.core.html import card, curve
from advmdp.core.wording import amount
from advmdp.criteria import Criterion, TotalLoss, WorstCase
from advmdp.learners.base import Learner
from advmdp.learners.self_tuning import SelfTuning
from advmdp.losses import LOSS, Losses, Units
from advmdp.model.mdp import MDP
from advmdp.planning.hindsight import Comparator

if TYPE_CHECKING:
    from advmdp.game.best_fixed import BestFixedPolicy
    from advmdp.game.policy_regret import Policies, PolicyRegret, Progress


@dataclass(frozen=True, eq=False)
class Outcome:
    """The cost of some episodes, and what the best fixed policy in hindsight would have paid."""

    episodes: int
    seed: int
    curve: pl.DataFrame
    """A row at each of the :func:`advmdp.game.ledger.marks`: cumulative loss, comparator, regret and its two parts, the
    bound of the learner's guarantee, epochs, the mean radius of the epoch's sets (2: no constraint), and the
    largest gap of a projection so far; on request, the regret against policies that switch."""
    comparator: Comparator
    """The best fixed policy in hindsight."""

    @property
    def reacts(self) -> bool:
        """Whether the losses react to the policies, so that another learner would have met other losses."""
        return False

    @property
    def units(self) -> Units:
        """What the losses are worth."""
        return LOSS

    @property
    def total_loss(self) -> float:
        """What was paid: the sum over episodes of the criterion."""
        return float(self.curve["loss"][-1])

    @property
    def regret(self) -> float:
        """What was paid above the best fixed policy on the same losses.

        Losses that react are those that this learner provoked. They differ between learners, and so do the best fixed
        policies: compare learners by what they paid.
        """
        return float(self.curve["regret"][-1])

    @property
    def paid(self) -> float:
        """What was paid, in the units of the problem; ``total_loss`` if it has none."""
        return self.units.cost(self.total_loss, self.episodes)

    def _summary(self) -> str:
        """What was paid, then the regret and its comparator, in the units of the problem."""
        units, n = self.units, self.episodes
        losses = "the losses that it provoked" if self.reacts else "these losses"
        best = f"the best fixed policy on {losses}, {units.shown(self.comparator.value, n)}"
        return f"paid {units.shown(self.total_loss, n)}; regret {units.shown(self.regret, sign='+')} against {best}"


@dataclass(frozen=True, eq=False)
class Game(Outcome):
    """A finished game: what was paid, and what the best fixed policy in hindsight would have paid.

    Values are exact expectations under the true dynamics, not samples.

    Attributes
    ----------
    episodes
        The number of episodes.
    seed
        The seed of the trajectories.
    curve
        A Polars frame with a row at each of about a hundred marks: the cumulative loss, the comparator, the regret
        and its two parts, the bound, the epochs, the mean radius of the confidence sets, and the largest gap of a
        projection.
    comparator
        The best fixed policy in hindsight.
    mdp
        The world.
    losses
        The losses.
    learner
        The learner, as it is after the game.
    criterion
        What is accounted for.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> game = am.play(mdp, am.losses.Stochastic(mdp.skeleton), am.Uniform(mdp.skeleton), episodes=100)
    >>> bool(abs(game.total_loss - game.regret - game.comparator.value) < 1e-9)
    True
    """

    mdp: MDP
    losses: Losses
    learner: Learner
    criterion: Criterion

    @property
    def reacts(self) -> bool:
        """Whether the losses react to the policies, so that another learner would have met other losses."""
        return self.losses.memory > 0

    @property
    def units(self) -> Units:
        """What the losses are worth, under a criterion that adds losses up or takes the worst of several."""
        converts = self.criterion == TotalLoss() or self.criterion == WorstCase()
        return self.losses.units if converts else LOSS

    def policy_regret(self, policies: "Policies", *, progress: "Progress" = None) -> "PolicyRegret":
        """Compare with fixed policies, each played from the first episode on while the losses react to it.

        World, losses and noise are those of this game, and what each policy pays is exact. For losses that do not
        react, this is ordinary regret against these policies. Each policy takes as long as a game of ``am.Uniform``.

        Parameters
        ----------
        policies
            A policy, (num_pairs,), or a list or dictionary of policies.
        progress
            Whether to show a bar on a terminal, or a function that is called with the number of episodes played. By
            default a bar appears after a few seconds.

        Returns
        -------
        PolicyRegret
            ``paid`` is what each policy pays; ``regret`` is ``total_loss - min(paid)``.

        Raises
        ------
        InputError
            If something is not a policy of this world.

        Examples
        --------
        >>> import advmdp as am
        >>> mdp = am.MDP.random([1, 3, 1], 2, seed=0)
        >>> losses = am.losses.Adaptive(mdp.skeleton, seed=1)
        >>> game = am.play(mdp, losses, am.Uniform(mdp.skeleton), episodes=100)
        >>> game.policy_regret(am.uniform_policy(mdp.skeleton)).regret
        0.0
        """
        from advmdp.game.policy_regret import policy_regret

        return policy_regret(self, policies, progress)

    def best_fixed_policy(
        self, *, starts: int = 8, replays: int = 400, seed: int = 0, progress: "Progress" = None
    ) -> "BestFixedPolicy":
        """Search for the fixed policy that pays least when the losses react to it.

        ``searched`` of the result says which of four cases applied:

        - Losses that do not react: the policy is ``comparator``, which is proven to be best up to its gap.
        - The total loss against :class:`advmdp.losses.Adaptive`: dynamic programming, with a lower bound on what any
          fixed policy pays, in about the time of two games.
        - The total loss against losses that define ``linear_reaction``: a quadratic problem. If it is convex it is
          solved, otherwise a local search with a lower bound runs.
        - Anything else: a local search without a lower bound (``lower`` is -inf).

        Parameters
        ----------
        starts
            The number of policies from which a local search starts: the uniform one, the learner's, the best one in
            hindsight, and random ones.
        replays
            The largest number of games that a local search plays.
        seed
            Fixes the random policies.
        progress
            As for :meth:`policy_regret`.

        Returns
        -------
        BestFixedPolicy
            The policy, what it pays, and a lower bound.

        Examples
        --------
        >>> import advmdp as am
        >>> mdp = am.MDP.random([1, 3, 1], 2, seed=0)
        >>> losses = am.losses.Adaptive(mdp.skeleton, seed=1)
        >>> best = am.play(mdp, losses, am.ReplayLast(mdp.skeleton), episodes=1000).best_fixed_policy()
        >>> best.gap < 1e-6
        True
        """
        from advmdp.game.best_fixed import best_fixed_policy

        return best_fixed_policy(self, starts, replays, seed, progress)

    def __repr__(self) -> str:
        return f"Game({type(self.learner).__name__}, {self.episodes:,} episodes: {self._summary()})"

    def _repr_html_(self) -> str:
        """A card for notebooks."""
        units, n = self.units, self.episodes
        best = "best fixed policy on the losses that it provoked" if self.reacts else "best fixed policy"
        rows = {
            "paid": units.shown(self.total_loss, n),
            "per episode": amount(self.paid / n, units.name),
            best: units.shown(self.comparator.value, n),
            "regret": units.shown(self.regret, sign="+"),
            "criterion": repr(self.criterion),
            "losses": repr(self.losses),
        }
        if (gap := float(self.curve["projection_gap"][-1])) > 0.0:
            rows["projections"] = f"a gap of at most {gap:.1e}"
        if isinstance(self.learner, SelfTuning):
            more = units.shown(self.learner.mixing_cost)
            rows["mixing"] = f"cost at most {more} more than any expert (believed losses)"
        line = self.curve.drop_nulls("regret")
        each = units.scale * line["loss"] / line["episode"] + units.offset
        pictures = curve(line["episode"], each, f"paid per episode so far, at the end {rows['per episode']}")
        pictures += curve(line["episode"], line["regret"], f"regret so far, at the end {rows['regret']}")
        return card(f"{type(self.learner).__name__}, {self.episodes:,} episodes", rows, pictures)
