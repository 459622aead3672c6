"""The two implementations of the projection's kernels behind one interface, until the Numba ones are deleted."""

from collections.abc import Callable
from typing import Protocol, TypeAlias, cast

import numpy as np

from advmdp.confidence.sets import RowSets
from advmdp.core.arrays import FloatArray, apart
from advmdp.model.skeleton import Skeleton
from advmdp.projection.cython_kernels.memory import Bounds, Layout, Workspace, new_answer
from advmdp.projection.cython_kernels.solver import solve_from

__all__ = ["NO_PATH", "SOLVED", "STALLED", "UNEVEN", "UNFIT", "Answer", "CythonEngine", "Engine", "NumbaEngine"]

SOLVED, NO_PATH, STALLED, UNFIT, UNEVEN = range(5)
Answer: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]
"""The block of memory of an answer, and in it log q, q, ln q(x, a) and the policy."""
Outcome: TypeAlias = tuple[int, float, float, float, float, int]
"""Status, F, gap, residual, defect, iterations."""


class Engine(Protocol):
    """A skeleton with the memory to project on it."""

    def __init__(self, skeleton: Skeleton, threads: int) -> None: ...

    @property
    def beta(self) -> FloatArray:
        """The multipliers that the last projection reached."""

    def new_answer(self) -> Answer:
        """Memory for an answer."""

    def solve(
        self, start: FloatArray | None, log_w: FloatArray, sets: RowSets, answer: Answer, tolerance: float, limit: int
    ) -> Outcome:
        """Project, from the multipliers ``start`` or from zero, and fill in the answer."""


class CythonEngine:
    """The extension modules."""

    def __init__(self, skeleton: Skeleton, threads: int) -> None:
        sk = skeleton
        self.layout = Layout(sk.layer_ptr, sk.pair_ptr, sk.transition_ptr, sk.successor, threads)
        self.workspace = Workspace(self.layout)
        self._bounds: tuple[RowSets, Bounds] | None = None

    @property
    def beta(self) -> FloatArray:
        return self.workspace.beta

    def new_answer(self) -> Answer:
        return new_answer(self.layout)

    def solve(
        self, start: FloatArray | None, log_w: FloatArray, sets: RowSets, answer: Answer, tolerance: float, limit: int
    ) -> Outcome:
        if self._bounds is None or self._bounds[0] is not sets:
            self._bounds = sets, Bounds(sets)
        bounds = self._bounds[1]
        return solve_from(start, self.layout, bounds, self.workspace, log_w, answer[0], tolerance, limit)


class NumbaEngine:
    """The kernels that Numba compiles."""

    def __init__(self, skeleton: Skeleton, threads: int) -> None:
        from advmdp.projection.kernels.solver import solve_from
        from advmdp.projection.kernels.structure import build_structure, build_workspace

        sk = skeleton
        self.structure = build_structure(sk.layer_ptr, sk.pair_ptr, sk.transition_ptr, sk.successor, threads)
        self.memory = build_workspace(self.structure)
        self._zeros = np.zeros(sk.num_states)
        self._sizes = (sk.num_transitions, sk.num_transitions, sk.num_pairs, sk.num_pairs)
        self._solve: Callable[..., Outcome] = solve_from
        self._calls = 0

    @property
    def beta(self) -> FloatArray:
        beta: FloatArray = self.memory.states[0]
        return beta

    def new_answer(self) -> Answer:
        log_q, q, log_pairs, policy = apart(*self._sizes)
        return cast(FloatArray, log_q.base), log_q, q, log_pairs, policy

    def solve(
        self, start: FloatArray | None, log_w: FloatArray, sets: RowSets, answer: Answer, tolerance: float, limit: int
    ) -> Outcome:
        from advmdp.projection.kernels.compiled import bound

        problem = (self.structure, log_w, sets, self.memory, *answer[1:], tolerance, limit)
        if self._calls == 1:  # not the first time: many are projected only once
            self._solve = bound(self._solve, self._zeros, *problem)
        self._calls += 1
        return self._solve(self._zeros if start is None else start, *problem)
