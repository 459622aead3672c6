"""Conformance checks for user-defined criteria and learners, to call from your own tests.

:func:`check_criterion` tries a criterion on random worlds, policies and losses.  It raises an error that names the
first violated condition, with the numbers that violate it.  :func:`check_learner` does the same for a learner.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np

from advmdp.core.arrays import FloatArray, expect, frozen, whole
from advmdp.core.errors import InputError, ModelError
from advmdp.core.streams import generator
from advmdp.criteria import Criterion, evaluate_terms
from advmdp.learners.base import Learner
from advmdp.learners.episode import make_block
from advmdp.learners.registry import load_learner
from advmdp.losses import Losses, Switching
from advmdp.model.mdp import MDP, Trajectory
from advmdp.model.occupancy import flow_residuals, occupancy, policy_of, transition_of
from advmdp.model.policy import checked_policy
from advmdp.model.skeleton import Skeleton

SLACK = 1e-10
"""The rounding error allowed in an inequality, relative to the size of its sides."""
STEP = 1e-3
"""The step of finite differences, as a fraction of the way between two occupancy measures."""


def check_criterion(criterion: Criterion, sk: Skeleton | None = None, *, dimensions: int = 1, seed: int = 0) -> None:
    """Check that a criterion is valid.

    On random occupancy measures and losses in [0, 1], including all zeros and all ones, it checks that

    - value and subgradient are finite, repeatable, and change neither q nor the loss;
    - the entries of subgradients are at most ``lipschitz`` in absolute value;
    - f is convex, and subgradients satisfy f(q') >= f(q) + <z, q' - q>;
    - subgradients agree with finite differences;
    - ``terms``, if present, give the same numbers to the bit.

    Parameters
    ----------
    criterion
        The criterion.
    sk
        The skeleton to check on; small dense and sparse ones by default.
    dimensions
        The number of losses at once.
    seed
        Fixes the random numbers.

    Raises
    ------
    ModelError
        If a check fails; the message says which.

    Examples
    --------
    >>> import advmdp as am
    >>> am.testing.check_criterion(am.TotalLoss())
    """
    expect(Criterion, criterion, "criterion")  # type: ignore[type-abstract]
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
    """Skeletons with one step, dense rows and sparse rows."""
    dense, sparse = Skeleton.dense([1, 3, 3, 1], 2), MDP.random([1, 4, 6, 4, 1], 2, seed, branching=2).skeleton
    return [Skeleton.dense([1, 1], 3), dense, sparse]


def _losses(sk: Skeleton, d: int, rng: np.random.Generator) -> Iterator[tuple[str, FloatArray]]:
    shape = (sk.num_transitions,) if d == 1 else (sk.num_transitions, d)
    yield "all 0", np.zeros(shape)
    yield "all 1", np.ones(shape)
    yield "uniform", rng.random(shape)
    yield "0 or 1", rng.integers(0, 2, shape).astype(np.float64)


def _measure(sk: Skeleton, rng: np.random.Generator, sharpness: float) -> FloatArray:
    """q of a random policy and dynamics; a larger ``sharpness`` makes both more deterministic."""
    weights = rng.exponential(size=sk.num_transitions) ** sharpness
    return occupancy(MDP(sk, transition_of(sk, weights)), policy_of(sk, weights))


def _check_answers(case: _Case, q: FloatArray) -> None:
    """Check one point: shapes, types, purity, the bound, and the terms."""
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
            raise case.broken("q and the loss are not modified", f"{name} was changed", "no change")
    z = z.copy()  # the next call may reuse the same memory
    if case.value(q) != value or not np.array_equal(case.subgradient(q), z):
        raise case.broken("results are reproducible", "another result on the second call", "the same bits")
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
        given = f"{compiled!r} from the terms, {value!r} from value()"
        raise case.broken("the terms match the criterion", given, "the same bits, also for the subgradient")


def _check_inequalities(case: _Case, q: FloatArray, other: FloatArray) -> None:
    """Check two points: convexity, the subgradient inequality, and finite differences."""
    here, there, slope = case.value(q), case.value(other), float(case.subgradient(q) @ (other - q))
    size = abs(here) + abs(there)
    for s in (0.25, 0.5, 0.75):
        between = case.value((1.0 - s) * q + s * other)
        case.at_most(between, (1.0 - s) * here + s * there, size, f"f is convex, at s = {s} between q and q'")
    case.at_most(here + slope, there, size + abs(slope), "f(q') >= f(q) + <z, q' - q>")
    middle, direction = 0.5 * (q + other), other - q
    value, rise = case.value(middle), STEP * float(case.subgradient(middle) @ direction)
    # The points come in both orders, so -d is checked too, and <z, d> is bounded from both sides.
    ahead = case.value(middle + STEP * direction)
    case.at_most(rise, ahead - value, size, "h <z, d> <= f(q + h d) - f(q)")


def check_learner(
    make: Callable[..., Learner],
    *,
    episodes: int = 60,
    seed: int = 0,
    knows: Literal["skeleton", "dynamics"] | None = None,
) -> None:
    """Check that a learner is valid.

    In dense and sparse worlds, against switching losses, and after every episode it checks that

    - the policy is a distribution in every state, and the same each time it is read;
    - ``q``, if it has one, is an occupancy measure with that policy;
    - its parameters are ready for JSON and make the same learner again;
    - two learners made and told the same agree to the bit;
    - the trajectory and the loss are not changed;
    - saved, loaded and continued, it ends in the same state to the bit;
    - its compiled blocks, if any, give the same results as single episodes, to the bit.

    A learner with bandit feedback gets only the losses along its path.

    Parameters
    ----------
    make
        A class, or a function that makes a learner from a skeleton.
    episodes
        The number of episodes.
    seed
        Fixes the worlds and the losses.
    knows
        "dynamics" for a function that needs an MDP; for a class this is known.

    Raises
    ------
    ModelError
        If a check fails; the message says which.

    Examples
    --------
    >>> import advmdp as am
    >>> am.testing.check_learner(am.Uniform, episodes=5)
    """
    if not callable(make):
        raise InputError("make", f"a {type(make).__name__}", "a function from a skeleton to a learner")
    informed = (knows or getattr(make, "knows", "skeleton")) == "dynamics"
    count = whole("episodes", episodes, 2)
    dense, sparse = MDP.random([1, 3, 3, 1], 2, seed), MDP.random([1, 4, 6, 4, 1], 3, seed, branching=2)
    for number, mdp in enumerate((dense, sparse)):
        rng = generator(seed, "check_learner", str(number))
        trial = _Trial(make, mdp, Switching(mdp.skeleton, period=7, seed=seed), informed)
        story = trial.told(count, rng)
        trial.check_saving(story, int(rng.integers(1, count)))
        trial.check_blocks(count, rng)


@dataclass(frozen=True)
class _Trial:
    """Learners that ``make`` makes, in one world."""

    make: Callable[..., Learner]
    mdp: MDP
    losses: Losses
    informed: bool

    def new(self) -> Learner:
        learner = self.make(self.mdp if self.informed else self.mdp.skeleton)
        if not isinstance(learner, Learner):
            raise InputError("make", f"made a {type(learner).__name__}", "a Learner")
        return learner

    def broken(self, statement: str, learner: Learner, given: str, expected: str) -> ModelError:
        where = f"{type(learner).__name__} after {learner.episode} episodes, {self.mdp.skeleton!r}"
        return ModelError(statement, where, given, expected)

    def told(self, count: int, rng: np.random.Generator) -> list[tuple[Trajectory, FloatArray]]:
        """Update two learners with the same data; return the data."""
        one, other = self.new(), self.new()
        story: list[tuple[Trajectory, FloatArray]] = []
        for t in range(count):
            self.check_policy(one)
            path = self.mdp.sample(one.policy, rng)
            loss = self.losses.at(t)
            seen = loss if one.feedback == "full" else loss[path.transitions]
            before = (path.transitions.copy(), seen.copy())
            for learner in (one, other):
                learner.update(path, seen)
            if one.episode != t + 1:
                given = f"episode {one.episode} after {t + 1} updates"
                raise self.broken("update counts the episode", one, given, f"{t + 1}: update adds one")
            if not (np.array_equal(before[0], path.transitions) and np.array_equal(before[1], seen)):
                raise self.broken("update does not modify its arguments", one, "a modified argument", "no change")
            self.check_same("equal updates give equal learners", one, other)
            story.append((path, seen))
        return story

    def check_policy(self, learner: Learner) -> None:
        sk = self.mdp.skeleton
        try:
            policy = np.array(checked_policy(sk, learner.policy))
        except InputError as error:
            raise self.broken("the policy is a distribution", learner, f"{error}", "one in every state") from None
        if not np.array_equal(policy, learner.policy):
            raise self.broken("the policy is the same each time", learner, "another on a second read", "the same bits")
        if (q := learner.q) is None:
            return
        miss = flow_residuals(sk, q).largest
        if not miss <= 1e-9:
            given = f"flow equations violated by {miss:.3g}"
            raise self.broken("q is an occupancy measure", learner, given, "rounding error only")
        pairs: FloatArray = np.add.reduceat(q, sk.transition_ptr[:-1])
        states: FloatArray = np.add.reduceat(pairs, sk.pair_ptr[:-2])
        heavy = np.repeat(states > 1e-9, np.diff(sk.pair_ptr)[:-1])
        if not np.allclose(policy_of(sk, q)[heavy], policy[heavy], atol=1e-6):
            raise self.broken("the policy is that of q", learner, "another policy", "pi^q in all states that q visits")

    def check_same(self, statement: str, one: Learner, other: Learner) -> None:
        if one.policy.tobytes() != other.policy.tobytes():
            apart = float(np.abs(one.policy - other.policy).max())
            raise self.broken(statement, one, f"policies that differ by {apart:.3g}", "the same bits")

    def check_saving(self, story: list[tuple[Trajectory, FloatArray]], stop: int) -> None:
        straight, stopped = self.new(), self.new()
        try:
            json.dumps(straight.parameters)
            again = type(straight)(straight.told, criterion=straight.criterion, **straight.parameters)
        except TypeError as error:
            expected = "a constructor that takes skeleton, criterion= and the parameters by name, all valid JSON"
            raise self.broken("its parameters reproduce it", straight, f"{error}", expected) from None
        self.check_same("its parameters reproduce it", straight, again)
        for t, (path, seen) in enumerate(story):
            if t == stop:
                with TemporaryDirectory() as folder:
                    stopped.save(Path(folder) / "learner.npz")
                    make = type(stopped)
                    stopped = load_learner(Path(folder) / "learner.npz", criterion=stopped.criterion, make=make)
            straight.update(path, seen)
            stopped.update(path, seen)
        self.check_same("a saved and loaded learner continues as before", straight, stopped)

    def check_blocks(self, count: int, rng: np.random.Generator) -> None:
        one, other = self.new(), self.new()
        if not one.compiled or (terms := one.criterion.terms) is None:
            return
        sk = self.mdp.skeleton
        drawn = rng.random((count, 2 * sk.num_steps))
        total = np.zeros((sk.num_transitions, 1))
        block = make_block(sk, self.losses.block(0, count), terms, total, drawn)
        one.play_block(self.mdp.dynamics, block)
        for t in range(count):
            path = Trajectory(block.states[t], block.pairs[t], block.transitions[t])
            loss = self.losses.at(t)
            other.update(path, loss if other.feedback == "full" else loss[path.transitions])
        self.check_same("compiled blocks equal single episodes", one, other)
