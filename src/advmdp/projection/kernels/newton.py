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

import numpy as np
from numba import prange

from advmdp.confidence.sets import RowSets
from advmdp.projection.kernels.compiled import (
    compiled,
    compiled_in_place,
    compiled_inline,
    compiled_parallel,
    compiled_sums,
    unsigned,
)
from advmdp.projection.kernels.direct import direct_step
from advmdp.projection.kernels.dual import UNIT
from advmdp.projection.kernels.parts import Part, part_of
from advmdp.projection.kernels.structure import first_entry
from advmdp.projection.kernels.types import (
    DEFECT,
    EDGE_PTR,
    FIRST_OF_PAIR,
    FIRST_OF_STATE,
    INFLOW,
    MASS_A,
    MASS_B,
    OUTFLOW,
    PINNED,
    PRODUCT,
    PULL,
    PUSH,
    STEP,
    SWEPT,
    THERE,
    TIGHT,
    Floats,
    Structure,
    U,
    Work,
)
from advmdp.projection.kernels.vectors import add_multiple, copy_row, dot, orthogonalise, scale_row

CYCLES = 12
EVEN, ODD = 0, 1


@compiled_sums
def collect_pinned(structure: Structure, sets: RowSets, work: Work, far: bool, back: Floats) -> None:
    """pinned(x'), the inflow on entries of tight rows that do not answer to beta."""
    pinned, row, low, high, successor = work.states[PINNED], work.row, sets.low, sets.high, structure.successor
    pinned[:] = 0.0
    for k in range(work.watched[-1]):
        pair = work.watched[k]
        if not work.marks[TIGHT, pair]:
            continue
        share, first = 1.0 if far else work.share[k], structure.pairs[FIRST_OF_PAIR, pair]
        begin, end = structure.transition_ptr[pair], structure.transition_ptr[pair + 1]
        if sets.is_box:
            for i in range(unsigned(begin), unsigned(end)):
                fixed = ((row[i] == low[i]) & (low[i] > 0.0)) | (row[i] == high[i])
                pinned[unsigned(successor[i])] += share * back[i] if fixed else 0.0
        elif first >= 0:
            at, there = unsigned(begin), unsigned(first)
            for j in range(unsigned(end - begin)):
                c = low[at + j]
                fixed = share if (row[at + j] == c) & (c > 0.0) else 0.0
                pinned[there + j] += fixed * back[at + j]
        else:
            for i in range(unsigned(begin), unsigned(end)):
                pinned[unsigned(successor[i])] += share * back[i] if (row[i] == low[i]) & (low[i] > 0.0) else 0.0


@compiled_sums
def mean_after(structure: Structure, work: Work, first: int, end: int, v: Floats, result: Floats) -> None:
    """result(x) = the mean of v after x, for a range of states."""
    flow, successor = work.flow, structure.successor
    for x in range(first, end):
        begin, there = structure.states[EDGE_PTR, x], structure.states[FIRST_OF_STATE, x]
        at, size = unsigned(begin), unsigned(structure.states[EDGE_PTR, x + 1] - begin)
        s = 0.0
        if there >= 0:
            for j in range(size):
                s += flow[at + j] * v[unsigned(there) + j]
        else:
            entry = unsigned(first_entry(structure, x))
            for j in range(size):
                s += flow[at + j] * v[unsigned(successor[entry + j])]
        result[x] = UNIT * s


@compiled_sums
def pass_on(structure: Structure, work: Work, first: int, end: int, v: Floats) -> None:
    """product(x') += q(x,x') v(x), relative to inflow(x') once `pull` is applied, for a range of states x."""
    flow, push, product, successor = work.flow, work.states[PUSH], work.states[PRODUCT], structure.successor
    for x in range(first, end):
        begin, there = structure.states[EDGE_PTR, x], structure.states[FIRST_OF_STATE, x]
        at, size = unsigned(begin), unsigned(structure.states[EDGE_PTR, x + 1] - begin)
        here = push[x] * v[x]
        if there >= 0:
            for j in range(size):
                product[unsigned(there) + j] += flow[at + j] * here
        else:
            entry = unsigned(first_entry(structure, x))
            for j in range(size):
                product[unsigned(successor[entry + j])] += flow[at + j] * here


