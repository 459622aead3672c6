"""Newton's step on the balance of every state, ln inflow(x) - ln outflow(x) = 0.

For a pair whose constraint does not bind, ln q(x,a,x') = ln w + beta(x') - beta(x) - ln Z_k. A tight row keeps the mass
of A and of B, and does not move where it is pinned, so that with p = dkappa/d(-beta)

    d(q(x,a) p) = q(x,a) [p (p.v - v(x)) + v p_AB - p_A (p_A.v)/mass_a - p_B (p_B.v)/mass_b].

Leaving out the derivative of ln Z_k makes the matrix non-singular and, because beta is free up to a constant per layer,
changes nothing but the length: if H is the Hessian of F and H1 the matrix without these rank-one terms, then
H1^-1 g equals H^+ g / (1 + g.H^+ g / L) up to the free constants, a damped Newton step. Each row of H1 is divided by
the mass of its state. What remains, J, are probabilities forward and backward, of order one whatever the mass. Narrow
layers are eliminated (`direct.py`). The others are left to GMRES, which weighs every state alike, in this way:

    J = 2 - A - T,    M = 2 - (what A brings from odd layers to even ones),    J M^-1 z = defect,    step = M^-1 z

where A couples a layer with its neighbours, forward and backward, and T, of the tight rows, a layer with itself, but
for constants, which it maps to zero. To apply M^-1 is to solve the odd layers and then, with what they bring, the even
ones; without tight rows J M^-1 differs from the identity on the odd layers alone. So a product, which passes every edge
twice as one with J does, does the work of two. The walk that J describes takes O(L^2) steps to leave the layers. But
beta is free up to a constant per layer, which J maps to constants, and these hardly enter the defects near balance: the
mean over each layer is taken off whatever GMRES sees, and what is left to it is how well the world mixes. Far from
balance a tenth of the defects is all that is asked for, the layers' means may be most of them, and M = 2 does better.
"""

import cython
from cython.cimports.advmdp.projection.cython_kernels.direct import direct_step
from cython.cimports.advmdp.projection.cython_kernels.sums import add_multiple, dot, orthogonalise
from cython.cimports.advmdp.projection.cython_kernels.types import UNIT, first_entry, part_of, scratch_row
from cython.cimports.libc.math import fabs, hypot, sqrt
from cython.cimports.libc.string import memcpy, memset
from cython.parallel import prange

CYCLES = cython.declare(cython.int, 12)
EVEN = cython.declare(cython.int, 0)
ODD = cython.declare(cython.int, 1)


def collect_pinned(sk, sets, w, far, back):
    """pinned(x'), the inflow on entries of tight rows that do not answer to beta."""
    memset(w.pinned, 0, sk.states * cython.sizeof(cython.double))
    for k in range(w.num_watched):
        pair = w.watched[k]
        if not w.tight[pair]:
            continue
        share, first, begin = 1.0 if far else w.share[k], sk.first_of_pair[pair], sk.transition_ptr[pair]
        row, low, there = w.row + begin, sets.low + begin, back + begin
        successor, size = sk.successor + begin, sk.transition_ptr[pair + 1] - begin
        # The centre of a ball stands in for an upper bound: an entry at it is fixed unless it is zero.
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
    """As `pass_on`, with the probabilities backward entry by entry."""
    for x in range(first, end):
        for i in range(first_entry(sk, x), first_entry(sk, x + 1)):
            w.product[sk.successor[i]] += w.back[i] * v[x]


def class_means(p, low, high, is_box, size, v, mass_a, mass_b):
    """p.v, and the means of v over A (above the centre, or between the bounds of a box) and over B (below)."""
    means: Means
    s = s_a = s_b = 0.0
    if is_box:
        for j in range(size):
            t = p[j] * v[j]
            s += t
            s_a += t if (p[j] > low[j]) & (p[j] < high[j]) else 0.0
    else:
        for j in range(size):
            t = p[j] * v[j]
            s += t
            s_a += t if p[j] > low[j] else 0.0
            s_b += t if p[j] < low[j] else 0.0
    means.all = s
    means.a = s_a / mass_a if mass_a > 0.0 else 0.0
    means.b = s_b / mass_b if mass_b > 0.0 else 0.0
    return means


def class_terms(p, low, high, is_box, size, back, share, means, out):
    """out += back times the term of the entry's class: A, B or pinned. Above zero an entry is A."""
    term_a, term_b, term = share * (means.a - means.all), share * (means.b - means.all), -share * means.all
    if is_box:
        for j in range(size):
            inner: cython.bint = ((p[j] > low[j]) | (low[j] == 0.0)) & (p[j] < high[j])
            out[j] += back[j] * (term_a if inner else term)
    else:
        for j in range(size):
            here, c = p[j], low[j]
            rest = term if (here == c) & (c > 0.0) else term_a
            out[j] += back[j] * (term_b if here < c else rest)


