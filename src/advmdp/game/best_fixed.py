"""The best fixed policy against losses that react: proven if the reaction is known, otherwise a local search."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from advmdp.core.arrays import FloatArray, floats, frozen, whole
from advmdp.core.errors import InputError
from advmdp.core.streams import stream_key, uniforms
from advmdp.criteria import TotalLoss
from advmdp.game.policy_regret import Progress, replayed, shown_if_long
from advmdp.game.result import Game
from advmdp.losses import LOSS, Adaptive, Units
from advmdp.model.occupancy import occupancy
from advmdp.model.policy import uniform_policy
from advmdp.planning.hindsight.answer import relative_gap
from advmdp.planning.linear_reaction import best_of_quadratic
from advmdp.planning.reacting import best_against_adaptive

STEPS = tuple(0.5**k for k in range(1, 9))
"""How much probability the local search moves in one step, from large to small."""
TRUE = 1e-6
"""Tolerance, relative to the cost, when checking ``linear_reaction`` against an actual game."""


@dataclass(frozen=True, eq=False)
class BestFixedPolicy:
    """The best fixed policy that was found when the losses react to it.

    :meth:`Game.best_fixed_policy` returns it.

    Attributes
    ----------
    policy
        The policy.
    paid
        What it pays in the whole game, in losses like ``total_loss``.
    lower
        No fixed policy pays less than this; -inf if nothing is proven.
    total_loss
        What the learner paid.
    episodes
        The number of episodes.
    searched
        How it was found.
    replays
        The number of games that the search played.
    units
        What the losses are worth; ``units.cost(paid, episodes)`` converts them.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], 2, seed=0)
    >>> game = am.play(mdp, am.losses.Stochastic(mdp.skeleton), am.Uniform(mdp.skeleton), episodes=100)
    >>> best = game.best_fixed_policy()
    >>> bool(best.regret == game.total_loss - best.paid)
    True
    """

    policy: FloatArray
    paid: float
    """What it pays in the whole game, exact."""
    lower: float
    """What any fixed policy pays at the least; -inf where nothing is proven."""
    total_loss: float
    """What the learner paid."""
    episodes: int
    searched: str
    """What was searched, in words."""
    replays: int
    """How many games were played for it."""
    units: Units = LOSS

    @property
    def regret(self) -> float:
        """The policy regret against this policy: what the learner paid minus what the policy pays."""
        return self.total_loss - self.paid

    @property
    def regret_at_most(self) -> float:
        """An upper bound on the policy regret against any fixed policy; infinite if nothing is proven."""
        return self.total_loss - self.lower

    @property
    def gap(self) -> float:
        """(paid - lower) / paid: no fixed policy pays less by a larger fraction; infinite if nothing is proven."""
        return relative_gap(self.paid, self.lower, self.episodes)

    def __repr__(self) -> str:
        units, n = self.units, self.episodes
        proven = (
            "no lower bound" if self.lower == -inf else f"every fixed policy pays at least {units.shown(self.lower, n)}"
        )
        return (
            f"BestFixedPolicy(pays {units.shown(self.paid, n)} in {n:,} episodes, {proven}; policy regret "
            f"{units.shown(self.regret, sign='+')}; searched: {self.searched})"
        )


def best_fixed_policy(game: Game, starts: int, replays: int, seed: int, progress: Progress) -> BestFixedPolicy:
    """See :meth:`advmdp.Game.best_fixed_policy`."""
    most, first, drawn = whole("replays", replays, 1), whole("starts", starts, 1), whole("seed", seed, 0)
    if game.losses.memory == 0:
        best = game.comparator
        said = "all fixed policies in hindsight, because the losses do not react"
        return BestFixedPolicy(best.policy, best.value, best.lower, game.total_loss, game.episodes, said, 0, game.units)
    one = (game.losses.dimensions or 1) == 1 and game.criterion == TotalLoss()
    if type(game.losses) is Adaptive and one:
        return _planned(game, game.losses, progress)
    if one and (reaction := game.losses.linear_reaction(game.mdp, game.episodes)) is not None:
        return _quadratic(game, *reaction, _points(game, first, drawn), progress)
    with shown_if_long(game, most, progress) as show:
        search = _LocalSearch(game, most, show)
        for point in _points(game, first, drawn):
            search.tried(point)
        begun = search.replays
        search.descend()
    said = f"{begun} starting points, then one action of one state at a time, {search.replays} games in all"
    return BestFixedPolicy(
        frozen(search.policy), search.paid, -inf, game.total_loss, game.episodes, said, search.replays, game.units
    )


def _planned(game: Game, losses: Adaptive, progress: Progress) -> BestFixedPolicy:
    """Solve by dynamic programming, then play the policy once, so that its cost is exact."""
    with shown_if_long(game, 1, progress) as show:
        policy, lower = best_against_adaptive(game.mdp, losses, game.episodes)
        paid = replayed(game, policy, show)
    said = "all fixed policies by dynamic programming, because the losses react linearly to the policy"
    return BestFixedPolicy(frozen(policy), paid, min(lower, paid), game.total_loss, game.episodes, said, 1, game.units)


def _quadratic(game: Game, a: ArrayLike, B: ArrayLike, starts: list[FloatArray], progress: Progress) -> BestFixedPolicy:
    """Minimise the cost that ``linear_reaction`` declares, and play one game to check the declaration."""
    sk = game.mdp.skeleton
    linear, matrix = floats(a, "a"), floats(B, "B")
    with shown_if_long(game, 1, progress) as show:
        policy, lower = best_of_quadratic(game.mdp, linear, matrix, starts)
        paid = replayed(game, policy, show)
    x = np.add.reduceat(occupancy(game.mdp, policy), sk.transition_ptr[:-1])
    said = float((linear + matrix @ x) @ x)
    if not abs(said - paid) <= TRUE * max(paid, 1.0):
        given = f"{said:.12g} for a policy that pays {paid:.12g}"
        raise InputError(f"linear_reaction of {game.losses!r}", given, "the cost of a fixed policy")
    words = f"Frank-Wolfe from {len(starts) + 1} starting points: the losses react linearly to occupancy measures"
    return BestFixedPolicy(frozen(policy), paid, min(lower, paid), game.total_loss, game.episodes, words, 1, game.units)


def _points(game: Game, starts: int, seed: int) -> list[FloatArray]:
    """Promising policies, and then random ones, every other one of them deterministic."""
    sk = game.mdp.skeleton
    points = [uniform_policy(sk), np.array(game.learner.policy), np.array(game.comparator.policy)]
    key = stream_key(seed, "policies", "starts")
    for k in range(len(points), starts):
        drawn = uniforms(key, k, 1, sk.num_pairs)[0]
        most = np.maximum.reduceat(drawn, sk.pair_ptr[:-2])
        weights = (drawn == most[sk.state_of_pair]) if k % 2 else -np.log(np.maximum(drawn, 1e-300))
        points.append(weights / np.add.reduceat(weights, sk.pair_ptr[:-2], dtype=float)[sk.state_of_pair])
    return points[:starts]


class _LocalSearch:
    """Plays policies and keeps the best."""

    def __init__(self, game: Game, most: int, show: Callable[[float], None]) -> None:
        self.game, self.most, self._show = game, most, show
        self.replays = 0
        self.paid, self.policy = inf, uniform_policy(game.mdp.skeleton)

    def tried(self, policy: FloatArray) -> bool:
        """Play a policy, unless all games are used up; return whether it pays less than any before."""
        if self.replays == self.most:
            return False
        paid = replayed(self.game, policy, self._show, self.replays)
        self.replays += 1
        if paid < self.paid:
            self.paid, self.policy = paid, policy
            return True
        return False

    def descend(self) -> None:
        """Move probability to one action of one state at a time while that helps, in smaller and smaller steps."""
        for step in STEPS:
            better = True
            while better and self.replays < self.most:
                better = self._swept(step)

    def _swept(self, step: float) -> bool:
        """Try all actions, those of the most visited states first; return whether one was an improvement."""
        sk, better = self.game.mdp.skeleton, False
        q = occupancy(self.game.mdp, self.policy)
        visits = np.add.reduceat(q, sk.transition_ptr[sk.pair_ptr[:-2]])
        for x in np.argsort(-visits, kind="stable").tolist():
            first, last = int(sk.pair_ptr[x]), int(sk.pair_ptr[x + 1])
            for p in range(first, last) if visits[x] > 0.0 and last - first > 1 else ():
                moved = self.policy.copy()
                moved[first:last] *= 1.0 - step
                moved[p] += step
                better = (self.policy[p] < 1.0 and self.tried(moved)) or better
        return better
