"""The dual at beta: its value, the flows it implies, and how far they are from balance.

    F(beta) = sum_k ln Z_k,    Z_k = sum over pairs of layer k of exp(-kappa(x,a) - beta(x))
    q(x,a) = exp(-kappa(x,a) - beta(x)) / Z_k,    dF/dbeta(x) = inflow(x) - outflow(x)

Balance is measured state by state on the logarithms, defect(x) = ln outflow(x) - ln inflow(x), so that a state of mass
exp(-600) counts as much as any other. Probabilities of successors and masses of states are both kept multiplied by
2^500, so that masses above exp(-640) keep all their digits; `far.py` takes over beyond that.
"""

import numpy as np

from advmdp.projection.compiled import compiled, compiled_inline, compiled_sums, unsigned
from advmdp.projection.exponential import exponential
from advmdp.projection.rows import gather_row, load_row, project_box, project_l1, project_point
from advmdp.projection.structure import first_edge
from advmdp.projection.types import (
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
    PRODUCT,
    SCALE,
    STATE_OF,
    TIGHT,
    TOP,
    Floats,
    RowSets,
    Structure,
    U,
    Work,
)
from advmdp.projection.vectors import copy_row
from advmdp.projection.weights import LIFT, MARGIN, fill_weights

UNIT = 2.0**-500
SMALLEST_MASS = 1e-128  # times 2^500; rows are exact down to exp(-708), far below exp(-640)
LARGEST_GROWTH = 30.0
LARGEST_LOG = 700.0


@compiled_inline
def project_watched(structure: Structure, log_w: Floats, sets: RowSets, work: Work) -> None:
    """The rows of all watched pairs at the current beta. Rows that were tight start from their last multipliers."""
    u, log_u, row, weight = work.scratch[U], work.scratch[LOG_U], work.row, work.weight
    beta, growth, pairs, tight = work.states[BETA], work.states[GROWTH], work.pairs, work.marks[TIGHT]
    low, log_low, high, log_high = sets.low, sets.log_low, sets.high, sets.log_high
    for k in range(work.watched[-1]):
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
            found = project_box(u, log_u, low, high, log_low, log_high, begin, end, s, row)
        else:
            start = (0.0, 0.0)
            if tight[pair]:
                log_a, log_b = pairs[LOG_A, pair] + offset, pairs[LOG_B, pair] + offset
                start = (exponential(min(log_a, LARGEST_LOG)), exponential(min(log_b, LARGEST_LOG)))
            found = project_l1(u, log_u, low, log_low, begin, end, radius, s, start, row)
        tight[pair] = found[0]
        pairs[LOG_MASS, pair] = offset - found[1]
        pairs[LOG_A, pair] = found[2] - offset
        pairs[LOG_B, pair] = found[3] - offset
        pairs[MASS_A, pair] = found[4]
        pairs[MASS_B, pair] = found[5]


@compiled_sums
def spread_free(structure: Structure, work: Work) -> None:
    """flow = base exp(beta - beta_base) relative to exp(top(x)), where top(x) leaves room for watched pairs."""
    flow, base, growth, outflow, top = work.flow, work.base, work.states[GROWTH], work.states[OUTFLOW], work.states[TOP]
    for x in range(top.shape[0] - 1):
        begin, end = structure.states[EDGE_PTR, x], structure.states[EDGE_PTR, x + 1]
        first = structure.states[FIRST_OF_STATE, x]
        factor = exponential(work.states[SCALE, x] - top[x])
        s = 0.0
        if first >= 0:
            at, there = unsigned(begin), unsigned(first)
            for j in range(unsigned(end - begin)):
                f = factor * base[at + j] * growth[there + j]
                flow[at + j] = f
                s += f
        else:
            for e in range(begin, end):
                f = factor * base[e] * growth[structure.edge_successor[e]]
                flow[e] = f
                s += f
        outflow[x] = s


@compiled_sums
def spread_watched(structure: Structure, work: Work) -> None:
    """Add the rows of the watched pairs to the flow."""
    flow, row = work.flow, work.row
    for k in range(work.watched[-1]):
        pair = work.watched[k]
        x = structure.pairs[STATE_OF, pair]
        begin, end = structure.transition_ptr[pair], structure.transition_ptr[pair + 1]
        share = exponential(work.pairs[LOG_MASS, pair] - work.states[TOP, x])
        work.share[pair] = share
        work.states[OUTFLOW, x] += share
        at, there = unsigned(begin), unsigned(first_edge(structure, x, begin))
        for j in range(unsigned(end - begin)):
            flow[there + j] += share * row[at + j]