@compiled_sums
def pass_on_far(structure: Structure, work: Work, first: int, end: int, back: Floats, v: Floats) -> None:
    """As `pass_on`, with the probabilities backward entry by entry from `back`."""
    product = work.states[PRODUCT]
    for x in range(first, end):
        for i in range(first_entry(structure, x), first_entry(structure, x + 1)):
            product[structure.successor[i]] += back[i] * v[x]


@compiled_sums
def class_means(
    p: Floats, low: Floats, high: Floats, is_box: bool, begin: int, size: int, v: Floats, first: int,
    masses: tuple[float, float],
) -> tuple[float, float, float]:  # fmt: skip
    """p.v, and the means of v over A (above the centre, or between the bounds of a box) and over B (below).

    v is read from `first` on.
    """
    s = s_a = s_b = 0.0
    mass_a, mass_b = masses
    at, there = unsigned(begin), unsigned(first)
    if is_box:
        for j in range(unsigned(size)):
            i = at + j
            t = p[i] * v[there + j]
            inner = 1.0 if (p[i] > low[i]) & (p[i] < high[i]) else 0.0
            s += t
            s_a += inner * t
    else:
        for j in range(unsigned(size)):
            i = at + j
            t = p[i] * v[there + j]
            above = 1.0 if p[i] > low[i] else 0.0
            below = 1.0 if p[i] < low[i] else 0.0
            s += t
            s_a += above * t
            s_b += below * t
    return s, s_a / mass_a if mass_a > 0.0 else 0.0, s_b / mass_b if mass_b > 0.0 else 0.0


@compiled_sums
def class_terms(
    p: Floats, low: Floats, high: Floats, is_box: bool, begin: int, size: int, back: Floats,
    terms: tuple[float, float, float], out: Floats, first: int,
) -> None:  # fmt: skip
    """out, from `first` on, += back times the term of the entry's class: A, B or pinned. Above zero an entry is A."""
    term_a, term_b, term = terms
    at, there = unsigned(begin), unsigned(first)
    if is_box:
        for j in range(unsigned(size)):
            i = at + j
            inner = ((p[i] > low[i]) | (low[i] == 0.0)) & (p[i] < high[i])
            out[there + j] += back[i] * (term_a if inner else term)
    else:
        for j in range(unsigned(size)):
            i = at + j
            pinned = (p[i] == low[i]) & (low[i] > 0.0)
            rest = term if pinned else term_a
            out[there + j] += back[i] * (term_b if p[i] < low[i] else rest)


@compiled_inline
def add_tight_rows(
    structure: Structure, sets: RowSets, work: Work, part: Part, far: bool, back: Floats, v: Floats
) -> None:
    """product -= q(x,a) [p p.v - p_A (p_A.v)/mass_a - p_B (p_B.v)/mass_b], for all tight rows of a part."""
    product, row, there, out = (
        work.states[PRODUCT],
        work.row,
        work.scratch[part.number, THERE],
        work.scratch[part.number, U],
    )
    low, high, is_box, successor = sets.low, sets.high, sets.is_box, structure.successor
    pairs, tight, watched = work.pairs, work.marks[TIGHT], work.watched
    for k in range(part.watched, part.watched_end):
        pair = watched[k]
        if not tight[pair]:
            continue
        begin, end = structure.transition_ptr[pair], structure.transition_ptr[pair + 1]
        size, first = end - begin, structure.pairs[FIRST_OF_PAIR, pair]
        share = 1.0 if far else work.share[k]
        masses = (pairs[MASS_A, pair], pairs[MASS_B, pair])
        if first >= 0:
            s, mean_a, mean_b = class_means(row, low, high, is_box, begin, size, v, first, masses)
            terms = (share * (mean_a - s), share * (mean_b - s), -share * s)
            class_terms(row, low, high, is_box, begin, size, back, terms, product, first)
            continue
        at = unsigned(begin)
        for j in range(unsigned(size)):
            there[j] = v[unsigned(successor[at + j])]
            out[j] = 0.0
        s, mean_a, mean_b = class_means(row, low, high, is_box, begin, size, there, 0, masses)
        terms = (share * (mean_a - s), share * (mean_b - s), -share * s)
        class_terms(row, low, high, is_box, begin, size, back, terms, out, 0)
        for j in range(unsigned(size)):
            product[unsigned(successor[at + j])] += out[j]


