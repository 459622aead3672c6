"""The rows that ``advmdp verify`` prints, one for each statement, and the statistics behind rows about regret.

a in R = b T^a          the slope of ln R on ln T by least squares, with its standard error s
significantly above c   a - s t > c, with t Student's quantile for n - 2 degrees of freedom, n the number of points
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.core.optional import optional
from advmdp.learners import bounds
from advmdp.model.skeleton import Skeleton

with optional:
    from scipy.special import betaincinv, stdtrit

T_ = TypeVar("T_")
DELTA = 0.05
"""The failure probability of the learners whose guarantees are checked."""
EXACT = 1e-8
"""What counts as zero."""
SURE = 0.999
"""The confidence with which a number must contradict the claim before the row fails."""


@dataclass(frozen=True)
class Row:
    """A statement, what was run to check it, what was measured and what was claimed."""

    statement: str
    what: str
    measured: float
    relation: str
    """The relation between the measured and the claimed number."""
    claimed: float
    holds: bool
    form: str = ",.0f"
    """The format of both numbers."""
    beside: str = ""
    """A note on the measured number."""
    basis: str = ""
    """A note on the claimed number."""


class Shown(Protocol):
    """Iterates over items and shows the progress."""

    def __call__(self, items: Sequence[T_], title: str, /) -> Iterable[T_]: ...


def hidden(items: Sequence[T_], title: str, /) -> Iterable[T_]:
    """Iterates over items without showing progress."""
    return items


def bounded(sk: Skeleton, statement: str, what: str, measured: float, bound: float, T: int, beside: str) -> Row:
    """A row for a regret and its bound, which is also given as a share of L T."""
    share = bound / bounds.trivial(sk, T)
    basis = f"{share:.2g} L T" if share < 1.0 else f"{share:.2g} L T, vacuous"
    return Row(statement, what, measured, "<=", bound, measured <= bound, ",.0f", beside, basis)


def fitted(horizon: Sequence[int], value: Sequence[float]) -> tuple[float, float]:
    """The slope of ln max(value, 1) on ln T by least squares, and its standard error."""
    x, y = np.log(horizon), np.log(np.maximum(value, 1.0))
    x = x - x.mean()
    slope = float(x @ y / (x @ x))
    rest = y - y.mean() - slope * x
    return slope, float(np.sqrt(rest @ rest / (len(x) - 2) / (x @ x)))


def least_exponent(exponent: float, error: float, points: int) -> float:
    """A lower confidence bound on the exponent."""
    return exponent - error * float(stdtrit(points - 2, SURE))


def nearly_zero(statement: str, what: str, measured: float, beside: str, basis: str, limit: float = EXACT) -> Row:
    """A row for a number that the statement says is zero."""
    return Row(statement, what, measured, "<=", limit, measured <= limit, ".1e", beside, basis)


def share_of_runs(statement: str, what: str, held: ArrayLike, claimed: float, basis: str, beside: str = "") -> Row:
    """A row for a probability that is claimed to be at least ``claimed``; fails if it is significantly smaller."""
    held = np.asarray(held)
    share, beside = float(held.mean()), f"{len(held):,} runs{beside}"
    return Row(statement, what, share, ">=", claimed, share_limit(held) >= claimed, ".1%", beside, basis)


def share_limit(held: NDArray[np.bool_]) -> float:
    """Upper confidence bound on the probability, given these outcomes (Clopper and Pearson)."""
    runs, k = len(held), int(held.sum())
    return 1.0 if k == runs else float(betaincinv(k + 1, runs - k, SURE))
