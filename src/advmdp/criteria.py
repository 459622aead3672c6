"""Performance criteria: what of an episode's losses is to be small, as a function f^C(q; l) that is convex in q.

Sections 2 and 3 of the paper.  With v_k the expected loss of step k, the sum of q times l over layer k,

    TEL   (Example 2.1)   sum_k v_k = <q, l>                                     F = 1
    MM    (Example 2.2)   max_i <q, l[:, i]>,  l in [0, 1]^d                     F = 1
    RISK  (Example 2.3)   alpha (sum_k v_k)^c + (1 - alpha) sum_k v_k^c          F = alpha c L^(c-1) + (1 - alpha) c
          (by Lemma 3.2)  alpha <q, l>^c + (1 - alpha) <q, l^c>                  F = alpha c L^(c-1) + (1 - alpha)

and by Lemma 3.2 every g({<q, h_j(l)>}_j) with g convex.  A criterion gives its value, a subgradient z of f^C(.; l) at
q, and F, a bound on |z| entry by entry for losses in [0, 1]: that is all the algorithms and their bounds use of it.
Sums and non-negative multiples of criteria are criteria.

The criteria of the examples and their sums are data, a table of terms, which one kernel, :func:`evaluate_terms`,
evaluates: a compiled loop calls nothing in Python and finds the same bits.  In the table TEL and MM are RISK with
alpha = c = 1.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.arrays import FloatArray, exact_floats, expect, floats, fraction, frozen, whole
from advmdp.compiled import compiled
from advmdp.errors import InputError
from advmdp.skeleton import Skeleton

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = [
    "KINDS",
    "RISK",
    "RISK_LEMMA",
    "TOTAL",
    "WORST",
    "Composite",
    "Criterion",
    "CvxpyCriterion",
    "FunctionCriterion",
    "Risk",
    "TotalLoss",
    "WeightedSum",
    "WorstCase",
    "criterion_from",
    "evaluate_terms",
]

KINDS = ("total", "worst", "risk", "risk_lemma")
"""What the kinds of terms are called in descriptions; a kind is its place here."""
TOTAL, WORST, RISK, RISK_LEMMA = range(4)

Bound = float | Callable[[Skeleton], float]
Of = Callable[[FloatArray, FloatArray], ArrayLike]


class Criterion(ABC):
    """f^C(q; l), convex in q.  A loss is (n,), or (n, d) for d losses at once, n the number of transitions."""

    __array_ufunc__ = None  # so that NumPy leaves np.float64(0.7) * criterion to us

    @abstractmethod
    def value(self, sk: Skeleton, q: ArrayLike, loss: ArrayLike) -> float:
        """f^C(q; l)."""

    @abstractmethod
    def subgradient(self, sk: Skeleton, q: ArrayLike, loss: ArrayLike) -> FloatArray:
        """Some z, (n,), with f^C(q'; l) >= f^C(q; l) + <z, q' - q> for every q'."""

    @property
    def takes_several(self) -> bool:
        """Whether a loss may be several at once, (n, d): of the built-in criteria only WorstCase knows what to do."""
        return self.terms is None or bool((self.terms[:, 0] == WORST).all())

    @abstractmethod
    def lipschitz(self, sk: Skeleton) -> float:
        """F: no entry of a subgradient is above it in absolute value, for q and losses as they should be."""

    @property
    def terms(self) -> FloatArray | None:
        """Rows (kind, weight, alpha, c) for :func:`evaluate_terms`; None for a criterion that lives in Python."""
        return None

    def description(self) -> dict[str, list[list[str | float]]] | None:
        """The terms as plain data for a file, which :func:`criterion_from` reads; None where there are none."""
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
        factor = _weight(weight, where)
        return _combined(tuple((_weight(factor * inner, where), part) for inner, part in _parts(self)))

    __rmul__ = __mul__


class Tabled(Criterion):
    """A criterion of the paper's examples: its one term is all there is to it."""

    @property
    @abstractmethod
    def _term(self) -> tuple[int, float, float]:
        """(kind, alpha, c)."""

    @cached_property
    def terms(self) -> FloatArray:
        kind, alpha, c = self._term
        return frozen(np.array([[kind, 1.0, alpha, c]]))

    def value(self, sk: Skeleton, q: ArrayLike, loss: ArrayLike) -> float:
        return _evaluated(self, self.terms, sk, q, loss)[0]

    def subgradient(self, sk: Skeleton, q: ArrayLike, loss: ArrayLike) -> FloatArray:
        return _evaluated(self, self.terms, sk, q, loss)[1]

    def lipschitz(self, sk: Skeleton) -> float:
        expect(Skeleton, sk, "skeleton")
        kind, alpha, c = self._term
        with np.errstate(over="ignore"):
            of_total = alpha * c * np.float64(sk.num_layers) ** (c - 1.0)
        bound = of_total + (1.0 - alpha) * (1.0 if kind == RISK_LEMMA else c)
        if not np.isfinite(bound):
            raise InputError(f"{self!r}", f"c L^(c-1) with L = {sk.num_layers}, which is no float", "a smaller c")
        return float(bound)


@dataclass(frozen=True)
class TotalLoss(Tabled):
    """<q, l>, the total expected loss (TEL) of Example 2.1, for one loss at a time."""

    @property
    def _term(self) -> tuple[int, float, float]:
        return TOTAL, 1.0, 1.0


@dataclass(frozen=True)
class WorstCase(Tabled):
    """max_i <q, l[:, i]>, the min-max criterion (MM) of Example 2.2; the subgradient is the first worst l[:, i]."""

    @property
    def _term(self) -> tuple[int, float, float]:
        return WORST, 1.0, 1.0


@dataclass(frozen=True)
class Risk(Tabled):
    """alpha (sum_k v_k)^c + (1 - alpha) sum_k v_k^c with v_k the expected loss of step k: Example 2.3, c > 1.

    ``reading="lemma"`` is what Lemma 3.2 makes of it, alpha <q, l>^c + (1 - alpha) <q, l^c>, which is never less and
    punishes the spread within a step too (docs/errata.md, item 3).
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
    """sum_j w_j f_j with weights w_j >= 0, as arithmetic with criteria makes it; F is sum_j w_j F_j."""

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


class Written(Criterion):
    """A criterion in functions of the user's own: they are handed checked, read-only arrays; their answers are checked.

    They see a loss in the shape in which it was given.
    """

    def __init__(self, lipschitz: Bound) -> None:
        self._bound = lipschitz if callable(lipschitz) else _weight(lipschitz, "lipschitz")

    @abstractmethod
    def _value(self, q: FloatArray, loss: FloatArray) -> ArrayLike: ...

    @abstractmethod
    def _subgradient(self, q: FloatArray, loss: FloatArray) -> ArrayLike: ...

    def value(self, sk: Skeleton, q: ArrayLike, loss: ArrayLike) -> float:
        return float(_answer(self._value(*_checked(sk, q, loss)), f"the value of {self!r}", ()))

    def subgradient(self, sk: Skeleton, q: ArrayLike, loss: ArrayLike) -> FloatArray:
        z = _answer(self._subgradient(*_checked(sk, q, loss)), f"the subgradient of {self!r}", (sk.num_transitions,))
        return z.copy()  # it may be the loss itself

    def lipschitz(self, sk: Skeleton) -> float:
        expect(Skeleton, sk, "skeleton")
        return _weight(self._bound(sk), f"lipschitz of {self!r}") if callable(self._bound) else self._bound


class FunctionCriterion(Written):
    """f(q; l) as two functions: ``value(q, loss)`` and ``subgradient(q, loss)``.  That f is convex is taken on trust.

    ``lipschitz`` is F, a number or a function of the skeleton.  :func:`advmdp.testing.check_criterion` puts all three
    to the test.
    """

    def __init__(self, *, value: Of, subgradient: Of, lipschitz: Bound) -> None:
        super().__init__(lipschitz)
        self._functions = (_function(value, "value"), _function(subgradient, "subgradient"))

    def _value(self, q: FloatArray, loss: FloatArray) -> ArrayLike:
        return self._functions[0](q, loss)

    def _subgradient(self, q: FloatArray, loss: FloatArray) -> ArrayLike:
        return self._functions[1](q, loss)

    def __repr__(self) -> str:
        return f"FunctionCriterion({_name(self._functions[0])})"


class Composite(Written):
    """g({<q, h_j(l)>}_j), Lemma 3.2: z = sum_j y_j h_j(l) with y a subgradient of g at (<q, h_j(l)>)_j.

    ``g`` maps an array (m,) to a number and is convex, ``gradient`` maps it to the y of shape (m,), each function of
    ``h`` maps a loss, as it was given, to a vector (n,).  ``lipschitz`` is F, a number or a function of the skeleton.
    """

    def __init__(
        self,
        *,
        g: Callable[[FloatArray], ArrayLike],
        gradient: Callable[[FloatArray], ArrayLike],
        h: Sequence[Callable[[FloatArray], ArrayLike]],
        lipschitz: Bound,
    ) -> None:
        super().__init__(lipschitz)
        if not isinstance(h, Sequence) or not h:
            raise InputError("h", f"{h!r}", "a list of functions, one or more")
        self.g = _function(g, "g")
        self.gradient = _function(gradient, "gradient")
        self.h = tuple(_function(part, f"h[{j}]") for j, part in enumerate(h))

    def _value(self, q: FloatArray, loss: FloatArray) -> ArrayLike:
        return self.g(self._features(q, loss) @ q)

    def _subgradient(self, q: FloatArray, loss: FloatArray) -> ArrayLike:
        features = self._features(q, loss)
        y: FloatArray = _answer(self.gradient(features @ q), f"the gradient of {self!r}", (len(self.h),))
        return y @ features

    def _features(self, q: FloatArray, loss: FloatArray) -> FloatArray:
        """h_j(l), a row each."""
        return np.array([_answer(part(loss), f"h[{j}] of {self!r}", q.shape) for j, part in enumerate(self.h)])

    def __repr__(self) -> str:
        return f"Composite(g={_name(self.g)}, h=[{', '.join(map(_name, self.h))}])"


class Formula(NamedTuple):
    """An expression of CVXPY, and what it is an expression in."""

    q: "cp.Variable"
    loss: "cp.Parameter"
    expression: "cp.Expression"


class CvxpyCriterion(Written):
    """f(q; l) as an expression of CVXPY, accepted only if CVXPY's rules (DCP) prove it convex in q.

    ``build(q, loss)`` makes it of a variable q >= 0 of shape (n,) and a parameter >= 0 of shape (n,), or (n, d) with
    ``dimensions=d``.  Value and subgradient are the expression's own, so q and losses below 0 (which q may be by
    rounding) are taken as 0 and refused.  Where CVXPY knows no subgradient, as of a power 1.5 at 0, there is an error.
    Needs the extra ``advmdp[cvx]``; meant for trying things out: an evaluation takes milliseconds, and one at a time.
    """

    def __init__(
        self,
        build: Callable[["cp.Variable", "cp.Parameter"], "cp.Expression"],
        *,
        dimensions: int | None = None,
        lipschitz: Bound,
    ) -> None:
        super().__init__(lipschitz)
        self.build = _function(build, "build")
        self.dimensions = None if dimensions is None else whole("dimensions", dimensions, 1)
        self._formula: Formula | None = None  # of the last skeleton size seen

    def _value(self, q: FloatArray, loss: FloatArray) -> ArrayLike:
        return np.asarray(self._set(q, loss).expression.value).reshape(())

    def _subgradient(self, q: FloatArray, loss: FloatArray) -> ArrayLike:
        formula = self._set(q, loss)
        z = formula.expression.grad.get(formula.q, 0.0)
        if z is None:
            raise InputError(f"{self!r}", "a q at which CVXPY knows no subgradient", "one inside of its domain")
        dense = z.toarray() if hasattr(z, "toarray") else np.asarray(z)
        return np.broadcast_to(dense.ravel(), q.shape)

    def _set(self, q: FloatArray, loss: FloatArray) -> Formula:
        """The expression, with q and the loss as its values."""
        if self._formula is None or self._formula.q.shape != q.shape:
            self._formula = self._built(len(q))
        formula = self._formula
        if loss.size != formula.loss.size:
            raise InputError("loss", f"shape {loss.shape}", f"{formula.loss.shape}, as {self!r} has it")
        if loss.min() < 0.0:
            raise InputError("loss", f"{loss.min()}", "0 or more")
        formula.q.value = np.maximum(q, 0.0)
        formula.loss.value = loss.reshape(formula.loss.shape)
        return formula

    def _built(self, n: int) -> Formula:
        try:
            import cvxpy as cp
        except ImportError:
            raise InputError("CvxpyCriterion", "no CVXPY here", "it installed: pip install 'advmdp[cvx]'") from None
        q = cp.Variable(n, nonneg=True, name="q")
        loss = cp.Parameter((n,) if self.dimensions is None else (n, self.dimensions), nonneg=True, name="loss")
        expression = self.build(q, loss)
        if not isinstance(expression, cp.Expression) or expression.size != 1:
            raise InputError(f"{self!r}", f"{expression!r}", "a scalar expression of CVXPY")
        if any(variable is not q for variable in expression.variables()):
            raise InputError(f"{self!r}", f"{expression}, with other variables", "an expression in q and the loss only")
        if not expression.is_convex():
            given = f"{expression}, of curvature {expression.curvature}"
            raise InputError(f"{self!r}", given, "an expression that DCP proves convex in q")
        return Formula(q, loss, expression)

    def __repr__(self) -> str:
        return f"CvxpyCriterion({_name(self.build)})"


def criterion_from(description: object) -> Criterion:
    """The criterion of a :meth:`Criterion.description`."""
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
    factor = _weight(weight, f"{where}, weight")
    if name in ("risk", "risk_lemma"):
        try:
            return factor, Risk(alpha, c, reading="definition" if name == "risk" else "lemma")
        except InputError as error:
            raise InputError(f"{where}, {error.where}", error.given, error.expected) from None
    if (alpha, c) != (1.0, 1.0):
        raise InputError(where, f"alpha {alpha!r} and c {c!r}", f"1 and 1 for '{name}'")
    return factor, TotalLoss() if name == "total" else WorstCase()


def _parts(criterion: Criterion) -> tuple[tuple[float, Criterion], ...]:
    return criterion.parts if isinstance(criterion, WeightedSum) else ((1.0, criterion),)


def _combined(parts: tuple[tuple[float, Criterion], ...]) -> Criterion:
    """The sum of the parts; one part with weight 1 is itself, so that equal criteria compare equal."""
    (weight, first), *others = parts
    return WeightedSum(parts) if others or weight != 1.0 else first


def _weight(value: object, where: str) -> float:
    if not isinstance(value, int | float | np.number) or not 0.0 <= float(value) < np.inf:
        raise InputError(where, f"{value!r}", "a number, 0 or more")
    return float(value)


def _function(value: Callable[..., ArrayLike], name: str) -> Callable[..., ArrayLike]:
    if not callable(value):
        raise InputError(name, f"{value!r}", "a function")
    return value


def _name(function: object) -> str:
    return getattr(function, "__name__", None) or repr(function)


def _checked(sk: Skeleton, q: ArrayLike, loss: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """q, (n,), and the loss, (n,) or (n, d), as finite numbers, read-only."""
    expect(Skeleton, sk, "skeleton")
    n = sk.num_transitions
    measure, losses = exact_floats(q, "q", (n,)), floats(loss, "loss")
    if losses.ndim not in (1, 2) or len(losses) != n or losses.size == 0:
        raise InputError("loss", f"an array of shape {losses.shape}", f"shape ({n},) or ({n}, d)")
    for name, array in (("q", measure), ("loss", losses)):
        if not np.isfinite(array).all():
            i = int(np.argmin(np.isfinite(array).reshape(n, -1).all(axis=1)))
            raise InputError(f"{name} at {sk.where_transition(i)}", f"{array[i]}", "finite numbers")
    return frozen(measure), frozen(losses)


def _answer(given: ArrayLike, where: str, shape: tuple[int, ...]) -> FloatArray:
    """What a function of the user's gave, checked."""
    answer = exact_floats(given, where, shape)
    if not np.isfinite(answer).all():
        raise InputError(where, f"{answer[~np.isfinite(answer)][0]}", "finite numbers")
    return answer


