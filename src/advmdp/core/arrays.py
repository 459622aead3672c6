"""Numbers taken in: flat arrays and single values, checked for what they are, and how arrays are frozen.

Index arrays are whole numbers, everything else is float64, contiguous.  What an object keeps it owns (a copy) and
shows read-only, so that a skeleton or an MDP cannot change under a learner's feet.
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
HINTS = {"Skeleton": " (mdp.skeleton is one)", "RowSet": " (L1Ball, Box or Point)"}
MOST = 2.0**53
ROOM = 64
"""The largest count taken: floating point holds every whole number up to it."""
LARGEST = 1e100
"""The largest cost or reward taken: products and sums of such are still numbers."""


def integers(values: ArrayLike, name: str) -> NDArray[np.int64]:
    """A one-dimensional copy of ``values`` as int64; anything that is not whole numbers is an error."""
    array = _as_array(values, name)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise InputError(name, f"an array of shape {array.shape} and type {array.dtype}", "whole numbers in one row")
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise InputError(name, f"{array.max()}", "whole numbers below 2^63")
    return array.astype(np.int64)


def floats(values: ArrayLike, name: str) -> FloatArray:
    """``values`` as contiguous float64, without a copy where it is so already."""
    array = values if type(values) is np.ndarray else _as_array(values, name)
    if array.dtype.kind not in "fiub":
        raise InputError(name, f"an array of type {array.dtype}", "real numbers")
    if array.dtype is FLOAT64 and array.flags.c_contiguous:
        return array  # type: ignore[return-value]
    return np.asarray(array, dtype=np.float64, order="C")


def exact_floats(values: ArrayLike, name: str, shape: tuple[int, ...]) -> FloatArray:
    """As :func:`floats`, with the shape checked."""
    if type(values) is np.ndarray and values.dtype is FLOAT64 and values.shape == shape and values.flags.c_contiguous:
        return values  # at once: a small projection takes ten times as long as all checks together
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
    """Arrays of these sizes in one block of memory, with room between them and on both sides.

    Compiled loops whose sums may be reordered first check whether their arrays could overlap, and take near neighbours
    for such. They then add in another order. So what they write to must not lie where it happens to: the last digits
    would depend on it.
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
    """``value`` as a Python integer of at least ``least``, and at most ``most``."""
    try:
        number = index(value)
    except TypeError:
        number = least - 1
    if not least <= number <= most or isinstance(value, bool):
        upper = "" if most == inf else f", at most {most:g}"
        raise InputError(name, f"{value!r}", f"a whole number, {least} or more{upper}")
    return number


def fraction(name: str, value: float) -> float:
    """``value`` as a number from 0 to 1."""
    if not is_number(value) or not 0.0 <= value <= 1.0:
        raise InputError(name, f"{value!r}", "a number from 0 to 1")
    return float(value)


def is_number(value: object) -> bool:
    """Whether it is a single real number; True and False are none."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def real(value: object) -> float:
    """``value`` as a float to compare: nan for what is no single number, infinite for what no float can hold.

    NumPy's own numbers are converted first, since a float32 next to 1e100 is a warning.
    """
    try:
        return float(value) if is_number(value) else nan  # type: ignore[arg-type]
    except OverflowError:
        return inf


def expect(kind: type[Kind], value: object, name: str) -> Kind:
    """``value``, which must be of the kind: people mix up an MDP and its skeleton."""
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
        raise InputError(name, f"something that is no array ({error})", "an array of numbers") from None
    if isinstance(values, np.ma.MaskedArray):
        raise InputError(name, "an array with a mask", "numbers without gaps")
    return array


def check_like(like: NDArray[Any], given: object, name: str) -> None:
    """Refuse what is no array of the same shape and type: kernels trust both."""
    if not isinstance(given, np.ndarray) or (given.shape, given.dtype) != (like.shape, like.dtype):
        kind = f"shape {given.shape} of {given.dtype}" if isinstance(given, np.ndarray) else _a(type(given).__name__)
        raise InputError(name, kind, f"shape {like.shape} of {like.dtype}")
