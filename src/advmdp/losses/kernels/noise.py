"""Noise around means: l = m + noise (2 u - 1) min(m, 1 - m), which stays in [0, 1]; one u for each entry."""

import cython
from cython.cimports.advmdp.core.kernels.philox import WORDS, Stream, counts_of, philox, stream_at
from cython.cimports.libc.stdint import int64_t
from cython.cimports.libc.string import memcpy


def add_noise_to_row(stream, row, means, noise, width, out):
    """The means with the noise of one row of the stream."""
    if noise == 0.0:
        memcpy(out, means, width * cython.sizeof(cython.double))
        return
    counts = counts_of(width)
    for c in range(counts):
        words = philox(stream, row * counts + c)
        left = width - WORDS * c
        for k in range(left if left < WORDS else WORDS):
            out[WORDS * c + k] = noisy(means[WORDS * c + k], noise, words.word[k])


def add_noise(
    key, start, means: cython.const[cython.double][:, ::1], which: cython.const[int64_t][::1], noise: cython.double,
    losses: cython.double[:, ::1],
) -> None:  # fmt: skip
    """losses[b] = means[which[b]] with noise, drawn from row b of the stream."""
    stream: Stream = stream_at(key, start)
    b: cython.Py_ssize_t
    width = losses.shape[1]
    with cython.nogil:
        for b in range(losses.shape[0]):
            add_noise_to_row(
                cython.address(stream), b, cython.address(means[which[b], 0]), noise, width,
                cython.address(losses[b, 0]),
            )  # fmt: skip
