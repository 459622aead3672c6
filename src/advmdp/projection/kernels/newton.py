"""Newton's step on the balance of every state, ln inflow(x) - ln outflow(x) = 0.

For a pair without an active constraint, ln q(x,a,x') = ln w + beta(x') - beta(x) - ln Z_k. A tight row keeps the masses
of A and B, and its pinned entries do not move, so with p = dkappa/d(-beta)

    d(q(x,a) p) = q(x,a) [p (p.v - v(x)) + v p_AB - p_A (p_A.v)/mass_a - p_B (p_B.v)/mass_b].

The derivative of ln Z_k is omitted, which makes the matrix non-singular. Because beta is free up to a constant per
layer, this changes only the length of the step: if H is the Hessian of F and H1 the matrix without these rank-one
terms, then H1^-1 g equals H^+ g / (1 + g.H^+ g / L) up to the free constants, a damped Newton step. Dividing each row
of H1 by the mass of its state gives J. Its entries are forward and backward probabilities, of order one for any mass.
For narrow layers `direct.py` solves the system by elimination. For wide ones GMRES does, with all states weighted
equally:

    J = 2 - A - T,    M = D - (the part of A from odd layers to even ones),    J M^-1 z = defect,    step = M^-1 z

where A couples a layer with its neighbours, forward and backward. T comes from the tight rows; it couples a layer with
itself and maps constants to zero. D is 2 minus the pinned inflow if rows are long, and 2 if they are short, since T is
then as large off its diagonal as on it. Applying M^-1 solves the odd layers and then, with their contribution, the even
ones. Without tight rows, J M^-1 differs from the identity only on the odd layers. So a product does the work of two
with J, and passes the edges out of even layers once, those out of odd ones twice. The walk that J describes takes
O(L^2) steps to leave the layers. But beta is free up to a constant per layer, J maps these constants to constants, and
they hardly enter the defects near balance. So the mean over each layer is subtracted from the vectors of GMRES, and its
convergence depends only on how well the world mixes. Far from balance the residual need only fall to a tenth, the means
of the layers may be most of the defects, and M = D does better.
"""

import cython
from cython.cimports.advmdp.projection.kernels.direct import direct_step
from cython.cimports.advmdp.projection.kernels.sums import add_multiple, dot, orthogonalise
from cython.cimports.advmdp.projection.kernels.types import UNIT, Reals, first_entry, part_of, scratch_row
from cython.cimports.libc.math import fabs, hypot, sqrt
from cython.cimports.libc.string import memcpy, memset
from cython.parallel import prange

CYCLES = cython.declare(cython.int, 12)
LONG = cython.declare(cython.int, 8)  # entries of a row, in the mean
SLOW = cython.declare(cython.double, 0.2)  # a product that reduces the residual by a smaller factor counts as slow
EVEN = cython.declare(cython.int, 0)
ODD = cython.declare(cython.int, 1)


def collect_pinned(sk, sets, w, far, back):
    """Compute pinned(x'), the inflow on entries of tight rows that do not respond to beta."""
    memset(w.pinned, 0, sk.states * cython.sizeof(cython.double))
    for k in range(w.num_watched):
        pair = w.watched[k]
        if not w.tight[pair]:
            continue
        share, first, begin = 1.0 if far else w.share[k], sk.first_of_pair[pair], sk.transition_ptr[pair]
        row, low, there = w.row + begin, sets.low + begin, back + begin
        successor, size = sk.successor + begin, sk.transition_ptr[pair + 1] - begin
        # For balls, the centre serves as the upper bound: an entry at the centre is pinned unless it is zero.
        high = sets.high + begin if sets.is_box else low
        zero = -1.0 if sets.is_box else 0.0
        if first >= 0:
            pinned = w.pinned + first
            for j in range(size):
                part = share * there[j]
                fixed: cython.bint = ((row[j] == low[j]) & (low[j] > 0.0)) | ((row[j] == high[j]) & (high[j] > zero))
                pinned[j] += part if fixed else 0.0
        else:
            for j in range(size):
                if ((row[j] == low[j]) & (low[j] > 0.0)) | ((row[j] == high[j]) & (high[j] > zero)):
                    w.pinned[successor[j]] += share * there[j]


