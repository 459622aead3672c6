"""The answer, rebuilt from the policy and the rows at beta so that it is feasible to rounding.

A forward pass gives mu'(x') = sum mu'(x) pi(a|x) p(x'), hence an occupancy measure q' whose flow is conserved:
q' = q mu'(x)/mu(x), where mu is the outflow of the dual.

Where log w is 1e5, so are beta, ln Z and the offsets of the weights, and their sums are known to 1e-11 only. So q' is
never made from those: the mass of a state comes from the forward pass, and is divided by numbers of order one and by
exponentials of differences of offsets, which are exact. Flow is conserved to the rounding of q', not to that of log w.
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
from advmdp.projection.kernels.dual import UNIT
from advmdp.projection.kernels.exponential import exponential
from advmdp.projection.kernels.parts import Part, part_of
from advmdp.projection.kernels.structure import first_entry
from advmdp.projection.kernels.types import (
    BETA,
    EDGE_PTR,
    FIRST_OF_PAIR,
    FIRST_OF_STATE,
    GROWTH,
    INFLOW,
    LIFT_OF,
    LOG_A,
    LOG_B,
    LOG_MASS,
    LOG_OUT,
    LOG_TOTAL,
    LOG_U,
    MASS_A,
    OFFSET,
    PAIR_PTR,
    STATE_OF,
    STATUS,
    TIGHT,
    TOP,
    Floats,
    Indices,
    Structure,
    Work,
)
from advmdp.projection.kernels.weights import FREE, IMPOSSIBLE, LIFT, LIFT_REST, exponentiate, log_ratio

SMALLEST_FACTOR = 1e-150


@compiled_sums
def forward_pass(structure: Structure, work: Work) -> None:
    """lift(x) = ln mu'(x)/mu(x), for masses in range; leaves mu', times 2^500, as inflow."""
    mass, flow, lift, alive = work.states[INFLOW], work.flow, work.states[LIFT_OF], work.alive
    mass[:] = 0.0
    mass[0] = 1.0 / UNIT
    for x in range(mass.shape[0] - 1):
        if not alive[x]:
            continue
        lift[x] = np.log(UNIT * mass[x]) - work.states[LOG_OUT, x]
        here, first = UNIT * mass[x], structure.states[FIRST_OF_STATE, x]
        begin, end = structure.states[EDGE_PTR, x], structure.states[EDGE_PTR, x + 1]
        if first >= 0:
            at, there = unsigned(begin), unsigned(first)
            for j in range(unsigned(end - begin)):
                mass[there + j] += here * flow[at + j]
        else:
            at, entry = unsigned(begin), unsigned(first_entry(structure, x))
            for j in range(unsigned(end - begin)):
                mass[unsigned(structure.successor[entry + j])] += here * flow[at + j]


@compiled_sums
def write_free_row(
    log_w: Floats, weight: Floats, growth: Floats, beta: Floats, begin: int, size: int, first: int,
    factor: float, offset: float, shift: float, log_q: Floats, q: Floats,
) -> float:  # fmt: skip
    """log q and q of a pair whose successors are the states from `first` on; returns the sum of q."""
    s = 0.0
    at, there = unsigned(begin), unsigned(first)
    for j in range(unsigned(size)):
        value = factor * (UNIT * weight[at + j] * growth[there + j])
        s += value
        q[at + j] = value
        log_q[at + j] = log_ratio(log_w[at + j], beta[there + j], offset) + shift
    return s


@compiled_sums
def write_free_scattered(
    log_w: Floats, weight: Floats, growth: Floats, beta: Floats, begin: int, size: int, successor: Indices,
    factor: float, offset: float, shift: float, log_q: Floats, q: Floats,
) -> float:  # fmt: skip
    """log q and q of any free pair; returns the sum of q."""
    s = 0.0
    for i in range(unsigned(begin), unsigned(begin + size)):
        y = unsigned(successor[i])
        value = factor * (UNIT * weight[i] * growth[y])
        s += value
        q[i] = value
        log_q[i] = log_ratio(log_w[i], beta[y], offset) + shift
    return s


@compiled_inline
def write_free(structure: Structure, log_w: Floats, work: Work, part: Part, log_q: Floats, log_pair: Floats) -> None:
    """log q = log w + beta(x') - beta(x) - ln Z + lift(x) for every free pair."""
    weight, growth, beta, q = work.weight, work.states[GROWTH], work.states[BETA], work.row
    status, offsets = work.marks[STATUS], work.pairs[OFFSET]
    for x in range(part.first, part.end):
        if not work.alive[x]:
            continue
        log_share = work.states[LIFT_OF, x] + work.states[LOG_OUT, x] - work.states[LOG_TOTAL, x]
        log_factor, factor = np.inf, 0.0  # the pairs of a state mostly share their offset
        for pair in range(structure.states[PAIR_PTR, x], structure.states[PAIR_PTR, x + 1]):
            if status[pair] != FREE:
                continue
            offset = offsets[pair]
            if log_factor != log_share + (offset - work.states[TOP, x]):
                log_factor = log_share + (offset - work.states[TOP, x])
                factor = exponential(log_factor)
            shift = log_factor - LIFT
            begin, end = structure.transition_ptr[pair], structure.transition_ptr[pair + 1]
            first = structure.pairs[FIRST_OF_PAIR, pair]
            scale = factor if factor > SMALLEST_FACTOR else 1.0  # so that the sum keeps its digits
            if first >= 0:
                s = write_free_row(
                    log_w, weight, growth, beta, begin, end - begin, first, scale, offset, shift, log_q, q
                )
            else:
                s = write_free_scattered(
                    log_w, weight, growth, beta, begin, end - begin, structure.successor, scale, offset, shift, log_q, q
                )
            log_pair[pair] = np.log(s)
            if scale != factor:
                log_pair[pair] += log_factor
                for i in range(begin, end):
                    q[i] *= factor


@compiled_inline
def log_entry(sets: RowSets, pair: int, i: int, p: float, log_a: float, log_u: float) -> float:
    """log p of an entry of a point or of a tight box, by its class and never from p."""
    if sets.low[i] > 0.0 and p == sets.low[i]:
        return float(sets.log_low[i])
    if sets.is_box and p == sets.high[i]:
        return sets.log_high[i] if p > 0.0 else -np.inf
    return -np.inf if sets.radius[pair] == 0.0 else log_a + log_u


@compiled_inline
def write_l1(
    row: Floats,
    low: Floats,
    log_low: Floats,
    begin: int,
    size: int,
    log_u: Floats,
    numbers: tuple[float, float, float],
    log_q: Floats,
) -> None:
    """log q of a tight row of an L1 ball, by class and never from p."""
    log_share, log_a, log_b = numbers
    at = unsigned(begin)
    for j in range(unsigned(size)):
        i = at + j
        log_p = (log_b if row[i] < low[i] else log_a) + log_u[j]
        fixed = (row[i] == low[i]) & (low[i] > 0.0)
        log_q[i] = log_share + (log_low[i] if fixed else log_p)


@compiled_inline
def write_watched(
    structure: Structure, log_w: Floats, sets: RowSets, work: Work, part: Part, log_q: Floats, log_pair: Floats
) -> None:
    """log q = log p + ln q(x,a) for every watched pair."""
    row, beta, log_u, successor = work.row, work.states[BETA], work.scratch[part.number, LOG_U], structure.successor
    for k in range(part.watched, part.watched_end):
        pair = work.watched[k]
        x = structure.pairs[STATE_OF, pair]
        begin, end = structure.transition_ptr[pair], structure.transition_ptr[pair + 1]
        first = structure.pairs[FIRST_OF_PAIR, pair]
        shift = work.states[LIFT_OF, x] + work.states[LOG_OUT, x] - work.states[LOG_TOTAL, x]
        log_share = shift + (work.pairs[LOG_MASS, pair] - work.states[TOP, x] - LIFT - LIFT_REST)
        log_pair[pair] = log_share
        log_a, log_b, offset = work.pairs[LOG_A, pair], work.pairs[LOG_B, pair], work.pairs[OFFSET, pair]
        if first >= 0:
            at, there = unsigned(begin), unsigned(first)
            for j in range(unsigned(end - begin)):
                log_u[j] = log_ratio(log_w[at + j], beta[there + j], offset)
        else:
            at = unsigned(begin)
            for j in range(unsigned(end - begin)):
                log_u[j] = log_ratio(log_w[at + j], beta[unsigned(successor[at + j])], offset)
        if not work.marks[TIGHT, pair]:
            at = unsigned(begin)
            for j in range(unsigned(end - begin)):
                log_q[at + j] = log_share + (log_a + log_u[j])
        elif sets.is_box or sets.radius[pair] == 0.0:
            for i in range(begin, end):
                log_q[i] = log_share + log_entry(sets, pair, i, row[i], log_a, log_u[i - begin])
        else:
            numbers = (log_share, log_a, log_b)
            write_l1(row, sets.low, sets.log_low, begin, end - begin, log_u, numbers, log_q)


@compiled_inline
def write_absent(structure: Structure, work: Work, part: Part, log_q: Floats, log_pair: Floats) -> None:
    """Zero mass on impossible pairs and on states that take no part."""
    for pair in range(structure.states[PAIR_PTR, part.first], structure.states[PAIR_PTR, part.end]):
        if work.marks[STATUS, pair] == IMPOSSIBLE or not work.alive[structure.pairs[STATE_OF, pair]]:
            begin, end = structure.transition_ptr[pair], structure.transition_ptr[pair + 1]
            log_q[begin:end] = -np.inf
            work.row[begin:end] = 0.0
            log_pair[pair] = -np.inf


@compiled_inline
def write_logs(
    structure: Structure, log_w: Floats, sets: RowSets, work: Work, part: Part, log_q: Floats, log_pair: Floats
) -> None:
    """log q and ln q(x,a) of one part, lifted by exp(lift(x)), and q itself where a pair is free."""
    write_free(structure, log_w, work, part, log_q, log_pair)
    write_watched(structure, log_w, sets, work, part, log_q, log_pair)
    write_absent(structure, work, part, log_q, log_pair)


@compiled_sums
def scale_rows(structure: Structure, work: Work, part: Part, log_pair: Floats) -> None:
    """q = q(x,a) p for every watched pair, in the place of p."""
    row, share = work.row, work.pairs[MASS_A]  # not where shares are: that is the policy, which other threads write
    for k in range(part.watched, part.watched_end):
        share[k] = log_pair[work.watched[k]]
    exponentiate(share, part.watched, part.watched_end)
    for k in range(part.watched, part.watched_end):
        pair = work.watched[k]
        for i in range(unsigned(structure.transition_ptr[pair]), unsigned(structure.transition_ptr[pair + 1])):
            row[i] *= share[k]


@compiled_inline
def write_policy(structure: Structure, work: Work, part: Part, log_pair: Floats, policy: Floats) -> None:
    """pi(a|x) = q(x,a) / mu'(x), uniform where no mass can be."""
    pair_ptr, lift, log_out = structure.states[PAIR_PTR], work.states[LIFT_OF], work.states[LOG_OUT]
    for x in range(part.first, part.end):
        for pair in range(pair_ptr[x], pair_ptr[x + 1]):
            policy[pair] = log_pair[pair] - lift[x] - log_out[x] if work.alive[x] else -np.inf
    exponentiate(policy, pair_ptr[part.first], pair_ptr[part.end])
    for x in range(part.first, part.end):
        first, last = pair_ptr[x], pair_ptr[x + 1]
        total = 0.0
        for pair in range(first, last):
            total += policy[pair]
        for pair in range(first, last):
            policy[pair] = policy[pair] / total if total > 0.0 else 1.0 / (last - first)


@compiled
def write_part(
    structure: Structure, log_w: Floats, sets: RowSets, work: Work, part: Part, log_q: Floats, log_pair: Floats,
    policy: Floats,
) -> None:  # fmt: skip
    """log q', ln q'(x,a), the policy, and in the place of the rows q'."""
    write_logs(structure, log_w, sets, work, part, log_q, log_pair)
    scale_rows(structure, work, part, log_pair)
    write_policy(structure, work, part, log_pair, policy)


@compiled_parallel
def write_parts(
    structure: Structure, log_w: Floats, sets: RowSets, work: Work, log_q: Floats, log_pair: Floats, policy: Floats
) -> None:
    """`write_part`, a thread for each."""
    for number in prange(structure.parts.shape[0] - 1):
        write_part(structure, log_w, sets, work, part_of(structure, work, number), log_q, log_pair, policy)


@compiled_in_place
def write_answer(
    structure: Structure, log_w: Floats, sets: RowSets, work: Work, log_q: Floats, log_pair: Floats, policy: Floats
) -> None:
    """The answer, all parts of it."""
    if structure.parts.shape[0] > 2:
        write_parts(structure, log_w, sets, work, log_q, log_pair, policy)
    else:
        write_part(structure, log_w, sets, work, part_of(structure, work, 0), log_q, log_pair, policy)
