"""Baselines: what anyone would try first.  They know the skeleton and have no guarantee; all but the first see the
whole loss.

Uniform         chooses at random, always.
FollowLeader    plays what would have been best so far: the best response to l_1 + ... + l_t.
ReplayLast      plays what would have been best last time: the best response to l_t alone.

The last two do not know P either: they respond in the estimate Pbar of all visits up to now (uniform over the possible
successors of a pair never visited), anew after every episode.  ReplayLast is hard to beat where costs persist, so it
belongs in every comparison; losses that alternate, or that react to the player, ruin both.
"""

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from advmdp.confidence import tally
from advmdp.core.arrays import FloatArray
from advmdp.core.compiling import compiled
from advmdp.core.errors import InputError
from advmdp.criteria import Criterion
from advmdp.learners.base import Feedback
from advmdp.learners.compiled import CompiledLearner
from advmdp.learners.domains import ESTIMATE, LOSS, POLICY, SEEN, VISITS
from advmdp.learners.episode import Block, enter
from advmdp.model.dynamics import Dynamics
from advmdp.model.occupancy import improve
from advmdp.model.policy import uniform_policy
from advmdp.model.skeleton import Skeleton

Ints = NDArray[np.int64]


class Chosen(NamedTuple):
    """A policy that never changes."""

    policy: FloatArray


class Record(NamedTuple):
    """What was seen: counts, Pbar, the loss that is responded to; and the response."""

    visits: Ints
    seen: Ints
    estimate: FloatArray
    loss: FloatArray
    policy: FloatArray
    values: FloatArray  # scratch, over states


class Uniform(CompiledLearner[Chosen]):
    """Chooses at random, and looks at nothing."""

    sees = "full or bandit"

    def __init__(self, skeleton: Skeleton, criterion: Criterion | None = None, feedback: Feedback = "full") -> None:
        super().__init__(skeleton, criterion, feedback)
        self._memory = Chosen(uniform_policy(self.skeleton))

    def _learn(self, world: Dynamics, block: Block) -> None:
        stay(world, block, self._memory)


class Responder(CompiledLearner[Record]):
    """Responds to some of the losses, in the estimated dynamics."""

    kept: ClassVar = {"visits": VISITS, "seen": SEEN, "estimate": ESTIMATE, "loss": LOSS, "policy": POLICY}
    keeps = 1.0
    """What is left of earlier losses when a new one is added."""

    def __init__(self, skeleton: Skeleton, criterion: Criterion | None = None) -> None:
        super().__init__(skeleton, criterion)
        sk = self.skeleton
        n = sk.num_transitions
        uniform_rows = sk.over_transitions(1.0 / np.diff(sk.transition_ptr))
        self._memory = Record(
            np.zeros(sk.num_pairs, np.int64), np.zeros(n, np.int64), uniform_rows, np.zeros(n), uniform_policy(sk),
            np.empty(sk.num_states),
        )  # fmt: skip

    def _learn(self, world: Dynamics, block: Block) -> None:
        bad = respond(world, block, self._memory, self.keeps)
        if bad >= 0:
            raise InputError(f"loss at {self.skeleton.where_pair(bad)}", "no finite number", "finite numbers")


class FollowLeader(Responder):
    """Plays what would have been best so far."""


class ReplayLast(Responder):
    """Plays what would have been best last time."""

    keeps = 0.0


@compiled
def stay(world: Dynamics, block: Block, memory: Chosen) -> None:
    """All episodes of the block, with one policy."""
    for b in range(len(block.losses)):
        enter(world, block, b, memory.policy)


@compiled
def respond(world: Dynamics, block: Block, memory: Record, keeps: float) -> int:
    """All episodes of the block.  Returns -1, or a pair whose value is not finite."""
    for b in range(len(block.losses)):
        enter(world, block, b, memory.policy)
        tally(world.transition_ptr, memory.visits, memory.seen, memory.estimate, block.pairs[b], block.transitions[b])
        for i in range(len(memory.loss)):
            memory.loss[i] = keeps * memory.loss[i] + block.losses[b, i, 0]
        bad = improve(
            world.pair_ptr, world.transition_ptr, world.successor, memory.estimate, memory.loss, memory.policy,
            memory.values,
        )  # fmt: skip
        if bad >= 0:
            return int(bad)
    return -1