def prepare_inverse(sk, w):
    """Compute 1/D, zero for excluded states; keep in `pinned` the part that D does not include."""
    long_rows: cython.bint = sk.transitions >= LONG * sk.pairs
    for x in range(sk.states):
        fixed = w.pull[x] * w.pinned[x]
        w.inverse[x] = 1.0 / (2.0 - (fixed if long_rows else 0.0)) if w.pull[x] > 0.0 else 0.0
        w.pinned[x] = 0.0 if long_rows else fixed


def mean_after(sk, w, first, end, v, result):
    """result(x) = the mean of v after x, for a range of states."""
    for x in range(first, end):
        begin, there = sk.edge_ptr[x], sk.first_of_state[x]
        size, flow = sk.edge_ptr[x + 1] - begin, w.flow + begin
        s = 0.0
        if there >= 0:
            after = v + there
            for j in range(size):
                s += flow[j] * after[j]
        else:
            successor = sk.successor + first_entry(sk, x)
            for j in range(size):
                s += flow[j] * v[successor[j]]
        result[x] = UNIT * s


def pass_on(sk, w, first, end, v):
    """product(x') += q(x,x') v(x), relative to inflow(x') once `pull` is applied, for a range of states x."""
    for x in range(first, end):
        begin, there = sk.edge_ptr[x], sk.first_of_state[x]
        size, flow = sk.edge_ptr[x + 1] - begin, w.flow + begin
        here = w.push[x] * v[x]
        if there >= 0:
            product = w.product + there
            for j in range(size):
                product[j] += flow[j] * here
        else:
            successor = sk.successor + first_entry(sk, x)
            for j in range(size):
                w.product[successor[j]] += flow[j] * here


def pass_on_far(sk, w, first, end, v):
    """`pass_on` with backward probabilities, entry by entry."""
    for x in range(first, end):
        for i in range(first_entry(sk, x), first_entry(sk, x + 1)):
            w.product[sk.successor[i]] += w.back[i] * v[x]


def add_ball(p, center, size, v, back, share, mass_a, mass_b, out):
    """out += back times the term of the entry's class, A, B or pinned, for a tight row of a ball.

    The terms are the mean of v over the class, or zero for pinned entries, minus p.v. Above zero an entry is A.
    """
    s = s_a = s_b = 0.0
    share_a = share / mass_a if mass_a > 0.0 else 0.0  # before the sums, so that they do not wait for a division
    share_b = share / mass_b if mass_b > 0.0 else 0.0
    for j in range(size):
        t = p[j] * v[j]
        s += t
        s_a += t if p[j] > center[j] else 0.0
        s_b += t if p[j] < center[j] else 0.0
    term = -share * s
    term_a, term_b = term + share_a * s_a, term + share_b * s_b
    for j in range(size):
        here, c = p[j], center[j]
        rest = term if (here == c) & (c > 0.0) else term_a
        out[j] += back[j] * (term_b if here < c else rest)


def add_box(p, low, high, size, v, back, share, mass, out):
    """`add_ball` for a row of a box: the entries between their bounds move."""
    s = s_a = 0.0
    share_a = share / mass if mass > 0.0 else 0.0
    for j in range(size):
        t = p[j] * v[j]
        s += t
        s_a += t if (p[j] > low[j]) & (p[j] < high[j]) else 0.0
    term = -share * s
    term_a = term + share_a * s_a
    for j in range(size):
        inner: cython.bint = ((p[j] > low[j]) | (low[j] == 0.0)) & (p[j] < high[j])
        out[j] += back[j] * (term_a if inner else term)


