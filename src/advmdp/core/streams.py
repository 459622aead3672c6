"""Named random streams: every draw is a pure function of (seed, purpose, place).

Streams are Philox-4x64 generators (Salmon et al. 2011, ten rounds), which are counters without a state: word w of a
stream is a function of its key and w alone.  The key is derived from the user's seed and the names of the purpose
("world", "adversary", ...), so streams of different purposes are independent and may be read in any order.  Place t of
a stream is a row of uniform numbers with its own counters, so any row or block of rows can be drawn at any time with
the same bytes.  The words equal those of ``numpy.random.Philox``.  :mod:`advmdp.core.kernels.philox` computes them, for
other kernels too.
"""

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray, whole
from advmdp.core.errors import InputError
from advmdp.core.kernels.philox import fill_uniforms

Key = NDArray[np.uint64]

WORDS = 4
"""The number of words that one count gives."""


def stream_key(seed: int, *purpose: str) -> Key:
    """The key of the stream for a purpose, under a seed."""
    # The key includes the length of each name, so that ("ab", "c") and ("a", "bc") are different purposes.
    names = tuple(part for name in purpose for part in (len(name), int.from_bytes(name.encode(), "little")))
    return (
        np.random.SeedSequence(whole("seed", seed, 0), spawn_key=names).generate_state(2, np.uint64).astype(np.uint64)
    )


def generator(seed: int, *purpose: str) -> np.random.Generator:
    """An ordinary NumPy generator on the stream for a purpose."""
    return np.random.Generator(np.random.Philox(key=stream_key(seed, *purpose)))


def uniforms(key: Key, first: int, count: int, width: int) -> FloatArray:
    """Rows ``first`` to ``first + count`` of a stream of rows of ``width`` uniform numbers in [0, 1)."""
    rows = np.empty((count, width))
    fill_uniforms(key, place(first, width), rows)
    return rows


def place(first: int, width: int) -> Key:
    """The count at which row ``first`` begins, as two words."""
    count = first * counts_of(width)
    if count >= 2**127:
        raise InputError("episode", f"{first}", f"below {2**127 // counts_of(width)}, where the stream ends")
    return np.array([count % 2**64, count // 2**64], np.uint64)


def counts_of(width: int) -> int:
    """How many counts a row takes; every row begins on a new count."""
    return (width + WORDS - 1) // WORDS
