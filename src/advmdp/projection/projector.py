"""The entry point of the projection: from weights and a set to a certified occupancy measure.

For w = exp(log_weights), the answer minimises D(q || w) = sum q ln(q / w) - q + w.  All dual variables except beta, one
number per inner state, are eliminated in closed form.  Newton's method minimises the dual in beta:

    F(beta) = sum_k ln sum over pairs of layer k of exp(-kappa(x, a) - beta(x)),
    kappa(x, a) = min over p in C(x, a) of sum p(x') ln( p(x') / (w(x, a, x') exp(beta(x'))) ).

A forward pass rebuilds the answer from its policy and rows, so it is an occupancy measure up to rounding.  The ``gap``
between its divergence and the dual bounds its distance from the optimum.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from advmdp.confidence import RowSet
from advmdp.core.arrays import FloatArray, exact_floats, expect, frozen, whole
from advmdp.core.errors import EmptySetError, InputError, ProjectionError
from advmdp.core.html import card
from advmdp.core.threads import ForkLock, check_threads
from advmdp.model.skeleton import Skeleton
from advmdp.projection.kernels.memory import Bounds, Layout, Workspace, new_answer
from advmdp.projection.kernels.solver import solve_from
from advmdp.projection.status import LARGEST_LOG_WEIGHT, Status

if TYPE_CHECKING:
    from advmdp.projection.verification import Verification

TOLERANCE = 1e-9
ITERATIONS = 200
FAINT = 1e-200
"""Above this mass of a pair, its row is computed from q, except for entries ..."""
FAINTEST = 1e-300
"""... below this."""
MOST_ITERATIONS = 2**31
MOST_THREADS = 1024
REAL = (float, int, np.number)
SOLVED, STALLED, UNFIT, UNEVEN = (int(one) for one in (Status.SOLVED, Status.STALLED, Status.UNFIT, Status.UNEVEN))
"""Plain numbers: enumeration members would take a fiftieth of the time of a small projection."""


@dataclass(frozen=True, eq=False, repr=False)
class Projection:
    """The result of a projection: an occupancy measure, how it was found, and how good it is.

    Attributes
    ----------
    skeleton
        The skeleton.
    log_weights
        The logarithms of the weights that were projected, as given (not a copy).
    row_set
        The set that the rows of q lie in.
    log_q
        ln q for each transition; exact where q underflows, and -inf where q is zero.
    q
        The occupancy measure, over transitions.
    policy
        Its policy; uniform in states that cannot be reached.
    log_pairs
        ln q(x, a) for each pair.
    beta
        The multipliers of the flow equations (2), one for each state.
    dual
        A certified lower bound on sum q ln(q / w) over the set.
    gap
        An upper bound on the distance from the optimum, including rounding: sum q ln(q / w) - dual.
    flow_residual
        The largest flow imbalance before q was rebuilt; that of ``q`` itself is rounding.
    iterations
        The number of Newton steps.
    converged
        Whether all states are balanced to the tolerance, q is feasible, and the gap is below the tolerance.

    Examples
    --------
    >>> import numpy as np
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> found = am.project(mdp.skeleton, np.zeros(mdp.skeleton.num_transitions), am.Point(mdp.transition))
    >>> found.converged, found.gap < 1e-9
    (True, True)
    """

    skeleton: Skeleton
    log_weights: FloatArray
    """As given, not a copy; ``v`` and ``mu`` are computed from them on first use."""
    row_set: RowSet
    log_q: FloatArray
    """ln q(x, a, x'), which stays accurate where q underflows; -inf where q is zero."""
    q: FloatArray
    policy: FloatArray
    """pi^q; uniform in states that no feasible path reaches."""
    log_pairs: FloatArray
    """ln q(x, a)."""
    beta: FloatArray
    """The multipliers of the flow equations (2), one for each state; 0 at both ends, -inf in infeasible states."""
    dual: float
    """A lower bound on sum q ln(q / w) over all q of the set, from ``certificate.py``."""
    gap: float
    """An upper bound on the distance from the optimum: sum q ln(q / w) - dual, plus a bound on rounding."""
    flow_residual: float
    """max |inflow - outflow| of the dual's own q, before it was rebuilt; that of ``q`` itself is rounding."""
    iterations: int
    converged: bool
    """Whether every state is balanced to the tolerance, q is feasible, and the gap, up to rounding, is below it."""

    @cached_property
    def rows(self) -> FloatArray:
        """The row ``p(x'|x, a) = q(x, a, x') / q(x, a)`` of each pair, over transitions.

        A pair that q cannot visit has an arbitrary row of its set. Where q underflows, rows come from the logarithms.
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
        """Check the result with independent code, in long double: flow, rows, and the lower bound.

        Returns
        -------
        Verification
            ``holds()`` says whether all checks passed.

        Examples
        --------
        >>> import numpy as np
        >>> import advmdp as am
        >>> sk = am.Skeleton.dense([1, 3, 1], actions=2)
        >>> rows = am.Box(np.zeros(sk.num_transitions), np.ones(sk.num_transitions))
        >>> am.project(sk, np.zeros(sk.num_transitions), rows).verify().holds()
        True
        """
        from advmdp.projection.verification import verify

        return verify(self)

    @cached_property
    def v(self) -> FloatArray:
        """The multipliers v of the rows, over transitions, centred so that the largest is mu and the smallest -mu.

        For L1 balls they are those of Theorem 4.2 as corrected: at most mu(x, a) in absolute value, and 0 where the
        constraint is not active. For other sets they are defined up to a constant for each pair. They are 0 where q
        is zero.
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
        """The multiplier of constraint (3), one for each pair."""
        return np.maximum.reduceat(self.v, self.skeleton.transition_ptr[:-1])

    def __repr__(self) -> str:
        state = "converged" if self.converged else "NOT converged"
        return (
            f"Projection({state} in {self.iterations} iterations, gap {self.gap:.1e}, "
            f"flow residual {self.flow_residual:.1e}, {len(self.q)} transitions)"
        )

    def _repr_html_(self) -> str:
        """A card for notebooks."""
        rows = {
            "converged": "yes" if self.converged else "NO",
            "iterations": self.iterations,
            "gap": f"{self.gap:.1e}",
            "flow residual": f"{self.flow_residual:.1e}",
            "transitions": f"{len(self.q):,}",
            "set": repr(self.row_set),
        }
        return card("Projection", rows)


class Projector:
    """A skeleton with memory for repeated projections.

    Parameters
    ----------
    skeleton
        The skeleton.
    threads
        The number of threads that share the work. The result is the same bit for bit. Two threads help from about
        400,000 transitions on, if two cores are free.

    Raises
    ------
    InputError
        If there are too many threads.

    Examples
    --------
    >>> import numpy as np
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> projector = am.Projector(mdp.skeleton)
    >>> weights = np.zeros(mdp.skeleton.num_transitions)
    >>> first = projector.project(weights, am.Point(mdp.transition))
    >>> projector.project(weights + 0.1, am.Point(mdp.transition), warm_start=first).converged
    True
    """

    def __init__(self, skeleton: Skeleton, *, threads: int = 1) -> None:
        """Allocate the memory.

        From 400,000 transitions on, two threads on two idle cores take little more than half the time of one if layers
        are dense, and three quarters if they are sparse.  On busy cores threads wait for each other, and one is faster.
        """
        sk = self.skeleton = expect(Skeleton, skeleton, "skeleton")
        self.threads = whole("threads", threads, 1, MOST_THREADS)
        self.layout = Layout(sk.layer_ptr, sk.pair_ptr, sk.transition_ptr, sk.successor, self.threads)
        self.workspace = Workspace(self.layout)
        self._known: tuple[RowSet, Bounds] | None = None
        self._lock = ForkLock()  # calls share the memory

    def __reduce__(self) -> tuple[Callable[[Skeleton, int], "Projector"], tuple[Skeleton, int]]:
        """Give copies their own memory."""
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
        """Project, reusing the memory of earlier calls. Threads that share a projector take turns.

        Parameters
        ----------
        log_weights
            The logarithms of the weights, over transitions; -inf forbids a transition.
        row_set
            The set that must contain the rows.
        warm_start
            An earlier result on the same skeleton to start from.
        tolerance
            The largest accepted relative imbalance of a state.
        max_iterations
            The largest number of Newton steps.
        allow_unconverged
            Whether to return an unconverged result instead of raising an error.

        Returns
        -------
        Projection
            The occupancy measure and its certificate.

        Raises
        ------
        EmptySetError
            If the set is infeasible.
        ProjectionError
            If the tolerance is not reached.
        InputError
            If an argument is invalid.
        """
        sk = self.skeleton
        weights = frozen(exact_floats(log_weights, "log_weights", (sk.num_transitions,)))
        if self.threads > 1:
            check_threads()
        if not isinstance(tolerance, REAL) or not 0.0 < tolerance < 1.0:
            raise InputError("tolerance", f"{tolerance!r}", "a number between 0 and 1")
        limit = ITERATIONS
        if max_iterations is not ITERATIONS:
            limit = min(whole("max_iterations", max_iterations, 1), MOST_ITERATIONS)
        # If a warm start fails, try again without it.
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
            expected = f"a number within {LARGEST_LOG_WEIGHT:g}, or -inf to forbid the transition"
            raise InputError(f"log_weights at {sk.where_transition(i)}", f"{weights[i]}", expected)
        if status == Status.NO_PATH:
            raise EmptySetError(
                "projection", Status.NO_PATH.message, "at least one path from the first state to the last"
            )
        if not allow_unconverged:
            reached = f"flow residual {answer.flow_residual:.3g}, relative defect {defect:.3g}, gap {answer.gap:.3g},"
            after = f"after {answer.iterations} iterations; the tolerance is {tolerance:g}"
            raise ProjectionError(f"projection {Status.STALLED.message}: {reached} {after}")
        return answer

    def _solved(
        self, start: FloatArray | None, weights: FloatArray, row_set: RowSet, tolerance: float, limit: int
    ) -> tuple[int, float, Projection]:
        """Solve from one start; return the status, the largest defect, and the answer."""
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
        # The constructor of a frozen dataclass would take 3 us, a tenth of a small problem.
        object.__setattr__(answer, "__dict__", {
            "skeleton": sk, "log_weights": weights, "row_set": row_set, "log_q": log_q, "q": q, "policy": policy,
            "log_pairs": log_pairs, "beta": work.beta.copy(), "dual": _below(value, tops),
            "gap": gap if gap >= 0.0 else np.inf,  # if the divergence overflows, there is no bound
            "flow_residual": residual, "iterations": iterations, "converged": status == SOLVED,
        })  # fmt: skip
        return status, defect, answer

    def bounds(self, row_set: RowSet) -> Bounds:
        """Prepare a set for the kernels, and cache the result while the same set is used.

        Parameters
        ----------
        row_set
            The set that must contain the rows.

        Returns
        -------
        Bounds
            The arrays that the kernels read.
        """
        if self._known is None or self._known[0] is not row_set:
            expect(RowSet, row_set, "row_set")  # type: ignore[type-abstract]
            self._known = row_set, Bounds(row_set.bounds(self.skeleton))
        return self._known[1]

    def _tops(self, weights: FloatArray) -> FloatArray:
        """The largest log weight of each layer.

        Subtracting a constant from each layer changes only the value, and numbers near 1e7 have errors of 1e-9.
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
    """- value - sum of tops, rounded down so that it stays a lower bound."""
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
    """Find the occupancy measure closest to given weights whose rows lie in a set.

    It minimises the unnormalised relative entropy sum q ln(q / w) - q + w, where w = exp(log_weights). For many
    projections on one skeleton, use a :class:`Projector`.

    Parameters
    ----------
    skeleton
        The skeleton.
    log_weights
        The logarithms of the weights, over transitions; -inf forbids a transition.
    row_set
        The set that must contain the rows: an :class:`L1Ball`, a :class:`Box` or a :class:`Point`.
    warm_start
        An earlier result on the same skeleton to start from.
    tolerance
        The largest accepted relative imbalance of a state; a hundred times this for states of mass below 1e-12.
    max_iterations
        The largest number of Newton steps.
    allow_unconverged
        Whether to return a result with ``converged=False`` instead of raising an error.

    Returns
    -------
    Projection
        The occupancy measure and its certificate.

    Raises
    ------
    EmptySetError
        If the set is infeasible.
    ProjectionError
        If the tolerance is not reached, or if the certificate fails.

    Examples
    --------
    >>> import numpy as np
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> rows = am.L1Ball(mdp.transition, np.full(mdp.skeleton.num_pairs, 0.1))
    >>> found = am.project(mdp.skeleton, -np.arange(12.0), rows)
    >>> found.policy.shape, found.gap < 1e-9
    ((8,), True)
    """
    return Projector(skeleton).project(
        log_weights,
        row_set,
        warm_start=warm_start,
        tolerance=tolerance,
        max_iterations=max_iterations,
        allow_unconverged=allow_unconverged,
    )
