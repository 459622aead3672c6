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
    """A CVXPY expression with its variable and its parameter."""

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
