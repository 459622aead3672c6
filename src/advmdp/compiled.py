"""The one way in which this library compiles: on first use, cached on disk, free of the interpreter lock.

``error_model="numpy"`` because a division by zero in a kernel is a value to be handled there, not an exception.
Floating-point semantics stay strict (no fastmath), so that the same input gives the same bytes.
"""

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

__all__ = ["compiled"]

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """``function`` as a Numba kernel; compiled anew in each process where no folder can be written to for the cache."""
    try:
        kernel = njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:
        kernel = njit(nogil=True, error_model="numpy")(function)
    return cast(Function, kernel)
