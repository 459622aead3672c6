"""The result of a search: the best policy in hindsight, its cost, and a lower bound on the cost of any policy."""

from dataclasses import dataclass

from advmdp.core.arrays import FloatArray

NOTHING = 1e-9


@dataclass(frozen=True, eq=False)
class Comparator:
    """The best policy in hindsight of the first ``episodes`` episodes, which were drawn ``passes`` times to find it."""

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
        """(value - lower) / value: no policy pays less by a larger fraction.

        A value of less than 1e-9 an episode counts as that much, as it is rounding that decides there.
        """
        return relative_gap(self.value, self.lower, self.episodes)


def relative_gap(value: float, lower: float, episodes: int) -> float:
    """(value - lower) / value, where a value below NOTHING per episode counts as NOTHING."""
    return (value - lower) / max(abs(value), NOTHING * max(episodes, 1))
