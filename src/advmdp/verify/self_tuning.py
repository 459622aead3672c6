"""SelfTuning's inequalities, checked on live runs: the cost of mixing, each expert's regret, and a pool of one expert.

With H = sum_t <q_t, z_t> for the mixture, L_e = sum_t <q_{t,e}, z_t> for an expert, u the best fixed policy's measure,

    q_t is in the set of its epoch
    R^ON  <=  (H - L_e) + (L_e - <u, sum_t z_t>)    for every expert e        (convexity; equality for the total loss)
    H - min_e L_e  <=  2 (the sum of AdaHedge's mixability gaps)  <=  S sqrt(T ln K) + 2 S,    S = F L
    sum_{t=s}^e <q_{t,e} - v, z_t>  <=  D(v || q_s) / eta_s + (1 / eta_e - 1 / eta_s) D(v || q_0)
                                        + sum_{t=s}^e (eta_t / 8) (the sum over layers of (max z_t - min z_t)^2)
                                                    for e = UC-O-REPS, an epoch from s to e, every v in its set
    L_e - <u, sum_t z_t>  <=  Theorem 5.3           for e = UC-O-REPS, with the sets of the guarantee
    SelfTuning with UC-O-REPS as its only expert equals UC-O-REPS to the bit

Theorem 5.3 needs the sets of the guarantee.  The first four hold for the default sets, "pointwise", too: they concern
believed losses, whether or not P is in the sets.  The fourth is the proof of Lemma 5 (docs/selftuning.md) within one
epoch.  Lemma 5 needs one v in all sets of a run, and with "pointwise" there may be none.  So here each epoch has its
own v: a sharp response to the losses of the epoch, within its set.
"""

from collections.abc import Iterator
from itertools import product
from math import log, sqrt
from typing import NamedTuple

import numpy as np

from advmdp.confidence import L1Ball, RowSet
from advmdp.core.arrays import FloatArray, owned
from advmdp.criteria import Criterion, Risk, TotalLoss
from advmdp.game.play import play
from advmdp.game.result import Game
from advmdp.learners import bounds
from advmdp.learners.pool import FIRST
from advmdp.learners.projected import uniform_logarithms
from advmdp.learners.self_tuning import SelfTuning
from advmdp.learners.uc_o_reps import UCOREPS
from advmdp.losses import Adaptive, Losses, Stochastic
from advmdp.model.mdp import MDP
from advmdp.model.occupancy import occupancy
from advmdp.model.skeleton import Skeleton
from advmdp.projection.projector import project
from advmdp.verify.games import switching, world
from advmdp.verify.rows import Row, nearly_zero

STATEMENT = "SelfTuning"
EPISODES = 2000
ROUNDING = 1e-6
SHARP = 50.0
"""The factor on losses, scaled to at most 1, in a response that is nearly a best response."""


def self_tuning(seed: int) -> Iterator[Row]:
    """A row for each inequality and each kind of sets, over three kinds of losses and two criteria."""
    mdp, criteria = world(), (TotalLoss(), Risk(0.5, 2.0))
    for guarantee in (False, True):
        sets = "with the guarantee" if guarantee else "by default"
        games = [
            _played(mdp, losses, criterion, guarantee, seed) for criterion, losses in product(criteria, _all(mdp, seed))
        ]
        yield _most(f"H - min_e L_e <= 2 x mixability gaps, {sets}", [_mixing(game) for game in games])
        yield _most(f"2 x mixability gaps <= S sqrt(T ln K) + 2 S, {sets}", [_worst_mixing(game) for game in games])
        yield _most(f"R^ON <= H - <u, sum z>, the same for every expert, {sets}", [_convexity(game) for game in games])
        walks = [
            _walk(mdp, losses, criterion, guarantee, seed)
            for criterion, losses in product(criteria, _oblivious(mdp, seed))
        ]
        outside, what = max(walk.outside for walk in walks), f"how far q_t is outside the set of its epoch, {sets}"
        yield nearly_zero(STATEMENT, what, outside, f"{len(walks)} games", "rounding")
        text = f"regret of the expert UC-O-REPS to a nearly best v in the set of an epoch, Lemma 5, {sets}"
        yield _most(text, [epoch for walk in walks for epoch in walk.epochs], "epochs")
    yield _most("R^ON of the expert UC-O-REPS, Theorem 5.3", [_first(game) for game in games])
    different = sum(_bytes_apart(mdp, losses, seed) for losses in _all(mdp, seed))
    what = f"with one expert, T = {EPISODES:,}: games in which it differs from UC-O-REPS"
    yield Row(STATEMENT, what, float(different), "=", 0.0, different == 0)


def _all(mdp: MDP, seed: int) -> list[Losses]:
    return [*_oblivious(mdp, seed), Adaptive(mdp.skeleton, seed=seed, strength=0.9)]


def _oblivious(mdp: MDP, seed: int) -> list[Losses]:
    return [Stochastic(mdp.skeleton, seed=seed), switching(mdp.skeleton, TotalLoss(), seed)]


