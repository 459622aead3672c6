"""What the learners in compiled code share: arrays that a kernel moves on, saved and taken over by name.

A :class:`Tabular` keeps its arrays in a named tuple, which its kernel takes; those in ``kept`` are what it has learned,
each with its domain (see :mod:`advmdp.learners.domains`), the others are scratch.  A :class:`Counting` one also counts
visits in epochs, which end when some pair of the trajectory has n_i(x, a) >= max(1, N_i(x, a)), as in Algorithm 2 of
the paper (docs/errata.md, item 2); an :class:`Epochal` one acts anew when one begins.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.confidence import Counts
from advmdp.core.arrays import FloatArray, is_number, owned, whole
from advmdp.core.errors import InputError
from advmdp.criteria import TotalLoss
from advmdp.learners.base import Learner
from advmdp.learners.domains import COUNTERS, POLICY, Domain, check_state
from advmdp.learners.episode import Block, told_block
from advmdp.model.dynamics import Dynamics, unknown_dynamics
from advmdp.model.mdp import Trajectory

__all__ = ["TOTAL", "Counting", "Epochal", "Tabular", "between", "horizon_of", "one_of", "theory_or"]

TOTAL = TotalLoss().terms


class Tabular(Learner):
    """A learner of the total loss whose arrays are moved on by a kernel."""

    kept: ClassVar[Mapping[str, Domain]] = {"policy": POLICY}
    """The arrays of ``_memory`` that it has learned, and what they may hold."""
    weighs: bool = False
    """Whether it divides by the probability of what it saw, which then must be above zero."""
    _memory: Any

    @abstractmethod
    def _learn(self, world: Dynamics, block: Block) -> None:
        """Play and learn from all episodes of the block."""

    @property
    def policy(self) -> FloatArray:
        return owned(self._memory.policy)

    @property
    def compiled(self) -> bool:
        return True

    def update(self, trajectory: Trajectory, loss: ArrayLike) -> None:
        sk = self.skeleton
        block = told_block(sk, trajectory, loss, self.feedback, TOTAL)
        if self.weighs and not (self._memory.policy[block.pairs[0]] > 0.0).all():
            p = int(block.pairs[0][np.argmin(self._memory.policy[block.pairs[0]])])
            raise InputError("trajectory", f"{sk.where_pair(p)}, which the policy never takes", "one of its policy")
        self.play_block(unknown_dynamics(sk), block)

    def play_block(self, world: Dynamics, block: Block) -> None:
        self._learn(world, block)
        self.episode += len(block.losses)

    @property
    def _domains(self) -> Mapping[str, Domain]:
        return self.kept

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self._memory, name) for name in self.kept}

    def state(self) -> dict[str, NDArray[Any]]:
        return {name: array.copy() for name, array in self._arrays().items()}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        arrays = self._arrays()
        check_state(type(self).__name__, self.skeleton, self._domains, arrays, state)
        for name, array in arrays.items():
            array[...] = state[name]


class Counting(Tabular):
    """One that also counts visits, in epochs."""

    _counts: Counts

    @property
    def counts(self) -> Counts:
        """The counters N_i, M_i, n_i and m_i."""
        return self._counts

    @property
    def epochs(self) -> int:
        return self._counts.epoch

    @property
    def _domains(self) -> Mapping[str, Domain]:
        return {**self.kept, **COUNTERS}

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return super()._arrays() | {name: np.asarray(getattr(self._counts, name)) for name in COUNTERS}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        super().restore(state)
        self._counts.epoch = int(state["epoch"])


class Epochal(Counting):
    """A counting one that acts anew when an epoch begins."""

    @abstractmethod
    def _run(self, world: Dynamics, block: Block, b: int) -> tuple[int, bool]:
        """Play the episodes from b on, up to the first that ends an epoch: the next to play, and whether one ended."""

    @abstractmethod
    def _begin_epoch(self, episode: int) -> None:
        """What is done anew in an epoch, after so many episodes, when the counters have been carried over."""

    def _learn(self, world: Dynamics, block: Block) -> None:
        b = 0
        while b < len(block.losses):
            b, over = self._run(world, block, b)
            if over:
                self._counts.next_epoch()
                self._begin_epoch(self.episode + b)


def horizon_of(value: int) -> int:
    """``value`` as a number of episodes that floating point can hold."""
    return whole("horizon", value if not isinstance(value, int) or value < 2**63 else -1, 1)


def between(name: str, value: float, most: float = np.inf) -> float:
    """``value``, a number above 0 and below ``most``."""
    if not is_number(value) or not 0.0 < value < most:
        raise InputError(name, f"{value!r}", f"a number above 0 and below {most:g}")
    return float(value)


def theory_or(name: str, value: float | str) -> float | str:
    """``value``, a number above 0, or "theory"."""
    return "theory" if isinstance(value, str) and value == "theory" else between(name, value)  # type: ignore[arg-type]


def one_of(name: str, value: str, choices: tuple[str, ...]) -> str:
    """``value``, one of the choices."""
    if value not in choices:
        raise InputError(name, f"{value!r}", f"one of {', '.join(choices)}")
    return value
