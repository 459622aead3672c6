"""Evaluation of tables of terms: the value of a criterion and a subgradient z.

A row of a table is (kind, weight, alpha, c), and :mod:`advmdp.criteria.built_in` names the kinds.  With v_k the sum of
q l over layer k,

    total, worst:   weight alpha (sum_k v_k)^c, for the largest sum if there are several losses
    risk:           total plus weight (1 - alpha) sum_k v_k^c
    risk_lemma:     total plus weight (1 - alpha) <q, l^c>

For c > 1, v^c is taken to be 0 for v < 0.  So it is convex in v even if rounding turns a v of 0 negative.
"""

import cython
from cython.cimports.advmdp.core.kernels.types import floats_of, ints_of, reals_of
from cython.cimports.libc.math import pow


def power(v, c):
    """v^c."""
    if c == 1.0:
        return v
    if v <= 0.0:
        return 0.0
    return v * v if c == 2.0 else pow(v, c)


def slope(v, c):
    """The derivative of v^c: 0 at v = 0 for every c > 1."""
    if c == 1.0:
        return 1.0
    if v <= 0.0:
        return 0.0
    return 2.0 * v if c == 2.0 else c * pow(v, c - 1.0)


def dot(a, b, size):
    """The dot product of a and b, in eight partial sums, so that no addition waits for the one before."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    whole = size - size % 8
    for i in range(0, whole, 8):
        s0 += a[i] * b[i]
        s1 += a[i + 1] * b[i + 1]
        s2 += a[i + 2] * b[i + 2]
        s3 += a[i + 3] * b[i + 3]
        s4 += a[i + 4] * b[i + 4]
        s5 += a[i + 5] * b[i + 5]
        s6 += a[i + 6] * b[i + 6]
        s7 += a[i + 7] * b[i + 7]
    for i in range(whole, size):
        s0 += a[i] * b[i]
    return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))


def layer_sums(ptr, steps, q, loss, d, j, z):
    """v_k of the j-th of d losses, stored at the first entry of layer k in z; returns sum_k v_k."""
    total = 0.0
    for k in range(steps):
        first, last = ptr[k], ptr[k + 1]
        v = 0.0
        if d == 1:
            v = dot(q + first, loss + first, last - first)
        else:
            for i in range(first, last):
                v += q[i] * loss[i * d + j]
        z[first] = v
        total += v
    return total


def add_moment(share, c, q, loss, size, z):
    """Return share <q, l^c>, and add its gradient to z."""
    moment = 0.0
    for i in range(size):
        p = power(loss[i], c)
        moment += q[i] * p
        z[i] += share * p
    return share * moment


def evaluate_terms(terms, ptr, q, loss, d, z):
    """Return the weighted sum of f^C(q; l) over the terms, and write its subgradient into z.

    ``loss`` is (n, d), and d > 1 only if all terms are WORST.  The first pass computes the v_k and stores them in z.
    The second computes z itself: the slope of layer k depends on the sum of all v_k.  RISK_LEMMA has its own pass.
    """
    steps = terms.steps
    worst = 0
    total = layer_sums(ptr, steps, q, loss, d, 0, z)
    for j in range(1, d):
        other = layer_sums(ptr, steps, q, loss, d, j, z)
        if other > total:
            worst, total = j, other
    value = common = 0.0
    for r in range(terms.count):
        row = terms.rows + 4 * r
        value += row[1] * row[2] * power(total, row[3])
        common += row[1] * row[2] * slope(total, row[3])
    for k in range(steps):
        first, last = ptr[k], ptr[k + 1]
        v, here = z[first], common
        for r in range(terms.count):
            row = terms.rows + 4 * r
            if row[0] == RISK:
                share = row[1] * (1.0 - row[2])
                value += share * power(v, row[3])
                here += share * slope(v, row[3])
        if d == 1:
            for i in range(first, last):
                z[i] = here * loss[i]
        else:
            for i in range(first, last):
                z[i] = here * loss[i * d + worst]
    for r in range(terms.count):
        row = terms.rows + 4 * r
        if row[0] == RISK_LEMMA:
            value += add_moment(row[1] * (1.0 - row[2]), row[3], q, loss, ptr[steps], z)
    return value


def same_terms(a, b):
    """Whether two tables are equal."""
    if a.count != b.count:
        return False
    for i in range(4 * a.count):
        if a.rows[i] != b.rows[i]:
            return False
    return True


def terms_of(table, steps):
    """A table in the form that kernels read, for skeletons of ``steps`` steps.  The array must outlive it."""
    flat: cython.const[cython.double][:, ::1] = table
    terms: Terms
    terms.rows, terms.count, terms.steps = cython.address(flat[0, 0]), flat.shape[0], steps
    return terms


def evaluate(table, layer_transition_ptr, q, loss, z) -> float:
    """Return the value of the criterion with this table, and write its subgradient into z; ``loss`` is (n, d)."""
    terms = terms_of(table, len(layer_transition_ptr) - 1)
    rows: cython.const[cython.double][:, ::1] = loss
    return evaluate_terms(
        cython.address(terms), ints_of(layer_transition_ptr), reals_of(q), cython.address(rows[0, 0]), rows.shape[1],
        floats_of(z),
    )  # fmt: skip
