"""User-defined criteria: Python functions, compositions and CVXPY expressions."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from advmdp.core.arrays import FloatArray, exact_floats, expect, whole
from advmdp.core.errors import InputError
from advmdp.core.optional import optional
from advmdp.criteria.built_in import Criterion, checked, weight_of
from advmdp.model.skeleton import Skeleton

if TYPE_CHECKING:
    import cvxpy as cp

Bound = float | Callable[[Skeleton], float]
Of = Callable[[FloatArray, FloatArray], ArrayLike]


class Written(Criterion):
    """A criterion made of the user's functions.

    The functions receive checked, read-only arrays, with a loss in the shape in which it was given.  Their results are
    checked too.
    """

    def __init__(self, lipschitz: Bound) -> None:
        self._bound = lipschitz if callable(lipschitz) else weight_of(lipschitz, "lipschitz")

    @abstractmethod
    def _value(self, q: FloatArray, loss: FloatArray) -> ArrayLike: ...

    @abstractmethod
    def _subgradient(self, q: FloatArray, loss: FloatArray) -> ArrayLike: ...

    def value(self, sk: Skeleton, q: ArrayLike, loss: ArrayLike) -> float:
        return float(_answer(self._value(*checked(sk, q, loss)), f"the value of {self!r}", ()))

    def subgradient(self, sk: Skeleton, q: ArrayLike, loss: ArrayLike) -> FloatArray:
        z = _answer(self._subgradient(*checked(sk, q, loss)), f"the subgradient of {self!r}", (sk.num_transitions,))
        return z.copy()  # it may be the loss itself

    def lipschitz(self, sk: Skeleton) -> float:
        expect(Skeleton, sk, "skeleton")
        return weight_of(self._bound(sk), f"lipschitz of {self!r}") if callable(self._bound) else self._bound


class FunctionCriterion(Written):
    """A criterion made of two Python functions.

    The functions are trusted to be a convex function and its subgradient; :func:`advmdp.testing.check_criterion` checks
    them.

    Parameters
    ----------
    value
        ``value(q, loss)`` returns a number.
    subgradient
        ``subgradient(q, loss)`` returns a vector over transitions.
    lipschitz
        A bound on the entries of subgradients: a number, or a function of the skeleton.

    Examples
    --------
    >>> import numpy as np
    >>> import advmdp as am
    >>> squared = am.FunctionCriterion(
    ...     value=lambda q, loss: (q @ loss) ** 2,
    ...     subgradient=lambda q, loss: 2 * (q @ loss) * loss,
    ...     lipschitz=lambda sk: 2.0 * sk.num_steps,
    ... )
    >>> am.testing.check_criterion(squared)
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
    """A criterion of the form of Lemma 3.2: a convex function g of linear functions <q, h_j(loss)>.

    Parameters
    ----------
    g
        A convex function of an array (m,).
    gradient
        A subgradient of g, of shape (m,), at an array (m,).
    h
        m functions; each maps a loss to a vector over transitions.
    lipschitz
        A bound on the entries of subgradients: a number, or a function of the skeleton.

    Raises
    ------
    InputError
        If ``h`` is empty, or if something is not a function.

    Examples
    --------
    >>> import numpy as np
    >>> import advmdp as am
    >>> squared = am.Composite(
    ...     g=lambda v: v[0] ** 2,
    ...     gradient=lambda v: 2 * v,
    ...     h=[lambda loss: loss],
    ...     lipschitz=lambda sk: 2.0 * sk.num_steps,
    ... )
    >>> am.testing.check_criterion(squared)
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
    """A CVXPY expression with its variable and its parameter."""

    q: "cp.Variable"
    loss: "cp.Parameter"
    expression: "cp.Expression"


class CvxpyCriterion(Written):
    """A criterion written as a CVXPY expression.

    CVXPY's rules (DCP) must prove that the expression is convex in q. Each evaluation takes milliseconds, so this is
    for trying things out. It needs the extra ``cvx``. Small negative entries of q, which rounding causes, count as 0.
    An error is raised where CVXPY has no subgradient, such as the power 1.5 at 0.

    Parameters
    ----------
    build
        ``build(q, loss)`` returns the expression, for a non-negative variable q of shape (n,) and a non-negative
        parameter loss of shape (n,), or (n, d).
    dimensions
        The number d of losses at once; one loss of shape (n,) by default.
    lipschitz
        A bound on the entries of subgradients: a number, or a function of the skeleton.

    Examples
    --------
    >>> import cvxpy as cp
    >>> import advmdp as am
    >>> squared = am.CvxpyCriterion(lambda q, loss: cp.square(loss @ q), lipschitz=lambda sk: 2.0 * sk.num_steps)
    >>> sk = am.Skeleton.dense([1, 1], actions=2)
    >>> round(squared.value(sk, [0.5, 0.5], [1.0, 0.0]), 6)
    0.25
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
            raise InputError(f"{self!r}", "a q at which CVXPY has no subgradient", "a q inside the domain")
        dense = z.toarray() if hasattr(z, "toarray") else np.asarray(z)
        return np.broadcast_to(dense.ravel(), q.shape)

    def _set(self, q: FloatArray, loss: FloatArray) -> Formula:
        """The expression, with q and the loss as its values."""
        if self._formula is None or self._formula.q.shape != q.shape:
            self._formula = self._built(len(q))
        formula = self._formula
        if loss.size != formula.loss.size:
            raise InputError("loss", f"shape {loss.shape}", f"{formula.loss.shape}, the shape that {self!r} declares")
        if loss.min() < 0.0:
            raise InputError("loss", f"{loss.min()}", "0 or more")
        formula.q.value = np.maximum(q, 0.0)
        formula.loss.value = loss.reshape(formula.loss.shape)
        return formula

    def _built(self, n: int) -> Formula:
        with optional:
            import cvxpy as cp
        q = cp.Variable(n, nonneg=True, name="q")
        loss = cp.Parameter((n,) if self.dimensions is None else (n, self.dimensions), nonneg=True, name="loss")
        expression = self.build(q, loss)
        if not isinstance(expression, cp.Expression) or expression.size != 1:
            raise InputError(f"{self!r}", f"{expression!r}", "a scalar CVXPY expression")
        if any(variable is not q for variable in expression.variables()):
            raise InputError(f"{self!r}", f"{expression}, with other variables", "an expression in q and the loss only")
        if not expression.is_convex():
            given = f"{expression}, of curvature {expression.curvature}"
            raise InputError(f"{self!r}", given, "an expression that DCP proves convex in q")
        return Formula(q, loss, expression)

    def __repr__(self) -> str:
        return f"CvxpyCriterion({_name(self.build)})"


def _function(value: Callable[..., ArrayLike], name: str) -> Callable[..., ArrayLike]:
    if not callable(value):
        raise InputError(name, f"{value!r}", "a function")
    return value


def _name(function: object) -> str:
    return getattr(function, "__name__", None) or repr(function)


def _answer(given: ArrayLike, where: str, shape: tuple[int, ...]) -> FloatArray:
    """The result of a user's function, checked."""
    answer = exact_floats(given, where, shape)
    if not np.isfinite(answer).all():
        raise InputError(where, f"{answer[~np.isfinite(answer)][0]}", "finite numbers")
    return answer
