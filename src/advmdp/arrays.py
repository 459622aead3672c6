"""Flat arrays: their types, how they are taken in, and how they are frozen.

Index arrays are whole numbers, everything else is float64, contiguous.  What an object keeps it owns (a copy) and
shows read-only, so that a skeleton or an MDP cannot change under a learner's feet.
"""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.errors import InputError

__all__ = ["FloatArray", "IndexArray", "exact_floats", "floats", "frozen", "integers"]

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.integer[Any]]
Scalar = TypeVar("Scalar", bound=np.generic)


def integers(values: ArrayLike, name: str) -> NDArray[np.int64]:
    """A one-dimensional copy of ``values`` as int64; anything that is not whole numbers is an error."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise InputError(name, f"an array of shape {array.shape} and type {array.dtype}", "whole numbers in one row")
    return array.astype(np.int64)


def floats(values: ArrayLike, name: str) -> FloatArray:
    """``values`` as contiguous float64, without a copy where it is so already."""
    try:
        return np.asarray(values, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise InputError(name, f"something that is no array of numbers ({error})", "real numbers") from None


def exact_floats(values: ArrayLike, name: str, shape: tuple[int, ...]) -> FloatArray:
    """As :func:`floats`, with the shape checked."""
    array = floats(values, name)
    if array.shape != shape:
        raise InputError(name, f"an array of shape {array.shape}", f"shape {shape}")
    return array


def frozen(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """A read-only view of ``array``."""
    view = array.view()
    view.setflags(write=False)
    return view
