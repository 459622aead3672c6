"""Criteria summed over the episodes of a block: values, linear lower bounds (cuts) and second derivatives."""

from abc import ABC, abstractmethod

import numpy as np

from advmdp.core.arrays import FloatArray, expect
from advmdp.core.errors import InputError
from advmdp.criteria import RISK, RISK_LEMMA, WORST, Criterion
from advmdp.planning.hindsight.polytope import Polytope
from advmdp.planning.hindsight.sums import means_over_successors, sums
from advmdp.planning.kernels.sums import add_products, add_rows

MOST_PAIRS = 2048
"""With more pairs than this, no matrix over pairs is formed."""


class Task(ABC):
    """A criterion summed over the episodes of a block, as a function of x over pairs."""

    exact = False
    """Whether the linear part and the second derivative determine it completely."""
    curved = False
    """Whether it has a second derivative."""
    floor = 0.0
    """A lower bound on every G_T."""

    def __init__(self, polytope: Polytope) -> None:
        self.polytope = polytope

    @abstractmethod
    def reduced(self, block: FloatArray) -> FloatArray:
        """The data of a block that the other methods need."""

    def linear(self, block: FloatArray, reduced: FloatArray) -> FloatArray:
        """The part that is linear in x; the next two methods leave it out."""
        return np.zeros(self.polytope.sk.num_pairs)

    @abstractmethod
    def evaluate(self, reduced: FloatArray, x: FloatArray, mu: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """At the rows of x: the values, and the heights and slopes of cuts."""

    def add_curvature(self, reduced: FloatArray, x: FloatArray, mu: float, H: FloatArray) -> None:
        """Add the second derivative at x, or an approximation, to the upper triangle of H; by default nothing."""
        return


class Powers(Task):
    """Sums of TEL and RISK: powers of the expected losses of steps, v_k, and of their total."""

    def __init__(self, polytope: Polytope, terms: FloatArray) -> None:
        super().__init__(polytope)
        risks = [row for row in terms.tolist() if row[0] in (RISK, RISK_LEMMA)]
        self.straight = sum(row[1] for row in terms.tolist()) - sum(row[1] for row in risks)
        self.moments = [(w * (1.0 - alpha), c) for kind, w, alpha, c in risks if kind == RISK_LEMMA]
        powers = [(w * alpha, w * (1.0 - alpha) * (kind == RISK), c) for kind, w, alpha, c in risks]
        self.powers = [row for row in powers if row[0] + row[1] > 0.0]
        self.curved = bool(self.powers) and polytope.sk.num_pairs <= MOST_PAIRS
        self.exact = not self.powers or (self.curved and all(c == 2.0 for _, _, c in self.powers))

    def reduced(self, block: FloatArray) -> FloatArray:
        return means_over_successors(self.polytope, block)[:, 0]

    def linear(self, block: FloatArray, reduced: FloatArray) -> FloatArray:
        total: FloatArray = self.straight * reduced.sum(axis=0)
        for share, c in self.moments:
            total += share * self.polytope.by_pairs(self.polytope.mdp.transition * (block**c).sum(axis=0).ravel())
        return total

    def evaluate(self, reduced: FloatArray, x: FloatArray, mu: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        v = sums(self.polytope.sk.layer_pair_ptr, reduced, x)
        total, value, slope = v.sum(axis=0), np.zeros(len(x)), np.zeros(v.shape)
        for of_total, of_steps, c in self.powers:
            value += (of_total * total**c + of_steps * (v**c).sum(axis=0)).sum(axis=0)
            slope += c * (of_total * total ** (c - 1.0) + of_steps * v ** (c - 1.0))
        slopes = np.zeros(x.shape)
        add_rows(self.polytope.sk.layer_pair_ptr, reduced, slope, slopes)
        return value, value, slopes

    def add_curvature(self, reduced: FloatArray, x: FloatArray, mu: float, H: FloatArray) -> None:
        # For c < 2 the second derivative is unbounded at v = 0, so this is an approximation with v >= 1e-3.
        v = np.maximum(sums(self.polytope.sk.layer_pair_ptr, reduced, x[None])[:, :, 0], 1e-3)
        total, of_total, of_steps = v.sum(axis=0), np.zeros(len(reduced)), np.zeros(v.shape)
        for total_share, steps_share, c in self.powers:
            of_total += total_share * c * (c - 1.0) * total ** (c - 2.0)
            of_steps += steps_share * c * (c - 1.0) * v ** (c - 2.0)
        add_products(self.polytope.sk.layer_pair_ptr, reduced, of_total, of_steps, H)


class Maxima(Task):
    """MM of several losses, times a weight."""

    def __init__(self, polytope: Polytope, weight: float) -> None:
        super().__init__(polytope)
        self.weight, self.whole = weight, np.array([0, polytope.sk.num_pairs])
        self.curved = polytope.sk.num_pairs <= MOST_PAIRS

    def reduced(self, block: FloatArray) -> FloatArray:
        return means_over_successors(self.polytope, block)

    def evaluate(self, reduced: FloatArray, x: FloatArray, mu: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        rows = reduced.reshape(-1, x.shape[1])
        totals = sums(self.whole, rows, x).reshape(*reduced.shape[:2], len(x))
        value, slopes = totals.max(axis=1).sum(axis=0), np.zeros(x.shape)
        add_rows(self.whole, rows, _soft(totals, mu).reshape(1, len(rows), len(x)), slopes)
        return self.weight * value, self.weight * (slopes * x).sum(axis=1), self.weight * slopes

    def add_curvature(self, reduced: FloatArray, x: FloatArray, mu: float, H: FloatArray) -> None:
        totals = sums(self.whole, reduced.reshape(-1, len(x)), x[None])
        soft = _soft(totals.reshape(reduced.shape[:2]), mu)
        bent = soft.max(axis=1) < 1.0 - 1e-3  # the others are almost linear
        soft, losses = soft[bent], reduced[bent]
        rows = (losses - (soft[:, :, None] * losses).sum(axis=1, keepdims=True)).reshape(-1, len(x))
        add_products(self.whole, rows, self.weight / mu * soft.ravel(), np.zeros((1, len(rows))), H)


class Written(Task):
    """A criterion written in Python: one episode at a time, without a second derivative."""

    floor = -np.inf

    def __init__(self, polytope: Polytope, criterion: Criterion) -> None:
        super().__init__(polytope)
        self.criterion = criterion

    def reduced(self, block: FloatArray) -> FloatArray:
        return block

    def evaluate(self, reduced: FloatArray, x: FloatArray, mu: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        polytope, value, slopes = self.polytope, np.zeros(len(x)), np.zeros(x.shape)
        for j, point in enumerate(x):
            q, total = polytope.over_transitions(point), np.zeros(polytope.sk.num_transitions)
            for loss in reduced:
                value[j] += self.criterion.value(polytope.sk, q, loss)
                total += self.criterion.subgradient(polytope.sk, q, loss)
            slopes[j] = polytope.by_pairs(polytope.mdp.transition * total)
        return value, value, slopes


def task_of(polytope: Polytope, criterion: Criterion, dimensions: int) -> Task:
    expect(Criterion, criterion, "criterion")  # type: ignore[type-abstract]
    terms = criterion.terms
    if terms is None:
        return Written(polytope, criterion)
    if dimensions == 1:
        return Powers(polytope, terms)
    if (terms[:, 0] != WORST).any():
        given = f"{dimensions} losses at once"
        raise InputError(f"losses for {criterion!r}", given, "one: only WorstCase accepts several")
    return Maxima(polytope, float(terms[:, 1].sum()))


def _soft(totals: FloatArray, mu: FloatArray | float) -> FloatArray:
    """Weights over the second axis, proportional to exp(totals / mu)."""
    weights: FloatArray = np.exp((totals - totals.max(axis=1, keepdims=True)) / mu)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights
