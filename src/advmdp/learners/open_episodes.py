"""Open episodes, whose loss has not arrived: what a learner stores of each, and a bound on the cost of delays.

Let o_k be the number of other episodes open when the k-th loss arrives.  D = sum_k o_k is the total delay: an episode
whose loss is d losses late is counted d times.  The step falls as D grows, and docs/feedback.md proves that

    R^ON  <=  2 F L sqrt((T + 2 D) e)  +  F L ((ln n + sqrt 2) G + E),        e as in Theorem 5.3, for which D = 0,

where G = sum_k o_k (1 - eta_{k+1} / eta_k), and E sums, over the changes of the confidence set, the open episodes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advmdp.confidence import RowSet
from advmdp.core.arrays import MOST, FloatArray, check_like
from advmdp.core.errors import InputError
from advmdp.learners.domains import STATUS, Domain, State, check_state
from advmdp.model.skeleton import Skeleton

NUMBERS, OF, SUMS = "open_episodes", "open_of", "delays"
"""The names of arrays in a state: the open episodes, the row of each in the stored arrays, and the sums of delays."""
SET = ("set_first", "set_second")
"""The two arrays of a confidence set: centre and radii, or lower and upper bounds."""


@dataclass(eq=False)
class Played:
    """What a learner stores of an open episode: arrays of its memory, and the set if z_t depends on it."""

    arrays: State
    row_set: RowSet | None = None

    def equals(self, other: "Played") -> bool:
        mine, its = self.rows(), other.rows()
        return all(mine[name] is its[name] or np.array_equal(mine[name], its[name]) for name in mine)

    def rows(self) -> State:
        """The arrays to save."""
        if self.row_set is None:
            return self.arrays
        return self.arrays | dict(zip(SET, vars(self.row_set).values(), strict=True))


class Delays(NamedTuple):
    """The accumulated delay of late losses, and how far it has lowered the step."""

    total: float
    """D: the number of other open episodes, summed over the losses that arrived."""
    falls: float
    """G: the same sum, each term times the fraction by which the step fell."""
    step: float
    """The step divided by the first step; 1 without delay. It never rises. Anytime steps use D instead."""
    changes: float
    """E: the number of open episodes when an epoch began, summed over epochs."""


@dataclass
class OpenEpisodes:
    """The open episodes of a learner, by number; those opened with no loss in between share their memory."""

    open: dict[int, Played] = field(default_factory=dict)
    dropped: int = 0
    behind: int = 0
    """The largest number of begun but uncounted episodes when another episode began."""
    stale: bool = False
    """Whether a new set applies from the next episode or the next loss on."""
    spent: bool = False
    """Whether the current policy is only for the episode that has begun, so another episode needs a new one."""
    used: bool = False
    """Whether the learner has been used in any way but by whole episodes in order."""
    sums: FloatArray = field(default_factory=lambda: np.array([0.0, 0.0, 1.0, 0.0]))
    """D, G, the step divided by the first step, and E."""

    def __len__(self) -> int:
        return len(self.open)

    def __iter__(self) -> Iterator[int]:
        return iter(self.open)

    def add(self, number: int, arrays: State, row_set: RowSet | None) -> None:
        """Open an episode and store copies of its arrays, once for consecutive episodes with equal arrays."""
        last = next(reversed(self.open.values()), None)
        played = Played(arrays, row_set)
        if last is None or not last.equals(played):
            last = Played({name: array.copy() for name, array in arrays.items()}, row_set)
        self.open[number], self.used = last, True

    @property
    def in_order(self) -> bool:
        """Whether every loss arrived before the next episode began."""
        return not (self.open or self.dropped or self.behind or self.sums[0] or self.sums[3])

    def cost(self, sk: Skeleton, T: int, F: float, entropy: float, width: int) -> float:
        """What delays add to the bound 2 F L sqrt(T e); ``entropy`` is e, ``width`` is n of the module's docstring.

        An episode whose loss has not arrived may cost F L more than any other policy. The bound assumes that each path
        is counted before the next episode begins.
        """
        D, G, _, E = self.sums.tolist()
        grown = 2.0 * sqrt(entropy) * (sqrt(T + 2.0 * D) - sqrt(T))
        unknown = len(self) + self.dropped
        return F * sk.num_steps * (grown + (log(width) + sqrt(2.0)) * G + E + unknown) if not self.behind else inf

    def find(self, number: int) -> Played:
        """What is stored of an open episode."""
        try:
            return self.open[number]
        except (KeyError, TypeError):
            which = ", ".join(map(str, list(self.open)[:10])) + (", ..." if len(self) > 10 else "")
            raise InputError("episode", f"{number!r}", f"an open episode: {which or 'there is none'}") from None

    def state(self) -> State:
        """As arrays; none if losses never arrived late."""
        if not self.used:
            return {}
        rows = list({id(played): played for played in self.open.values()}.values())
        places = {id(played): place for place, played in enumerate(rows)}
        arrays: State = {
            NUMBERS: np.array(list(self.open), np.int64),
            OF: np.array([places[id(played)] for played in self.open.values()], np.int64),
            SUMS: self.sums.copy(),
            STATUS: np.array([self.dropped, self.behind, self.stale, self.spent], np.int64),
        }
        for name in rows[0].rows() if rows else ():
            arrays[f"open_{name}"] = np.array([played.rows()[name] for played in rows])
        return arrays

    def restore(
        self,
        owner: str,
        sk: Skeleton,
        state: State,
        like: State,
        domains: Mapping[str, Domain],
        sets: type[RowSet] | None,
    ) -> None:
        """Check and take over a result of :meth:`state`; ``sets`` is the class of the stored sets, if any."""
        fresh = OpenEpisodes()
        if SUMS in state:
            numbers, of = _checked(owner, fresh, state)
            rows = [_row(owner, sk, state, place, like, domains, sets) for place in range(int(of.max(initial=-1)) + 1)]
            fresh.open = {int(number): rows[place] for number, place in zip(numbers, of, strict=True)}
        self.sums[:] = fresh.sums  # in place: a kernel adds to them
        self.open, self.dropped, self.stale = fresh.open, fresh.dropped, fresh.stale
        self.used, self.behind, self.spent = fresh.used, fresh.behind, fresh.spent


def _checked(owner: str, fresh: OpenEpisodes, state: State) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Check the state and copy it into ``fresh``, except the rows; return the episodes' numbers and rows."""
    like = {SUMS: fresh.sums, STATUS: np.zeros(4, np.int64)}
    for name, array in like.items():
        check_like(array, state[name], f"state of {owner}, {name}")
    sums, (dropped, behind, stale, spent) = state[SUMS], state[STATUS].tolist()
    if not ((sums >= 0.0).all() and (sums <= MOST).all() and 0.0 < sums[2] <= 1.0):
        raise InputError(f"state of {owner}, {SUMS}", f"{sums}", "four sums of delays, the third above 0 and at most 1")
    if not (0 <= dropped <= MOST and 0 <= behind <= MOST and stale in (0, 1) and spent in (0, 1)):
        raise InputError(f"state of {owner}, {STATUS}", f"{state[STATUS]}", "two counts and two flags, 0 or 1")
    numbers, of = state[NUMBERS], state[OF]
    fits = numbers.dtype == of.dtype == np.int64 and numbers.ndim == 1 and numbers.shape == of.shape
    rising = fits and (numbers[:1] >= 0).all() and (np.diff(numbers) > 0).all()
    if not rising or not np.array_equal(np.unique(of), np.arange(of.max(initial=-1) + 1)):
        raise InputError(f"state of {owner}, {NUMBERS}", f"{numbers} in rows {of}", "rising numbers, each with its row")
    fresh.sums[:] = sums
    fresh.dropped, fresh.behind, fresh.stale, fresh.spent, fresh.used = dropped, behind, bool(stale), bool(spent), True
    return numbers, of  # type: ignore[return-value]


def _row(
    owner: str,
    sk: Skeleton,
    state: State,
    place: int,
    like: State,
    domains: Mapping[str, Domain],
    sets: type[RowSet] | None,
) -> Played:
    """What is stored in a row."""
    try:
        arrays = {name: state[f"open_{name}"][place].copy() for name in like}
        second = {name: state[f"open_{name}"][place] for name in (SET if sets is not None else ())}
    except (KeyError, IndexError) as error:
        raise InputError(f"state of {owner}", f"no row for an open episode ({error})", "its row") from None
    check_state(f"{owner}, an open episode", sk, domains, like, arrays)
    if sets is None:
        return Played(arrays)
    made = sets(*second.values())
    made.bounds(sk)  # raises if the set is invalid
    return Played(arrays, made)
