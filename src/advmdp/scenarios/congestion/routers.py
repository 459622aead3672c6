"""Who chooses the routes in a congestion game: learners, measurers and references.

Learners       one for each commodity, told its skeleton, the losses and the path of its own packet
DelayRouting   everybody's shortest way by measured delays: the last, smoothed, or the mean of all
Fixed          always the same: shortest by hops, or a reference that knows everything
"""

from collections.abc import Callable

import numpy as np

from advmdp.core.arrays import FloatArray, fraction
from advmdp.learners import bounds
from advmdp.learners.base import Learner
from advmdp.learners.baselines import FollowLeader
from advmdp.learners.uc_o_reps import UCOREPS
from advmdp.model.mdp import Trajectory
from advmdp.model.occupancy import best_response
from advmdp.model.skeleton import Skeleton
from advmdp.scenarios.base import positive
from advmdp.scenarios.congestion.assignment import assignment
from advmdp.scenarios.congestion.game import CongestionGame, Router
from advmdp.scenarios.network.routing import LOST

STEP, RADII = 300.0, 0.03
"""The practical parameters: times the theory's eta, times its radii.  See docs/congestion.md for their choice."""
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

    def __init__(self, game: CongestionGame, make: Callable[[Skeleton], Learner]) -> None:
        self.game = game
        self.learners = [make(one.mdp.skeleton) for one in game.commodities]

    @property
    def policy(self) -> FloatArray:
        return self.game.whole_policy([learner.policy for learner in self.learners])

    def learn(self, loss: FloatArray, paths: list[Trajectory]) -> None:
        for one, learner, path in zip(self.game.commodities, self.learners, paths, strict=True):
            learner.update(path, loss[one.transitions])


def shortest_by_hops(game: CongestionGame) -> Fixed:
    """The fewest hops, on average over deflections."""
    # A lost packet costs more than any way, as it does in milliseconds.
    cost = np.where(game.link == LOST, 2.0 * game.mdp.skeleton.num_steps, 0.0)
    cost[game.link >= 0] = 1.0
    return Fixed(best_response(game.mdp, cost)[0])


def standard_routers(
    game: CongestionGame, episodes: int, gap: float = 1e-4, step: float = STEP, radii: float = RADII
) -> dict[str, Router]:
    """By name: the methods that the documentation compares, and as references the equilibrium and the optimum.

    The references are certified to the relative ``gap``.  UC-O-REPS takes ``step`` times the theory's eta and ``radii``
    times its radii.
    """

    def practical(sk: Skeleton) -> Learner:
        eta = positive("step", step) * bounds.eta(sk, episodes)
        return UCOREPS(sk, episodes, eta=eta, confidence_scale=positive("radii", radii), successors="possible")

    equilibrium, optimum = assignment(game, "equilibrium", gap), assignment(game, "optimum", gap)
    return {
        "UC-O-REPS": Learners(game, practical),
        "UC-O-REPS, theory": Learners(game, lambda sk: UCOREPS(sk, episodes)),
        "FollowLeader": Learners(game, FollowLeader),
        "shortest, last delay": DelayRouting(game),
        "shortest, smoothed delay": DelayRouting(game, SMOOTHING),
        "shortest, mean of delays": DelayRouting(game, 1.0),
        "shortest, hops": shortest_by_hops(game),
        "equilibrium": Fixed(equilibrium.policy, equilibrium.gap),
        "optimum": Fixed(optimum.policy, optimum.gap),
    }