def _played(mdp: MDP, losses: Losses, criterion: Criterion, guarantee: bool, seed: int) -> Game:
    learner = SelfTuning(mdp.skeleton, horizon=EPISODES, criterion=criterion, guarantee=guarantee)
    return play(mdp, losses, learner, EPISODES, seed=seed)


def _learner(game: Game) -> SelfTuning:
    assert isinstance(game.learner, SelfTuning)
    return game.learner


def _mixing(game: Game) -> tuple[float, float]:
    learner = _learner(game)
    return learner.believed_by_mixture - float(learner.believed.min()), learner.mixing_cost


def _worst_mixing(game: Game) -> tuple[float, float]:
    learner, sk = _learner(game), game.mdp.skeleton
    most = game.criterion.lipschitz(sk) * sk.num_steps
    return learner.mixing_cost, most * (sqrt(EPISODES * log(len(learner.experts))) + 2.0)


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


class Walk(NamedTuple):
    """What a game shows that is played episode by episode."""

    outside: float
    """How far the mixture was outside the set of its epoch, at most."""
    epochs: list[tuple[float, float]]
    """Both sides of Lemma 5 in each epoch."""


def _walk(mdp: MDP, losses: Losses, criterion: Criterion, guarantee: bool, seed: int) -> Walk:
    """Play without a horizon, as by default."""
    learner = SelfTuning(mdp.skeleton, criterion=criterion, guarantee=guarantee)
    rng, outside, epochs = np.random.default_rng(seed), 0.0, []
    while learner.episode < EPISODES:
        row_set, begin = learner.row_set, learner.episode
        start, paid, heard = _first_measure(learner), _paid_by_first(learner), []
        while learner.row_set is row_set and learner.episode < EPISODES:
            outside = max(outside, _outside(learner))
            before = learner.summed
            learner.update(mdp.sample(learner.policy, rng), losses.at(learner.episode))
            heard.append(learner.summed - before)
        epochs.append(_lemma_5(learner, row_set, begin, start, _paid_by_first(learner) - paid, np.array(heard)))
    return Walk(outside, epochs)


def _first_measure(learner: SelfTuning) -> FloatArray:
    """The occupancy measure of the expert UC-O-REPS."""
    return owned(learner._memory.measures[learner.experts.index(FIRST)])


def _paid_by_first(learner: SelfTuning) -> float:
    return float(learner.believed[learner.experts.index(FIRST)])


def _outside(learner: SelfTuning) -> float:
    """The largest excess over the pairs of sum_x' |q(x,a,x') - q(x,a) center(x')| over q(x,a) radius(x,a)."""
    sk, q, ball = learner.skeleton, learner.q, learner.row_set
    assert isinstance(ball, L1Ball)
    mass = np.add.reduceat(q, sk.transition_ptr[:-1])
    apart = np.add.reduceat(np.abs(q - sk.over_transitions(mass) * ball.center), sk.transition_ptr[:-1])
    return float((apart - mass * ball.radius).max())


def _lemma_5(
    learner: SelfTuning, row_set: RowSet, begin: int, start: FloatArray, paid: float, heard: FloatArray
) -> tuple[float, float]:
    """Both sides in an epoch: ``begin`` episodes before it, its first measure, what the expert paid, and its losses."""
    sk, summed = learner.skeleton, heard.sum(axis=0)
    uniform = uniform_logarithms(sk)
    v = project(sk, uniform - SHARP * summed / max(float(summed.max()), ROUNDING), row_set).q
    eta = bounds.eta(sk, 1, learner.criterion.lipschitz(sk)) / np.sqrt(begin + 1.0 + np.arange(len(heard)))
    spans = np.maximum.reduceat(heard, sk.layer_transition_ptr[:-1], axis=1)  # the least of each layer is 0
    right = _divergence(v, np.log(start)) / eta[0] + (1.0 / eta[-1] - 1.0 / eta[0]) * _divergence(v, uniform)
    return paid - float(v @ summed), float(right + (eta / 8.0 * (spans**2).sum(axis=1)).sum())


def _divergence(v: FloatArray, logarithms: FloatArray) -> float:
    """D(v || q) for two measures with mass 1 in every layer, given ln q."""
    some = v > 0.0
    return float((v[some] * (np.log(v[some]) - logarithms[some])).sum())


def _bytes_apart(mdp: MDP, losses: Losses, seed: int) -> bool:
    sk: Skeleton = mdp.skeleton
    one = SelfTuning(sk, horizon=EPISODES, guarantee=True, experts=[FIRST])
    other = UCOREPS(sk, horizon=EPISODES, confidence="chernoff")
    for learner in (one, other):
        play(mdp, losses, learner, EPISODES, seed=seed)
    return not (np.array_equal(one.q, other.q) and np.array_equal(one.policy, other.policy))


def _most(what: str, sides: list[tuple[float, float]], cases: str = "games") -> Row:
    """A row for the case in which the left side comes closest to the right one."""
    left, right = max(sides, key=lambda pair: pair[0] - pair[1])
    holds = all(less <= more + ROUNDING * max(1.0, abs(more)) for less, more in sides)
    title = f"{what}: the closest of {len(sides)} {cases}, T = {EPISODES:,}"
    return Row(STATEMENT, title, left, "<=", right, holds, ",.1f")