def _evaluated(
    criterion: Criterion, terms: FloatArray, sk: Skeleton, q: ArrayLike, loss: ArrayLike
) -> tuple[float, FloatArray]:
    """The value and the subgradient of a table of terms."""
    measure, losses = _checked(sk, q, loss)
    if losses.size > sk.num_transitions and not criterion.takes_several:
        raise InputError(
            f"loss for {criterion!r}", f"{losses.shape[1]} losses at once", "one: only WorstCase takes several"
        )
    z = np.empty(sk.num_transitions)
    value = evaluate_terms(terms, sk.layer_transition_ptr, measure, losses.reshape(len(z), -1), z)
    return value, z


@compiled
def evaluate_terms(
    terms: FloatArray, layer_transition_ptr: NDArray[np.int64], q: FloatArray, loss: FloatArray, z: FloatArray
) -> float:
    """The sum over terms of weight times f^C(q; l), returned, and its subgradient, written into z.

    ``loss`` is (n, d), C-contiguous; d > 1 only where all terms are WORST.  Nothing is checked and nothing allocated.
    One pass for v_k, the sums of q l over the layers, which wait in z, and one for z itself, as the slope of layer k
    needs the sum of them all; RISK_LEMMA has a pass of its own.  The order of every sum is fixed.
    """
    flat, d = loss.reshape(loss.size), loss.shape[1]  # one row is read in vector registers only if it is known to be
    worst, total = 0, _layer_sums(layer_transition_ptr, q, flat, d, 0, z)
    for j in range(1, d):
        other = _layer_sums(layer_transition_ptr, q, flat, d, j, z)
        if other > total:
            worst, total = j, other
    value, slope = 0.0, 0.0
    for r in range(len(terms)):
        share, c = terms[r, 1] * terms[r, 2], terms[r, 3]
        value += share * _power(total, c)
        slope += share * _slope(total, c)
    for k in range(len(layer_transition_ptr) - 1):
        first, last = layer_transition_ptr[k], layer_transition_ptr[k + 1]
        v, here = z[first], slope
        for r in range(len(terms)):
            if terms[r, 0] == RISK:
                share, c = terms[r, 1] * (1.0 - terms[r, 2]), terms[r, 3]
                value += share * _power(v, c)
                here += share * _slope(v, c)
        if d == 1:
            for i in range(np.uint64(first), np.uint64(last)):
                z[i] = here * flat[i]
        else:
            for i in range(first, last):
                z[i] = here * flat[i * d + worst]
    for r in range(len(terms)):
        if terms[r, 0] == RISK_LEMMA:
            value += _add_moment(terms[r, 1] * (1.0 - terms[r, 2]), terms[r, 3], q, loss, z)
    return value


