"""Newton's step by elimination, for narrow layers.

The matrix of `newton.py` couples a layer with itself and with its two neighbours. It is stored row by row over the
three layers, `band[x, c - first state of the layer before x]`, and eliminated from the first layer to the last. Near
balance it is a symmetric positive matrix with scaled rows, so no pivoting is needed. The factors are kept: the last
step of a projection is so small that it can reuse those of the previous step.

Rows have five to thirty entries, for which the compiler's own vector loops take longer to set up than to run. So rows
are added four entries at a time (`add_lanes`), up to three beyond their end. There is room behind every row, and the
surplus entries of the added row are zero or belong to columns that nothing reads.
"""

import cython
from cython.cimports.advmdp.projection.kernels.types import LANES, UNIT, first_entry, scratch_row
from cython.cimports.libc.math import fabs
from cython.cimports.libc.string import memcpy, memset

SMALLEST_PIVOT = cython.declare(cython.double, 1e-12)


def add_edges(sk, w, far):
    """The diagonal, the mean over successors, and the mean over predecessors."""
    width = w.band_width
    memset(w.band, 0, sk.states * width * cython.sizeof(cython.double))
    for layer in range(1, sk.steps):
        before, here = sk.layer_ptr[layer - 1], sk.layer_ptr[layer]
        for x in range(here, sk.layer_ptr[layer + 1]):
            band = w.band + x * width - before
            band[x] = 2.0 if w.pull[x] > 0.0 else 1.0
            if w.pull[x] == 0.0:
                continue
            flow, successor = w.flow + sk.edge_ptr[x], sk.successor + first_entry(sk, x)
            column = w.band + x - here
            for j in range(sk.edge_ptr[x + 1] - sk.edge_ptr[x]):
                y = successor[j]
                if w.pull[y] > 0.0:
                    band[y] -= UNIT * flow[j]
                    if not far:
                        column[y * width] -= flow[j] * w.push[x] * w.pull[y]
            if far:
                for i in range(first_entry(sk, x), first_entry(sk, x + 1)):
                    column[sk.successor[i] * width] -= w.back[i] if w.pull[sk.successor[i]] > 0.0 else 0.0


def three_vectors(p, low, high, is_box, size, keep_a, keep_b, vectors, stride):
    """p - p_A/mass_a, p - p_B/mass_b and p, and zeros behind them to fill the lanes."""
    first, second, third = vectors, vectors + stride, vectors + 2 * stride
    if is_box:
        for j in range(size):
            first[j] = p[j] * (keep_a if (p[j] > low[j]) & (p[j] < high[j]) else 1.0)
            second[j] = p[j]
            third[j] = p[j]
    else:
        for j in range(size):
            first[j] = p[j] * (keep_a if p[j] > low[j] else 1.0)
            second[j] = p[j] * (keep_b if p[j] < low[j] else 1.0)
            third[j] = p[j]
    for j in range(size, size + LANES - 1):
        first[j] = second[j] = third[j] = 0.0


def choose_vectors(p, low, high, is_box, size, stride, chosen):
    """The start of the vector that each entry adds: that of A (which includes every bound of zero), that of B, or p.

    Without branches, which a processor could not predict.
    """
    if is_box:
        for j in range(size):
            fixed: cython.bint = ((p[j] == low[j]) & (low[j] > 0.0)) | (p[j] == high[j])
            chosen[j] = 2 * stride if fixed else 0
    else:
        for j in range(size):
            pinned: cython.bint = (p[j] == low[j]) & (low[j] > 0.0)
            below = stride if p[j] < low[j] else 0
            chosen[j] = 2 * stride if pinned else below


def add_tight(sk, sets, w, far, back):
    """q(x,a) [p p - p_A p_A/mass_a - p_B p_B/mass_b] of the tight rows: each adds one of three vectors to row x'.

    The inflow on pinned entries, which does not respond to beta, is subtracted from the diagonal.
    """
    vectors, layer, width = scratch_row(w, 0, 3), 0, w.band_width
    chosen = cython.cast(cython.pointer(cython.Py_ssize_t), scratch_row(w, 0, 2))
    memset(w.pinned, 0, sk.states * cython.sizeof(cython.double))
    for k in range(w.num_watched):
        pair = w.watched[k]
        while sk.state_of[pair] >= sk.layer_ptr[layer + 1]:
            layer += 1
        begin = sk.transition_ptr[pair]
        size = sk.transition_ptr[pair + 1] - begin
        if not w.tight[pair] or (w.pull[sk.successor[begin]] == 0.0 and size == 1):
            continue
        keep_a = 1.0 - 1.0 / w.mass_a[k] if w.mass_a[k] > 0.0 else 1.0
        keep_b = 1.0 - 1.0 / w.mass_b[k] if w.mass_b[k] > 0.0 else 1.0
        row, low, high = w.row + begin, sets.low + begin, sets.high + begin if sets.is_box else sets.low
        three_vectors(row, low, high, sets.is_box, size, keep_a, keep_b, vectors, w.stride)
        choose_vectors(row, low, high, sets.is_box, size, w.stride, chosen)
        # The first column of every row of the next layer is the first state of this one.
        add_row(sk, w, pair, 1.0 if far else w.share[k], back, sk.layer_ptr[layer], vectors, chosen)
    for layer in range(1, sk.steps):
        for x in range(sk.layer_ptr[layer], sk.layer_ptr[layer + 1]):
            w.band[x * width + x - sk.layer_ptr[layer - 1]] -= w.pinned[x]


