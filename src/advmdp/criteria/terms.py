"""Tables of terms, and the kernel that evaluates them: the value, and a subgradient z.

A row is (kind, weight, alpha, c).
"""

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray
from advmdp.core.compiling import compiled

KINDS = ("total", "worst", "risk", "risk_lemma")
"""What the kinds of terms are called in descriptions; a kind is its place here."""
TOTAL, WORST, RISK, RISK_LEMMA = range(4)


@compiled
def evaluate_terms(
    terms: FloatArray, layer_transition_ptr: NDArray[np.int64], q: FloatArray, loss: FloatArray, z: FloatArray
) -> float:
    """The sum over terms of weight times f^C(q; l), returned, and its subgradient, written into z.

    ``loss`` is (n, d), C-contiguous; d > 1 only where all terms are WORST.  Nothing is checked and nothing allocated.
    One pass for v_k, the sums of q l over the layers, which wait in z, and one for z itself, as the slope of layer k
    needs the sum of them all; RISK_LEMMA has a pass of its own.  The order of every sum is fixed.
    """
    flat, d = loss.reshape(loss.size), loss.shape[1]  # one row is read in vector registers only if it is known to be
    worst, total = 0, _layer_sums(layer_transition_ptr, q, flat, d, 0, z)
    for j in range(1, d):
        other = _layer_sums(layer_transition_ptr, q, flat, d, j, z)
        if other > total:
            worst, total = j, other
    value, slope = 0.0, 0.0
    for r in range(len(terms)):
        share, c = terms[r, 1] * terms[r, 2], terms[r, 3]
        value += share * _power(total, c)
        slope += share * _slope(total, c)
    for k in range(len(layer_transition_ptr) - 1):
        first, last = layer_transition_ptr[k], layer_transition_ptr[k + 1]
        v, here = z[first], slope
        for r in range(len(terms)):
            if terms[r, 0] == RISK:
                share, c = terms[r, 1] * (1.0 - terms[r, 2]), terms[r, 3]
                value += share * _power(v, c)
                here += share * _slope(v, c)
        if d == 1:
            for i in range(np.uint64(first), np.uint64(last)):
                z[i] = here * flat[i]
        else:
            for i in range(first, last):
                z[i] = here * flat[i * d + worst]
    for r in range(len(terms)):
        if terms[r, 0] == RISK_LEMMA:
            value += _add_moment(terms[r, 1] * (1.0 - terms[r, 2]), terms[r, 3], q, loss, z)
    return value


@compiled
def _layer_sums(
    layer_transition_ptr: NDArray[np.int64], q: FloatArray, flat: FloatArray, d: int, j: int, z: FloatArray
) -> float:
    """v_k = sum of q l[:, j] over layer k, kept at the first place of the layer in z; returns sum_k v_k."""
    total = 0.0
    for k in range(len(layer_transition_ptr) - 1):
        first, last = layer_transition_ptr[k], layer_transition_ptr[k + 1]
        v = _dot(q, flat, first, last) if d == 1 else 0.0
        if d > 1:
            for i in range(first, last):
                v += q[i] * flat[i * d + j]
        z[first] = v
        total += v
    return total


@compiled
def _dot(a: FloatArray, b: FloatArray, first: int, last: int) -> float:
    """The sum of a b from first to last, in eight sums, so that no addition waits for the one before."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    for k in range((last - first) // 8):
        i = np.uint64(first + 8 * k)  # an index that may be negative is looked at twice
        s0 += a[i] * b[i]
        s1 += a[i + np.uint64(1)] * b[i + np.uint64(1)]
        s2 += a[i + np.uint64(2)] * b[i + np.uint64(2)]
        s3 += a[i + np.uint64(3)] * b[i + np.uint64(3)]
        s4 += a[i + np.uint64(4)] * b[i + np.uint64(4)]
        s5 += a[i + np.uint64(5)] * b[i + np.uint64(5)]
        s6 += a[i + np.uint64(6)] * b[i + np.uint64(6)]
        s7 += a[i + np.uint64(7)] * b[i + np.uint64(7)]
    for rest in range(last - (last - first) % 8, last):
        s0 += a[rest] * b[rest]
    return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))


@compiled
def _add_moment(share: float, c: float, q: FloatArray, loss: FloatArray, z: FloatArray) -> float:
    """share <q, l^c>; its gradient is added to z."""
    moment = 0.0
    for i in range(len(q)):
        power = _power(loss[i, 0], c)
        moment += q[i] * power
        z[i] += share * power
    return share * moment


@compiled
def _power(v: float, c: float) -> float:
    """v^c, and 0 for v below 0, where c is not 1: so it is convex in v whatever rounding makes of a v of 0."""
    if c == 1.0:
        return v
    if v <= 0.0:
        return 0.0
    return v * v if c == 2.0 else v**c


@compiled
def _slope(v: float, c: float) -> float:
    """The derivative of :func:`_power`: 0 at v = 0 for every c > 1."""
    if c == 1.0:
        return 1.0
    if v <= 0.0:
        return 0.0
    return 2.0 * v if c == 2.0 else c * v ** (c - 1.0)
