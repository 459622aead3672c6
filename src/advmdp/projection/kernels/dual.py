"""The dual at beta: its value, the flows it implies, and how far they are from balance.

    F(beta) = sum_k ln Z_k,    Z_k = sum over pairs of layer k of exp(-kappa(x,a) - beta(x))
    q(x,a) = exp(-kappa(x,a) - beta(x)) / Z_k,    dF/dbeta(x) = inflow(x) - outflow(x)

Balance is measured state by state on the logarithms, defect(x) = ln outflow(x) - ln inflow(x), so that a state of mass
exp(-600) counts as much as any other. Probabilities of successors and masses of states are both kept multiplied by
2^500, so that masses above exp(-640) keep all their digits; `far.py` takes over beyond that.
"""

import numpy as np
from numba import prange

from advmdp.confidence.sets import RowSets
from advmdp.projection.kernels.ball import project_l1
from advmdp.projection.kernels.box import project_box
from advmdp.projection.kernels.compiled import (
    compiled,
    compiled_in_place,
    compiled_inline,
    compiled_order,
    compiled_parallel,
    compiled_sums,
    unsigned,
)
from advmdp.projection.kernels.exponential import exponential
from advmdp.projection.kernels.logarithm import logarithm
from advmdp.projection.kernels.parts import Part, part_of
from advmdp.projection.kernels.rows import gather_row, load_row, project_point
from advmdp.projection.kernels.structure import first_edge, first_entry
from advmdp.projection.kernels.types import (
    BASE_OF,
    BETA,
    BETA_BASE,
    DEFECT,
    EDGE_PTR,
    FIRST_OF_PAIR,
    FIRST_OF_STATE,
    GROWTH,
    INFLOW,
    LOG_A,
    LOG_B,
    LOG_MASS,
    LOG_OUT,
    LOG_TOTAL,
    LOG_U,
    MASS_A,
    MASS_B,
    OFFSET,
    OUTFLOW,
    PAIR_PTR,
    PRODUCT,
    SCALE,
    STATE_OF,
    STATUS,
    TIGHT,
    TOP,
    VECTORS,
    Floats,
    Structure,
    U,
    Work,
)
from advmdp.projection.kernels.weights import FREE, LIFT, LIFT_REST, MARGIN, exponentiate, fill_weights

UNIT = 2.0**-500
SMALLEST_MASS = 1e-128  # times 2^500; rows are exact down to exp(-708), far below exp(-640)
LARGEST_GROWTH = 30.0


@compiled_inline
def project_watched(structure: Structure, log_w: Floats, sets: RowSets, work: Work, part: Part) -> None:
    """The rows of all watched pairs at the current beta. Rows that were tight start from their last sets."""
    u, log_u, row, weight = work.scratch[part.number, U], work.scratch[part.number, LOG_U], work.row, work.weight
    beta, growth, pairs, tight = work.states[BETA], work.states[GROWTH], work.pairs, work.marks[TIGHT]
    low, log_low, high, log_high = sets.low, sets.log_low, sets.high, sets.log_high
    breaks = work.scratch[part.number, VECTORS]  # which Newton's step uses, at another time
    for k in range(part.watched, part.watched_end):
        pair = work.watched[k]
        begin, end = structure.transition_ptr[pair], structure.transition_ptr[pair + 1]
        first, offset, radius = structure.pairs[FIRST_OF_PAIR, pair], pairs[OFFSET, pair], sets.radius[pair]
        if first >= 0:
            s = load_row(weight, log_w, growth, beta, begin, end - begin, first, offset, u, log_u)
        else:
            s = gather_row(weight, log_w, growth, beta, begin, end - begin, structure.successor, offset, u, log_u)
        if radius == 0.0:
            found = project_point(log_u, low, log_low, begin, end, row)
        elif sets.is_box:
            found = project_box(u, log_u, low, high, log_low, log_high, begin, end, s, row, breaks)
        else:
            found = project_l1(u, log_u, low, log_low, begin, end, radius, s, tight[pair] == 1, row, breaks)
        tight[pair] = found[0]
        pairs[LOG_MASS, pair] = offset - found[1]
        pairs[LOG_A, pair] = found[2]
        pairs[LOG_B, pair] = found[3]
        pairs[MASS_A, pair] = found[4]
        pairs[MASS_B, pair] = found[5]


@compiled_sums
def spread_pairs(structure: Structure, work: Work, x: int) -> float:
    """`spread_free` for a state whose pairs share no edges: straight from the weights. Returns the sum."""
    flow, growth, weight, successor = work.flow, work.states[GROWTH], work.weight, structure.successor
    first, last, edge = structure.states[PAIR_PTR, x], structure.states[PAIR_PTR, x + 1], structure.states[EDGE_PTR, x]
    shift = edge - structure.transition_ptr[first]
    known, factor, s = np.inf, 0.0, 0.0  # the pairs of a state mostly share their offset
    for pair in range(first, last):
        begin, end = structure.transition_ptr[pair], structure.transition_ptr[pair + 1]
        if work.marks[STATUS, pair] != FREE:
            flow[begin + shift : end + shift] = 0.0
            continue
        if work.pairs[OFFSET, pair] != known:
            known = work.pairs[OFFSET, pair]
            factor = exponential(known - work.states[TOP, x])
        at, to = unsigned(begin), unsigned(begin + shift)
        for j in range(unsigned(end - begin)):
            f = factor * weight[at + j] * growth[unsigned(successor[at + j])]
            flow[to + j] = f
            s += f
    return s


