"""Checks and conversions of numeric input, arrays and single values; read-only arrays.

Index arrays are int64; all other arrays are contiguous float64.  Objects keep their own copy of an array and expose it
read-only, so that a skeleton or an MDP cannot change while a learner uses it.
"""

from math import inf, nan
from operator import index
from typing import Any, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.core.errors import InputError

FloatArray = NDArray[np.float64]
Scalar = TypeVar("Scalar", bound=np.generic)
Kind = TypeVar("Kind")
FLOAT64 = np.dtype(np.float64)
HINTS = {
    "MDP": ": a skeleton with its probabilities, as am.MDP(skeleton, transition) makes it",
    "Skeleton": " (mdp.skeleton is one)",
    "RowSet": " (L1Ball, Box or Point)",
    "Results": " (am.Results.of_games({name: [game]}) makes one)",
}
MOST = 2.0**53
"""The largest count accepted: floating point represents every whole number up to it."""
ROOM = 64
"""Entries left free between the arrays of :func:`apart`."""
LARGEST = 1e100
"""The largest cost or reward accepted: products and sums of such numbers stay finite."""


def integers(values: ArrayLike, name: str) -> NDArray[np.int64]:
    """A one-dimensional copy of ``values`` as int64; raises unless they are whole numbers."""
    array = _as_array(values, name)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        given = f"an array of shape {array.shape} and type {array.dtype}"
        raise InputError(name, given, "whole numbers in a flat array")
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise InputError(name, f"{array.max()}", "whole numbers below 2^63")
    return array.astype(np.int64)


def floats(values: ArrayLike, name: str) -> FloatArray:
    """``values`` as contiguous float64; no copy if they already are."""
    array = values if type(values) is np.ndarray else _as_array(values, name)
    if array.dtype.kind not in "fiub":
        raise InputError(name, f"an array of type {array.dtype}", "real numbers")
    if array.dtype is FLOAT64 and array.flags.c_contiguous:
        return array  # type: ignore[return-value]
    return np.asarray(array, dtype=np.float64, order="C")


def exact_floats(values: ArrayLike, name: str, shape: tuple[int, ...]) -> FloatArray:
    """Like :func:`floats`, but also checks the shape."""
    if type(values) is np.ndarray and values.dtype is FLOAT64 and values.shape == shape and values.flags.c_contiguous:
        return values  # nothing to check: a small projection takes only ten times as long as all checks
    array = floats(values, name)
    if array.shape != shape:
        raise InputError(name, f"an array of shape {array.shape}", f"shape {shape}")
    return array


def frozen(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """A read-only view of ``array``."""
    view = array.view()
    view.setflags(write=False)
    return view


def apart(*sizes: int) -> list[FloatArray]:
    """Arrays of these sizes in one block of memory, with gaps between them and at both ends.

    The gaps make results reproducible to the bit.  Compiled loops that may reorder sums first check whether their
    arrays could overlap.  Arrays that lie close together look like overlapping ones, and the loop then adds in another
    order.  Without gaps, the last digits would depend on where the arrays happen to lie.
    """
    block, found, at = np.zeros(sum(sizes) + ROOM * (len(sizes) + 1)), [], ROOM
    for size in sizes:
        found.append(block[at : at + size])
        at += size + ROOM
    return found


def owned(array: FloatArray) -> FloatArray:
    """A read-only copy of ``array``."""
    return frozen(array.copy())


def whole(name: str, value: SupportsIndex, least: int, most: float = inf) -> int:
    """``value`` as a Python integer from ``least`` to ``most``."""
    try:
        number = index(value)
    except TypeError:
        number = least - 1
    if not least <= number <= most or isinstance(value, bool):
        upper = f", at most {int(most):,}" if most < MOST or MOST <= most < number else ""
        raise InputError(name, f"{value!r}", f"a whole number, {least} or more{upper}")
    return number


def fraction(name: str, value: float) -> float:
    """``value`` as a number from 0 to 1."""
    if not is_number(value) or not 0.0 <= value <= 1.0:
        raise InputError(name, f"{value!r}", "a number from 0 to 1")
    return float(value)


def is_number(value: object) -> bool:
    """Whether ``value`` is a single real number; booleans do not count."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def real(value: object) -> float:
    """``value`` as a float that can be compared: nan if it is not a single number, inf if it overflows.

    NumPy's scalars are converted too, because comparing a float32 with 1e100 warns.
    """
    try:
        return float(value) if is_number(value) else nan  # type: ignore[arg-type]
    except OverflowError:
        return inf


def expect(kind: type[Kind], value: object, name: str) -> Kind:
    """``value``, checked to be an instance of ``kind``: it is easy to mix up an MDP and its skeleton."""
    if not isinstance(value, kind):
        hint = HINTS.get(kind.__name__, "")
        given = f"the class {value.__name__}" if isinstance(value, type) else f"{_a(type(value).__name__)}"
        raise InputError(name, given, f"{_a(kind.__name__)}{hint}")
    return value


def _a(name: str) -> str:
    """The name with its article: an MDP, an ndarray, a Skeleton."""
    return f"{'an' if name[0] in 'aeioAEIO' or name in ('MDP', 'ndarray') else 'a'} {name}"


def _as_array(values: ArrayLike, name: str) -> NDArray[np.generic]:
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise InputError(name, f"not an array ({error})", "an array of numbers") from None
    if isinstance(values, np.ma.MaskedArray):
        raise InputError(name, "a masked array", "an array without missing values")
    return array


def check_like(like: NDArray[Any], given: object, name: str) -> None:
    """Raise unless ``given`` is an array of the same shape and type as ``like``: kernels do not check either."""
    if not isinstance(given, np.ndarray) or (given.shape, given.dtype) != (like.shape, like.dtype):
        kind = f"shape {given.shape} of {given.dtype}" if isinstance(given, np.ndarray) else _a(type(given).__name__)
        raise InputError(name, kind, f"shape {like.shape} of {like.dtype}")
