"""Losses that react to the learner: actions that it preferred lately cost more."""

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray, fraction, owned, whole
from advmdp.core.errors import InputError
from advmdp.core.streams import place
from advmdp.losses.base import Policies
from advmdp.losses.generated import Noisy
from advmdp.losses.kernels.reaction import Reaction
from advmdp.model.policy import checked_policy, uniform_policy
from advmdp.model.skeleton import Skeleton


class Adaptive(Noisy):
    """Losses that react: the more likely the learner was to take an action, the more it costs.

    With p_t(x, a) the mean of the last ``memory`` policies before episode t, the mean loss of a pair is (1 -
    strength) base(x, a) + strength p_t(x, a). The base is uniform for each pair. The policy of the episode itself is
    never used.

    Parameters
    ----------
    skeleton
        The skeleton.
    seed
        Fixes the base and the noise.
    strength
        How strongly it reacts, from 0 to 1.
    memory
        How many of the last policies count.
    noise
        The size of the noise, from 0 to 1.
    dimensions
        The number d of losses at once; one by default.

    Examples
    --------
    >>> import advmdp as am
    >>> losses = am.losses.Adaptive(am.Skeleton.dense([1, 1], actions=2), strength=1.0, noise=0.0)
    >>> losses.at(1, policies=[[0.9, 0.1]])
    array([0.9, 0.1])
    """

    def __init__(
        self,
        skeleton: Skeleton,
        seed: int = 0,
        strength: float = 0.5,
        memory: int = 1,
        noise: float = 0.5,
        dimensions: int | None = None,
    ) -> None:
        super().__init__(skeleton, dimensions, noise, seed)
        self.strength = fraction("strength", strength)
        self.memory = whole("memory", memory, 1)
        self.base = owned(self._drawn_means("base"))

    def _means(self, first: int, stop: int, policies: Policies | None) -> tuple[FloatArray, NDArray[np.int64]]:
        means = np.empty((stop - first, *self.shape))
        for row, t in enumerate(range(first, stop)):
            preferred = self.skeleton.over_transitions(self._preferred(t, policies))
            means[row] = ((1.0 - self.strength) * self.base.T + self.strength * preferred).T
        return means, np.arange(stop - first)

    def reaction(self, first: int, stop: int, policies: Policies) -> Reaction:
        sk, d = self.skeleton, self.dimensions or 1
        before = [checked_policy(sk, policies[s]) for s in range(max(0, first - self.memory), first)]
        return Reaction(
            self.base.reshape(-1, d), self.strength, self.noise, self._noise_key, place(first, sk.num_transitions * d),
            np.array(before or [uniform_policy(sk)]), len(before), self.memory,
            np.empty((stop - first, sk.num_pairs)), np.empty((stop - first, sk.num_transitions, d)),
        )  # fmt: skip

    def _preferred(self, t: int, policies: Policies | None) -> FloatArray:
        """p_t: the mean of the last policies before t."""
        past = range(max(0, t - self.memory), t)
        if not past:
            return uniform_policy(self.skeleton)
        total = np.zeros(self.skeleton.num_pairs)
        for s in past:
            if policies is None:
                raise InputError("policies", "none", f"the policies of episodes {past.start} to {t - 1}, by episode")
            try:
                policy = policies[s]
            except (LookupError, TypeError):
                raise InputError("policies", f"nothing for episode {s}", "the policy of that episode") from None
            total += checked_policy(self.skeleton, policy)
        return total / len(past)