@compiled_sums
def spread_free(structure: Structure, work: Work, part: Part) -> None:
    """flow = base exp(beta - beta_base) relative to exp(top(x)), where top(x) leaves room for watched pairs."""
    flow, base, growth, outflow, top = work.flow, work.base, work.states[GROWTH], work.states[OUTFLOW], work.states[TOP]
    for x in range(part.first, part.end):
        if structure.states[BASE_OF, x] < 0:
            outflow[x] = spread_pairs(structure, work, x)
            continue
        begin, end = structure.states[EDGE_PTR, x], structure.states[EDGE_PTR, x + 1]
        first, at = structure.states[FIRST_OF_STATE, x], unsigned(structure.states[BASE_OF, x])
        factor = exponential(work.states[SCALE, x] - top[x])
        s = 0.0
        if first >= 0:
            to, there = unsigned(begin), unsigned(first)
            for j in range(unsigned(end - begin)):
                f = factor * base[at + j] * growth[there + j]
                flow[to + j] = f
                s += f
        else:
            to, entry = unsigned(begin), unsigned(first_entry(structure, x))
            for j in range(unsigned(end - begin)):
                f = factor * base[at + j] * growth[unsigned(structure.successor[entry + j])]
                flow[to + j] = f
                s += f
        outflow[x] = s


@compiled_sums
def spread_watched(structure: Structure, work: Work, part: Part) -> None:
    """Add the rows of the watched pairs to the flow."""
    flow, row = work.flow, work.row
    for k in range(part.watched, part.watched_end):
        pair = work.watched[k]
        work.share[k] = work.pairs[LOG_MASS, pair] - work.states[TOP, structure.pairs[STATE_OF, pair]]
    exponentiate(work.share, part.watched, part.watched_end)
    for k in range(part.watched, part.watched_end):
        pair, share = work.watched[k], work.share[k]
        x = structure.pairs[STATE_OF, pair]
        begin, end = structure.transition_ptr[pair], structure.transition_ptr[pair + 1]
        work.states[OUTFLOW, x] += share
        at, there = unsigned(begin), unsigned(first_edge(structure, x, begin))
        for j in range(unsigned(end - begin)):
            flow[there + j] += share * row[at + j]


@compiled_inline
def weigh_states(work: Work, part: Part) -> None:
    """ln outflow of every state, up to ln Z, and in `product` what brings its flow to scale."""
    log_total, log_out, outflow = work.states[LOG_TOTAL], work.states[LOG_OUT], work.states[OUTFLOW]
    top, beta, factor, alive = work.states[TOP], work.states[BETA], work.states[PRODUCT], work.alive
    for x in range(unsigned(part.first), unsigned(part.end)):
        total = UNIT * outflow[x]
        log = logarithm(total)
        log_total[x] = log
        log_out[x] = log + LIFT_REST + (top[x] + LIFT - beta[x]) if alive[x] else -np.inf
        factor[x] = 1.0 / total if alive[x] else 0.0


@compiled_order
def largest_of(values: Floats, begin: int, end: int) -> float:
    """The largest of values[begin:end]."""
    largest = -np.inf
    for x in range(unsigned(begin), unsigned(end)):
        largest = values[x] if values[x] > largest else largest
    return largest


@compiled_sums
def sum_of(values: Floats, begin: int, end: int) -> float:
    """The sum of values[begin:end]."""
    s = 0.0
    for x in range(unsigned(begin), unsigned(end)):
        s += values[x]
    return s


@compiled_inline
def normalise(structure: Structure, work: Work, part: Part) -> None:
    """ln Z of every layer, and the outflows that sum to one over it."""
    log_out, outflow = work.states[LOG_OUT], work.states[OUTFLOW]
    weigh_states(work, part)
    for layer in range(structure.parts[part.number], structure.parts[part.number + 1]):
        begin, end = structure.layer_ptr[layer], structure.layer_ptr[layer + 1]
        work.log_z[layer] = largest = largest_of(log_out, begin, end)
        for x in range(unsigned(begin), unsigned(end)):
            log_out[x] -= largest
    for x in range(unsigned(part.first), unsigned(part.end)):
        outflow[x] = exponential(log_out[x] + LIFT)
    for layer in range(structure.parts[part.number], structure.parts[part.number + 1]):
        begin, end = structure.layer_ptr[layer], structure.layer_ptr[layer + 1]
        z = UNIT * sum_of(outflow, begin, end)
        log_z, scale = np.log(z) + LIFT_REST, 1.0 / z
        work.log_z[layer] += log_z
        for x in range(unsigned(begin), unsigned(end)):
            log_out[x] -= log_z
            outflow[x] *= scale