def add_row(sk, w, pair, share, back, shift, vectors, chosen):
    """Add the vector of each entry of a pair to the row of its successor."""
    begin, first, width, fixed = sk.transition_ptr[pair], sk.first_of_pair[pair], w.band_width, 2 * w.stride
    size, factors = sk.transition_ptr[pair + 1] - begin, scratch_row(w, 0, 0)
    there, successor, matrix = back + begin, sk.successor + begin, w.band - shift
    if first >= 0:
        pull, pinned, band = w.pull + first, w.pinned + first, matrix + first * width + first
        for i in range(size):
            factors[i] = share * there[i] * pull[i]
            pinned[i] += factors[i] if chosen[i] == fixed else 0.0
        for i in range(size):
            vector = vectors + chosen[i]
            for j in range(0, size, 4):
                add_lanes(band + j, factors[i], vector + j)
            band += width
    else:
        for i in range(size):
            y = successor[i]
            factor, vector, band = share * there[i] * w.pull[y], vectors + chosen[i], matrix + y * width
            w.pinned[y] += factor if chosen[i] == fixed else 0.0
            for j in range(size):
                band[successor[j]] += factor * vector[j]


def subtract_pivot(target, pivot, inverse, size):
    """Eliminate the pivot's column from a row, both from that column on; `size` columns follow it.

    `inverse` is the inverse of the pivot. The factor overwrites the eliminated entry.
    """
    m = -target[0] * inverse
    target[0] = m
    if m != 0.0:
        for j in range(1, size + 1, 4):
            add_lanes(target + j, m, pivot + j)


def factorise(sk, w):
    """Eliminate the band; store the factors and the inverse pivots in it. False if a pivot vanishes."""
    width = w.band_width
    for layer in range(1, sk.steps):
        before, here, end = sk.layer_ptr[layer - 1], sk.layer_ptr[layer], sk.layer_ptr[layer + 1]
        stop = sk.layer_ptr[layer + 2] if layer + 1 < sk.steps else end
        for x in range(here, end):
            pivot = w.band + x * width + x - before
            if fabs(pivot[0]) < SMALLEST_PIVOT:
                return False
            inverse, size = 1.0 / pivot[0], stop - x - 1
            pivot[0] = inverse
            for y in range(x + 1, end):
                subtract_pivot(w.band + y * width + x - before, pivot, inverse, size)
            for y in range(end, stop):
                subtract_pivot(w.band + y * width + x - here, pivot, inverse, size)
    return True


def along_row(band, values, size):
    """The dot product of a row of the band and values."""
    s = 0.0
    for j in range(size):
        s += band[j] * values[j]
    return s


def substitute(sk, w):
    """Solve band step = defect with the factors of `factorise`."""
    width, step = w.band_width, w.step
    memcpy(step, w.defect, sk.states * cython.sizeof(cython.double))
    for layer in range(1, sk.steps):
        before = sk.layer_ptr[layer - 1]
        for x in range(sk.layer_ptr[layer], sk.layer_ptr[layer + 1]):
            step[x] += along_row(w.band + x * width, step + before, x - before)
    for layer in range(sk.steps - 1, 0, -1):
        before, here, end = sk.layer_ptr[layer - 1], sk.layer_ptr[layer], sk.layer_ptr[layer + 1]
        stop = sk.layer_ptr[layer + 2] if layer + 1 < sk.steps else end
        for x in range(end - 1, here - 1, -1):
            pivot = w.band + x * width + x - before
            step[x] = (step[x] - along_row(pivot + 1, step + x + 1, stop - x - 1)) * pivot[0]


def direct_step(sk, sets, w, far, back):
    """Compute `step` by elimination, for the system that `newton_step` has set up. False if that fails."""
    add_edges(sk, w, far)
    add_tight(sk, sets, w, far, back)
    if not factorise(sk, w):
        return False
    substitute(sk, w)
    return True
