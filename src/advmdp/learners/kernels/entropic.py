"""Exponential weights in each state; :mod:`advmdp.learners.entropic` has the mathematics.

    pi(a|x) proportional to exp(-eta S(x, a)),    S(x, a) = sum_t Q_t(x, a)

The rules differ in the loss behind the values Q_t, and in how they explore.
"""

import cython
from cython.cimports.advmdp.core.kernels.types import floats_of, reals_of
from cython.cimports.advmdp.learners.kernels.episode import (
    BROKEN,
    GOES_ON,
    estimate,
    loss_of,
    pairs_of,
    reveal,
    states_of,
)
from cython.cimports.advmdp.model.kernels.evaluation import evaluate, push_forward
from cython.cimports.advmdp.model.kernels.world import Dynamics
from cython.cimports.libc.math import INFINITY, exp
from cython.cimports.libc.string import memcpy


class Weights(Rule):
    """The common part of the rules. ``experts`` are those of :mod:`advmdp.learners.entropic`."""

    def __init__(self, experts, eta):
        Rule.__init__(self, experts.policy)
        self.experts, self.eta = experts, eta
        self.transition, self.scores = reals_of(experts.transition), floats_of(experts.scores)
        self.weights, self.chosen = floats_of(experts.weights), floats_of(experts.policy)
        self.loss, self.measure = floats_of(experts.loss), floats_of(experts.pairs)
        self.pair_values, self.values = floats_of(experts.pair_values), floats_of(experts.values)
        self.mass, self.q, self.chance = floats_of(experts.mass), floats_of(experts.q), floats_of(experts.chance)


class Hedge(Weights):
    """MDP-E: weights on the loss itself."""

    def learn(self, world, block, b):
        loss = loss_of(block, b)
        for i in range(world.transitions):
            self.loss[i] = loss[i * block.dimensions]
        status = advance(self, world, self.chosen)
        memcpy(self.chosen, self.weights, world.pairs * cython.sizeof(cython.double))
        return status


class Explorer(Weights):
    """OSSP: weights on an estimate of the loss, with a share gamma of random actions."""

    def __init__(self, experts, eta, gamma):
        Weights.__init__(self, experts, eta)
        self.gamma = gamma

    def learn(self, world, block, b):
        pairs, states = pairs_of(block, b), states_of(block, b)
        push_forward(world, self.transition, self.chosen, self.mass, self.q)
        for k in range(block.steps):
            self.chance[k] = self.mass[states[k]] * self.chosen[pairs[k]]
        estimate(world, pairs, reveal(block, b), self.chance, self.loss)
        status = advance(self, world, self.chosen)
        for x in range(world.states - 1):
            first, last = world.pair_ptr[x], world.pair_ptr[x + 1]
            for p in range(first, last):
                self.chosen[p] = (1.0 - self.gamma) * self.weights[p] + self.gamma / (last - first)
        return status


class Visitor(Weights):
    """MDP-EXP3: weights on an estimate of the loss; ``explored``, over pairs, is mixed in and visits all states."""

    def __init__(self, experts, eta, gamma, explored):
        Weights.__init__(self, experts, eta)
        self.gamma, self.owner, self.explored = gamma, explored, reals_of(explored)

    def learn(self, world, block, b):
        pairs = pairs_of(block, b)
        for k in range(block.steps):
            self.chance[k] = self.measure[pairs[k]]
        estimate(world, pairs, reveal(block, b), self.chance, self.loss)
        status = advance(self, world, self.weights)
        mix(self, world)
        return status

    def refresh(self, world: Dynamics) -> None:
        """Compute the policy, and q_t over pairs, from the weights."""
        mix(self, cython.address(world.view))


def advance(self, world, policy):
    """Add the Q of a policy under the loss (or its estimate) to the scores, and update the weights."""
    broken = evaluate(world, self.transition, self.loss, policy, self.values, self.pair_values)
    if broken.pair >= 0:
        self.broken = broken.pair
        return BROKEN
    for p in range(world.pairs):
        self.scores[p] += self.pair_values[p]
    for x in range(world.states - 1):
        soften(self.scores, world.pair_ptr[x], world.pair_ptr[x + 1], self.eta, self.weights)
    return GOES_ON


def soften(scores, first, last, eta, weights):
    """Exponential weights over the actions of one state."""
    least, total = INFINITY, 0.0
    for p in range(first, last):
        least = min(least, scores[p])
    for p in range(first, last):
        weights[p] = exp(-eta * (scores[p] - least))
        total += weights[p]
    for p in range(first, last):
        weights[p] /= total


def mix(self, world):
    """Compute pi_t, and q_t over pairs, from the weights mixed with exploration."""
    push_forward(world, self.transition, self.weights, self.mass, self.q)
    for x in range(world.states - 1):
        first, last, total = world.pair_ptr[x], world.pair_ptr[x + 1], 0.0
        for p in range(first, last):
            self.measure[p] = (1.0 - self.gamma) * self.mass[x] * self.weights[p] + self.gamma * self.explored[p]
            total += self.measure[p]
        for p in range(first, last):
            self.chosen[p] = self.measure[p] / total if total > 0.0 else self.weights[p]
