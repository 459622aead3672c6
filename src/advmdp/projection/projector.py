"""The way in: weights and a set in, a certified occupancy measure out.

For w = exp(log_weights), the answer minimises D(q || w) = sum q ln(q / w) - q + w.  Everything but beta, one number per
inner state, is eliminated in closed form, and the dual of beta is minimised by Newton's method:

    F(beta) = sum_k ln sum over pairs of layer k of exp(-kappa(x, a) - beta(x)),
    kappa(x, a) = min over p in C(x, a) of sum p(x') ln( p(x') / (w(x, a, x') exp(beta(x'))) ).

The answer is rebuilt from its policy and rows by a forward pass, so it is an occupancy measure up to rounding, and the
``gap`` between its divergence and the dual bounds by how much any other could be better.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from advmdp.confidence import RowSet
from advmdp.core.arrays import FloatArray, exact_floats, expect, frozen, whole
from advmdp.core.errors import EmptySetError, InputError, ProjectionError
from advmdp.core.threads import check_threads
from advmdp.model.skeleton import Skeleton
from advmdp.projection.kernels.memory import Bounds, Layout, Workspace, new_answer
from advmdp.projection.kernels.solver import solve_from
from advmdp.projection.status import LARGEST_LOG_WEIGHT, Status

if TYPE_CHECKING:
    from advmdp.projection.verification import Verification

TOLERANCE = 1e-9
ITERATIONS = 200
FAINT = 1e-200
"""Mass of a pair above which its row is that of q, but for entries ..."""
FAINTEST = 1e-300
"""... below this."""
MOST_ITERATIONS = 2**31
MOST_THREADS = 1024
REAL = (float, int, np.number)
SOLVED, STALLED, UNFIT, UNEVEN = (int(one) for one in (Status.SOLVED, Status.STALLED, Status.UNFIT, Status.UNEVEN))
"""Plain numbers: members of an enumeration take a fiftieth of a small projection to look up and compare."""


@dataclass(frozen=True, eq=False, repr=False)
class Projection:
    """An occupancy measure, how it was found, and how good it is."""

    skeleton: Skeleton
    log_weights: FloatArray
    """As they were given, not a copy: ``v`` and ``mu`` are worked out from them when they are first asked for."""
    row_set: RowSet
    log_q: FloatArray
    """ln q(x, a, x'), which keeps its meaning where q underflows; -inf where q is zero."""
    q: FloatArray
    policy: FloatArray
    """pi^q; uniform in states that no allowed path reaches."""
    log_pairs: FloatArray
    """ln q(x, a)."""
    beta: FloatArray
    """The multipliers of the flow equations (2), one for each state; 0 at both ends, -inf where nothing can be."""
    dual: float
    """A lower bound on sum q ln(q / w) over all q of the set, from ``certificate.py``."""
    gap: float
    """How far q is from the optimum at the most: sum q ln(q / w) - dual, and what rounding may add to that."""
    flow_residual: float
    """max |inflow - outflow| of the dual's own q, before it was rebuilt; that of ``q`` itself is rounding."""
    iterations: int
    converged: bool
    """Whether every state is balanced to the tolerance, q is feasible, and its gap, but for rounding, below it."""

    @cached_property
    def rows(self) -> FloatArray:
        """The row p(x'|x, a) = q(x, a, x') / q(x, a) of each pair; some row of its set where q cannot visit it.

        Where q underflows the row comes from the logarithms, and is then moved into its set: where these are near 1e7
        they are only known to 1e-9.
        """
        sk = self.skeleton
        log_pairs = sk.over_transitions(self.log_pairs)
        pairs = sk.over_transitions(np.add.reduceat(self.q, sk.transition_ptr[:-1]))
        absent = log_pairs == -np.inf
        from_logs = np.exp(self.log_q - np.where(absent, 0.0, log_pairs))
        p = np.divide(self.q, pairs, where=(pairs > FAINT) & (self.q > FAINTEST), out=from_logs)
        p = np.where(absent, self.row_set.some(sk), p)
        return np.where(pairs > FAINT, p, self.row_set.moved_inside(sk, p))

    def verify(self) -> "Verification":
        """Check the answer from scratch, in long double and by other code: flow, rows, and a lower bound.

        Examples
        --------
        >>> import numpy as np, advmdp as am
        >>> sk = am.Skeleton.dense([1, 3, 1], 2)
        >>> rows = am.Box(np.zeros(sk.num_transitions), np.ones(sk.num_transitions))
        >>> am.project(sk, np.zeros(sk.num_transitions), rows).verify().holds()
        True
        """
        from advmdp.projection.verification import verify

        return verify(self)

    @cached_property
    def v(self) -> FloatArray:
        """The multipliers of the rows: ln(p / u), centred so that their largest is mu and their least -mu.

        For L1 balls these are the v of Theorem 4.2 as corrected: |v(x, a, x')| <= mu(x, a), and 0 where the ball does
        not bind.  For other sets they hold up to a constant for each pair.  Where q is zero they are 0.
        """
        sk, first = self.skeleton, self.skeleton.transition_ptr[:-1]
        here = self.log_q > -np.inf
        tilt = np.zeros(sk.num_transitions)
        log_u = self.log_weights[here] + self.beta[sk.successor[here]]
        tilt[here] = self.log_q[here] - sk.over_transitions(self.log_pairs)[here] - log_u
        least = np.minimum.reduceat(np.where(here, tilt, np.inf), first)
        most = np.maximum.reduceat(np.where(here, tilt, -np.inf), first)
        used = least <= most
        middle = np.zeros(sk.num_pairs)
        middle[used] = 0.5 * (least[used] + most[used])
        return np.where(here, tilt - sk.over_transitions(middle), 0.0)

    @cached_property
    def mu(self) -> FloatArray:
        """The multipliers of constraint (3), one for each pair."""
        return np.maximum.reduceat(self.v, self.skeleton.transition_ptr[:-1])

    def __repr__(self) -> str:
        state = "converged" if self.converged else "NOT converged"
        return (
            f"Projection({state} in {self.iterations} iterations, gap {self.gap:.1e}, "
            f"flow residual {self.flow_residual:.1e}, {len(self.q)} transitions)"
        )


class Projector:
    """A skeleton with the memory to project on it again and again."""

    def __init__(self, skeleton: Skeleton, *, threads: int = 1) -> None:
        """``threads``: how many share the work, which does not change a bit of the answer or of its gap.

        From 400,000 transitions on two take little more than half the time where layers are dense and three quarters
        where they are sparse, if they have two processors for themselves.  Where others want these too, threads wait
        for each other, and one is faster.
        """
        sk = self.skeleton = expect(Skeleton, skeleton, "skeleton")
        self.threads = whole("threads", threads, 1, MOST_THREADS)
        self.layout = Layout(sk.layer_ptr, sk.pair_ptr, sk.transition_ptr, sk.successor, self.threads)
        self.workspace = Workspace(self.layout)
        self._known: tuple[RowSet, Bounds] | None = None
        self._lock = Lock()  # calls share the memory

    def __reduce__(self) -> tuple[Callable[[Skeleton, int], "Projector"], tuple[Skeleton, int]]:
        """Copies have memory of their own."""
        return _again, (self.skeleton, self.threads)

    def project(
        self,
        log_weights: ArrayLike,
        row_set: RowSet,
        *,
        warm_start: Projection | None = None,
        tolerance: float = TOLERANCE,
        max_iterations: int = ITERATIONS,
        allow_unconverged: bool = False,
    ) -> Projection:
        """As :func:`project`, without setting up anew. Threads that share a projector take turns."""
        sk = self.skeleton
        weights = frozen(exact_floats(log_weights, "log_weights", (sk.num_transitions,)))
        if self.threads > 1:
            check_threads()
        if not isinstance(tolerance, REAL) or not 0.0 < tolerance < 1.0:
            raise InputError("tolerance", f"{tolerance!r}", "a number between 0 and 1")
        limit = ITERATIONS
        if max_iterations is not ITERATIONS:
            limit = min(whole("max_iterations", max_iterations, 1), MOST_ITERATIONS)
        # A start that leads nowhere is no reason to fail: then it is tried without.
        starts = (None,) if warm_start is None else (self._start(warm_start), None)
        with self._lock:
            for start in starts:
                status, defect, answer = self._solved(start, weights, row_set, float(tolerance), limit)
                if status != STALLED:
                    break
        if status == SOLVED:
            return answer
        if status == UNFIT:
            i = int(np.flatnonzero(~((np.abs(weights) <= LARGEST_LOG_WEIGHT) | (weights == -np.inf)))[0])
            expected = f"a number within {LARGEST_LOG_WEIGHT:g}, or -inf for what is forbidden"
            raise InputError(f"log_weights at {sk.where_transition(i)}", f"{weights[i]}", expected)
        if status == Status.NO_PATH:
            raise EmptySetError("projection", Status.NO_PATH.message, "at least one from the first state to the last")
        if not allow_unconverged:
            reached = f"flow residual {answer.flow_residual:.3g}, relative defect {defect:.3g}, gap {answer.gap:.3g},"
            after = f"after {answer.iterations} iterations; the tolerance is {tolerance:g}"
            raise ProjectionError(f"projection not solved: {reached} {after}")
        return answer

    def _solved(
        self, start: FloatArray | None, weights: FloatArray, row_set: RowSet, tolerance: float, limit: int
    ) -> tuple[int, float, Projection]:
        """The status, the largest defect, and the answer from one start."""
        sk, work, sets, tops = self.skeleton, self.workspace, self.bounds(row_set), _NO_TOPS
        block, log_q, q, log_pairs, policy = new_answer(self.layout)
        status, value, gap, residual, defect, iterations = solve_from(
            start, self.layout, sets, work, weights, block, tolerance, limit
        )
        if status == UNEVEN:
            tops = self._tops(weights)
            even = frozen(weights - np.repeat(tops, np.diff(sk.layer_transition_ptr)))
            status, value, gap, residual, defect, iterations = solve_from(
                start, self.layout, sets, work, even, block, tolerance, limit, 2.0 * LARGEST_LOG_WEIGHT
            )
        answer = Projection.__new__(Projection)
        # A frozen dataclass takes 3 us to fill in its own way, a tenth of a small problem.
        object.__setattr__(answer, "__dict__", {
            "skeleton": sk, "log_weights": weights, "row_set": row_set, "log_q": log_q, "q": q, "policy": policy,
            "log_pairs": log_pairs, "beta": work.beta.copy(), "dual": _below(value, tops),
            "gap": gap if gap >= 0.0 else np.inf,  # an answer so far off that its divergence overflows bounds nothing
            "flow_residual": residual, "iterations": iterations, "converged": status == SOLVED,
        })  # fmt: skip
        return status, defect, answer

    def bounds(self, row_set: RowSet) -> Bounds:
        """The bounds of a set, kept for as long as the same one is used."""
        if self._known is None or self._known[0] is not row_set:
            expect(RowSet, row_set, "row_set")  # type: ignore[type-abstract]
            self._known = row_set, Bounds(row_set.bounds(self.skeleton))
        return self._known[1]

    def _tops(self, weights: FloatArray) -> FloatArray:
        """The largest log weight of each layer.

        A constant for each layer changes nothing but the value, and numbers near 1e7 are only known to 1e-9.
        """
        tops = np.maximum.reduceat(weights, self.skeleton.layer_transition_ptr[:-1])
        return np.where(tops > -np.inf, tops, 0.0)

    def _start(self, warm_start: Projection) -> FloatArray:
        beta = expect(Projection, warm_start, "warm_start").beta
        if beta.shape != (self.skeleton.num_states,):
            raise InputError("warm_start", f"a projection over {len(beta)} states", f"{self.skeleton.num_states}")
        start = np.where(np.abs(beta) <= LARGEST_LOG_WEIGHT, beta, 0.0)
        start[0] = start[-1] = 0.0
        return start


_NO_TOPS = np.empty(0)


def _below(value: float, tops: FloatArray) -> float:
    """- value - sum of tops, rounded down: a lower bound stays one."""
    if not math.isfinite(value):
        return -math.inf
    return math.nextafter(-math.fsum((value, *tops)), -math.inf) if len(tops) else -value


def _again(skeleton: Skeleton, threads: int) -> Projector:
    return Projector(skeleton, threads=threads)


def project(
    skeleton: Skeleton,
    log_weights: ArrayLike,
    row_set: RowSet,
    *,
    warm_start: Projection | None = None,
    tolerance: float = TOLERANCE,
    max_iterations: int = ITERATIONS,
    allow_unconverged: bool = False,
) -> Projection:
    """The occupancy measure closest to exp(log_weights) whose rows lie in the set ``row_set``.

    A log weight of -inf forbids a transition.  ``warm_start``, an earlier projection on the same skeleton, gives the
    multipliers to begin with.  What cannot be solved raises: :class:`EmptySetError` where no occupancy measure fits,
    :class:`ProjectionError` where inflow and outflow of a state stay apart by more than ``tolerance`` of its mass (a
    hundred times that where the mass is below 1e-12), or where the certificate does not hold; unless
    ``allow_unconverged``, in which case the result says ``converged=False``.  For many projections on one skeleton keep
    a :class:`Projector`.
    """
    return Projector(skeleton).project(
        log_weights,
        row_set,
        warm_start=warm_start,
        tolerance=tolerance,
        max_iterations=max_iterations,
        allow_unconverged=allow_unconverged,
    )
