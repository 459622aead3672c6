"""The one way in which this library compiles: on first use, cached on disk, free of the interpreter lock.

``error_model="numpy"`` because a division by zero in a kernel is a value to be handled there, not an exception.
Floating-point semantics stay strict (no fastmath), so that the same input gives the same bytes.

Numba keeps a compiled kernel for as long as the kernel's own file is the same, though the kernels that it calls may
have changed: whoever takes up a new version of this library would get some of the old one's results, silently.  So what
is kept is kept under a hash of all files with kernels.  That hash also takes the place of the time of a kernel's file:
by times, when a file is changed and changed back, some kernels would be compiled anew and others read from the cache,
and what was compiled against a parallel kernel from the cache crashes when it is itself read from there.
"""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit
from numba.core.caching import FunctionCache

__all__ = ["compiled", "kept_on_disk"]

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """``function`` as a Numba kernel; compiled anew in each process where no folder can be written to for the cache."""
    return cast(Function, kept_on_disk(njit(nogil=True, error_model="numpy")(function)))


def kept_on_disk(kernel: Any) -> Any:
    """The kernel, with a cache that knows when any kernel has changed; without one if there is no place for it."""
    with suppress(RuntimeError):
        kernel._cache = _Cache(kernel.py_func)
    return kernel


class _Cache(FunctionCache):
    """Numba's own, with one more thing that must be the same, and no times of files."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        self._cache_file._source_stamp = sources(Path(__file__).parent)

    def _index_key(self, sig: object, codegen: object) -> tuple[object, ...]:
        return (*super()._index_key(sig, codegen), sources(Path(__file__).parent))  # type: ignore[no-untyped-call]


@cache
def sources(package: Path) -> str:
    """A hash of the files that have kernels, and of all beside the projection's: what these are made of."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        text = path.read_bytes()
        if b"@compiled" in text or path.name == "compiled.py" or path.parent.name == "projection":
            digest.update(path.name.encode() + len(text).to_bytes(8, "little") + text)
    return digest.hexdigest()
