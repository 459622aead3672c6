"""Sums over pairs and episodes."""

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray
from advmdp.planning.hindsight.polytope import Polytope
from advmdp.planning.kernels.sums import add_sums, fill_means


def means_over_successors(polytope: Polytope, block: FloatArray) -> FloatArray:
    """sum_{x'} P(x'|x, a) l(x, a, x'), of shape (episodes, d, pairs)."""
    losses = np.ascontiguousarray(block.reshape(*block.shape[:2], -1))
    means = np.empty((len(losses), losses.shape[2], polytope.sk.num_pairs))
    fill_means(polytope.sk.transition_ptr, polytope.mdp.transition, losses, means)
    return means


def sums(ptr: NDArray[np.int64], rows: FloatArray, x: FloatArray) -> FloatArray:
    """v[k, r, j]: the sum of rows[r] x[j] over ptr[k] .. ptr[k + 1]."""
    v = np.zeros((len(ptr) - 1, len(rows), len(x)))
    add_sums(ptr, np.ascontiguousarray(rows), np.ascontiguousarray(x.T), v)
    return v


def mirrored(H: FloatArray) -> FloatArray:
    """The symmetric matrix whose upper triangle is that of H."""
    return np.triu(H) + np.triu(H, 1).T
