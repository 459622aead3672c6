"""Sums over pairs and episodes, for the best policy in hindsight.

These are matrix products.  BLAS would not be faster: on small matrices its threads obstruct each other.  Without BLAS,
results also do not depend on the number of threads.
"""

import cython
from cython.cimports.libc.stdint import int64_t


def add_to(total, weight, row, size):
    """total += weight row."""
    for i in range(size):
        total[i] += weight * row[i]


def fill_means(
    ptr: cython.const[int64_t][::1], transition: cython.const[cython.double][::1],
    losses: cython.const[cython.double][:, :, ::1], means: cython.double[:, :, ::1],
) -> None:  # fmt: skip
    """means[t, j, p] = sum over the transitions of pair p of P losses[t, :, j]."""
    t: cython.Py_ssize_t
    j: cython.Py_ssize_t
    p: cython.Py_ssize_t
    i: cython.Py_ssize_t
    with cython.nogil:
        for t in range(losses.shape[0]):
            for j in range(losses.shape[2]):
                for p in range(ptr.shape[0] - 1):
                    mean = 0.0
                    for i in range(ptr[p], ptr[p + 1]):
                        mean += transition[i] * losses[t, i, j]
                    means[t, j, p] = mean


def add_sums(
    ptr: cython.const[int64_t][::1], rows: cython.const[cython.double][:, ::1],
    columns: cython.const[cython.double][:, ::1], v: cython.double[:, :, ::1],
) -> None:  # fmt: skip
    """v[k, r, j] += sum over ptr[k] .. ptr[k + 1] of rows[r, p] columns[p, j]."""
    k: cython.Py_ssize_t
    r: cython.Py_ssize_t
    p: cython.Py_ssize_t
    size = columns.shape[1]
    with cython.nogil:
        for k in range(ptr.shape[0] - 1):
            for r in range(rows.shape[0]):
                for p in range(ptr[k], ptr[k + 1]):
                    add_to(cython.address(v[k, r, 0]), rows[r, p], cython.address(columns[p, 0]), size)


def add_rows(
    ptr: cython.const[int64_t][::1], rows: cython.const[cython.double][:, ::1],
    weights: cython.const[cython.double][:, :, :], slopes: cython.double[:, ::1],
) -> None:  # fmt: skip
    """slopes[j] += sum_r weights[k, r, j] rows[r] on ptr[k] .. ptr[k + 1]."""
    k: cython.Py_ssize_t
    r: cython.Py_ssize_t
    j: cython.Py_ssize_t
    with cython.nogil:
        for k in range(ptr.shape[0] - 1):
            first, size = ptr[k], ptr[k + 1] - ptr[k]
            for r in range(rows.shape[0]):
                for j in range(slopes.shape[0]):
                    add_to(cython.address(slopes[j, first]), weights[k, r, j], cython.address(rows[r, first]), size)


def add_products(
    ptr: cython.const[int64_t][::1], rows: cython.const[cython.double][:, ::1],
    weights: cython.const[cython.double][:], inner_weights: cython.const[cython.double][:, :], H: cython.double[:, ::1],
) -> None:  # fmt: skip
    """H[p, o] += sum_r weights[r] rows[r, p] rows[r, o] for p <= o.

    Where p and o both lie in ptr[k] .. ptr[k + 1], the weight is weights[r] + inner_weights[k, r].
    """
    k: cython.Py_ssize_t
    r: cython.Py_ssize_t
    p: cython.Py_ssize_t
    pairs = H.shape[1]
    with cython.nogil:
        for k in range(ptr.shape[0] - 1):
            last: cython.Py_ssize_t = ptr[k + 1]
            for p in range(ptr[k], last):
                for r in range(rows.shape[0]):
                    outer = weights[r] * rows[r, p]
                    inner = outer + inner_weights[k, r] * rows[r, p]
                    add_to(cython.address(H[p, p]), inner, cython.address(rows[r, p]), last - p)
                    if outer != 0.0 and last < pairs:
                        add_to(cython.address(H[p, last]), outer, cython.address(rows[r, last]), pairs - last)