@compiled
def couple_part(
    structure: Structure, sets: RowSets, work: Work, part: Part, far: bool, back: Floats, v: Floats, result: Floats,
    parity: int,
) -> None:  # fmt: skip
    """`couple` for the flow out of one part."""
    for y in range(part.into, part.into_end):
        work.states[PRODUCT, y] = 0.0
    for layer in range(structure.parts[part.number], structure.parts[part.number + 1]):
        first, end = structure.layer_ptr[layer], structure.layer_ptr[layer + 1]
        if layer % 2 == parity:
            mean_after(structure, work, first, end, v, result)
        elif far:
            pass_on_far(structure, work, first, end, back, v)
        else:
            pass_on(structure, work, first, end, v)
    if parity == ODD:
        add_tight_rows(structure, sets, work, part, far, back, v)


@compiled_parallel
def couple_parts(
    structure: Structure, sets: RowSets, work: Work, far: bool, back: Floats, v: Floats, result: Floats, parity: int
) -> None:
    """`couple_part`, a thread for each."""
    for number in prange(structure.parts.shape[0] - 1):
        couple_part(structure, sets, work, part_of(structure, work, number), far, back, v, result, parity)


@compiled_in_place
def couple(
    structure: Structure, sets: RowSets, work: Work, far: bool, back: Floats, v: Floats, result: Floats, parity: int
) -> None:
    """What layers of one parity get from v on the others: the mean after x as `result`, the rest as `product`.

    What the tight rows add, which couple a layer with itself, comes with the odd ones.
    """
    if structure.parts.shape[0] > 2:
        couple_parts(structure, sets, work, far, back, v, result, parity)
    else:
        couple_part(structure, sets, work, part_of(structure, work, 0), far, back, v, result, parity)


@compiled_in_place
def eliminate(
    structure: Structure, sets: RowSets, work: Work, far: bool, back: Floats, v: Floats, result: Floats, near: bool
) -> None:
    """result = M^-1 v, and zero where a state takes no part."""
    layer_ptr, product, pull = structure.layer_ptr, work.states[PRODUCT], work.states[PULL]
    for x in range(unsigned(v.shape[0])):
        result[x] = 0.5 * v[x] if pull[x] > 0.0 else 0.0
    if near:
        couple(structure, sets, work, far, back, result, result, EVEN)
        for layer in range(EVEN, layer_ptr.shape[0] - 1, 2):
            for x in range(unsigned(layer_ptr[layer]), unsigned(layer_ptr[layer + 1])):
                result[x] = 0.5 * (v[x] + result[x] + pull[x] * product[x]) if pull[x] > 0.0 else 0.0


@compiled_sums
def centre(structure: Structure, work: Work, values: Floats, near: bool) -> None:
    """Zero where a state takes no part, and near balance the mean of every layer taken off the others."""
    pull = work.states[PULL]
    for layer in range(structure.layer_ptr.shape[0] - 1):
        first, end = unsigned(structure.layer_ptr[layer]), unsigned(structure.layer_ptr[layer + 1])
        total = count = 0.0
        for x in range(first, end):
            total += values[x] if pull[x] > 0.0 else 0.0
            count += 1.0 if pull[x] > 0.0 else 0.0
        mean = total / max(count, 1.0) if near else 0.0
        for x in range(first, end):
            values[x] = values[x] - mean if pull[x] > 0.0 else 0.0


@compiled_in_place
def multiply(
    structure: Structure, sets: RowSets, work: Work, far: bool, back: Floats, v: Floats, result: Floats, near: bool
) -> None:
    """result = J M^-1 v, but for a constant in each layer if `near`; leaves M^-1 v as `swept`."""
    product, pull, pinned, swept = work.states[PRODUCT], work.states[PULL], work.states[PINNED], work.states[SWEPT]
    layer_ptr = structure.layer_ptr
    eliminate(structure, sets, work, far, back, v, swept, near)
    if not near:
        couple(structure, sets, work, far, back, swept, result, EVEN)
        for layer in range(EVEN, layer_ptr.shape[0] - 1, 2):
            for x in range(unsigned(layer_ptr[layer]), unsigned(layer_ptr[layer + 1])):
                result[x] += pull[x] * product[x]
    couple(structure, sets, work, far, back, swept, result, ODD)
    for layer in range(layer_ptr.shape[0] - 1):
        coupled = not near or layer % 2 == ODD
        for x in range(unsigned(layer_ptr[layer]), unsigned(layer_ptr[layer + 1])):
            brought = result[x] if coupled else 0.0
            result[x] = v[x] - brought - pull[x] * product[x]
    if work.watched[-1] > 0:
        for x in range(unsigned(v.shape[0])):
            result[x] -= pull[x] * pinned[x] * swept[x]
    centre(structure, work, result, near)


