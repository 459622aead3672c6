"""Who chooses the routes in a congestion game: learners, measurers and references.

Learners       one for each commodity, told its skeleton, the losses and the path of its own packet
AdaptiveSteps  UC-O-REPS for each commodity, with a step that it adapts to how its losses answer
DelayRouting   everybody's shortest way by measured delays: the last, smoothed, or the mean of all
Fixed          always the same: shortest by hops, or a reference that knows everything
Timetable      a reference for demands that change: the best routes of each episode

The step that adapts.  All commodities together take a step of mirror descent on Beckmann's potential, whose gradient is
the losses.  Such a step goes down as long as eta <= 1 / M, with M the curvature of the potential relative to the
entropy, and swings to and fro beyond 2 / M.  A learner sees of M what its own last move met,

    M_t = <l_t - l_{t-1}, q_t - q_{t-1}> / (D(q_t || q_{t-1}) + D(q_{t-1} || q_t)),

and takes  eta_t = min(GROWTH eta_{t-1},  CAUTION / M_t,  FASTEST / <q_t, l_t>),  the second where M_t > 0, from
eta_1 = FIRST / <q_1, l_1> on.  (Malitsky and Mishchenko 2020 do so for gradient descent.)  The constants have no units,
nobody is told of the others, and <q_t, l_t> is the learner's own delay.
"""

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np

from advmdp.core.arrays import FloatArray, fraction
from advmdp.learners import bounds
from advmdp.learners.base import Learner
from advmdp.learners.self_tuning import SelfTuning
from advmdp.learners.uc_o_reps import UCOREPS
from advmdp.model.mdp import Trajectory
from advmdp.model.occupancy import best_response
from advmdp.model.skeleton import Skeleton
from advmdp.scenarios.base import positive
from advmdp.scenarios.congestion.assignment import assignment
from advmdp.scenarios.congestion.game import CongestionGame, Router, total
from advmdp.scenarios.network.routing import LOST

STEP, RADII = 300.0, 0.03
"""UC-O-REPS tuned by hand: times the theory's eta, times its radii.  See docs/congestion.md for their choice."""
FIRST, GROWTH, CAUTION, FASTEST = 16.0, 1.5, 0.5, 100.0
"""Of the step that adapts; with the last, a route that is slower by 1% of the delay loses a factor e in an episode."""
LARGEST_STEP, LEAST_PAID, SAME = 1e6, 1e-9, 1e-14
SMOOTHING = 0.9
"""What a smoothed delay keeps of the past."""


class Fixed:
    """Always the same routes."""

    def __init__(self, policy: FloatArray, certificate: float | None = None) -> None:
        self.policy, self.certificate = policy, certificate

    def learn(self, loss: FloatArray, paths: list[Trajectory]) -> None:
        """Nothing."""


class DelayRouting(Fixed):
    """Everybody takes the shortest way by measured delays, and knows how links deflect.

    ``keeps`` is what is left of earlier measurements when one is added: 0 for the last alone, 1 for the mean of all,
    between them smoothing.  Before the first measurement the network is taken to be empty.
    """

    def __init__(self, game: CongestionGame, keeps: float = 0.0) -> None:
        self.mdp, self.keeps = game.mdp, fraction("keeps", keeps)
        self.total = np.zeros(len(game.link))
        super().__init__(best_response(game.mdp, game.cost(game.delays.free))[0])

    def learn(self, loss: FloatArray, paths: list[Trajectory]) -> None:
        self.total = self.keeps * self.total + loss
        self.policy = best_response(self.mdp, self.total)[0]


class Learners:
    """A learner for each commodity, which is told its skeleton, the losses and its packet's path."""

    certificate: float | None = None

    def __init__(self, game: CongestionGame, make: Callable[..., Learner], pooled: bool = False) -> None:
        """``make`` is given a skeleton and, ``pooled``, as ``kinds`` which links are alike."""
        self.game = game
        self.learners = [
            make(one.mdp.skeleton, kinds=one.kinds) if pooled else make(one.mdp.skeleton) for one in game.commodities
        ]

    @property
    def policy(self) -> FloatArray:
        return self.game.whole_policy([learner.policy for learner in self.learners])

    def learn(self, loss: FloatArray, paths: list[Trajectory]) -> None:
        for one, learner, path in zip(self.game.commodities, self.learners, paths, strict=True):
            learner.update(path, loss[one.transitions])