@compiled
def _layer_sums(
    layer_transition_ptr: NDArray[np.int64], q: FloatArray, flat: FloatArray, d: int, j: int, z: FloatArray
) -> float:
    """v_k = sum of q l[:, j] over layer k, kept at the first place of the layer in z; returns sum_k v_k."""
    total = 0.0
    for k in range(len(layer_transition_ptr) - 1):
        first, last = layer_transition_ptr[k], layer_transition_ptr[k + 1]
        v = _dot(q, flat, first, last) if d == 1 else 0.0
        if d > 1:
            for i in range(first, last):
                v += q[i] * flat[i * d + j]
        z[first] = v
        total += v
    return total


@compiled
def _dot(a: FloatArray, b: FloatArray, first: int, last: int) -> float:
    """The sum of a b from first to last, in eight sums, so that no addition waits for the one before."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    for k in range((last - first) // 8):
        i = np.uint64(first + 8 * k)  # an index that may be negative is looked at twice
        s0 += a[i] * b[i]
        s1 += a[i + np.uint64(1)] * b[i + np.uint64(1)]
        s2 += a[i + np.uint64(2)] * b[i + np.uint64(2)]
        s3 += a[i + np.uint64(3)] * b[i + np.uint64(3)]
        s4 += a[i + np.uint64(4)] * b[i + np.uint64(4)]
        s5 += a[i + np.uint64(5)] * b[i + np.uint64(5)]
        s6 += a[i + np.uint64(6)] * b[i + np.uint64(6)]
        s7 += a[i + np.uint64(7)] * b[i + np.uint64(7)]
    for rest in range(last - (last - first) % 8, last):
        s0 += a[rest] * b[rest]
    return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))


@compiled
def _add_moment(share: float, c: float, q: FloatArray, loss: FloatArray, z: FloatArray) -> float:
    """share <q, l^c>; its gradient is added to z."""
    moment = 0.0
    for i in range(len(q)):
        power = _power(loss[i, 0], c)
        moment += q[i] * power
        z[i] += share * power
    return share * moment


@compiled
def _power(v: float, c: float) -> float:
    """v^c, and 0 for v below 0, where c is not 1: so it is convex in v whatever rounding makes of a v of 0."""
    if c == 1.0:
        return v
    if v <= 0.0:
        return 0.0
    return v * v if c == 2.0 else v**c


@compiled
def _slope(v: float, c: float) -> float:
    """The derivative of :func:`_power`: 0 at v = 0 for every c > 1."""
    if c == 1.0:
        return 1.0
    if v <= 0.0:
        return 0.0
    return 2.0 * v if c == 2.0 else c * v ** (c - 1.0)