@compiled_inline
def rotate(h: Floats, k: int) -> None:
    """Apply the Givens rotations to column k of the Hessenberg matrix; its last two rows hold them."""
    last = h.shape[1] - 1
    for i in range(k):
        c, s = h[last + 1, i], h[last + 2, i]
        h[i, k], h[i + 1, k] = c * h[i, k] + s * h[i + 1, k], c * h[i + 1, k] - s * h[i, k]
    length = np.hypot(h[k, k], h[k + 1, k])
    c, s = h[k, k] / length, h[k + 1, k] / length
    h[last + 1, k], h[last + 2, k] = c, s
    h[k, k], h[k + 1, k] = length, 0.0
    h[k, last], h[k + 1, last] = c * h[k, last], -s * h[k, last]


@compiled_in_place
def gmres_cycle(
    structure: Structure, sets: RowSets, work: Work, far: bool, back: Floats, target: float, near: bool
) -> float:
    """One cycle on J M^-1 z = defect, from the z in the place of the step; returns the norm of what is left.

    The last column of the Hessenberg matrix holds the right-hand side.
    """
    basis, h, last = work.basis, work.hessenberg, work.hessenberg.shape[1] - 1
    multiply(structure, sets, work, far, back, work.states[STEP], basis[0], near)
    for x in range(work.states[STEP].shape[0]):
        basis[0, x] = work.states[DEFECT, x] - basis[0, x]
    centre(structure, work, basis[0], near)
    norm = np.sqrt(dot(basis[0], basis[0]))
    if norm <= target:
        return float(norm)
    scale_row(basis, 0, 1.0 / norm)
    h[:, last] = 0.0
    h[0, last] = norm
    size = 0
    for k in range(basis.shape[0] - 1):
        multiply(structure, sets, work, far, back, basis[k], basis[k + 1], near)
        h[k + 1, k] = orthogonalise(basis, k, h)
        if h[k + 1, k] > 0.0:
            scale_row(basis, k + 1, 1.0 / h[k + 1, k])
        rotate(h, k)
        size = k + 1
        norm = abs(h[k + 1, last])
        if norm <= target:
            break
    for i in range(size - 1, -1, -1):
        y = h[i, last]
        for k in range(i + 1, size):
            y -= h[i, k] * h[k, last]
        h[i, last] = y / h[i, i]
    for i in range(size):
        add_multiple(work.states[STEP], h[i, last], basis[i])
    return float(norm)


@compiled_in_place
def newton_step(
    structure: Structure, sets: RowSets, work: Work, far: bool, back: Floats, accuracy: float, near: bool, direct: bool
) -> bool:
    """Solve for `step`: directly if asked and possible, else until the residual has fallen by the factor `accuracy`.

    `near` says how GMRES is to go about it.
    `far` says that masses are out of range: then `back` holds probabilities backward, ready made. Returns whether there
    are factors for `substitute`.
    """
    push, pull, alive = work.states[PUSH], work.states[PULL], work.alive
    outflow, inflow = work.states[OUTFLOW], work.states[INFLOW]
    for x in range(unsigned(push.shape[0])):
        push[x] = 1.0 if far else UNIT * outflow[x]
        reach = 1.0 if far else 1.0 / inflow[x]
        pull[x] = reach if alive[x] else 0.0
    pull[0] = pull[-1] = 0.0
    target = accuracy * np.sqrt(dot(work.states[DEFECT], work.states[DEFECT]))
    back = back if far else work.row
    collect_pinned(structure, sets, work, far, back)
    if direct and work.band.shape[0] > 0 and direct_step(structure, sets, work, far, back):
        return True
    copy_row(work.states, STEP, DEFECT)
    for _ in range(CYCLES):
        if gmres_cycle(structure, sets, work, far, back, target, near) <= 1.01 * target:
            break
    eliminate(structure, sets, work, far, back, work.states[STEP], work.states[SWEPT], near)
    copy_row(work.states, STEP, SWEPT)
    return False
