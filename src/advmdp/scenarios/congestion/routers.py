"""Methods that choose the routes in a congestion game: learners, delay-based routing and references.

Learners       a learner for each commodity; it sees its skeleton, the losses and the path of its own packet
AdaptiveSteps  UC-O-REPS for each commodity, with a step size that adapts to how the losses react
DelayRouting   shortest paths by measured delays: the last, smoothed, or the mean of all
Fixed          constant routes: the fewest hops, or a reference that knows everything
Timetable      a reference for changing demands: the best routes of each episode

The adaptive step size.  Together, all commodities take a step of mirror descent on Beckmann's potential, whose gradient
is the losses.  The step decreases the potential if eta <= 1 / M, with M the curvature of the potential relative to the
entropy, and oscillates if eta > 2 / M.  A learner estimates M from its own last move,

    M_t = <l_t - l_{t-1}, q_t - q_{t-1}> / (D(q_t || q_{t-1}) + D(q_{t-1} || q_t)),

and takes  eta_t = min(GROWTH eta_{t-1},  CAUTION / M_t,  FASTEST / <q_t, l_t>),  the second only if M_t > 0, starting
with eta_1 = FIRST / <q_1, l_1>.  (Malitsky and Mishchenko 2020 do so for gradient descent.)  The constants have no
units, learners know nothing of each other, and <q_t, l_t> is the learner's own delay.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import numpy as np

from advmdp.core.arrays import FloatArray, fraction
from advmdp.core.threads import threads_to_use
from advmdp.learners import bounds
from advmdp.learners.base import Learner
from advmdp.learners.self_tuning import SelfTuning
from advmdp.learners.uc_o_reps import UCOREPS
from advmdp.model.mdp import Trajectory
from advmdp.model.occupancy import best_response
from advmdp.model.skeleton import Skeleton
from advmdp.scenarios.base import positive
from advmdp.scenarios.congestion.assignment import assignment
from advmdp.scenarios.congestion.game import CongestionGame, total
from advmdp.scenarios.congestion.playing import Router
from advmdp.scenarios.network.routing import LOST

STEP, RADII = 300.0, 0.03
"""UC-O-REPS tuned by hand: multiples of the theory's eta and radii.  docs/congestion.md explains the choice."""
FIRST, GROWTH, CAUTION, FASTEST = 16.0, 1.5, 0.5, 100.0
"""Constants of the adaptive step; at FASTEST, a route slower by 1% of the delay loses a factor e in an episode."""
LARGEST_STEP, LEAST_PAID, SAME = 1e6, 1e-9, 1e-14
SMOOTHING = 0.9
"""The weight of the past in a smoothed delay."""


class Fixed:
    """Constant routes.

    Parameters
    ----------
    policy
        A policy of the whole game.
    certificate
        The certified gap, if this is a reference.

    Examples
    --------
    >>> import networkx as nx
    >>> from advmdp.scenarios.congestion import congestion_game
    >>> from advmdp.scenarios.congestion.assignment import assignment
    >>> from advmdp.scenarios.congestion.routers import Fixed
    >>> ring = nx.cycle_graph(["a", "b", "c", "d"])
    >>> ring.graph["demands"] = {"a": {"c": 5.0}}
    >>> game = congestion_game(ring)
    >>> best = assignment(game, "optimum")
    >>> game.play({"optimum": Fixed(best.policy, best.gap)}, episodes=10).table()["changed"].item()
    0.0
    """

    def __init__(self, policy: FloatArray, certificate: float | None = None) -> None:
        self.policy, self.certificate = policy, certificate

    def learn(self, loss: FloatArray, paths: list[Trajectory]) -> None:
        """Ignore the feedback.

        Parameters
        ----------
        loss
            The losses of the episode.
        paths
            The paths of the packets.
        """


