"""The common part of compiled learners: arrays that a kernel updates, saved and restored by name.

A :class:`CompiledLearner` keeps its arrays in a named tuple, which its rule (``kernels/episode.py``) updates.  ``kept``
names the arrays that make up its state, each with its domain (see :mod:`advmdp.learners.domains`); the others are
scratch.  A learner that counts visits has :class:`advmdp.learners.epochs.Epochs`, and its state includes the counters.
"""

from collections.abc import Mapping
from typing import ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from advmdp.confidence import Counts
from advmdp.core.arrays import FloatArray, owned
from advmdp.core.errors import AdvMDPError, InputError
from advmdp.criteria import TotalLoss, table_of
from advmdp.learners.base import Learner
from advmdp.learners.domains import POLICY, Domain, State, check_state
from advmdp.learners.episode import told_block
from advmdp.learners.epochs import Epochs
from advmdp.learners.kernels.episode import EPOCH_OVER, Block, Rule
from advmdp.model.by_name import ByName
from advmdp.model.kernels.world import Dynamics
from advmdp.model.mdp import Trajectory

TOTAL = table_of(TotalLoss())


class Memory(Protocol):
    """The arrays of a learner, a named tuple that includes the policy."""

    @property
    def policy(self) -> FloatArray: ...


M = TypeVar("M", bound=Memory)


class CompiledLearner(Learner, Generic[M]):
    """A learner for the total loss whose arrays a kernel updates."""

    kept: ClassVar[Mapping[str, Domain]] = {"policy": POLICY}
    """The arrays of ``_memory`` that make up its state, and their domains."""
    weighs: bool = False
    """Whether it divides by the probability of what it saw, which must then be above zero."""
    _memory: M
    _rule: Rule
    """What it does after an episode; updates the arrays of ``_memory``."""
    _epochs: Epochs | None = None

    @property
    def policy(self) -> FloatArray:
        return owned(self._memory.policy)

    @property
    def compiled(self) -> bool:
        return True

    @property
    def counts(self) -> Counts | None:
        """The counters N_i, M_i, n_i and m_i, for learners with epochs."""
        return None if self._epochs is None else self._epochs.counts

    @property
    def epochs(self) -> int:
        return 1 if self._epochs is None else self._epochs.counts.epoch

    def update(self, trajectory: Trajectory, loss: ByName) -> None:
        sk, policy = self.skeleton, self._memory.policy
        block = told_block(sk, trajectory, loss, self.feedback, TOTAL)
        if self.weighs and not (policy[block.pairs[0]] > 0.0).all():
            p = int(block.pairs[0][np.argmin(policy[block.pairs[0]])])
            raise InputError("trajectory", f"{sk.where_pair(p)}, which the policy never takes", "a path of the policy")
        CompiledLearner.play_block(self, Dynamics(sk), block)

    def play_block(self, world: Dynamics, block: Block) -> None:
        self._learn(world, block)
        self.episode += len(block)

    def _learn(self, world: Dynamics, block: Block) -> None:
        """Play all episodes of the block.  The rule returns where an epoch ends, before it learns from that episode."""
        b, over = 0, False
        while b < len(block):
            first = b + over
            b, status = self._rule.play(world, block, b, over, self.episode)
            over = status == EPOCH_OVER
            self._counted(block.transitions[first : b + (status != 0)])
            if over:
                self._next_epoch(self.episode + b + 1)
            elif status:
                raise self._failure(status, self.episode + b)

    def _counted(self, paths: NDArray[np.int64]) -> None:
        """Called with the paths that the rule has counted, one per row."""

    def _next_epoch(self, episodes: int) -> None:
        """Begin the next epoch, after that number of episodes; for learners with epochs."""

    def _failure(self, status: int, episode: int) -> AdvMDPError:
        """The error for a rule that stopped in an episode."""
        where = self.skeleton.where_pair(self._rule.broken)
        return InputError(f"loss at {where}", "a number that is not finite", "finite numbers")

    def _arrays(self) -> State:
        arrays: State = {name: getattr(self._memory, name) for name in self.kept}
        return arrays if self._epochs is None else arrays | self._epochs.arrays()

    def state(self) -> State:
        return {name: array.copy() for name, array in self._arrays().items()}

    def restore(self, state: State) -> None:
        domains = dict(self.kept) | ({} if self._epochs is None else self._epochs.domains)
        check_state(type(self).__name__, self.skeleton, domains, self._arrays(), state)
        for name in self.kept:
            getattr(self._memory, name)[...] = state[name]
        if self._epochs is not None:
            self._epochs.restore(state)
