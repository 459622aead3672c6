"""The base class of criteria, the criteria of the paper's examples, and their sums, as tables of terms."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from reprlib import recursive_repr
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from advmdp.core.arrays import FloatArray, exact_floats, expect, fraction, frozen
from advmdp.core.errors import InputError
from advmdp.criteria.kernels.terms import evaluate as evaluate_terms
from advmdp.model.by_name import loss_vector
from advmdp.model.skeleton import Skeleton

KINDS = ("total", "worst", "risk", "risk_lemma")
"""The names of the kinds of terms in descriptions; the number of a kind is its index here."""
TOTAL, WORST, RISK, RISK_LEMMA = range(4)


class Criterion(ABC):
    """What a learner makes small: a function f(q; loss) that is convex in the occupancy measure q.

    Sums and non-negative multiples of criteria are criteria. To write your own, use :class:`Composite`,
    :class:`FunctionCriterion` or :class:`CvxpyCriterion`, or subclass this class and define :meth:`value`,
    :meth:`subgradient` and :meth:`lipschitz`. :func:`advmdp.testing.check_criterion` checks the result.

    A loss has shape (n,), or (n, d) for d losses at once, where n is the number of transitions.

    Examples
    --------
    >>> import advmdp as am
    >>> 0.7 * am.TotalLoss() + 0.3 * am.Risk(alpha=1.0, c=2.0)
    0.7 * TotalLoss() + 0.3 * Risk(alpha=1.0, c=2.0, reading='definition')
    """

    __array_ufunc__ = None  # makes NumPy defer to our __rmul__ in np.float64(0.7) * criterion

    @abstractmethod
    def value(self, sk: Skeleton, q: ArrayLike, loss: ArrayLike) -> float:
        """Compute f(q; loss).

        Parameters
        ----------
        sk
            The skeleton.
        q
            An occupancy measure, over transitions.
        loss
            A loss over transitions.

        Returns
        -------
        float
            The value.
        """

    @abstractmethod
    def subgradient(self, sk: Skeleton, q: ArrayLike, loss: ArrayLike) -> FloatArray:
        """Compute a subgradient of f(.; loss) at q.

        Parameters
        ----------
        sk
            The skeleton.
        q
            An occupancy measure, over transitions.
        loss
            A loss over transitions.

        Returns
        -------
        numpy.ndarray
            z of shape (n,) with f(q'; loss) >= f(q; loss) + <z, q' - q> for every q'.
        """

    @property
    def takes_several(self) -> bool:
        """Whether a loss may be several at once, (n, d). Of the built-in criteria, only WorstCase accepts that."""
        return self.terms is None or bool((self.terms[:, 0] == WORST).all())

    @abstractmethod
    def lipschitz(self, sk: Skeleton) -> float:
        """Bound the entries of all subgradients, in absolute value: F in the paper.

        Parameters
        ----------
        sk
            The skeleton.

        Returns
        -------
        float
            A bound that holds for all occupancy measures and all losses in [0, 1].
        """

    @property
    def terms(self) -> FloatArray | None:
        """Rows (kind, weight, alpha, c) that the kernels evaluate; None for a criterion written in Python."""
        return None

    @recursive_repr()  # an attribute may refer back to the criterion
    def __repr__(self) -> str:
        """The class and its public attributes; subclasses may override it."""
        derived = {name for name in vars(self) if isinstance(getattr(type(self), name, None), cached_property)}
        told = {k: v for k, v in vars(self).items() if not k.startswith("_") and k not in derived}
        return f"{type(self).__name__}({', '.join(f'{name}={_told(value)}' for name, value in told.items())})"

    @property
    def shown(self) -> str:
        """The text that identifies it in files: its repr without memory addresses."""
        return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(self))

    def probe(self, sk: Skeleton, dimensions: tuple[int, ...] = (1, 2)) -> str:
        """Hash its value and subgradient at one point, to recognise a criterion made of functions.

        Parameters
        ----------
        sk
            The skeleton.
        dimensions
            Numbers of losses at once to try, until one is accepted.

        Returns
        -------
        str
            The hash; empty if no number is accepted.
        """
        for d in dimensions:
            with suppress(Exception):  # its functions may raise anything on an input they do not accept
                return sha256(self.probed(sk, d)).hexdigest()
        return ""

    def probed(self, sk: Skeleton, dimensions: int) -> bytes:
        """Compute the numbers that :meth:`probe` hashes.

        Parameters
        ----------
        sk
            The skeleton.
        dimensions
            The number of losses at once.

        Returns
        -------
        bytes
            Its subgradient and value at one point.
        """
        widths = np.diff(sk.layer_transition_ptr)
        q, loss = np.repeat(1.0 / widths, widths), np.linspace(0.1, 0.9, dimensions * sk.num_transitions)
        loss = loss if dimensions == 1 else loss.reshape(sk.num_transitions, dimensions)
        return np.append(self.subgradient(sk, q, loss), self.value(sk, q, loss)).tobytes()

    def description(self) -> dict[str, list[list[str | float]]] | None:
        """Describe it as plain data for a file; :func:`criterion_from` reads that.

        Returns
        -------
        dict or None
            None for a criterion written in Python.
        """
        if self.terms is None:
            return None
        return {"terms": [[KINDS[int(kind)], *numbers] for kind, *numbers in self.terms.tolist()]}

    def __add__(self, other: object) -> "Criterion":
        if not isinstance(other, Criterion):
            return NotImplemented
        return _combined(_parts(self) + _parts(other))

    def __radd__(self, other: object) -> "Criterion":
        return self if isinstance(other, int) and other == 0 else NotImplemented  # sum([...]) starts from 0

    def __mul__(self, weight: float) -> "Criterion":
        if not isinstance(weight, int | float | np.number):
            return NotImplemented
        where = f"the weight of {self!r}"
        factor = weight_of(weight, where)
        return _combined(tuple((weight_of(factor * inner, where), part) for inner, part in _parts(self)))

    __rmul__ = __mul__


class Tabled(Criterion):
    """A criterion of the paper's examples, which consists of a single term."""

    _overridden: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        """Note whether a subclass has a value or a subgradient of its own."""
        super().__init_subclass__()
        cls._overridden = cls._overridden or not {"value", "subgradient"}.isdisjoint(vars(cls))

    @property
    @abstractmethod
    def _term(self) -> tuple[int, float, float]:
        """(kind, alpha, c)."""

    @cached_property
    def _table(self) -> FloatArray:
        return table_of(self)

    @property
    def terms(self) -> FloatArray | None:
        """The term; None if a subclass overrides it in Python, which kernels would not see."""
        return None if self._overridden else self._table

    def value(self, sk: Skeleton, q: ArrayLike, loss: ArrayLike) -> float:
        return _evaluated(self, self._table, sk, q, loss)[0]

    def subgradient(self, sk: Skeleton, q: ArrayLike, loss: ArrayLike) -> FloatArray:
        return _evaluated(self, self._table, sk, q, loss)[1]

    def lipschitz(self, sk: Skeleton) -> float:
        expect(Skeleton, sk, "skeleton")
        kind, alpha, c = self._term
        with np.errstate(over="ignore"):
            of_total = alpha * c * np.float64(sk.num_steps) ** (c - 1.0)
        bound = of_total + (1.0 - alpha) * (1.0 if kind == RISK_LEMMA else c)
        if not np.isfinite(bound):
            raise InputError(f"{self!r}", f"c L^(c-1) overflows at L = {sk.num_steps}", "a smaller c")
        return float(bound)


def table_of(criterion: Tabled) -> FloatArray:
    """The only row of its table."""
    kind, alpha, c = criterion._term
    return frozen(np.array([[kind, 1.0, alpha, c]]))


@dataclass(frozen=True)
class TotalLoss(Tabled):
    """The total expected loss.

    f(q; loss) = <q, loss>: Example 2.1 of the paper, TEL. It takes one loss at a time.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.from_steps([("home", "bus", "work", 1.0), ("home", "walk", "work", 1.0)])
    >>> am.TotalLoss().value(mdp.skeleton, [0.5, 0.5], [0.2, 0.4])
    0.30000000000000004
    """

    @property
    def _term(self) -> tuple[int, float, float]:
        return TOTAL, 1.0, 1.0


@dataclass(frozen=True)
class WorstCase(Tabled):
    """The largest of several losses.

    f(q; loss) = max_i <q, loss[:, i]>: Example 2.2 of the paper, the min-max criterion. The subgradient is the first
    worst loss.

    Examples
    --------
    >>> import numpy as np
    >>> import advmdp as am
    >>> sk = am.Skeleton.dense([1, 1], actions=2)
    >>> am.WorstCase().value(sk, [0.5, 0.5], np.array([[1.0, 0.0], [0.5, 0.0]]))
    0.75
    """

    @property
    def _term(self) -> tuple[int, float, float]:
        return WORST, 1.0, 1.0


@dataclass(frozen=True)
class Risk(Tabled):
    """The total loss and its spread over steps.

    f(q; loss) = alpha (sum_k v_k)^c + (1 - alpha) sum_k v_k^c, where v_k is the expected loss of step k: Example 2.3
    of the paper.

    Parameters
    ----------
    alpha
        The weight of the total loss, from 0 to 1.
    c
        The power, above 1.
    reading
        "definition" is the formula above. "lemma" is what Lemma 3.2 of the paper makes of it,
        alpha <q, loss>^c + (1 - alpha) <q, loss^c>. It is never smaller and also punishes spread within a step;
        see item 3 of the errata.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Examples
    --------
    >>> import advmdp as am
    >>> sk = am.Skeleton.dense([1, 1, 1], actions=1)
    >>> am.Risk(alpha=0.5, c=2.0).value(sk, [1.0, 1.0], [0.5, 0.5])
    0.75
    """

    alpha: float = 0.5
    c: float = 2.0
    reading: Literal["definition", "lemma"] = "definition"

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", fraction("alpha", self.alpha))
        if not isinstance(self.c, int | float | np.number) or not 1.0 < self.c < np.inf:
            raise InputError("c", f"{self.c!r}", "a number above 1")
        object.__setattr__(self, "c", float(self.c))
        if self.reading not in ("definition", "lemma"):
            raise InputError("reading", f"{self.reading!r}", "'definition' or 'lemma'")

    @property
    def _term(self) -> tuple[int, float, float]:
        return RISK if self.reading == "definition" else RISK_LEMMA, self.alpha, self.c


@dataclass(frozen=True, repr=False)
class WeightedSum(Criterion):
    """sum_j w_j f_j with weights w_j >= 0, the result of arithmetic with criteria; F is sum_j w_j F_j."""

    parts: tuple[tuple[float, Criterion], ...]

    @cached_property
    def terms(self) -> FloatArray | None:
        tables = [(weight, part.terms) for weight, part in self.parts]
        rows = [table * (1.0, weight, 1.0, 1.0) for weight, table in tables if table is not None]
        return frozen(np.concatenate(rows)) if len(rows) == len(tables) else None

    def value(self, sk: Skeleton, q: ArrayLike, loss: ArrayLike) -> float:
        if self.terms is not None:
            return _evaluated(self, self.terms, sk, q, loss)[0]
        return float(sum(weight * part.value(sk, q, loss) for weight, part in self.parts))

    def subgradient(self, sk: Skeleton, q: ArrayLike, loss: ArrayLike) -> FloatArray:
        if self.terms is not None:
            return _evaluated(self, self.terms, sk, q, loss)[1]
        expect(Skeleton, sk, "skeleton")
        z = np.zeros(sk.num_transitions)
        for weight, part in self.parts:
            z += weight * part.subgradient(sk, q, loss)
        return z

    def lipschitz(self, sk: Skeleton) -> float:
        return float(sum(weight * part.lipschitz(sk) for weight, part in self.parts))

    def __repr__(self) -> str:
        return " + ".join(repr(part) if weight == 1.0 else f"{weight} * {part!r}" for weight, part in self.parts)


def criterion_from(description: object) -> Criterion:
    """Make the criterion that :meth:`Criterion.description` described.

    Parameters
    ----------
    description
        Plain data, as read from a file.

    Returns
    -------
    Criterion
        The criterion.

    Raises
    ------
    InputError
        If the data describes no criterion.

    Examples
    --------
    >>> import advmdp as am
    >>> am.criterion_from(am.WorstCase().description())
    WorstCase()
    """
    if not isinstance(description, Mapping) or set(description) != {"terms"}:
        raise InputError("criterion", f"{description!r}", "a mapping with one entry, 'terms'")
    rows = description["terms"]
    if not isinstance(rows, list) or not rows:
        raise InputError("criterion, terms", f"{rows!r}", "a list of [kind, weight, alpha, c]")
    return _combined(tuple(_part(row, f"criterion, term {r}") for r, row in enumerate(rows)))


def _part(row: object, where: str) -> tuple[float, Criterion]:
    """The weight and the criterion of one row of a description."""
    if not isinstance(row, list) or len(row) != 4 or row[0] not in KINDS:
        raise InputError(where, f"{row!r}", f"[kind, weight, alpha, c], kind one of {', '.join(KINDS)}")
    name, weight, alpha, c = row
    factor = weight_of(weight, f"{where}, weight")
    if name in ("risk", "risk_lemma"):
        try:
            return factor, Risk(alpha, c, reading="definition" if name == "risk" else "lemma")
        except InputError as error:
            raise InputError(f"{where}, {error.where}", error.given, error.expected) from None
    if (alpha, c) != (1.0, 1.0):
        raise InputError(where, f"alpha {alpha!r} and c {c!r}", f"1 and 1 for '{name}'")
    return factor, TotalLoss() if name == "total" else WorstCase()


def _told(value: object) -> str:
    """A value as shown in a ``repr``: arrays by their hash, because NumPy abbreviates long ones."""
    if isinstance(value, np.ndarray):
        return f"<{value.dtype} of shape {value.shape}, {sha256(value.tobytes()).hexdigest()[:16]}>"
    return repr(value)


def _parts(criterion: Criterion) -> tuple[tuple[float, Criterion], ...]:
    return criterion.parts if isinstance(criterion, WeightedSum) else ((1.0, criterion),)


def _combined(parts: tuple[tuple[float, Criterion], ...]) -> Criterion:
    """The sum of the parts; a single part with weight 1 is returned as it is, so that equal criteria compare equal."""
    (weight, first), *others = parts
    return WeightedSum(parts) if others or weight != 1.0 else first


def weight_of(value: object, where: str) -> float:
    """``value`` as a number, 0 or more."""
    if not isinstance(value, int | float | np.number) or not 0.0 <= float(value) < np.inf:
        raise InputError(where, f"{value!r}", "a number, 0 or more")
    return float(value)


def checked(sk: Skeleton, q: ArrayLike, loss: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """q, (n,), and the loss, (n,) or (n, d), as finite numbers, read-only."""
    expect(Skeleton, sk, "skeleton")
    n = sk.num_transitions
    measure, losses = exact_floats(q, "q", (n,)), loss_vector(sk, loss)
    if losses.ndim not in (1, 2) or len(losses) != n or losses.size == 0:
        raise InputError("loss", f"an array of shape {losses.shape}", f"shape ({n},) or ({n}, d)")
    for name, array in (("q", measure), ("loss", losses)):
        if not np.isfinite(array).all():
            i = int(np.argmin(np.isfinite(array).reshape(n, -1).all(axis=1)))
            raise InputError(f"{name} at {sk.where_transition(i)}", f"{array[i]}", "finite numbers")
    return frozen(measure), frozen(losses)


def _evaluated(
    criterion: Criterion, terms: FloatArray, sk: Skeleton, q: ArrayLike, loss: ArrayLike
) -> tuple[float, FloatArray]:
    """The value and the subgradient of a table of terms."""
    measure, losses = checked(sk, q, loss)
    if losses.size > sk.num_transitions and not criterion.takes_several:
        raise InputError(
            f"loss for {criterion!r}", f"{losses.shape[1]} losses at once", "one: only WorstCase accepts several"
        )
    z = np.empty(sk.num_transitions)
    value = evaluate_terms(terms, sk.layer_transition_ptr, measure, losses.reshape(len(z), -1), z)
    return value, z