def add_tight_rows(sk, sets, w, part, far, back, v):
    """product -= q(x,a) [p p.v - p_A (p_A.v)/mass_a - p_B (p_B.v)/mass_b], for all tight rows of a part."""
    is_box, there, out = sets.is_box, scratch_row(w, part.number, 2), scratch_row(w, part.number, 0)
    for k in range(part.watched, part.watched_end):
        pair = w.watched[k]
        if not w.tight[pair]:
            continue
        begin, first, share = sk.transition_ptr[pair], sk.first_of_pair[pair], 1.0 if far else w.share[k]
        size, p, low = sk.transition_ptr[pair + 1] - begin, w.row + begin, sets.low + begin
        here = v + first if first >= 0 else cython.cast(Reals, there)
        brought = w.product + first if first >= 0 else out
        successor = sk.successor + begin
        for j in range(size if first < 0 else 0):
            there[j] = v[successor[j]]
            out[j] = 0.0
        if is_box:
            add_box(p, low, sets.high + begin, size, here, back + begin, share, w.mass_a[k], brought)
        else:
            add_ball(p, low, size, here, back + begin, share, w.mass_a[k], w.mass_b[k], brought)
        for j in range(size if first < 0 else 0):
            w.product[successor[j]] += out[j]


def couple_part(sk, sets, w, number, far, back, v, result, parity):
    """`couple` for the flow out of one part."""
    part = part_of(sk, w, number)
    memset(w.product + part.into, 0, (part.into_end - part.into) * cython.sizeof(cython.double))
    for layer in range(part.layer, part.layer_end):
        first, end = sk.layer_ptr[layer], sk.layer_ptr[layer + 1]
        if layer % 2 == parity:
            mean_after(sk, w, first, end, v, result)
        elif far:
            pass_on_far(sk, w, first, end, v)
        else:
            pass_on(sk, w, first, end, v)
    if parity == ODD:
        add_tight_rows(sk, sets, w, cython.address(part), far, back, v)


def couple(sk, sets, w, far, back, v, result, parity):
    """The contribution of v to layers of one parity from the others: means after x in `result`, the rest in `product`.

    The tight rows, which couple a layer with itself, are added with the odd layers.
    """
    if sk.parts > 1:
        for number in prange(sk.parts, num_threads=sk.parts, schedule="static"):
            couple_part(sk, sets, w, number, far, back, v, result, parity)
    else:
        couple_part(sk, sets, w, 0, far, back, v, result, parity)


def eliminate(sk, sets, w, far, back, v, result, near):
    """result = M^-1 v, zero for excluded states."""
    pull, product, inverse = w.pull, w.product, w.inverse
    for x in range(sk.states):
        result[x] = inverse[x] * v[x]
    if near:
        couple(sk, sets, w, far, back, result, result, EVEN)
        for layer in range(EVEN, sk.steps + 1, 2):
            for x in range(sk.layer_ptr[layer], sk.layer_ptr[layer + 1]):
                result[x] = inverse[x] * (v[x] + result[x] + pull[x] * product[x])


def centre(sk, w, values, near):
    """Set excluded states to zero and, near balance, subtract the mean of every layer from the others."""
    pull = w.pull
    for layer in range(sk.steps + 1):
        total = count = 0.0
        for x in range(sk.layer_ptr[layer], sk.layer_ptr[layer + 1]):
            total += values[x] if pull[x] > 0.0 else 0.0
            count += 1.0 if pull[x] > 0.0 else 0.0
        mean = total / max(count, 1.0) if near else 0.0
        for x in range(sk.layer_ptr[layer], sk.layer_ptr[layer + 1]):
            values[x] = values[x] - mean if pull[x] > 0.0 else 0.0


def sweep_states(sk, w, first, end, v):
    """Solve the states first .. end of an even layer for `swept`, with the odd layers' contribution, and pass it on.

    One pass over the edges serves both directions, since memory limits large problems.
    """
    swept = w.swept
    for x in range(first, end):
        begin, there = sk.edge_ptr[x], sk.first_of_state[x]
        size, flow = sk.edge_ptr[x + 1] - begin, w.flow + begin
        successor = sk.successor + first_entry(sk, x)
        s = 0.0
        if there >= 0:
            after = swept + there
            for j in range(size):
                s += flow[j] * after[j]
        else:
            for j in range(size):
                s += flow[j] * swept[successor[j]]
        solved = w.inverse[x] * (v[x] + UNIT * s + w.pull[x] * w.product[x])
        swept[x] = solved
        here = w.push[x] * solved
        if there >= 0:
            product = w.product + there
            for j in range(size):
                product[j] += flow[j] * here
        else:
            for j in range(size):
                w.product[successor[j]] += flow[j] * here


