"""w as numbers: one exponential per transition, and which pairs need to be watched.

    weight(x,a,x') = exp(log w(x,a,x') + beta_base(x') - offset(x,a)),     offset = row maximum - 500 ln 2

where the pairs of a state share the largest of their offsets if these are close: one factor. Exponentials are taken in
runs of whole states, some thousand entries each.

A pair is free while its constraint cannot bind, and then only matters through the sum over actions on its edges
(`base`). If beta moves by v after the classification, and v spreads over osc(v) within the next layer, then the row
u/sum u moves by at most osc(v)/2 in L1 norm. So a row that lies inside its ball by more than MARGIN stays inside as
long as osc(v) <= 2 MARGIN. All others are watched: projected anew whenever beta moves.

Forbidden weights. A pair that cannot stay within C(x,a) without forbidden entries is impossible, a state without a
possible pair is impossible and forbids the entries that lead to it (backward pass; its beta_base is -inf), and a state
that nothing leads to takes no part (forward pass).
"""

import numpy as np
from numba import prange

from advmdp.confidence.sets import RowSets
from advmdp.projection.kernels.compiled import (
    compiled,
    compiled_fused,
    compiled_in_place,
    compiled_inline,
    compiled_order,
    compiled_parallel,
    compiled_sums,
    unsigned,
)
from advmdp.projection.kernels.exponential import exponential
from advmdp.projection.kernels.parts import Part, part_of
from advmdp.projection.kernels.types import (
    BASE_OF,
    BETA,
    BETA_BASE,
    FIRST_OF_PAIR,
    GROWTH,
    OFFSET,
    PAIR_PTR,
    SCALE,
    STATE_OF,
    STATUS,
    TIGHT,
    Floats,
    Indices,
    Structure,
    Work,
)
from advmdp.projection.kernels.vectors import copy_row

FREE, WATCHED, IMPOSSIBLE = 0, 1, 2
MARGIN = 0.025
UNCONSTRAINED = 2.0  # a radius from here on
ROUNDING = 1e-15  # as in confidence.py: what rounding may do to a sum of bounds
SAME = 50.0  # offsets of a state that differ by no more are made equal
RUN = 1024  # transitions whose exponentials are taken in one run
LIFT = 346.57359027997264  # 500 ln 2: room for flows times 2^1000 above and for weights of exp(-1050) below
LIFT_REST = 3.424378377158469e-14  # 500 ln 2 - LIFT, which a factor of 2^500 includes


@compiled_inline
def log_ratio(log_w: float, beta: float, offset: float) -> float:
    """ln u - offset, in the order in which weights are formed: none of the three may be added to anything else first.

    Each may be 1e5 where the result is 1, so that a sum which the compiler reorders would be off by 1e-11.
    """
    return log_w + beta - offset


@compiled_order
def shift_row(
    log_w: Floats, beta: Floats, successor: Indices, begin: int, end: int, first: int, weight: Floats
) -> tuple[float, float]:
    """Fill the row of a pair with log w + beta(x'); return the largest and the smallest."""
    top, bottom = -np.inf, np.inf
    if first >= 0:
        at, there = unsigned(begin), unsigned(first)
        for j in range(unsigned(end - begin)):
            t = log_w[at + j] + beta[there + j]
            weight[at + j] = t
            top = t if t > top else top
            bottom = t if t < bottom else bottom
    else:
        for i in range(unsigned(begin), unsigned(end)):
            t = log_w[i] + beta[unsigned(successor[i])]
            weight[i] = t
            top = t if t > top else top
            bottom = t if t < bottom else bottom
    return top, bottom


@compiled_fused
def exponentiate(weight: Floats, begin: int, end: int) -> None:
    """weight = exp(weight)."""
    for i in range(unsigned(begin), unsigned(end)):
        weight[i] = exponential(weight[i])


@compiled_inline
def subtract(values: Floats, begin: int, end: int, offset: float) -> None:
    """values -= offset."""
    for i in range(unsigned(begin), unsigned(end)):
        values[i] -= offset


@compiled_inline
def shift_state(structure: Structure, log_w: Floats, beta: Floats, weight: Floats, offset: Floats, x: int) -> float:
    """log w + beta(x') - offset of all pairs of a state, and the least of it but for the offset.

    The offset of an impossible pair is -inf until it is classified.
    """
    pointers = structure.transition_ptr
    first_pair, last_pair = structure.states[PAIR_PTR, x], structure.states[PAIR_PTR, x + 1]
    highest, lowest, bottom = -np.inf, np.inf, np.inf
    for pair in range(first_pair, last_pair):
        begin, end, first = pointers[pair], pointers[pair + 1], structure.pairs[FIRST_OF_PAIR, pair]
        offset[pair], least = shift_row(log_w, beta, structure.successor, begin, end, first, weight)
        highest, lowest, bottom = max(highest, offset[pair]), min(lowest, offset[pair]), min(bottom, least)
    same = highest - lowest <= SAME
    for pair in range(first_pair, last_pair):
        offset[pair] = (highest if same else offset[pair]) - LIFT
        if offset[pair] > -np.inf:
            subtract(weight, pointers[pair], pointers[pair + 1], offset[pair])
    return bottom


