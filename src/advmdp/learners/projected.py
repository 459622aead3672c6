"""Learners that project: what mirror descent and SelfTuning share.

Both keep a q_t inside the set of the epoch, take a subgradient z_t of f(.; l_t) at it, and let a rule do the rest.
"""

from abc import abstractmethod
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from advmdp.confidence import RowSet
from advmdp.core.arrays import FloatArray, floats, frozen, owned
from advmdp.core.errors import AdvMDPError, InputError, ProjectionError
from advmdp.core.threads import check_threads
from advmdp.criteria import Criterion
from advmdp.learners.compiled import TOTAL, CompiledLearner, Memory
from advmdp.learners.domains import State
from advmdp.learners.episode import checked_losses, given_block
from advmdp.learners.epochs import Epochs
from advmdp.learners.kernels.episode import Block
from advmdp.learners.kernels.mirror_descent import Descent
from advmdp.learners.kernels.mixture import Mixture
from advmdp.model.kernels.world import Dynamics
from advmdp.model.mdp import Trajectory
from advmdp.model.skeleton import Skeleton
from advmdp.projection.projector import TOLERANCE
from advmdp.projection.status import Status


class MemoryWithMeasure(Memory, Protocol):
    """Arrays with q_t among them."""

    @property
    def q(self) -> FloatArray: ...


M = TypeVar("M", bound=MemoryWithMeasure)


class ProjectedLearner(CompiledLearner[M]):
    """Keeps q_t in the set of the epoch, for any convex criterion."""

    _epochs: Epochs
    _rule: Descent | Mixture
    _row_set: RowSet
    _threads: int

    @abstractmethod
    def _enter_set(self) -> None:
        """Take the set that the counters make."""

    @property
    def q(self) -> FloatArray:
        """q_t, whose policy is played next."""
        return owned(self._memory.q)

    @property
    def row_set(self) -> RowSet:
        """The set of this epoch."""
        return self._row_set

    @property
    def compiled(self) -> bool:
        return self.criterion.terms is not None

    def update(self, trajectory: Trajectory, loss: ArrayLike) -> None:
        sk = self.skeleton
        losses, terms = linear_if_python(self.criterion, sk, self.q, checked_losses(sk, floats(loss, "loss")[None])[0])
        self._optimise(Dynamics(sk), given_block(sk, trajectory, losses, terms), terms)
        self.episode += 1

    def restore(self, state: State) -> None:
        super().restore(state)
        self._enter_set()

    def _learn(self, world: Dynamics, block: Block) -> None:
        terms = self.criterion.terms
        assert terms is not None
        self._optimise(world, block, terms)

    def _optimise(self, world: Dynamics, block: Block, terms: FloatArray) -> None:
        """All episodes of a block, for the criterion with this table of terms."""
        self._check_threads()
        self._rule.optimise(frozen(terms), self.skeleton.num_steps)
        super()._learn(world, block)
        self.gap = float(block.gap[-1])

    def _next_epoch(self, episodes: int) -> None:
        self._epochs.counts.next_epoch()
        self._enter_set()

    def _failure(self, status: int, episode: int) -> AdvMDPError:
        return failed_projection(status, episode)

    def _check_threads(self) -> None:
        if self._threads > 1:
            check_threads()


def failed_projection(status: int, episode: int) -> AdvMDPError:
    """Why the projection after an episode was not solved."""
    if status == Status.UNFIT:
        after = f"the logarithms of q and the losses after episode {episode}, for the next step"
        return InputError(after, Status.UNFIT.message, "a smaller eta, or smaller losses")
    said = f"{Status(status).message}; the tolerance is {TOLERANCE:g}"
    return ProjectionError(f"the projection after episode {episode}: {said}")


def uniform_logarithms(sk: Skeleton) -> FloatArray:
    """The logarithms of the uniform measure on each layer, of which q_1 is the projection."""
    widths = np.diff(sk.layer_transition_ptr)
    return np.repeat(-np.log(widths), widths)


def linear_if_python(
    criterion: Criterion, sk: Skeleton, q: FloatArray, loss: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The loss and the table of terms for one update.

    A criterion in Python gives its subgradient here; a linear criterion with that gradient does the rest.
    """
    if (terms := criterion.terms) is None:
        return criterion.subgradient(sk, q, loss), TOTAL
    if loss.size > sk.num_transitions and not criterion.takes_several:
        raise InputError(f"loss for {criterion!r}", f"{loss.shape[1]} losses at once", "one")
    return loss, terms