def multiply_layer(sk, w, layer, v, result, stage):
    """One of the three stages of `multiply_near` for the flow out of one layer."""
    first, end = sk.layer_ptr[layer], sk.layer_ptr[layer + 1]
    if stage == 0 and layer % 2 == ODD:
        pass_on(sk, w, first, end, w.swept)
    elif stage == 1 and layer % 2 == EVEN:
        sweep_states(sk, w, first, end, v)
    elif stage == 2 and layer % 2 == ODD:
        mean_after(sk, w, first, end, w.swept, result)
        memset(w.product + end, 0, (sk.layer_ptr[layer + 2] - end) * cython.sizeof(cython.double))


def multiply_part(sk, w, number, v, result, stage):
    """One of the three stages of `multiply_near` for the flow out of one part."""
    part = part_of(sk, w, number)
    for layer in range(part.layer, part.layer_end):
        multiply_layer(sk, w, layer, v, result, stage)


def tight_part(sk, sets, w, number, back, v):
    """`add_tight_rows` for one part."""
    part = part_of(sk, w, number)
    add_tight_rows(sk, sets, w, cython.address(part), False, back, v)


def multiply_near(sk, sets, w, back, v, result):
    """Compute `swept`, and the contributions of other layers and tight rows to J M^-1 v in `result` and `product`.

    The contribution of odd layers to even ones cancels, and is left out. A single thread runs the three stages layer by
    layer, so that the edges of a layer are still in the cache; the sums are the same.
    """
    for x in range(sk.states):
        w.swept[x] = w.inverse[x] * v[x]
        w.product[x] = 0.0
    if sk.parts > 1:
        for stage in range(3):
            for number in prange(sk.parts, num_threads=sk.parts, schedule="static"):
                multiply_part(sk, w, number, v, result, stage)
        for number in prange(sk.parts, num_threads=sk.parts, schedule="static"):
            tight_part(sk, sets, w, number, back, w.swept)
    else:
        for layer in range(sk.steps + 1):
            if layer < sk.steps:
                multiply_layer(sk, w, layer, v, result, 1 if layer % 2 == EVEN else 0)
            if layer > 0:
                multiply_layer(sk, w, layer - 1, v, result, 2)
        tight_part(sk, sets, w, 0, back, w.swept)


def multiply(sk, sets, w, far, back, v, result, near):
    """result = J M^-1 v, up to a constant in each layer if `near`; stores M^-1 v in `swept`."""
    pull, product, pinned, swept = w.pull, w.product, w.pinned, w.swept
    if near and not far:
        multiply_near(sk, sets, w, back, v, result)
    else:
        eliminate(sk, sets, w, far, back, v, swept, near)
        if not near:
            couple(sk, sets, w, far, back, swept, result, EVEN)
            for layer in range(EVEN, sk.steps + 1, 2):
                for x in range(sk.layer_ptr[layer], sk.layer_ptr[layer + 1]):
                    result[x] += pull[x] * product[x]
        couple(sk, sets, w, far, back, swept, result, ODD)
    for layer in range(sk.steps + 1):
        coupled: cython.bint = not near or layer % 2 == ODD
        for x in range(sk.layer_ptr[layer], sk.layer_ptr[layer + 1]):
            brought = result[x] if coupled else 0.0
            result[x] = v[x] - brought - pull[x] * product[x]
    if w.num_watched > 0:
        for x in range(sk.states):
            result[x] -= pinned[x] * swept[x]
    centre(sk, w, result, near)


