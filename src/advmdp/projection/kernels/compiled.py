"""How the kernels of the projection are compiled: as in :mod:`advmdp.core.compiling`, with some freedom each.

``compiled`` keeps IEEE semantics to the letter.  ``compiled_sums`` lets the compiler reorder additions and fuse
multiply-adds, which is what makes sums and dot products run in vector registers; the order is fixed in the binary, so
equal inputs still give equal bytes.  ``compiled_fused`` only fuses.  Infinities keep their meaning in all, and NaN in
all but ``compiled_order``, which is for largest and smallest entries of arrays that are known to hold no NaN.

A call with a dozen arrays costs as much as a row of twenty entries, so all but ``compiled`` and ``compiled_memory``
are put in the place of the call; ``compiled_inline`` is ``compiled`` but for that.  Nor do they count references: the
arrays of a problem outlive the call, and two atomic operations per array and call would be half the time of a small
problem.  The few functions that allocate are ``compiled_memory``.

Inner loops run over ``unsigned`` indices: a signed one may be negative and then counts from the end, a case distinction
per entry that keeps the loop out of vector registers.  For the same reason conditional sums add mask * value.
"""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
from numba import njit, typeof

from advmdp.core.compiling import kept_on_disk

P = ParamSpec("P")
R = TypeVar("R")
unsigned = np.uint64


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile with Numba, cached on disk, without the GIL, division by zero as in NumPy."""
    return _compile(function, _nrt=False)


def compiled_memory(function: Callable[P, R]) -> Callable[P, R]:
    """As `compiled`, for functions that allocate, or that take over an array from one that does."""
    return _compile(function, _nrt=True)


def compiled_in_place(function: Callable[P, R]) -> Callable[P, R]:
    """As `compiled_memory`, but part of its callers from the start: compiling it alone would cost seconds."""
    return _compile(function, inline="always")


def compiled_parallel(function: Callable[P, R]) -> Callable[P, R]:
    """As `compiled_memory`, with loops over `prange` run by as many threads as Numba has."""
    return _compile(function, parallel=True)


def compiled_inline(function: Callable[P, R]) -> Callable[P, R]:
    """As `compiled`, for functions called once per pair or per state."""
    return _compile(function, _nrt=False, forceinline=True)


def compiled_sums(function: Callable[P, R]) -> Callable[P, R]:
    """As `compiled_inline`, with sums that may be reordered into vector registers."""
    return _compile(function, _nrt=False, forceinline=True, fastmath={"reassoc", "contract", "nsz"})


def compiled_fused(function: Callable[P, R]) -> Callable[P, R]:
    """As `compiled_inline`, with fused multiply-adds but no reordering."""
    return _compile(function, _nrt=False, forceinline=True, fastmath={"contract"})


def compiled_order(function: Callable[P, R]) -> Callable[P, R]:
    """As `compiled_inline`, for reductions by max and min over arrays without NaN."""
    return _compile(function, _nrt=False, forceinline=True, fastmath={"nnan", "nsz"})


def bound(kernel: Callable[P, R], *arguments: Any) -> Callable[P, R]:
    """The compiled function for arguments of these types.

    To find it is what a call of the kernel spends most on: 5 us for some thirty arrays, a sixth of a small projection.
    """
    dispatcher, type_of = cast(Any, kernel), cast(Callable[[object], object], typeof)
    kinds = tuple(type_of(argument) for argument in arguments)
    dispatcher.compile(kinds)
    return cast(Callable[P, R], dispatcher.get_overload(kinds))


def _compile(function: Callable[P, R], **options: Any) -> Callable[P, R]:
    return cast(Callable[P, R], kept_on_disk(njit(nogil=True, error_model="numpy", **options)(function)))
