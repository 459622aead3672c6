"""Baselines: simple learners to compare with.  They know the skeleton and have no guarantee.

Uniform         chooses actions uniformly at random.
FollowLeader    plays the best policy so far: the best response to l_1 + ... + l_t.
ReplayLast      plays the best policy of the last episode: the best response to l_t.

The last two see the whole loss.  They do not know P.  After every episode they respond in the estimate Pbar of all
visits so far, which is uniform over the possible successors of an unvisited pair.  With ``kinds``, a pair borrows from
the other pairs of its kind, whose pooled estimate counts as one visit:

    (n(x, a, x') + pooled) / (N(x, a) + 1),    pooled = the share of x' in all visits of pairs of that kind.

ReplayLast is hard to beat where losses persist, so include it in every comparison.  Both fail against losses that
alternate or react to the player.
"""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from advmdp.confidence import Kinds
from advmdp.core.arrays import FloatArray
from advmdp.criteria import Criterion
from advmdp.learners.base import Feedback
from advmdp.learners.compiled import CompiledLearner
from advmdp.learners.domains import ESTIMATE, LOSS, POLICY, SEEN, VISITS
from advmdp.learners.kernels.episode import Rule
from advmdp.learners.kernels.planners import Respond
from advmdp.model.policy import uniform_policy
from advmdp.model.skeleton import Skeleton

Ints = NDArray[np.int64]


class Chosen(NamedTuple):
    """A policy that never changes."""

    policy: FloatArray


class Record(NamedTuple):
    """The counts, Pbar, the loss to respond to, and the response."""

    visits: Ints
    seen: Ints
    estimate: FloatArray
    loss: FloatArray
    policy: FloatArray
    values: FloatArray  # scratch, over states
    pooled: FloatArray  # scratch: the pooled estimate, with kinds
    totals: FloatArray  # scratch: the visits of each slot of the kinds


class Uniform(CompiledLearner[Chosen]):
    """Choose actions uniformly at random, and learn nothing.

    Parameters
    ----------
    skeleton
        The world without its probabilities.
    criterion
        The criterion to account for; the total loss by default.
    feedback
        "full" or "bandit"; neither matters.

    Examples
    --------
    >>> import advmdp as am
    >>> am.Uniform(am.Skeleton.dense([1, 2, 1], actions=2)).policy
    array([0.5, 0.5, 0.5, 0.5, 0.5, 0.5])
    """

    sees = "full or bandit"

    def __init__(self, skeleton: Skeleton, criterion: Criterion | None = None, feedback: Feedback = "full") -> None:
        super().__init__(skeleton, criterion, feedback)
        self._memory = Chosen(uniform_policy(self.skeleton))
        self._rule = Rule(self._memory.policy)


class Responder(CompiledLearner[Record]):
    """Play the best response to past losses, in the estimated dynamics.

    Parameters
    ----------
    skeleton
        The world without its probabilities.
    criterion
        The total loss, the only criterion it supports.
    kinds
        Which pairs are alike: a label for each pair, or for each transition, as in :class:`advmdp.SelfTuning`.
    """

    kept: ClassVar = {"visits": VISITS, "seen": SEEN, "estimate": ESTIMATE, "loss": LOSS, "policy": POLICY}
    added: ClassVar = {"kinds": None}
    keeps = 1.0
    """The factor on the earlier losses when a new one is added."""

    def __init__(
        self, skeleton: Skeleton, criterion: Criterion | None = None, kinds: Sequence[int] | None = None
    ) -> None:
        super().__init__(skeleton, criterion)
        sk = self.skeleton
        n = sk.num_transitions
        alike = None if kinds is None else Kinds.of(sk, kinds)
        self.kinds = None if alike is None else list(alike.labels)
        uniform_rows = sk.over_transitions(1.0 / np.diff(sk.transition_ptr))
        self._memory = Record(
            np.zeros(sk.num_pairs, np.int64), np.zeros(n, np.int64), uniform_rows, np.zeros(n), uniform_policy(sk),
            np.empty(sk.num_states), np.empty(n if alike else 0), np.empty(len(alike.kind_of_slot) if alike else 0),
        )  # fmt: skip
        self._rule = Respond(self._memory, self.keeps, None if alike is None else alike.slot)


class FollowLeader(Responder):
    """Play the policy that would have been best so far.

    It knows the skeleton, sees the whole loss, and plans in the estimated world. It has no guarantee.

    Parameters
    ----------
    skeleton
        The world without its probabilities.
    criterion
        The total loss, the only criterion it supports.
    kinds
        A label for each pair, or for each transition. Pairs with the same label are assumed to behave alike until
        they have been tried.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> game = am.play(mdp, am.losses.Stochastic(mdp.skeleton), am.FollowLeader(mdp.skeleton), episodes=500)
    >>> game.regret < 20
    True
    """


class ReplayLast(Responder):
    """Play the policy that would have been best in the last episode.

    It knows the skeleton, sees the whole loss, and plans in the estimated world. It has no guarantee. It is hard to
    beat where losses persist, and fails where they alternate or react.

    Parameters
    ----------
    skeleton
        The world without its probabilities.
    criterion
        The total loss, the only criterion it supports.
    kinds
        A label for each pair, or for each transition. Pairs with the same label are assumed to behave alike until
        they have been tried.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> losses = am.losses.Switching(mdp.skeleton, period=250, noise=0.0)
    >>> am.play(mdp, losses, am.ReplayLast(mdp.skeleton), episodes=500).regret < 0
    True
    """

    keeps = 0.0