class DelayRouting(Fixed):
    """Delay-based routing: all traffic takes the shortest paths by measured delays.

    It knows the probabilities of deflection. Before the first measurement it assumes an empty network.

    Parameters
    ----------
    game
        The game.
    keeps
        The weight of earlier measurements: 0 uses the last one only, 1 the mean of all, and values between smooth.

    Examples
    --------
    >>> import networkx as nx
    >>> from advmdp.scenarios.congestion import congestion_game
    >>> from advmdp.scenarios.congestion.routers import DelayRouting
    >>> ring = nx.cycle_graph(["a", "b", "c", "d"])
    >>> ring.graph["demands"] = {"a": {"c": 5.0}}
    >>> game = congestion_game(ring)
    >>> f"{game.play({'last delay': DelayRouting(game)}, episodes=100).table()['changed'].item():.0%} of routes change"
    '100% of routes change'
    """

    def __init__(self, game: CongestionGame, keeps: float = 0.0) -> None:
        self.mdp, self.keeps = game.mdp, fraction("keeps", keeps)
        self.total = np.zeros(len(game.link))
        super().__init__(best_response(game.mdp, game.cost(game.delays.free))[0])

    def learn(self, loss: FloatArray, paths: list[Trajectory]) -> None:
        self.total = self.keeps * self.total + loss
        self.policy = best_response(self.mdp, self.total)[0]


class Learners:
    """One learner for each commodity.

    Each learner sees its skeleton, the losses and the path of its own packet.

    Parameters
    ----------
    game
        The game.
    make
        Makes a learner from a skeleton; if ``pooled``, also from ``kinds``, the labels of similar links.
    pooled
        Whether learners pool what they see of similar links.

    Examples
    --------
    >>> import advmdp as am
    >>> import networkx as nx
    >>> from advmdp.scenarios.congestion import congestion_game
    >>> from advmdp.scenarios.congestion.routers import Learners
    >>> ring = nx.cycle_graph(["a", "b", "c", "d"])
    >>> ring.graph["demands"] = {"a": {"c": 5.0}}
    >>> game = congestion_game(ring)
    >>> routers = {"SelfTuning": Learners(game, am.SelfTuning, pooled=True)}
    >>> bool(game.play(routers, episodes=100).table()["changed"].item() < 0.1)
    True
    """

    certificate: float | None = None

    def __init__(self, game: CongestionGame, make: Callable[..., Learner], pooled: bool = False) -> None:
        self.game = game
        self.learners = [
            make(one.mdp.skeleton, kinds=one.kinds) if pooled else make(one.mdp.skeleton) for one in game.commodities
        ]

    @property
    def policy(self) -> FloatArray:
        """The policies of all learners, as one of the whole game."""
        return self.game.whole_policy([learner.policy for learner in self.learners])

    def learn(self, loss: FloatArray, paths: list[Trajectory]) -> None:
        """Update all learners.

        Parameters
        ----------
        loss
            The losses of the episode, over the transitions of the whole game.
        paths
            The path of each commodity's packet.
        """
        losses = [loss[one.transitions] for one in self.game.commodities]
        # Learners are independent, and their kernels run without the interpreter's lock.
        with ThreadPoolExecutor(threads_to_use()) as pool:
            list(pool.map(lambda learner, path, own: learner.update(path, own), self.learners, paths, losses))


class AdaptiveSteps(Learners):
    """UC-O-REPS for each commodity, with an adaptive step size and pooled estimates; it has nothing to tune.

    Parameters
    ----------
    game
        The game.

    Examples
    --------
    >>> import networkx as nx
    >>> from advmdp.scenarios.congestion import congestion_game
    >>> from advmdp.scenarios.congestion.routers import AdaptiveSteps
    >>> ring = nx.cycle_graph(["a", "b", "c", "d"])
    >>> ring.graph["demands"] = {"a": {"c": 5.0}}
    >>> game = congestion_game(ring)
    >>> bool(game.play({"adaptive": AdaptiveSteps(game)}, episodes=100).table()["changed"].item() < 0.01)
    True
    """

    def __init__(self, game: CongestionGame) -> None:
        # The step size of a kernel is fixed, so scale the losses instead.
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
    """The adaptive step size of one learner; see the module docstring."""

    def __init__(self) -> None:
        self.eta: float | None = None
        self.before: tuple[FloatArray, FloatArray] | None = None

    def next(self, loss: FloatArray, log_q: FloatArray) -> float:
        """The step size for a loss at the occupancy measure exp(log_q)."""
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
    """M_t; 0 if nothing has moved."""
    moved = np.exp(log_q) - np.exp(log_before)
    apart = np.where(moved == 0.0, 0.0, log_q - log_before)
    far = total(moved, apart)
    return total(moved, loss - loss_before) / far if far > SAME else 0.0


