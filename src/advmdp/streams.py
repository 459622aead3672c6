"""Named random streams: every draw is a pure function of (seed, purpose, place).

Streams are Philox-4x64 generators, which count instead of remembering: word w of a stream is a function of its key and
w alone.  The key comes from the user's seed and the names of the purpose ("world", "adversary", ...), so streams of
different purposes never meet and the order in which they are read does not matter.  Place t of a stream is a row of
uniform numbers on its own counters, so any row, or block of rows, can be drawn at any time with the same bytes.
"""

import numpy as np
from numpy.typing import NDArray

from advmdp.arrays import FloatArray, whole

__all__ = ["Key", "generator", "stream_key", "uniforms"]

Key = NDArray[np.uint64]

_WORDS_PER_COUNT = 4


def stream_key(seed: int, *purpose: str) -> Key:
    """The key of the stream for a purpose, under a seed."""
    # The length of each name goes in too, so that ("ab", "c") and ("a", "bc") are different purposes.
    names = tuple(part for name in purpose for part in (len(name), int.from_bytes(name.encode(), "little")))
    return (
        np.random.SeedSequence(whole("seed", seed, 0), spawn_key=names).generate_state(2, np.uint64).astype(np.uint64)
    )


def generator(seed: int, *purpose: str) -> np.random.Generator:
    """An ordinary NumPy generator on the stream for a purpose."""
    return np.random.Generator(np.random.Philox(key=stream_key(seed, *purpose)))


def uniforms(key: Key, first: int, count: int, width: int) -> FloatArray:
    """Rows ``first`` to ``first + count`` of a stream of rows of ``width`` uniform numbers in [0, 1).

    Built on the raw words, whose values NumPy promises to keep, not on its distributions, which may change.
    """
    counts = -(-width // _WORDS_PER_COUNT)
    words = np.random.Philox(counter=first * counts, key=key).random_raw(count * counts * _WORDS_PER_COUNT)
    rows = words.reshape(count, counts * _WORDS_PER_COUNT)[:, :width]
    return (rows >> np.uint64(11)).astype(np.float64) * 2.0**-53
