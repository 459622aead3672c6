"""SelfTuning's inequalities, checked on live runs: the cost of mixing, each expert's regret, and a pool of one expert.

With H = sum_t <q_t, z_t> for the mixture, L_e = sum_t <q_{t,e}, z_t> for an expert, u the best fixed policy's measure,

    R^ON  <=  (H - L_e) + (L_e - <u, sum_t z_t>)    for every expert e        (convexity; equality for the total loss)
    H - min_e L_e  <=  2 (the sum of AdaHedge's mixability gaps)  <=  S sqrt(T ln K) + 2 S,    S = F L
    L_e - <u, sum_t z_t>  <=  Theorem 5.3           for e = UC-O-REPS, with the sets of the guarantee
    SelfTuning with UC-O-REPS as its only expert equals UC-O-REPS to the bit
"""

from collections.abc import Iterator
from itertools import product

import numpy as np

from advmdp.criteria import Criterion, Risk, TotalLoss
from advmdp.game.play import play
from advmdp.game.result import Game
from advmdp.learners import bounds
from advmdp.learners.pool import FIRST
from advmdp.learners.self_tuning import SelfTuning
from advmdp.learners.uc_o_reps import UCOREPS
from advmdp.losses import Adaptive, Losses, Stochastic
from advmdp.model.mdp import MDP
from advmdp.model.occupancy import occupancy
from advmdp.model.skeleton import Skeleton
from advmdp.verify.games import switching, world
from advmdp.verify.rows import Row

STATEMENT = "SelfTuning"
EPISODES = 2000
ROUNDING = 1e-6


def self_tuning(seed: int) -> Iterator[Row]:
    """A row for each inequality, over three kinds of losses and two criteria."""
    mdp = world()
    settings = product((TotalLoss(), Risk(0.5, 2.0)), _all(mdp, seed))
    games = [_played(mdp, losses, criterion, seed) for criterion, losses in settings]
    yield _most("H - min L_e <= 2 x mixability gaps", [_mixing(game) for game in games])
    yield _most("2 x mixability gaps <= S sqrt(T ln K) + 2 S", [_worst_mixing(game) for game in games])
    yield _most("R^ON <= H - <u, sum z>, the same for every expert", [_convexity(game) for game in games])
    yield _most("R^ON of the expert UC-O-REPS, Theorem 5.3", [_first(game) for game in games])
    different = sum(_bytes_apart(mdp, losses, seed) for losses in _all(mdp, seed))
    what = f"with one expert, T = {EPISODES:,}: games in which it differs from UC-O-REPS"
    yield Row(STATEMENT, what, float(different), "=", 0.0, different == 0)


def _all(mdp: MDP, seed: int) -> list[Losses]:
    sk = mdp.skeleton
    return [Stochastic(sk, seed=seed), switching(sk, TotalLoss(), seed), Adaptive(sk, seed=seed, strength=0.9)]


def _played(mdp: MDP, losses: Losses, criterion: Criterion, seed: int) -> Game:
    learner = SelfTuning(mdp.skeleton, horizon=EPISODES, criterion=criterion, guarantee=True)
    return play(mdp, losses, learner, EPISODES, seed=seed)


def _learner(game: Game) -> SelfTuning:
    assert isinstance(game.learner, SelfTuning)
    return game.learner


def _mixing(game: Game) -> tuple[float, float]:
    learner = _learner(game)
    return learner.believed_by_mixture - float(learner.believed.min()), learner.mixing_cost


def _worst_mixing(game: Game) -> tuple[float, float]:
    learner, sk = _learner(game), game.mdp.skeleton
    F = game.criterion.lipschitz(sk)
    return learner.mixing_cost, learner.bound(EPISODES) - bounds.total(sk, EPISODES, learner.delta, F)


def _paid_by_comparator(game: Game) -> float:
    """<u, sum_t z_t>, minus the smallest entry of every layer."""
    return float(occupancy(game.mdp, game.comparator.policy) @ _learner(game).summed)


def _convexity(game: Game) -> tuple[float, float]:
    online = float(game.curve["regret_online"][-1])
    return online, _learner(game).believed_by_mixture - _paid_by_comparator(game) + game.comparator.gap


def _first(game: Game) -> tuple[float, float]:
    learner, sk = _learner(game), game.mdp.skeleton
    own = float(learner.believed[learner.experts.index(FIRST)]) - _paid_by_comparator(game)
    F = game.criterion.lipschitz(sk)
    return own, bounds.online(sk, EPISODES, learner.delta, F, bounds.eta(sk, EPISODES, F))


def _bytes_apart(mdp: MDP, losses: Losses, seed: int) -> bool:
    sk: Skeleton = mdp.skeleton
    one = SelfTuning(sk, horizon=EPISODES, guarantee=True, experts=[FIRST])
    other = UCOREPS(sk, horizon=EPISODES, confidence="chernoff")
    for learner in (one, other):
        play(mdp, losses, learner, EPISODES, seed=seed)
    return not (np.array_equal(one.q, other.q) and np.array_equal(one.policy, other.policy))


def _most(what: str, sides: list[tuple[float, float]]) -> Row:
    """A row for the game in which the left side comes closest to the right one."""
    left, right = max(sides, key=lambda pair: pair[0] - pair[1])
    slack = ROUNDING * max(1.0, abs(right))
    title = f"{what}: the closest of {len(sides)} games, T = {EPISODES:,}"
    return Row(STATEMENT, title, left, "<=", right, left <= right + slack, ",.1f")
