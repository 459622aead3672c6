"""Philox-4x64 with ten rounds (Salmon et al. 2011): random words as a function of a key and a count.

The words equal those of ``numpy.random.Philox``, which counts once before it draws.
"""

import cython
from cython.cimports.libc.stdint import uint64_t

ROUNDS = cython.declare(cython.int, 10)
FACTOR_A = cython.declare(uint64_t, 0xD2E7470EE14C6C93)
FACTOR_C = cython.declare(uint64_t, 0xCA5A826395121157)
BUMP_K = cython.declare(uint64_t, 0x9E3779B97F4A7C15)
BUMP_M = cython.declare(uint64_t, 0xBB67AE8584CAA73B)


def philox(stream, count):
    """The four words ``count`` counts after the stream's start."""
    found: Words
    a: uint64_t = stream.start[0] + count + 1
    b: uint64_t = stream.start[1] + (1 if a < stream.start[0] else 0)
    c: uint64_t = 0
    d: uint64_t = 0
    k: uint64_t = stream.key[0]
    m: uint64_t = stream.key[1]
    for _ in range(ROUNDS):
        upper_a = upper_half(FACTOR_A, a)
        lower_a = FACTOR_A * a
        upper_c = upper_half(FACTOR_C, c)
        lower_c = FACTOR_C * c
        a = upper_c ^ b ^ k
        b = lower_c
        c = upper_a ^ d ^ m
        d = lower_a
        k += BUMP_K
        m += BUMP_M
    found.word[0], found.word[1], found.word[2], found.word[3] = a, b, c, d
    return found


def fill_row(stream, row, width, out):
    """Row ``row`` of the stream, as numbers in [0, 1); every row begins on a new count."""
    counts = counts_of(width)
    for c in range(counts):
        words = philox(stream, row * counts + c)
        left = width - WORDS * c
        for k in range(left if left < WORDS else WORDS):
            out[WORDS * c + k] = to_uniform(words.word[k])


def stream_at(key, start):
    """The stream with this key, from this count on; each is two words."""
    found: Stream
    found.key[0], found.key[1] = key[0], key[1]
    found.start[0], found.start[1] = start[0], start[1]
    return found


def fill_uniforms(key, start, rows: cython.double[:, ::1]) -> None:
    """Fill the rows, the first of which begins with the count ``start``."""
    stream = stream_at(key, start)
    r: cython.Py_ssize_t
    if rows.shape[0] and rows.shape[1]:
        with cython.nogil:
            for r in range(rows.shape[0]):
                fill_row(cython.address(stream), r, rows.shape[1], cython.address(rows[r, 0]))
