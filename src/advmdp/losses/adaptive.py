"""Losses that react to the learner: the adversary that punishes what the learner prefers, and its compiled step."""

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray, fraction, owned, whole
from advmdp.core.compiling import compiled
from advmdp.core.errors import InputError
from advmdp.core.streams import WORDS, counts_of, philox, place
from advmdp.losses.base import Policies, Reaction
from advmdp.losses.generated import Noisy, noisy
from advmdp.model.policy import checked_policy, uniform_policy
from advmdp.model.skeleton import Skeleton


class Adaptive(Noisy):
    """Punishes what the learner prefers: the more likely it was to take an action, the more that action costs now.

    With p_t(x, a) the mean of the last ``memory`` policies before t (uniform before the first episode), the mean is

        m_t(x, a) = (1 - strength) * base(x, a) + strength * p_t(x, a),        base drawn uniformly for each pair.

    It never sees the policy of the episode itself.  ``at`` and ``block`` read the policies from what they are handed:
    ``policies[s]`` is the policy played in episode s, for the last ``memory`` before each episode asked for.
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
                raise InputError("policies", "none", f"those of episodes {past.start} to {t - 1}, by episode")
            try:
                policy = policies[s]
            except (LookupError, TypeError):
                raise InputError("policies", f"nothing for episode {s}", "the policy played in it") from None
            total += checked_policy(self.skeleton, policy)
        return total / len(past)


@compiled
def react(reaction: Reaction, b: int, policy: FloatArray, transition_ptr: NDArray[np.int64]) -> None:
    """Write the loss of episode b of the block, as :class:`Adaptive` does, and then take down its policy."""
    past = min(reaction.memory, reaction.played + b)
    losses, base = reaction.losses[b], reaction.base
    width = base.size
    counts = counts_of(width)
    words = philox(reaction.key, reaction.start, b * counts)
    for p in range(len(policy)):
        preferred = _preference(reaction, b, past, p)
        for i in range(transition_ptr[p], transition_ptr[p + 1]):
            for j in range(base.shape[1]):
                k = i * base.shape[1] + j
                if k % WORDS == 0:
                    words = philox(reaction.key, reaction.start, b * counts + k // WORDS)
                mean = (1.0 - reaction.strength) * base[i, j] + reaction.strength * preferred
                losses[i, j] = noisy(mean, reaction.noise, words[k % WORDS]) if reaction.noise > 0.0 else mean
    reaction.policies[b] = policy


@compiled
def _preference(reaction: Reaction, b: int, past: int, p: int) -> float:
    """p_t(x, a): the mean of the last ``past`` policies, or the uniform one if there are none."""
    if past == 0:
        return float(reaction.before[0, p])
    total = 0.0
    for s in range(b - past, b):
        total += reaction.policies[s, p] if s >= 0 else reaction.before[len(reaction.before) + s, p]
    return total / past
