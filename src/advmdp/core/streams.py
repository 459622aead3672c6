"""Named random streams: every draw is a pure function of (seed, purpose, place).

Streams are Philox-4x64 generators (Salmon et al. 2011, ten rounds), which count instead of remembering: word w of a
stream is a function of its key and w alone.  The key comes from the user's seed and the names of the purpose ("world",
"adversary", ...), so streams of different purposes never meet and the order in which they are read does not matter.
Place t of a stream is a row of uniform numbers on its own counters, so any row, or block of rows, can be drawn at any
time with the same bytes.  The words are those of ``numpy.random.Philox``, drawn here by a kernel that other kernels
can call.
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray, whole
from advmdp.core.compiling import compiled
from advmdp.core.errors import InputError

Key = NDArray[np.uint64]

WORDS = 4
"""The words of one count."""
_ROUNDS = 10
_FACTORS = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
_BUMPS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)


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
    """Rows ``first`` to ``first + count`` of a stream of rows of ``width`` uniform numbers in [0, 1)."""
    rows = np.empty((count, width))
    _fill_uniforms(key, place(first, width), rows)
    return rows


def place(first: int, width: int) -> Key:
    """The count with which row ``first`` begins, in two words."""
    count = first * counts_of(width)
    if count >= 2**127:
        raise InputError("episode", f"{first}", f"below {2**127 // counts_of(width)}, where the stream ends")
    return np.array([count % 2**64, count // 2**64], np.uint64)


def _product(typingctx: Any, a: Any, b: Any) -> Any:
    """The upper and the lower 64 bits of a product of two 64-bit numbers."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide, word = ir.IntType(128), ir.IntType(64)
        product = builder.mul(builder.zext(arguments[0], wide), builder.zext(arguments[1], wide))
        upper = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), word)
        return context.make_tuple(builder, signature.return_type, (upper, builder.trunc(product, word)))

    return types.UniTuple(types.uint64, 2)(types.uint64, types.uint64), codegen  # type: ignore[no-untyped-call]


_multiply = cast("Callable[[np.uint64, np.uint64], tuple[np.uint64, np.uint64]]", intrinsic(_product))
Words = tuple[np.uint64, np.uint64, np.uint64, np.uint64]


@compiled
def philox(key: Key, start: Key, count: int) -> Words:
    """The four words ``count`` counts after ``start``, as NumPy has them: it counts once before it draws."""
    low = start[0] + np.uint64(count + 1)
    a, b, c, d = low, start[1] + np.uint64(low < start[0]), np.uint64(0), np.uint64(0)
    k, m = key[0], key[1]
    for _ in range(_ROUNDS):
        upper, lower = _multiply(_FACTORS[0], a)
        upper_c, lower_c = _multiply(_FACTORS[1], c)
        a, b, c, d = upper_c ^ b ^ k, lower_c, upper ^ d ^ m, lower
        k, m = k + _BUMPS[0], m + _BUMPS[1]
    return a, b, c, d


@compiled
def to_uniform(word: np.uint64) -> float:
    """The upper 53 bits of a word as a number in [0, 1)."""
    return float(word >> np.uint64(11)) * 2.0**-53


@compiled
def counts_of(width: int) -> int:
    """How many counts a row takes: it begins on a new one."""
    return (width + WORDS - 1) // WORDS


@compiled
def _fill_uniforms(key: Key, start: Key, rows: FloatArray) -> None:
    width = rows.shape[1]
    counts = counts_of(width)
    for r in range(rows.shape[0]):
        for j in range(0, width - WORDS + 1, WORDS):
            a, b, c, d = philox(key, start, r * counts + j // WORDS)
            rows[r, j] = to_uniform(a)
            rows[r, j + 1] = to_uniform(b)
            rows[r, j + 2] = to_uniform(c)
            rows[r, j + 3] = to_uniform(d)
        last = width - width % WORDS
        words = philox(key, start, r * counts + last // WORDS)
        for j in range(last, width):
            rows[r, j] = to_uniform(words[j - last])