def rotate(h, last, k):
    """Apply the Givens rotations to column k of the Hessenberg matrix; its last two rows hold them."""
    width = last + 1
    cosines, sines = h + width * width, h + (width + 1) * width
    for i in range(k):
        upper, lower = h[i * width + k], h[(i + 1) * width + k]
        h[i * width + k] = cosines[i] * upper + sines[i] * lower
        h[(i + 1) * width + k] = cosines[i] * lower - sines[i] * upper
    here, below = h + k * width, h + (k + 1) * width
    length = hypot(here[k], below[k])
    c, s = here[k] / length, below[k] / length
    cosines[k], sines[k] = c, s
    here[k], below[k] = length, 0.0
    below[last] = -s * here[last]
    here[last] = c * here[last]


def back_substitute(h, last, size):
    """Solve the triangular system after the rotations; its right-hand side is the last column."""
    width = last + 1
    for i in range(size - 1, -1, -1):
        y = h[i * width + last]
        for k in range(i + 1, size):
            y -= h[i * width + k] * h[k * width + last]
        h[i * width + last] = y / h[i * width + i]


def gmres_cycle(sk, sets, w, far, back, previous, target, coarse, near):
    """One GMRES cycle on J M^-1 z = defect, from the z stored in `step`; returns the norm of the residual.

    It ends at the target, or when the norm is below `coarse` and falls slowly; `previous` is the initial norm. The last
    column of the Hessenberg matrix holds the right-hand side.
    """
    n, last, h, basis = sk.states, w.directions, w.hessenberg, w.basis
    width = last + 1
    multiply(sk, sets, w, far, back, w.step, basis, near)
    for x in range(n):
        basis[x] = w.defect[x] - basis[x]
    centre(sk, w, basis, near)
    norm = sqrt(dot(basis, basis, n))
    if norm <= target:
        return norm
    for x in range(n):
        basis[x] *= 1.0 / norm
    for i in range(last + 3):
        h[i * width + last] = 0.0
    h[last] = norm
    size = 0
    while size < last and norm > target and (norm > coarse or norm < SLOW * previous):
        new = basis + (size + 1) * n
        multiply(sk, sets, w, far, back, basis + size * n, new, near)
        length = orthogonalise(basis, n, size, h, width)
        h[(size + 1) * width + size] = length
        if length > 0.0:
            for x in range(n):
                new[x] *= 1.0 / length
        rotate(h, last, size)
        size += 1
        previous = norm
        norm = fabs(h[size * width + last])
    back_substitute(h, last, size)
    for i in range(size):
        add_multiple(w.step, h[i * width + last], basis + i * n, n)
    return norm


def newton_step(sk, sets, w, far, asked, near, direct):
    """Solve for `step`: directly if possible and wanted, else by GMRES to the accuracy asked for.

    `near` selects the preconditioner of GMRES. `far` means that masses are out of range; `w.back` then holds the
    backward probabilities. Returns whether there are factors for `substitute`.
    """
    size = sk.states * cython.sizeof(cython.double)
    for x in range(sk.states):
        w.push[x] = 1.0 if far else UNIT * w.outflow[x]
        w.pull[x] = 1.0 if far else 1.0 / w.inflow[x]
    for x in range(sk.states):
        w.pull[x] = w.pull[x] if w.alive[x] else 0.0
    w.pull[0] = w.pull[sk.states - 1] = 0.0
    norm = sqrt(dot(w.defect, w.defect, sk.states))
    target, coarse = asked.accuracy * norm, asked.enough * norm
    back = w.back if far else w.row
    if direct and w.narrow and direct_step(sk, sets, w, far, back):
        return True
    collect_pinned(sk, sets, w, far, back)
    prepare_inverse(sk, w)
    memcpy(w.step, w.defect, size)
    for _ in range(CYCLES):
        if gmres_cycle(sk, sets, w, far, back, norm, target, coarse, near) <= 1.01 * max(target, coarse):
            break
    eliminate(sk, sets, w, far, back, w.step, w.swept, near)
    memcpy(w.step, w.swept, size)
    return False
