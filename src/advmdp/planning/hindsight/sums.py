"""Sums over pairs and episodes, compiled."""

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray
from advmdp.core.compiling import compiled
from advmdp.planning.hindsight.polytope import Polytope

Pointers = NDArray[np.int64]


def means_over_successors(polytope: Polytope, block: FloatArray) -> FloatArray:
    """sum_{x'} P(x'|x, a) l(x, a, x'), of shape (episodes, d, pairs)."""
    losses = block.reshape(*block.shape[:2], -1)
    means = np.empty((len(losses), losses.shape[2], polytope.sk.num_pairs))
    _fill_means(polytope.sk.transition_ptr, polytope.mdp.transition, losses, means)
    return means


@compiled
def _fill_means(ptr: Pointers, transition: FloatArray, losses: FloatArray, means: FloatArray) -> None:
    for t in range(losses.shape[0]):
        for j in range(losses.shape[2]):
            for p in range(len(ptr) - 1):
                mean = 0.0
                for i in range(ptr[p], ptr[p + 1]):
                    mean += transition[i] * losses[t, i, j]
                means[t, j, p] = mean


def sums(ptr: Pointers, rows: FloatArray, x: FloatArray) -> FloatArray:
    """v[k, r, j]: the sum of rows[r] x[j] over ptr[k] .. ptr[k + 1].

    This kernel and the next two are products of matrices that BLAS would not do faster: on small ones its threads get
    in each other's way.  And so bytes do not depend on their number.
    """
    v = np.zeros((len(ptr) - 1, len(rows), len(x)))
    _add_sums(ptr, rows, np.ascontiguousarray(x.T), v)
    return v


@compiled
def _add_to(total: FloatArray, weight: float, row: FloatArray) -> None:
    """total += weight row.  Both are slices, contiguous ones, for which the compiler finds vector instructions."""
    for i in range(len(total)):
        total[i] += weight * row[i]


@compiled
def _add_sums(ptr: Pointers, rows: FloatArray, columns: FloatArray, v: FloatArray) -> None:
    for k in range(len(ptr) - 1):
        for r in range(len(rows)):
            for p in range(ptr[k], ptr[k + 1]):
                _add_to(v[k, r], rows[r, p], columns[p])


@compiled
def add_rows(ptr: Pointers, rows: FloatArray, weights: FloatArray, slopes: FloatArray) -> None:
    """slopes[j] += sum_r weights[k, r, j] rows[r] on ptr[k] .. ptr[k + 1]."""
    for k in range(len(ptr) - 1):
        first, last = ptr[k], ptr[k + 1]
        for r in range(len(rows)):
            for j in range(len(slopes)):
                _add_to(slopes[j, first:last], weights[k, r, j], rows[r, first:last])


@compiled
def add_products(
    ptr: Pointers, rows: FloatArray, weights: FloatArray, inner_weights: FloatArray, H: FloatArray
) -> None:
    """H[p, o] += sum_r weights[r] rows[r, p] rows[r, o] for p <= o.

    Where p and o both lie in ptr[k] .. ptr[k + 1], the weight is weights[r] + inner_weights[k, r].
    """
    for k in range(len(ptr) - 1):
        last = ptr[k + 1]
        for p in range(ptr[k], last):
            for r in range(len(rows)):
                outer = weights[r] * rows[r, p]
                inner = outer + inner_weights[k, r] * rows[r, p]
                _add_to(H[p, p:last], inner, rows[r, p:last])
                if outer != 0.0:
                    _add_to(H[p, last:], outer, rows[r, last:])


def mirrored(H: FloatArray) -> FloatArray:
    """H with what is above its diagonal also below it."""
    return np.triu(H) + np.triu(H, 1).T
