"""Rules of thumb that an engineer would write, to compare learners with.

Recent      best response to the mean of the last few losses: 1 replays the last episode, 7 averages a week
Smoothed    best response to exponentially smoothed losses, which keep 90% of the past
Told        best response to the last losses, with P known
Fixed       one policy forever: the fewest hops, or the same hours every day

The first two use the empirical P, pooled over ``kinds``, as the baselines do.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from advmdp.core.arrays import FloatArray, exact_floats, floats
from advmdp.criteria import Criterion
from advmdp.learners.base import Learner
from advmdp.learners.baselines import Responder
from advmdp.learners.domains import State
from advmdp.model.by_name import ByName, loss_vector
from advmdp.model.mdp import MDP, Trajectory
from advmdp.model.occupancy import best_response
from advmdp.model.policy import checked_policy, uniform_policy
from advmdp.model.skeleton import Skeleton
from advmdp.scenarios.base import MOST_STEPS, at_most


class Recent(Responder):
    """Plays the best response to the mean of the last losses.

    Parameters
    ----------
    skeleton
        The world without its probabilities.
    criterion
        The total loss, the only criterion that this rule supports.
    kinds
        Which pairs are alike, as in :class:`advmdp.ReplayLast`.
    episodes
        The number of losses to average: 7 for a week of days.
    """

    keeps = 1.0

    def __init__(
        self,
        skeleton: Skeleton,
        criterion: Criterion | None = None,
        kinds: Sequence[int] | None = None,
        episodes: int = 7,
    ) -> None:
        super().__init__(skeleton, criterion, kinds)
        self.episodes = at_most("episodes", episodes, 1, MOST_STEPS)
        self._recent = np.zeros((self.episodes - 1, self.skeleton.num_transitions))

    @property
    def compiled(self) -> bool:
        return False

    def update(self, trajectory: Trajectory, loss: ByName) -> None:
        given = exact_floats(loss_vector(self.skeleton, loss), "loss", (self.skeleton.num_transitions,))
        self._memory.loss[:] = self._recent.sum(axis=0)
        super().update(trajectory, given)
        if self.episodes > 1:
            self._recent[(self.episode - 1) % (self.episodes - 1)] = given

    def state(self) -> State:
        return {**super().state(), "recent": self._recent.copy()}

    def restore(self, state: State) -> None:
        recent = exact_floats(state["recent"], "recent", self._recent.shape)
        super().restore({name: array for name, array in state.items() if name != "recent"})
        self._recent[...] = recent


class Smoothed(Responder):
    """Plays the best response to exponentially smoothed losses."""

    keeps = 0.9


class Told(Learner):
    """Plays the best response to the last losses, with P known."""

    knows = "dynamics"
    optimises = "any"

    def __init__(self, mdp: MDP, criterion: Criterion | None = None) -> None:
        super().__init__(mdp, criterion)
        self._policy = uniform_policy(mdp.skeleton)

    @property
    def policy(self) -> FloatArray:
        return self._policy

    def update(self, trajectory: Trajectory, loss: ByName) -> None:
        assert self.mdp is not None
        given = loss_vector(self.skeleton, loss)
        self._policy, _ = best_response(self.mdp, given if given.ndim == 1 else given.mean(axis=1))
        self.episode += 1

    @property
    def parameters(self) -> dict[str, Any]:
        return {}

    def state(self) -> State:
        return {"policy": self._policy.copy()}

    def restore(self, state: State) -> None:
        self._policy = floats(state["policy"], "policy").copy()


class Fixed(Learner):
    """Plays one policy forever."""

    sees = "full or bandit"
    optimises = "any"

    def __init__(self, skeleton: Skeleton, policy: ByName, criterion: Criterion | None = None) -> None:
        super().__init__(skeleton, criterion)
        self._policy = checked_policy(self.skeleton, policy)

    @property
    def policy(self) -> FloatArray:
        return self._policy

    def update(self, trajectory: Trajectory, loss: ByName) -> None:
        self.episode += 1

    @property
    def parameters(self) -> dict[str, Any]:
        return {"policy": self._policy.tolist()}

    def state(self) -> State:
        return {}

    def restore(self, state: State) -> None:
        pass


def chosen_policy(skeleton: Skeleton, choose: Callable[[str, list[str]], str]) -> FloatArray:
    """The deterministic policy with action ``choose(state name, action names)`` in each state."""
    names, actions = skeleton.state_names or (), skeleton.action_names or ()
    policy = np.zeros(skeleton.num_pairs)
    for x in range(skeleton.num_states - 1):
        first, last = skeleton.pair_ptr[x], skeleton.pair_ptr[x + 1]
        known = list(actions[first:last])
        policy[first + known.index(choose(names[x], known))] = 1.0
    return policy
