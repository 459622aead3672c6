"""The one way in which this library compiles: on first use, cached on disk, free of the interpreter lock.

``error_model="numpy"`` because a division by zero in a kernel is a value to be handled there, not an exception.
Floating-point semantics stay strict (no fastmath), so that the same input gives the same bytes.

What Numba keeps on disk is kept in another way than its own, which has three faults.

It keeps a kernel for as long as the kernel's own file is the same, though what the kernel calls, or a constant that it
takes from another file, may have changed: a new version of this library would give some of the old one's results.
Here the name of a file has a hash of all sources of the package.

It numbers the files of a kernel and writes their index first: two processes that compile at once can take the same
number, and one that reads, or is killed, between index and file finds code of another type, or of older sources.  Here
each type has a file of its own, named by it, complete or absent, with a checksum: what is damaged is compiled again.

A kernel that was compiled against one *from the disk* in which there is a parallel loop lacks the code of that loop
when it is itself read from the disk, and the process crashes.  (Three processes are enough: one compiles the inner
kernel, or is stopped after it; the next compiles the outer one; the third reads it.)  So what has a parallel loop is
not kept once this process has read such a kernel; those that it read are removed, and the next process compiles all.

The files are Numba's pickles: who can write to the folder can run code, as with ``.pyc`` files.
"""

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from glob import escape
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.np.ufunc.parallel import threading_layer

from advmdp.core.errors import AdvMDPError

Function = TypeVar("Function", bound=Callable[..., object])
PARALLEL = b"numba_parallel_for"
"""What code with a parallel loop calls."""
PACKAGE = Path(__file__).parent.parent
DIGEST = hashlib.sha256().digest_size


def compiled(function: Function) -> Function:
    """``function`` as a Numba kernel; compiled anew in each process where no folder can be written to for the cache."""
    return cast(Function, kept_on_disk(njit(nogil=True, error_model="numpy")(function)))


def kept_on_disk(kernel: Any) -> Any:
    """The kernel, with a cache that knows when any source has changed; without one if there is no place for it."""
    with suppress(RuntimeError):
        kernel._cache = _Cache(kernel.py_func)
    return kernel


class _Cache(FunctionCache):
    """Numba's own, with other files, and with one more thing that must be the same."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        self._cache_file = _Files(self._cache_path, self._impl.filename_base)

    def _index_key(self, sig: object, codegen: object) -> tuple[object, ...]:
        return (*super()._index_key(sig, codegen), sources(PACKAGE))  # type: ignore[no-untyped-call]


class _Files(IndexDataCacheFile):
    """The files of one kernel: KERNEL.SOURCES.KEY.nbc, the last two hashes."""

    read_parallel: list[Path] = []  # noqa: RUF012 (of the whole process)
    """Files with parallel loops that were read."""

    def __init__(self, folder: str, kernel: str) -> None:
        super().__init__(folder, kernel, "")  # type: ignore[no-untyped-call]
        self._folder, self._kernel = Path(folder), kernel

    def load(self, key: tuple[Any, ...]) -> Any:
        """What was compiled for the key; None where there is nothing, or nothing whole."""
        path = self._path(key)
        try:
            content = path.read_bytes()
            if hashlib.sha256(content[:-DIGEST]).digest() != content[-DIGEST:]:
                return None
            known, data = self._load_data(path.name)  # type: ignore[no-untyped-call]
        except OSError:
            return None
        if known != key:
            return None
        if PARALLEL in content:
            self.read_parallel.append(path)
        return data

    def save(self, key: tuple[Any, ...], data: object) -> None:
        """Keep it, unless it may lack something; and remove what was compiled from other sources."""
        content, path = self._dump((key, data)), self._path(key)
        with suppress(OSError):  # a full disk: then it is compiled again next time
            if PARALLEL in content and self.read_parallel:
                for one in self.read_parallel:
                    one.unlink(missing_ok=True)
                return
            with self._open_for_write(path) as file:
                file.write(content)
            current = f"{self._kernel}.{key[-1][:DIGEST]}."
            for one in self._folder.glob(f"{escape(self._kernel)}.*nb[ic]"):
                if not one.name.startswith(current):
                    one.unlink(missing_ok=True)

    def flush(self) -> None:
        """Nothing: there is no index."""

    def _path(self, key: tuple[Any, ...]) -> Path:
        name = hashlib.sha256(repr(key).encode()).hexdigest()[:DIGEST]
        return self._folder / f"{self._kernel}.{key[-1][:DIGEST]}.{name}.nbc"

    def _dump(self, found: object) -> bytes:
        """With its checksum at the end, where whoever reads a pickle does not look."""
        content: bytes = super()._dump(found)  # type: ignore[no-untyped-call]
        return content + hashlib.sha256(content).digest()


@cache
def sources(package: Path) -> str:
    """A hash of all source files of the package: kernels are made of one another, and of constants from anywhere."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        text = path.read_bytes()
        name = path.relative_to(package).as_posix().encode()
        digest.update(name + b"\0" + len(text).to_bytes(8, "little") + text)
    return digest.hexdigest()


_left_behind = False


def _note_fork() -> None:
    global _left_behind  # noqa: PLW0603 (of the whole process)
    with suppress(ValueError):  # no threads have been started
        _left_behind = _left_behind or threading_layer() == "omp"  # type: ignore[no-untyped-call]


os.register_at_fork(after_in_child=_note_fork)


def check_threads() -> None:
    """Refuse parallel loops in a process that was forked after its parent ran some: GNU OpenMP would end it."""
    if _left_behind:
        given = "threads: this process was forked from one that had threads at work, which a fork leaves behind"
        raise AdvMDPError(f"{given}; expected threads=1, or processes that are started by 'spawn'")