@compiled_inline
def fill_run(
    structure: Structure, log_w: Floats, beta: Floats, weight: Floats, offset: Floats, first: int, end: int
) -> bool:
    """The weights of the states first .. end. Returns whether one is forbidden."""
    bottom = np.inf
    for x in range(first, end):
        bottom = min(bottom, shift_state(structure, log_w, beta, weight, offset, x))
    pointers, pair_ptr = structure.transition_ptr, structure.states[PAIR_PTR]
    exponentiate(weight, pointers[pair_ptr[first]], pointers[pair_ptr[end]])
    return bottom == -np.inf


@compiled_sums
def distance(weight: Floats, center: Floats, begin: int, end: int) -> float:
    """L1 distance between the normalised weights and the centre."""
    s = d = 0.0
    for i in range(unsigned(begin), unsigned(end)):
        s += weight[i]
    scale = 1.0 / s
    for i in range(unsigned(begin), unsigned(end)):
        d += abs(weight[i] * scale - center[i])
    return d


@compiled
def possible(log_w: Floats, beta: Floats, successor: Indices, sets: RowSets, begin: int, end: int, half: float) -> bool:
    """Whether some row of C(x,a) avoids every forbidden entry."""
    allowed = forbidden = lost = 0.0
    for i in range(begin, end):
        if log_w[i] + beta[successor[i]] == -np.inf:
            forbidden += sets.low[i]
        elif sets.is_box:  # the sum decides at its last digits, so it is compensated (Kahan)
            term = sets.high[i] - lost
            total = allowed + term
            lost = (total - allowed) - term
            allowed = total
    if sets.is_box:
        return forbidden == 0.0 and allowed >= 1.0 - ROUNDING
    return forbidden <= (half + ROUNDING if half > 0.0 else 0.0)


@compiled_inline
def classify(
    structure: Structure, log_w: Floats, sets: RowSets, beta: Floats, weight: Floats, offset: Floats, pair: int,
    forbidden: bool,
) -> int:  # fmt: skip
    """FREE, WATCHED or IMPOSSIBLE; `forbidden` says that some entry of the run is."""
    radius = sets.radius[pair]
    begin, end = structure.transition_ptr[pair], structure.transition_ptr[pair + 1]
    if offset[pair] == -np.inf:
        offset[pair] = 0.0
        return IMPOSSIBLE
    if radius >= UNCONSTRAINED:
        return FREE
    if forbidden and not possible(log_w, beta, structure.successor, sets, begin, end, 0.5 * radius):
        return IMPOSSIBLE
    if not sets.is_box and radius > MARGIN and distance(weight, sets.low, begin, end) < radius - MARGIN:
        return FREE
    return WATCHED


@compiled_inline
def end_of_run(structure: Structure, first: int, end: int) -> int:
    """The states from `first` on, at least one and none from `end` on, that together have some RUN transitions."""
    begin, x = structure.transition_ptr[structure.states[PAIR_PTR, first]], first + 1
    while x < end and structure.transition_ptr[structure.states[PAIR_PTR, x + 1]] - begin <= RUN:
        x += 1
    return x


@compiled_inline
def fill_pairs(structure: Structure, log_w: Floats, sets: RowSets, work: Work, part: Part) -> bool:
    """Exponentiate and classify, backwards. Returns whether some entry is forbidden."""
    beta, weight, offset, status = work.states[BETA_BASE], work.weight, work.pairs[OFFSET], work.marks[STATUS]
    any_forbidden = False
    for layer in range(structure.parts[part.number + 1] - 1, structure.parts[part.number] - 1, -1):
        first, last = structure.layer_ptr[layer], structure.layer_ptr[layer + 1]
        while first < last:
            end = end_of_run(structure, first, last)
            forbidden = fill_run(structure, log_w, beta, weight, offset, first, end)
            any_forbidden = any_forbidden or forbidden
            for x in range(first, end):
                impossible = True
                for pair in range(structure.states[PAIR_PTR, x], structure.states[PAIR_PTR, x + 1]):
                    status[pair] = classify(structure, log_w, sets, beta, weight, offset, pair, forbidden)
                    impossible = impossible and status[pair] == IMPOSSIBLE
                if impossible:
                    beta[x] = -np.inf
            first = end
    return any_forbidden


