"""The result of a search: the best policy in hindsight, its cost, and a lower bound on the cost of any policy."""

from dataclasses import dataclass

from advmdp.core.arrays import FloatArray

NOTHING = 1e-9


@dataclass(frozen=True, eq=False)
class Comparator:
    """The best fixed policy in hindsight, with a lower bound on what any fixed policy pays.

    Attributes
    ----------
    policy
        The policy.
    q
        Its occupancy measure.
    value
        What it pays in all episodes.
    lower
        No fixed policy pays less than this.
    episodes
        The number of episodes.
    passes
        How often the losses were read to find it.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> losses = am.losses.Stochastic(mdp.skeleton, seed=1)
    >>> am.comparator(mdp, losses, am.TotalLoss(), episodes=100).gap
    0.0
    """

    policy: FloatArray
    q: FloatArray
    value: float
    """G_T(q): what the policy pays."""
    lower: float
    """What any policy pays at the least."""
    episodes: int
    passes: int

    @property
    def gap(self) -> float:
        """(value - lower) / value: no fixed policy pays less by a larger fraction.

        A value below 1e-9 for each episode counts as that much, since rounding decides there.
        """
        return relative_gap(self.value, self.lower, self.episodes)


def relative_gap(value: float, lower: float, episodes: int) -> float:
    """(value - lower) / value, where a value below NOTHING per episode counts as NOTHING."""
    return (value - lower) / max(abs(value), NOTHING * max(episodes, 1))
