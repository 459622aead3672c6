"""Sums over whole arrays, which the compiler may reorder and vectorise."""

from cython.cimports.libc.math import fabs, sqrt


def sum_of(values, size):
    """The sum of the values."""
    s = 0.0
    for i in range(size):
        s += values[i]
    return s


def dot(a, b, size):
    """a.b."""
    s = 0.0
    for i in range(size):
        s += a[i] * b[i]
    return s


def distance(weight, center, size):
    """L1 distance between the normalised weights and the centre."""
    s = 0.0
    d = 0.0
    for i in range(size):
        s += weight[i]
    scale = 1.0 / s
    for i in range(size):
        d += fabs(weight[i] * scale - center[i])
    return d


def add_multiple(target, factor, source, size):
    """target += factor * source."""
    for i in range(size):
        target[i] += factor * source[i]


def orthogonalise(basis, size, k, h, width):
    """Orthogonalise row k + 1 to rows 0 .. k; write the products to column k of h; return the norm of the rest.

    All products of a block of 512 columns are formed before the next block, so long rows are read once, not k times.
    """
    new = basis + (k + 1) * size
    for i in range(k + 1):
        h[i * width + k] = 0.0
    for begin in range(0, size, 512):
        count = min(512, size - begin)
        for i in range(k + 1):
            h[i * width + k] += dot(basis + i * size + begin, new + begin, count)
    squares = 0.0
    for begin in range(0, size, 512):
        count = min(512, size - begin)
        for i in range(k + 1):
            add_multiple(new + begin, -h[i * width + k], basis + i * size + begin, count)
        squares += dot(new + begin, new + begin, count)
    return sqrt(squares)
