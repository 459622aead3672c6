"""What other people's parts must satisfy, put to the test: for the tests of those who write them.

:func:`check_criterion` takes a criterion, plays random worlds, policies and losses at it, and raises an error that
names the first statement that is broken, with the numbers that break it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from advmdp.arrays import FloatArray, expect, frozen, whole
from advmdp.criteria import Criterion, evaluate_terms
from advmdp.errors import InputError, ModelError
from advmdp.mdp import MDP
from advmdp.occupancy_measures import occupancy, policy_of, transition_of
from advmdp.skeleton import Skeleton
from advmdp.streams import generator

__all__ = ["check_criterion"]

SLACK = 1e-10
"""How far an inequality between values may be missed, relative to the size of what it compares: rounding, no more."""
STEP = 1e-3
"""How far finite differences reach, as a part of the way between two occupancy measures."""


def check_criterion(criterion: Criterion, sk: Skeleton | None = None, *, dimensions: int = 1, seed: int = 0) -> None:
    """Whether a criterion is one, on ``sk`` or on small dense and sparse skeletons; None if so, else a ModelError.

    For occupancy measures q and q' of random dynamics and policies, and losses in [0, 1] of shape (n,), or (n, d) with
    ``dimensions=d``, random ones and all 0 and all 1 among them, and with z the subgradient at q:

        value and subgradient are a finite number and a finite vector (n,), the same each time, and leave q and l alone
        |z| <= F, entry by entry
        f is convex:                            f((1 - s) q + s q') <= (1 - s) f(q) + s f(q')
        z is a subgradient:                     f(q') >= f(q) + <z, q' - q>
        z agrees with finite differences:       h <z, d> <= f(q + h d) - f(q) between q and q', for d = q' - q and -d
        terms, where there are some, are the criterion, to the bit
    """
    if not isinstance(criterion, Criterion):
        raise InputError("criterion", f"a {type(criterion).__name__}", "a Criterion")
    d = whole("dimensions", dimensions, 1)
    for number, skeleton in enumerate([expect(Skeleton, sk, "skeleton")] if sk is not None else _skeletons(seed)):
        rng = generator(seed, "check_criterion", str(number))
        for name, loss in _losses(skeleton, d, rng):
            case = _Case(criterion, skeleton, loss, f"{criterion!r}, {skeleton!r}, losses {name}")
            points = [_measure(skeleton, rng, sharpness) for sharpness in (1.0, 1.0, 30.0)]
            for q in points:
                _check_answers(case, q)
            for q in points:
                for other in points:
                    if other is not q:
                        _check_inequalities(case, q, other)


@dataclass(frozen=True)
class _Case:
    """A criterion on one skeleton under one loss."""

    criterion: Criterion
    sk: Skeleton
    loss: FloatArray
    where: str

    def value(self, q: FloatArray) -> float:
        return float(self.criterion.value(self.sk, q, self.loss))

    def subgradient(self, q: FloatArray) -> FloatArray:
        return self.criterion.subgradient(self.sk, q, self.loss)

    def broken(self, statement: str, given: str, expected: str) -> ModelError:
        return ModelError(statement, self.where, given, expected)

    def at_most(self, left: float, right: float, size: float, statement: str) -> None:
        """left <= right, up to rounding of numbers of the given size."""
        if not left <= right + SLACK * (1.0 + size):
            raise self.broken(statement, f"{left:.12g} on the left", f"at most {right:.12g}")


def _skeletons(seed: int) -> list[Skeleton]:
    """One step; a dense one; a sparse one."""
    dense, sparse = Skeleton.dense([1, 3, 3, 1], 2), MDP.random([1, 4, 6, 4, 1], 2, seed, branching=2).skeleton
    return [Skeleton.dense([1, 1], 3), dense, sparse]


def _losses(sk: Skeleton, d: int, rng: np.random.Generator) -> Iterator[tuple[str, FloatArray]]:
    shape = (sk.num_transitions,) if d == 1 else (sk.num_transitions, d)
    yield "all 0", np.zeros(shape)
    yield "all 1", np.ones(shape)
    yield "uniform", rng.random(shape)
    yield "0 or 1", rng.integers(0, 2, shape).astype(np.float64)


def _measure(sk: Skeleton, rng: np.random.Generator, sharpness: float) -> FloatArray:
    """q of a random policy and dynamics; the sharper, the closer to deterministic ones."""
    weights = rng.exponential(size=sk.num_transitions) ** sharpness
    return occupancy(MDP(sk, transition_of(sk, weights)), policy_of(sk, weights))


def _check_answers(case: _Case, q: FloatArray) -> None:
    """What can be said of one point: shapes, types, purity, the bound, and the terms."""
    n, given = case.sk.num_transitions, (q.copy(), case.loss.copy())
    value, z = case.criterion.value(case.sk, q, case.loss), case.subgradient(q)
    if not isinstance(value, float) or not np.isfinite(value):
        raise case.broken("the value is a finite number", f"{value!r}", "a float")
    if not isinstance(z, np.ndarray) or z.dtype != np.float64 or z.shape != (n,):
        shown = f"shape {z.shape}, type {z.dtype}" if isinstance(z, np.ndarray) else f"a {type(z).__name__}"
        raise case.broken("the subgradient is a vector over transitions", shown, f"shape ({n},), type float64")
    if not np.isfinite(z).all():
        raise case.broken("the subgradient is finite", f"{z[~np.isfinite(z)][0]}", "finite numbers")
    for name, before, after in zip(("q", "the loss"), given, (q, case.loss), strict=True):
        if not np.array_equal(before, after):
            raise case.broken("q and the loss are left alone", f"{name} was changed", "no change")
    z = z.copy()  # before it is asked for again: it may be the same memory
    if case.value(q) != value or not np.array_equal(case.subgradient(q), z):
        raise case.broken("the same question has the same answer", "another on the second call", "the same bits")
    _check_bound(case, z)
    _check_terms(case, q, value, z)


def _check_bound(case: _Case, z: FloatArray) -> None:
    bound = case.criterion.lipschitz(case.sk)
    if not isinstance(bound, int | float) or not 0.0 <= bound < np.inf:
        raise case.broken("lipschitz is a number", f"{bound!r}", "a finite number, 0 or more")
    case.at_most(float(np.abs(z).max()), bound, bound, "|z| <= lipschitz")


def _check_terms(case: _Case, q: FloatArray, value: float, z: FloatArray) -> None:
    if (terms := case.criterion.terms) is None:
        return
    if not isinstance(terms, np.ndarray) or terms.dtype != np.float64 or terms.shape != (len(terms), 4):
        raise case.broken("terms are rows (kind, weight, alpha, c)", f"{terms!r}", "a float64 array of shape (m, 4)")
    filled, losses = np.empty_like(z), case.loss.reshape(len(q), -1)
    compiled = evaluate_terms(frozen(terms), case.sk.layer_transition_ptr, frozen(q), frozen(losses), filled)
    if compiled != value or not np.array_equal(filled, z):
        given = f"{compiled!r} by the terms, {value!r} by the value"
        raise case.broken("the terms are the criterion", given, "the same bits, also of the subgradient")


def _check_inequalities(case: _Case, q: FloatArray, other: FloatArray) -> None:
    """What can be said of two points: convexity, the subgradient inequality, and finite differences."""
    here, there, slope = case.value(q), case.value(other), float(case.subgradient(q) @ (other - q))
    size = abs(here) + abs(there)
    for s in (0.25, 0.5, 0.75):
        between = case.value((1.0 - s) * q + s * other)
        case.at_most(between, (1.0 - s) * here + s * there, size, f"f is convex, at s = {s} between q and q'")
    case.at_most(here + slope, there, size + abs(slope), "f(q') >= f(q) + <z, q' - q>")
    middle, direction = 0.5 * (q + other), other - q
    value, rise = case.value(middle), STEP * float(case.subgradient(middle) @ direction)
    # The points come in both orders, so that d is followed by -d and <z, d> is held from both sides.
    ahead = case.value(middle + STEP * direction)
    case.at_most(rise, ahead - value, size, "h <z, d> <= f(q + h d) - f(q)")
