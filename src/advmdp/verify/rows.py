"""What ``advmdp verify`` says of a statement: a row, and what a row about a regret needs.

a in R = b T^a      the slope of ln R on ln T by least squares, with its standard error s
surely above c      a - s t > c, t Student's quantile with two degrees of freedom less than points
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from advmdp.core.optional import optional
from advmdp.learners import bounds
from advmdp.model.skeleton import Skeleton

with optional:
    from scipy.special import stdtrit

T_ = TypeVar("T_")
SURE = 0.999
"""How sure one must be that a number is not what was claimed before the row fails."""


@dataclass(frozen=True)
class Row:
    """A statement, what was run for it, what was measured and what was claimed."""

    statement: str
    what: str
    measured: float
    relation: str
    """Between the measured and the claimed."""
    claimed: float
    holds: bool
    form: str = ",.0f"
    """How the two are written."""
    beside: str = ""
    """What else there is to say of the measured number."""
    basis: str = ""
    """And of the claimed one."""


class Shown(Protocol):
    """Goes through some items, and shows how far it has come."""

    def __call__(self, items: Sequence[T_], title: str, /) -> Iterable[T_]: ...


def hidden(items: Sequence[T_], title: str, /) -> Iterable[T_]:
    """Goes through the items and shows nothing."""
    return items


def bounded(sk: Skeleton, statement: str, what: str, measured: float, bound: float, T: int, beside: str) -> Row:
    """A regret and its bound, with the latter as a share of L T."""
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
    """What the fitted exponent is above, so much is sure."""
    return exponent - error * float(stdtrit(points - 2, SURE))
