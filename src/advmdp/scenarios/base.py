"""The class Scenario, and the losses that scenarios share: quantities times unit costs.

Each transition i moves quantities, such as energy bought or units wasted.  Each episode t has unit costs c_t, such as
hourly prices; with d zones, each item has d unit costs.  The loss in zone j is

    l_t[i, j] = base + sum_k quantity[i, k] * c_t[item[i, k], j].

Units are chosen once, for all transitions and episodes, so that losses lie in [0, 1].  With L steps in an episode,

    money = scale * (loss of the episode) + offset,        offset = -scale * base * L.

Losses therefore rank policies as money does, both for the total and for the worst of several zones.
Sums run term by term, so an episode has the same bytes whether it is computed alone or in a block.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.core.arrays import LARGEST, FloatArray, floats, frozen, real, whole
from advmdp.core.errors import InputError
from advmdp.core.wording import plural
from advmdp.criteria import Criterion
from advmdp.learners.self_tuning import SelfTuning
from advmdp.losses import Losses, Policies, Units
from advmdp.model.mdp import MDP
from advmdp.model.skeleton import Skeleton
from advmdp.model.tables import TOLERANCE

LONGEST = 2**53
MOST_STEPS = 10_000
"""The most steps in an episode, and the limit of other small counts: a typo should not run for hours."""

UnitCosts = Callable[[int, int], FloatArray]
"""(first, stop) -> the unit costs of these episodes, (stop - first, items, d); a pure function."""


@dataclass(frozen=True, eq=False, repr=False)
class Scenario:
    """A problem from practice: a world, its losses, and the money that a loss is worth.

    :func:`scenarios.make_scenario` makes the scenarios of this library.

    Attributes
    ----------
    name
        The name of the scenario.
    mdp
        The world.
    losses_from
        A function that makes the losses from a seed; recorded losses are the same for every seed.
    criterion
        The criterion that fits the losses: the total loss, or the worst case of several zones.
    scale
        The money that one unit of loss is worth.
    offset
        The money to add for each episode.
    episodes
        The number of episodes, if the losses are recorded.
    unit
        The unit that ``scale`` and ``offset`` convert to.
    kinds
        A label for each transition; rows with the same labels behave alike. None if no rows do.

    Examples
    --------
    >>> import advmdp as am
    >>> battery = am.scenarios.make_scenario("battery", hours=6)
    >>> battery.mdp
    MDP(7 steps, layers 1-3-5-5-5-5-5-1, 30 states, 1 to 3 actions, 69 pairs, 109 transitions)
    """

    name: str
    mdp: MDP
    losses_from: Callable[[int], Losses]
    criterion: Criterion
    scale: float
    offset: float
    episodes: int | None = None
    unit: str = "money"
    kinds: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        made, units = self.losses_from, self.units

        def with_units(seed: int) -> Losses:
            losses = made(seed)
            losses.units = units
            return losses

        object.__setattr__(self, "losses_from", with_units)

    @property
    def units(self) -> Units:
        """The units of the losses, under the criterion of this scenario."""
        return Units(self.unit, float(self.scale), float(self.offset))

    def __repr__(self) -> str:
        recorded = "" if self.episodes is None else f", {plural(self.episodes, 'recorded episode')}"
        return f"{type(self).__name__}({self.name}, {self.mdp!r}, costs in {self.unit}{recorded})"

    def learner(self, **parameters: Any) -> SelfTuning:
        """Make a SelfTuning learner with the skeleton, the criterion and the kinds of this scenario.

        Parameters
        ----------
        **parameters
            Parameters of :class:`advmdp.SelfTuning`. They override those of the scenario.

        Returns
        -------
        SelfTuning
            A new learner.

        Examples
        --------
        >>> import advmdp as am
        >>> battery = am.scenarios.make_scenario("battery", hours=6)
        >>> game = am.play(battery.mdp, battery.losses_from(1), battery.learner(), episodes=50, seed=1)
        >>> battery.money(game.total_loss, 50) < battery.money(50 * game.mdp.skeleton.num_steps, 50)
        True
        """
        chosen: dict[str, Any] = {"criterion": self.criterion}
        if not parameters.get("guarantee", False):  # pooled rows have no valid confidence sets
            chosen["kinds"] = self.kinds
        return SelfTuning(self.mdp.skeleton, **(chosen | parameters))

    def money(self, loss: float, episodes: int = 1) -> float:
        """Convert a loss to money. A regret is worth ``scale`` times itself.

        Parameters
        ----------
        loss
            A loss, summed over episodes.
        episodes
            The number of episodes.

        Returns
        -------
        float
            The money.
        """
        return self.units.cost(loss, episodes)


class Accounted(Losses):
    """Losses that are quantities times unit costs; see the module docstring."""

    def __init__(
        self,
        skeleton: Skeleton,
        items: NDArray[np.int64],
        quantities: FloatArray,
        costs: UnitCosts,
        dimensions: int | None = None,
        base: float = 0.0,
        episodes: int | None = None,
    ) -> None:
        """``items`` and ``quantities`` are (num_transitions, K)."""
        super().__init__(skeleton, dimensions)
        self.episodes = episodes
        self.base = base
        self._terms = [(frozen(items[:, k]), frozen(quantities[:, k])) for k in range(items.shape[1])]
        self._costs = costs

    def _block(self, first: int, stop: int, policies: Policies | None) -> FloatArray:
        return self._accounted(self._costs(first, stop))

    def _accounted(self, costs: FloatArray) -> FloatArray:
        """The losses of episodes with these unit costs."""
        losses = np.full((len(costs), self.skeleton.num_transitions, self.dimensions or 1), self.base)
        for item, quantity in self._terms:
            losses += costs[:, item] * quantity[:, None]
        # Rounding may leave [0, 1] by an ulp if a cost is at its limit.
        return np.clip(losses, 0.0, 1.0, out=losses)


def labels(outcomes: Iterable[Hashable]) -> tuple[int, ...]:
    """Number the distinct outcomes, so that equal outcomes of similar rows get the same label."""
    numbers: dict[Hashable, int] = {}
    return tuple(numbers.setdefault(outcome, len(numbers)) for outcome in outcomes)


def recorded(costs: FloatArray) -> UnitCosts:
    """The unit costs of a recording (episodes, items, d)."""
    kept = frozen(costs)
    return lambda first, stop: kept[first:stop]


def cycled(costs: FloatArray) -> UnitCosts:
    """The unit costs of a recording that repeats from its start."""
    kept = frozen(costs)
    return lambda first, stop: kept[(first % len(kept) + np.arange(stop - first)) % len(kept)]


def checked_distribution(name: str, values: ArrayLike | Sequence[float]) -> list[float]:
    """Check a distribution over 0, 1, 2, ..."""
    row = floats(values, name)
    inside = row.ndim == 1 and len(row) and ((row >= 0.0) & (row <= 1.0 + TOLERANCE)).all()
    if not inside or not abs(row.sum() - 1.0) <= TOLERANCE:
        raise InputError(name, f"{values!r}", "probabilities of 0, 1, 2, ... that sum to one")
    return [float(p) for p in row / row.sum()]


def positive(name: str, value: float) -> float:
    """Check a number above 0."""
    if not 0.0 < real(value) <= LARGEST:
        raise InputError(name, f"{value!r}", f"a number above 0, at most {LARGEST:g}")
    return float(value)


def span(name: str, value: int) -> int:
    """Check a number of episodes: 1 or more, and small enough to be exact as a float."""
    return at_most(name, value, 1, LONGEST)


def at_most(name: str, value: int, least: int, most: int) -> int:
    """Check a whole number from ``least`` to ``most``."""
    if (number := whole(name, value, least)) > most:
        raise InputError(name, f"{value!r}", f"a whole number, {least} to {most}")
    return number
