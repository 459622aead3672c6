"""What the learners in compiled code share: arrays that a kernel moves on, saved and taken over by name.

A :class:`Tabular` keeps its arrays in a named tuple, which its kernel takes; the names in ``kept`` are what it has
learned, the others are scratch.  A :class:`Counting` one also counts visits in epochs, which end when some pair of the
trajectory has n_i(x, a) >= max(1, N_i(x, a)), as in Algorithm 2 of the paper (docs/errata.md, item 2); an
:class:`Epochal` one acts anew when one begins.
"""

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.arrays import FloatArray, is_number, owned, taken, whole
from advmdp.confidence import Counts
from advmdp.criteria import TotalLoss
from advmdp.errors import InputError
from advmdp.learners.base import Learner
from advmdp.learners.episode import Block, World, no_world, told_block
from advmdp.mdp import Trajectory
from advmdp.policy import checked_policy

__all__ = ["TOTAL", "Counting", "Epochal", "Tabular", "between", "horizon_of", "one_of", "theory_or"]

TOTAL = TotalLoss().terms
COUNTED = ("visits", "new_visits", "seen", "new_seen")


class Tabular(Learner):
    """A learner of the total loss whose arrays are moved on by a kernel."""

    kept: ClassVar[tuple[str, ...]] = ("policy",)
    """The names of the arrays of ``_memory`` that it has learned."""
    infinite: ClassVar[tuple[str, ...]] = ()
    """Those of them in which infinity has a meaning."""
    weighs: bool = False
    """Whether it divides by the probability of what it saw, which then must be above zero."""
    _memory: Any

    @abstractmethod
    def _learn(self, world: World, block: Block) -> None:
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
        self.play_block(no_world(sk), block)

    def play_block(self, world: World, block: Block) -> None:
        self._learn(world, block)
        self.episode += len(block.losses)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self._memory, name) for name in self.kept}

    def state(self) -> dict[str, NDArray[Any]]:
        return {name: array.copy() for name, array in self._arrays().items()}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        for name, array in self._arrays().items():
            if name not in state:
                raise InputError(f"state of {type(self).__name__}", f"no {name}", f"{', '.join(self._arrays())}")
            if state[name].dtype.kind == "f" and name not in self.infinite and np.isinf(state[name]).any():
                raise InputError(f"state of {type(self).__name__}", f"{name} with an infinity", "finite numbers")
            taken(array, state[name], name)
        checked_policy(self.skeleton, state["policy"])


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

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return super()._arrays() | {name: getattr(self._counts, name) for name in COUNTED}

    def state(self) -> dict[str, NDArray[Any]]:
        return super().state() | {"epoch": np.array(self._counts.epoch)}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        super().restore(state)
        self._counts.epoch = whole("epoch", int(state["epoch"]), 1)


class Epochal(Counting):
    """A counting one that acts anew when an epoch begins."""

    @abstractmethod
    def _run(self, world: World, block: Block, b: int) -> tuple[int, bool]:
        """Play the episodes from b on, up to the first that ends an epoch: the next to play, and whether one ended."""

    @abstractmethod
    def _begin_epoch(self, episode: int) -> None:
        """What is done anew in an epoch, after so many episodes, when the counters have been carried over."""

    def _learn(self, world: World, block: Block) -> None:
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