class AdaptiveSteps(Learners):
    """UC-O-REPS for each commodity, with pooled estimates of links and a step that adapts; nothing is to be chosen."""

    def __init__(self, game: CongestionGame) -> None:
        # A kernel's step is fixed, so the losses are scaled instead.
        super().__init__(
            game, lambda sk, kinds: UCOREPS(sk, eta=LARGEST_STEP, confidence="pointwise", kinds=kinds), True
        )
        self.steps = [_Step() for _ in self.learners]

    def learn(self, loss: FloatArray, paths: list[Trajectory]) -> None:
        for one, learner, step, path in zip(self.game.commodities, self.learners, self.steps, paths, strict=True):
            assert isinstance(learner, UCOREPS)
            own = loss[one.transitions]
            learner.update(path, np.minimum(own * (step.next(own, learner.log_q) / LARGEST_STEP), 1.0))


class _Step:
    """The step of one learner: see the head of this module."""

    def __init__(self) -> None:
        self.eta: float | None = None
        self.before: tuple[FloatArray, FloatArray] | None = None

    def next(self, loss: FloatArray, log_q: FloatArray) -> float:
        """The step for a loss at a measure, given by its logarithms."""
        paid = max(total(np.exp(log_q), loss), LEAST_PAID)
        if self.before is None or self.eta is None:
            eta = FIRST / paid
        else:
            eta = GROWTH * self.eta
            if (met := _curvature(loss, log_q, *self.before)) > 0.0:
                eta = min(eta, CAUTION / met)
        self.before = loss, log_q
        self.eta = min(eta, FASTEST / paid, LARGEST_STEP)
        return self.eta


def _curvature(loss: FloatArray, log_q: FloatArray, loss_before: FloatArray, log_before: FloatArray) -> float:
    """M_t; 0 where nothing has moved."""
    moved = np.exp(log_q) - np.exp(log_before)
    apart = np.where(moved == 0.0, 0.0, log_q - log_before)
    far = total(moved, apart)
    return total(moved, loss - loss_before) / far if far > SAME else 0.0


class Timetable:
    """The best routes of each episode, for demands that change in a cycle."""

    certificate: float | None

    def __init__(self, policies: list[FloatArray], certificate: float) -> None:
        self.policies, self.certificate, self.episode = policies, certificate, 0

    @property
    def policy(self) -> FloatArray:
        return self.policies[self.episode % len(self.policies)]

    def learn(self, loss: FloatArray, paths: list[Trajectory]) -> None:
        self.episode += 1


def reference(game: CongestionGame, kind: Literal["optimum", "equilibrium"], gap: float = 1e-4) -> Router:
    """The equilibrium or the optimum, of each episode where demands change; certified to the relative ``gap``."""
    if game.matrices is None:
        found = assignment(game, kind, gap)
        return Fixed(found.policy, found.gap)
    all_of = [assignment(game.at(t), kind, gap) for t in range(len(game.matrices))]
    return Timetable([one.policy for one in all_of], max(one.gap for one in all_of))


def shortest_by_hops(game: CongestionGame) -> Fixed:
    """The fewest hops, on average over deflections."""
    # A lost packet costs more than any way, as it does in milliseconds.
    cost = np.where(game.link == LOST, 2.0 * game.mdp.skeleton.num_steps, 0.0)
    cost[game.link >= 0] = 1.0
    return Fixed(best_response(game.mdp, cost)[0])


def standard_routers(
    game: CongestionGame,
    episodes: int,
    gap: float = 1e-4,
    step: float = STEP,
    radii: float = RADII,
    references: Mapping[str, Router] | None = None,
) -> dict[str, Router]:
    """By name: the methods that the documentation compares, and as references the equilibrium and the optimum.

    The references are certified to the relative ``gap``, or those that are given, computed before.  UC-O-REPS tuned by
    hand takes ``step`` times the theory's eta and ``radii`` times its radii.
    """

    def practical(sk: Skeleton) -> Learner:
        eta = positive("step", step) * bounds.eta(sk, episodes)
        return UCOREPS(sk, episodes, eta=eta, confidence_scale=positive("radii", radii), successors="possible")

    if references is None:
        references = {
            "equilibrium": reference(game, "equilibrium", gap),
            "optimum": reference(game, "optimum", gap),
        }
    return {
        "SelfTuning": Learners(game, SelfTuning, pooled=True),
        "UC-O-REPS, adaptive step": AdaptiveSteps(game),
        "UC-O-REPS, tuned by hand": Learners(game, practical),
        "shortest, last delay": DelayRouting(game),
        "shortest, smoothed delay": DelayRouting(game, SMOOTHING),
        "shortest, mean of delays": DelayRouting(game, 1.0),
        "shortest, hops": shortest_by_hops(game),
        **references,
    }