class Timetable:
    """The best routes of each episode, for demands that repeat."""

    certificate: float | None

    def __init__(self, policies: list[FloatArray], certificate: float) -> None:
        self.policies, self.certificate, self.episode = policies, certificate, 0

    @property
    def policy(self) -> FloatArray:
        return self.policies[self.episode % len(self.policies)]

    def learn(self, loss: FloatArray, paths: list[Trajectory]) -> None:
        self.episode += 1


def reference(game: CongestionGame, kind: Literal["optimum", "equilibrium"], gap: float = 1e-4) -> Router:
    """Compute the equilibrium or the optimum, for each episode if demands change.

    Parameters
    ----------
    game
        The game.
    kind
        "optimum" or "equilibrium".
    gap
        The relative gap to certify.

    Returns
    -------
    Router
        A router that plays it.

    Examples
    --------
    >>> import networkx as nx
    >>> from advmdp.scenarios.congestion import congestion_game
    >>> from advmdp.scenarios.congestion.routers import reference
    >>> ring = nx.cycle_graph(["a", "b", "c", "d"])
    >>> ring.graph["demands"] = {"a": {"c": 5.0}}
    >>> bool(reference(congestion_game(ring), "equilibrium").certificate <= 1e-4)
    True
    """
    if game.matrices is None:
        found = assignment(game, kind, gap)
        return Fixed(found.policy, found.gap)
    all_of = [assignment(game.at(t), kind, gap) for t in range(len(game.matrices))]
    return Timetable([one.policy for one in all_of], max(one.gap for one in all_of))


def shortest_by_hops(game: CongestionGame) -> Fixed:
    """Route on the fewest expected hops, given the deflections.

    Parameters
    ----------
    game
        The game.

    Returns
    -------
    Fixed
        The routes.

    Examples
    --------
    >>> import networkx as nx
    >>> from advmdp.scenarios.congestion import congestion_game
    >>> from advmdp.scenarios.congestion.routers import shortest_by_hops
    >>> ring = nx.cycle_graph(["a", "b", "c", "d"])
    >>> ring.graph["demands"] = {"a": {"b": 5.0}}
    >>> shortest_by_hops(congestion_game(ring)).certificate is None
    True
    """
    # A lost packet costs more than any path, as it does in milliseconds.
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
    """Make the methods that the documentation compares, and the equilibrium and the optimum as references.

    Parameters
    ----------
    game
        The game.
    episodes
        The number of episodes to be played.
    gap
        The relative gap to which the references are certified.
    step, radii
        For UC-O-REPS tuned by hand: multiples of the theory's eta and radii.
    references
        References computed before, to use instead.

    Returns
    -------
    dict
        Routers by name.

    Examples
    --------
    >>> import networkx as nx
    >>> from advmdp.scenarios.congestion import congestion_game
    >>> from advmdp.scenarios.congestion.routers import standard_routers
    >>> ring = nx.cycle_graph(["a", "b", "c", "d"])
    >>> ring.graph["demands"] = {"a": {"c": 5.0}}
    >>> game = congestion_game(ring)
    >>> list(standard_routers(game, episodes=100))[:2]
    ['SelfTuning', 'UC-O-REPS, adaptive step']
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