def add_tight_rows(sk, sets, w, part, far, back, v):
    """product -= q(x,a) [p p.v - p_A (p_A.v)/mass_a - p_B (p_B.v)/mass_b], for all tight rows of a part."""
    is_box, there, out = sets.is_box, scratch_row(w, part.number, 2), scratch_row(w, part.number, 0)
    for k in range(part.watched, part.watched_end):
        pair = w.watched[k]
        if not w.tight[pair]:
            continue
        begin, first, share = sk.transition_ptr[pair], sk.first_of_pair[pair], 1.0 if far else w.share[k]
        size, p, low = sk.transition_ptr[pair + 1] - begin, w.row + begin, sets.low + begin
        high = sets.high + begin if is_box else low
        if first >= 0:
            means = class_means(p, low, high, is_box, size, v + first, w.mass_a[k], w.mass_b[k])
            class_terms(p, low, high, is_box, size, back + begin, share, means, w.product + first)
            continue
        successor = sk.successor + begin
        for j in range(size):
            there[j] = v[successor[j]]
            out[j] = 0.0
        means = class_means(p, low, high, is_box, size, there, w.mass_a[k], w.mass_b[k])
        class_terms(p, low, high, is_box, size, back + begin, share, means, out)
        for j in range(size):
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
    """What layers of one parity get from v on the others: the mean after x as `result`, the rest as `product`.

    What the tight rows add, which couple a layer with itself, comes with the odd ones.
    """
    if sk.parts > 1:
        for number in prange(sk.parts, num_threads=sk.parts, schedule="static"):
            couple_part(sk, sets, w, number, far, back, v, result, parity)
    else:
        couple_part(sk, sets, w, 0, far, back, v, result, parity)


def eliminate(sk, sets, w, far, back, v, result, near):
    """result = M^-1 v, and zero where a state takes no part."""
    pull, product = w.pull, w.product
    for x in range(sk.states):
        result[x] = 0.5 * v[x] if pull[x] > 0.0 else 0.0
    if near:
        couple(sk, sets, w, far, back, result, result, EVEN)
        for layer in range(EVEN, sk.steps + 1, 2):
            for x in range(sk.layer_ptr[layer], sk.layer_ptr[layer + 1]):
                result[x] = 0.5 * (v[x] + result[x] + pull[x] * product[x]) if pull[x] > 0.0 else 0.0


def centre(sk, w, values, near):
    """Zero where a state takes no part, and near balance the mean of every layer taken off the others."""
    pull = w.pull
    for layer in range(sk.steps + 1):
        total = count = 0.0
        for x in range(sk.layer_ptr[layer], sk.layer_ptr[layer + 1]):
            total += values[x] if pull[x] > 0.0 else 0.0
            count += 1.0 if pull[x] > 0.0 else 0.0
        mean = total / max(count, 1.0) if near else 0.0
        for x in range(sk.layer_ptr[layer], sk.layer_ptr[layer + 1]):
            values[x] = values[x] - mean if pull[x] > 0.0 else 0.0


def multiply(sk, sets, w, far, back, v, result, near):
    """result = J M^-1 v, but for a constant in each layer if `near`; leaves M^-1 v as `swept`."""
    pull, product, pinned, swept = w.pull, w.product, w.pinned, w.swept
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
            result[x] -= pull[x] * pinned[x] * swept[x]
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
    """Solve the triangular system that the rotations leave; its right-hand side is the last column."""
    width = last + 1
    for i in range(size - 1, -1, -1):
        y = h[i * width + last]
        for k in range(i + 1, size):
            y -= h[i * width + k] * h[k * width + last]
        h[i * width + last] = y / h[i * width + i]


def gmres_cycle(sk, sets, w, far, back, target, near):
    """One cycle on J M^-1 z = defect, from the z in the place of the step; returns the norm of what is left.

    The last column of the Hessenberg matrix holds the right-hand side.
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
    while size < last and norm > target:
        new = basis + (size + 1) * n
        multiply(sk, sets, w, far, back, basis + size * n, new, near)
        length = orthogonalise(basis, n, size, h, width)
        h[(size + 1) * width + size] = length
        if length > 0.0:
            for x in range(n):
                new[x] *= 1.0 / length
        rotate(h, last, size)
        size += 1
        norm = fabs(h[size * width + last])
    back_substitute(h, last, size)
    for i in range(size):
        add_multiple(w.step, h[i * width + last], basis + i * n, n)
    return norm


def newton_step(sk, sets, w, far, accuracy, near, direct):
    """Solve for `step`: directly if asked and possible, else until the residual has fallen by the factor `accuracy`.

    `near` says how GMRES is to go about it. `far` says that masses are out of range: then `w.back` holds probabilities
    backward, ready made. Returns whether there are factors for `substitute`.
    """
    size = sk.states * cython.sizeof(cython.double)
    for x in range(sk.states):
        w.push[x] = 1.0 if far else UNIT * w.outflow[x]
        w.pull[x] = 1.0 if far else 1.0 / w.inflow[x]
    for x in range(sk.states):
        w.pull[x] = w.pull[x] if w.alive[x] else 0.0
    w.pull[0] = w.pull[sk.states - 1] = 0.0
    target = accuracy * sqrt(dot(w.defect, w.defect, sk.states))
    back = w.back if far else w.row
    collect_pinned(sk, sets, w, far, back)
    if direct and w.narrow and direct_step(sk, sets, w, far, back):
        return True
    memcpy(w.step, w.defect, size)
    for _ in range(CYCLES):
        if gmres_cycle(sk, sets, w, far, back, target, near) <= 1.01 * target:
            break
    eliminate(sk, sets, w, far, back, w.step, w.swept, near)
    memcpy(w.step, w.swept, size)
    return False