@compiled_sums
def sum_free(structure: Structure, work: Work, part: Part) -> None:
    """scale(x), the largest offset of a free pair, -inf if none is, and base(x,x'), their weights over all actions."""
    base, weight, scale = work.base, work.weight, work.states[SCALE]
    status, offset = work.marks[STATUS], work.pairs[OFFSET]
    for x in range(part.first, part.end):
        first, last = structure.states[PAIR_PTR, x], structure.states[PAIR_PTR, x + 1]
        top = -np.inf
        for pair in range(first, last):
            top = max(top, offset[pair] if status[pair] == FREE else -np.inf)
        scale[x] = top
        if structure.states[BASE_OF, x] < 0:
            continue
        there = unsigned(structure.states[BASE_OF, x])
        size = unsigned(structure.transition_ptr[min(first + 1, last)] - structure.transition_ptr[first])
        for j in range(size):
            base[there + j] = 0.0
        for pair in range(first, last):
            if status[pair] != FREE:
                continue
            factor = exponential(offset[pair] - top) if offset[pair] < top else 1.0
            at = unsigned(structure.transition_ptr[pair])
            for j in range(size):
                base[there + j] += factor * weight[at + j]


@compiled
def mark_reachable(structure: Structure, log_w: Floats, sets: RowSets, work: Work) -> None:
    """Forward pass: alive are the possible states that some alive state leads to with positive probability."""
    alive, beta, status = work.alive, work.states[BETA_BASE], work.marks[STATUS]
    alive[:] = 0
    alive[0] = 1
    for x in range(alive.shape[0] - 1):
        if not alive[x]:
            continue
        for pair in range(structure.states[PAIR_PTR, x], structure.states[PAIR_PTR, x + 1]):
            if status[pair] == IMPOSSIBLE:
                continue
            point = sets.radius[pair] == 0.0
            for i in range(structure.transition_ptr[pair], structure.transition_ptr[pair + 1]):
                y = structure.successor[i]
                blocked = (point and sets.low[i] == 0.0) or (sets.is_box and sets.high[i] == 0.0)
                if not blocked and log_w[i] + beta[y] > -np.inf:
                    alive[y] = 1


@compiled
def fill_part(structure: Structure, log_w: Floats, sets: RowSets, work: Work, part: Part) -> None:
    """Exponentiate, classify and sum one part, and note whether some entry is forbidden."""
    work.forbidden[part.number] = fill_pairs(structure, log_w, sets, work, part)
    sum_free(structure, work, part)


@compiled_parallel
def fill_parts(structure: Structure, log_w: Floats, sets: RowSets, work: Work) -> None:
    """`fill_part`, a thread for each."""
    for number in prange(structure.parts.shape[0] - 1):
        fill_part(structure, log_w, sets, work, part_of(structure, work, number))


@compiled_in_place
def fill_all(structure: Structure, log_w: Floats, sets: RowSets, work: Work) -> bool:
    """Exponentiate, classify and sum. Returns whether some entry is forbidden.

    An impossible state forbids what leads to it, which is known too late if that belongs to another thread. Then the
    parts are filled once more, from the last to the first.
    """
    count = structure.parts.shape[0] - 1
    if count > 1:
        fill_parts(structure, log_w, sets, work)
        if not work.forbidden.any():
            return False
    for number in range(count - 1, -1, -1):
        fill_part(structure, log_w, sets, work, part_of(structure, work, number))
    return bool(work.forbidden.any())


@compiled
def fill_weights(structure: Structure, log_w: Floats, sets: RowSets, work: Work, first_time: bool) -> bool:
    """Take the current beta as base: exponentiate, classify, sum. False if the first state is impossible."""
    copy_row(work.states, BETA_BASE, BETA)
    any_forbidden = fill_all(structure, log_w, sets, work)
    copy_row(work.states, BETA, BETA_BASE)
    work.states[GROWTH][:] = 1.0
    if first_time:
        work.alive[:] = 1
        work.marks[TIGHT][:] = 0  # a projection must not depend on the one before
        if any_forbidden or sets.blocking or not structure.connected:
            mark_reachable(structure, log_w, sets, work)
    list_watched(structure, work)
    return bool(work.states[BETA, 0] > -np.inf)


@compiled_inline
def list_watched(structure: Structure, work: Work) -> None:
    """List the watched pairs of alive states, part by part."""
    count = 0
    for number in range(structure.parts.shape[0] - 1):
        first, end = structure.layer_ptr[structure.parts[number]], structure.layer_ptr[structure.parts[number + 1]]
        work.watched_parts[number] = count
        for pair in range(structure.states[PAIR_PTR, first], structure.states[PAIR_PTR, end]):
            if work.marks[STATUS, pair] == WATCHED and work.alive[structure.pairs[STATE_OF, pair]]:
                work.watched[count] = pair
                count += 1
    work.watched_parts[-1] = work.watched[-1] = count
