"""The best fixed policy against :class:`advmdp.losses.Adaptive`: dynamic programming, with a proven lower bound.

Losses react to a fixed policy pi in the same way in every episode but the first.  Whatever the memory, the mean loss of
a pair is then m = alpha + s pi(a|x), with alpha = (1 - s) base(x, a) and s the strength.  With N = T - 1 such episodes
and the noise of the game, the total cost of a pair is

    c(pi) = first + N m + W min(m, 1 - m),        W = sum over t of noise (2 u_t - 1), averaged over successors,

where ``first`` is its loss in the first episode.  This depends on the policy in the same state only, so the state
problems decouple, and backward induction solves them from the last layer to the first:

    V(x) = min over distributions pi of  sum_a  phi_a(pi_a),      phi_a(p) = p (c_a(p) + sum_{x'} P(x'|x, a) V(x')).

Each phi_a consists of two convex parabolas, for m <= 1/2 and for m >= 1/2.  Where they meet, the noise may cause a
concave kink (W > 0).  The dual

    max over lambda of  lambda + sum_a  min over p in [0, 1] of  phi_a(p) - lambda p

is a lower bound on V(x) for every lambda, and equals V(x) unless a kink interferes.  Since P >= 0, lower bounds for the
next layer give lower bounds for this one, so V(x_0) is a lower bound on what any fixed policy pays.  To find the policy
itself, we choose a parabola for each action near the dual's solution, which leaves a convex problem.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray
from advmdp.losses import Adaptive
from advmdp.model.mdp import MDP

HALVINGS = 200
"""More than enough bisections to reduce an interval to two neighbouring floats."""
CLOSE = 1e-14
"""A smaller gap, relative to the value, is rounding error."""
STRAIGHT = 1e-200
"""A parabola with less curvature counts as a line."""


def best_against_adaptive(mdp: MDP, losses: Adaptive, episodes: int) -> tuple[FloatArray, float]:
    """A policy to play in all ``episodes``, and a lower bound on the total loss of any fixed policy, up to rounding."""
    sk = mdp.skeleton
    parabolas = _of_all_pairs(mdp, losses, episodes)
    policy, values = np.empty(sk.num_pairs), np.zeros(sk.num_states)
    for k in range(sk.num_steps - 1, -1, -1):
        states = slice(int(sk.layer_ptr[k]), int(sk.layer_ptr[k + 1]))
        pairs = slice(int(sk.layer_pair_ptr[k]), int(sk.layer_pair_ptr[k + 1]))
        ways = slice(int(sk.transition_ptr[pairs.start]), int(sk.transition_ptr[pairs.stop]))
        ahead = mdp.transition[ways] * values[sk.successor[ways]]
        later = np.add.reduceat(ahead, sk.transition_ptr[pairs] - ways.start)
        layer = _Layer(parabolas.some(pairs, later), sk.pair_ptr[states] - pairs.start)
        policy[pairs], values[states] = layer.solved()
    return policy, float(values[0])


@dataclass(frozen=True, eq=False)
class _Parabolas:
    """bend p^2 + slope p for p from 0 to ``kink`` (row 0) and from there to 1 (row 1), for each pair."""

    bend: FloatArray
    slope: FloatArray
    kink: FloatArray

    def some(self, pairs: slice, later: FloatArray) -> "_Parabolas":
        """The parabolas of some pairs, with the cost of their successors added."""
        return _Parabolas(self.bend[:, pairs], self.slope[:, pairs] + later, self.kink[pairs])

    def at(self, p: FloatArray) -> FloatArray:
        side = (p > self.kink).astype(np.intp), np.arange(len(p))
        return (self.bend[side] * p + self.slope[side]) * p

    def least(self, price: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """The p in [low, high] that minimises phi(p) - price p; the smaller p in a tie."""
        spans = (low, np.minimum(high, self.kink)), (np.maximum(low, self.kink), high)
        found = [_vertex(self.bend[i], self.slope[i] - price, *spans[i]) for i in (0, 1)]
        worth = [np.where(spans[i][0] <= spans[i][1], self.at(found[i]) - price * found[i], np.inf) for i in (0, 1)]
        return np.where(worth[0] <= worth[1], found[0], found[1])


def _vertex(bend: FloatArray, slope: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """The minimiser of bend p^2 + slope p on [low, high]."""
    straight = bend <= STRAIGHT
    inner = -slope / np.where(straight, 1.0, 2.0 * bend)
    at = np.where(straight, np.where(slope < 0.0, high, low), inner)
    return np.minimum(np.maximum(at, low), np.maximum(low, high))


def _of_all_pairs(mdp: MDP, losses: Adaptive, episodes: int) -> _Parabolas:
    sk, s, later = mdp.skeleton, losses.strength, episodes - 1
    starts = sk.transition_ptr[:-1]

    def mean(over_transitions: FloatArray) -> FloatArray:
        return np.add.reduceat(mdp.transition * over_transitions.ravel(), starts)

    first, noise = mean(losses.at(0)), mean(losses.noise_sums(1, episodes))
    alpha = (1.0 - s) * losses.base.ravel()[starts]  # one base for each pair
    low, high = later + noise, later - noise  # the weight of m below and above a half
    bend = np.maximum(s * np.array([low, high]), 0.0)  # |noise| <= later up to rounding
    slope = np.array([first + low * alpha, first + noise + high * alpha])
    middle = 0.5 - alpha
    kink = np.where(middle >= 0.0, 1.0, 0.0) if s == 0.0 else np.clip(middle, 0.0, s) / s
    return _Parabolas(bend, slope, kink)


class _Layer:
    """The problems of all states of a layer, side by side."""

    def __init__(self, phi: _Parabolas, first: NDArray[np.int64]) -> None:
        self.phi, self.first = phi, first
        self.sizes = np.diff(np.append(first, len(phi.kink)))

    def sums(self, over_pairs: FloatArray) -> FloatArray:
        """Sums by state."""
        return np.add.reduceat(over_pairs, self.first)

    def solved(self) -> tuple[FloatArray, FloatArray]:
        """The policy, and the lower bound for each state."""
        zeros, ones = np.zeros(len(self.phi.kink)), np.ones(len(self.phi.kink))
        below, above, lower = self._search(zeros, ones)
        mixed = self._mixed(below, above)
        best, cost = mixed, self.sums(self.phi.at(mixed))
        place = np.arange(len(mixed)) - np.repeat(self.first, self.sizes)
        for near in (below, mixed, above):
            left = near <= self.phi.kink  # the parabola that each action must stay on
            for flipped in range(-1, int(self.sizes.max())):  # first this choice, then with one action flipped
                if (cost <= lower + CLOSE * np.abs(lower)).all():
                    return best, lower
                best, cost = self._better(best, cost, left ^ (place == flipped))
        return best, lower

    def _better(self, best: FloatArray, cost: FloatArray, left: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
        """The better of ``best`` and the optimum with each action confined to the given side of its kink."""
        low, high = np.where(left, 0.0, self.phi.kink), np.where(left, self.phi.kink, 1.0)
        tried = self._mixed(*self._search(low, high)[:2])
        paid = self.sums(self.phi.at(tried))
        better = (self.sums(low) <= 1.0) & (self.sums(high) >= 1.0) & (paid < cost)
        return np.where(np.repeat(better, self.sizes), tried, best), np.where(better, paid, cost)

    def _search(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The minimisers at two prices, whose sums are at most and at least 1, and the value of the dual."""
        phi = self.phi
        ends = np.concatenate([phi.slope, phi.slope + 2.0 * phi.bend])  # no derivative of phi is beyond these
        cheap = np.minimum.reduceat(ends.min(axis=0), self.first) - 1.0
        dear = np.maximum.reduceat(ends.max(axis=0), self.first) + 1.0
        for _ in range(HALVINGS):
            middle = cheap + (dear - cheap) / 2.0
            if ((middle <= cheap) | (middle >= dear)).all():
                break
            full = self.sums(self._least(middle, low, high)) >= 1.0
            cheap, dear = np.where(full, cheap, middle), np.where(full, middle, dear)
        proven = np.maximum(self._dual(cheap, low, high), self._dual(dear, low, high))
        return self._least(cheap, low, high), self._least(dear, low, high), proven

    def _least(self, price: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        return self.phi.least(np.repeat(price, self.sizes), low, high)

    def _dual(self, price: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        p = self._least(price, low, high)
        return price + self.sums(self.phi.at(p) - np.repeat(price, self.sizes) * p)

    def _mixed(self, below: FloatArray, above: FloatArray) -> FloatArray:
        """The point between the two whose sum is 1."""
        small, large = self.sums(below), self.sums(above)
        share = np.where(large > small, (1.0 - small) / np.where(large > small, large - small, 1.0), 0.0)
        at = below + np.repeat(np.clip(share, 0.0, 1.0), self.sizes) * (above - below)
        total = self.sums(at)
        even = np.repeat(1.0 / self.sizes, self.sizes)
        return np.where(np.repeat(total > 0.0, self.sizes), at / np.repeat(np.maximum(total, 1e-300), self.sizes), even)