@compiled_inline
def normalise(structure: Structure, work: Work) -> float:
    """ln outflow of every state from its total over actions; leaves in `product` what brings its flow to scale."""
    log_out, alive, value = work.states[LOG_OUT], work.alive, 0.0
    for layer in range(structure.layer_ptr.shape[0] - 2):
        begin, end = structure.layer_ptr[layer], structure.layer_ptr[layer + 1]
        largest, z = -np.inf, 0.0
        for x in range(begin, end):
            if alive[x]:
                work.states[LOG_TOTAL, x] = work.states[TOP, x] + np.log(work.states[OUTFLOW, x])
                log_out[x] = work.states[LOG_TOTAL, x] - work.states[BETA, x]
                largest = max(largest, log_out[x])
        for x in range(begin, end):
            if alive[x]:
                z += exponential(log_out[x] - largest)
        log_z = largest + np.log(z)
        value += log_z
        for x in range(begin, end):
            work.states[PRODUCT, x] = 0.0
            if alive[x]:
                log_out[x] -= log_z
                work.states[PRODUCT, x] = 1.0 / (UNIT * work.states[OUTFLOW, x])
                work.states[OUTFLOW, x] = exponential(log_out[x] + LIFT)
    return value


@compiled_sums
def push_flow(structure: Structure, work: Work) -> None:
    """Bring the flow of every state to a sum of 2^500 and add up the inflows."""
    flow, inflow, factors, outflow = work.flow, work.states[INFLOW], work.states[PRODUCT], work.states[OUTFLOW]
    inflow[:] = 0.0
    for x in range(inflow.shape[0] - 1):
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
            for e in range(begin, end):
                flow[e] *= factor
                inflow[structure.edge_successor[e]] += mass * flow[e]


@compiled_sums
def scale_shares(structure: Structure, work: Work) -> None:
    """Bring the masses of watched pairs to scale."""
    for k in range(work.watched[-1]):
        pair = work.watched[k]
        x = structure.pairs[STATE_OF, pair]
        work.share[pair] *= UNIT * work.states[PRODUCT, x] * work.states[OUTFLOW, x]


@compiled
def evaluate(structure: Structure, log_w: Floats, sets: RowSets, work: Work) -> float:
    """Everything at the current beta: rows, flows, inflow, outflow. Returns F."""
    project_watched(structure, log_w, sets, work)
    copy_row(work.states, TOP, SCALE)
    for k in range(work.watched[-1]):
        x = structure.pairs[STATE_OF, work.watched[k]]
        work.states[TOP, x] = max(work.states[TOP, x], work.pairs[LOG_MASS, work.watched[k]] - LIFT)
    spread_free(structure, work)
    spread_watched(structure, work)
    value = normalise(structure, work)
    push_flow(structure, work)
    scale_shares(structure, work)
    return value


@compiled
def move(structure: Structure, log_w: Floats, sets: RowSets, work: Work) -> None:
    """Make the weights fit the current beta, by factors exp(beta - beta_base) or, after a long way, from scratch."""
    beta, base, alive = work.states[BETA], work.states[BETA_BASE], work.alive
    for layer in range(structure.layer_ptr.shape[0] - 1):
        low, high = np.inf, -np.inf
        for x in range(structure.layer_ptr[layer], structure.layer_ptr[layer + 1]):
            if alive[x]:
                low = min(low, beta[x] - base[x])
                high = max(high, beta[x] - base[x])
        if high - low > 2.0 * MARGIN or max(high, -low) > LARGEST_GROWTH:
            fill_weights(structure, log_w, sets, work, False)
            return
    for x in range(beta.shape[0]):
        work.states[GROWTH, x] = exponential(beta[x] - base[x]) if alive[x] else 1.0


@compiled_inline
def measure(work: Work) -> bool:
    """defect(x) = ln outflow(x) - ln inflow(x). False if some mass is out of range."""
    inflow, outflow, defect = work.states[INFLOW], work.states[OUTFLOW], work.states[DEFECT]
    for x in range(1, defect.shape[0] - 1):
        defect[x] = 0.0
        if not work.alive[x]:
            continue
        if min(inflow[x], outflow[x]) < SMALLEST_MASS:
            return False
        ratio = outflow[x] / inflow[x]
        close = 0.5 < ratio < 2.0
        defect[x] = np.log(ratio) if close else np.log(outflow[x]) - np.log(inflow[x])
    return True