@compiled_sums
def push_flow(structure: Structure, work: Work, part: Part) -> None:
    """Bring the flow of every state to a sum of 2^500 and add up the inflows."""
    flow, inflow, factors, outflow = work.flow, work.states[INFLOW], work.states[PRODUCT], work.states[OUTFLOW]
    for y in range(part.into, part.into_end):
        inflow[y] = 0.0
    for x in range(part.first, part.end):
        begin, end = structure.states[EDGE_PTR, x], structure.states[EDGE_PTR, x + 1]
        first, factor = structure.states[FIRST_OF_STATE, x], factors[x]
        mass = UNIT * outflow[x]
        if first >= 0:
            at, there = unsigned(begin), unsigned(first)
            for j in range(unsigned(end - begin)):
                f = factor * flow[at + j]
                flow[at + j] = f
                inflow[there + j] += mass * f
        else:
            at, entry = unsigned(begin), unsigned(first_entry(structure, x))
            for j in range(unsigned(end - begin)):
                f = factor * flow[at + j]
                flow[at + j] = f
                inflow[unsigned(structure.successor[entry + j])] += mass * f


@compiled_sums
def scale_shares(structure: Structure, work: Work, part: Part) -> None:
    """Bring the masses of watched pairs to scale."""
    for k in range(part.watched, part.watched_end):
        x = structure.pairs[STATE_OF, work.watched[k]]
        work.share[k] *= UNIT * work.states[PRODUCT, x] * work.states[OUTFLOW, x]


@compiled
def evaluate_part(structure: Structure, log_w: Floats, sets: RowSets, work: Work, part: Part) -> None:
    """Everything about one part at the current beta: rows, flows, inflow, outflow, ln Z_k."""
    project_watched(structure, log_w, sets, work, part)
    for x in range(part.first, part.end):
        work.states[TOP, x] = work.states[SCALE, x]
    for k in range(part.watched, part.watched_end):
        x = structure.pairs[STATE_OF, work.watched[k]]
        work.states[TOP, x] = max(work.states[TOP, x], work.pairs[LOG_MASS, work.watched[k]] - LIFT)
    spread_free(structure, work, part)
    spread_watched(structure, work, part)
    normalise(structure, work, part)
    push_flow(structure, work, part)
    scale_shares(structure, work, part)


@compiled_parallel
def evaluate_parts(structure: Structure, log_w: Floats, sets: RowSets, work: Work) -> None:
    """`evaluate_part`, a thread for each."""
    for number in prange(structure.parts.shape[0] - 1):
        evaluate_part(structure, log_w, sets, work, part_of(structure, work, number))


@compiled_in_place
def evaluate(structure: Structure, log_w: Floats, sets: RowSets, work: Work) -> float:
    """Everything at the current beta. Returns F."""
    if structure.parts.shape[0] > 2:
        evaluate_parts(structure, log_w, sets, work)
    else:
        evaluate_part(structure, log_w, sets, work, part_of(structure, work, 0))
    value = 0.0
    for log_z in work.log_z:
        value += log_z
    return value


@compiled_in_place
def move(structure: Structure, log_w: Floats, sets: RowSets, work: Work) -> None:
    """Make the weights fit the current beta, by factors exp(beta - beta_base) or, after a long way, from scratch."""
    beta, base, alive = work.states[BETA], work.states[BETA_BASE], work.alive
    growth = work.states[GROWTH]
    for x in range(unsigned(beta.shape[0])):
        growth[x] = beta[x] - base[x] if alive[x] else 0.0
    for layer in range(structure.layer_ptr.shape[0] - 1):
        low, high = np.inf, -np.inf
        for x in range(structure.layer_ptr[layer], structure.layer_ptr[layer + 1]):
            if alive[x]:
                low = min(low, growth[x])
                high = max(high, growth[x])
        if high - low > 2.0 * MARGIN or max(high, -low) > LARGEST_GROWTH:
            fill_weights(structure, log_w, sets, work, False)
            return
    for x in range(unsigned(beta.shape[0])):
        growth[x] = exponential(growth[x])


@compiled_inline
def measure(work: Work) -> bool:
    """defect(x) = ln outflow(x) - ln inflow(x). False if some mass is out of range."""
    inflow, outflow, defect, alive = work.states[INFLOW], work.states[OUTFLOW], work.states[DEFECT], work.alive
    beyond = 0
    for x in range(unsigned(1), unsigned(defect.shape[0] - 1)):
        defect[x] = logarithm(outflow[x] / inflow[x] if alive[x] else 1.0)
        within = (inflow[x] >= SMALLEST_MASS) & (outflow[x] >= SMALLEST_MASS)
        beyond += 0 if within | (alive[x] == 0) else 1
    return beyond == 0
