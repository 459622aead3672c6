"""The dual at beta: its value, the flows it implies, and how far they are from balance.

    F(beta) = sum_k ln Z_k,    Z_k = sum over pairs of layer k of exp(-kappa(x,a) - beta(x))
    q(x,a) = exp(-kappa(x,a) - beta(x)) / Z_k,    dF/dbeta(x) = inflow(x) - outflow(x)

Balance is measured for each state on the logarithms, defect(x) = ln outflow(x) - ln inflow(x), so a state of mass
exp(-600) counts as much as any other (`exact.measure`). Probabilities of successors and masses of states are stored
times 2^500, so masses above exp(-640) keep all their digits; `far.py` handles smaller ones.

The layers are divided between threads. The flow into a layer comes only from the layer before it. So a thread that owns
whole layers shares no sum with another, every sum keeps its order, and the answer is the same bit for bit for any
number of threads. Each pass is written for one part; a small problem is one part and uses no other thread.
"""

import cython
from cython.cimports.advmdp.projection.kernels.abreast import project_watched
from cython.cimports.advmdp.projection.kernels.exact import (
    exponential,
    exponentiate,
    exponentiate_difference,
    weigh_states,
    write_outflows,
)
from cython.cimports.advmdp.projection.kernels.types import (
    FREE,
    LIFT,
    LIFT_REST,
    MARGIN,
    UNIT,
    first_edge,
    first_entry,
    part_of,
)
from cython.cimports.advmdp.projection.kernels.weights import fill_weights
from cython.cimports.libc.math import INFINITY, log
from cython.cimports.libc.string import memset
from cython.parallel import prange

BLOCK = cython.declare(cython.int, 16384)  # transitions: their weights, rows and centres fill half a second-level cache
LARGEST_GROWTH = cython.declare(cython.double, 30.0)


def spread_pairs(sk, w, x):
    """`spread_edges` for a state whose pairs share no edges: directly from the weights. Returns the sum."""
    s = 0.0
    shift = sk.edge_ptr[x] - first_entry(sk, x)
    for pair in range(sk.pair_ptr[x], sk.pair_ptr[x + 1]):
        begin = sk.transition_ptr[pair]
        size = sk.transition_ptr[pair + 1] - begin
        flow, weight, successor = w.flow + begin + shift, w.weight + begin, sk.successor + begin
        if w.status[pair] != FREE:
            memset(flow, 0, size * cython.sizeof(cython.double))
            continue
        # The pairs of a state usually share their offset.
        factor = w.product[x] if w.offset[pair] == w.scale[x] else exponential(w.offset[pair] - w.top[x])
        for j in range(size):
            f = factor * weight[j] * w.growth[successor[j]]
            flow[j] = f
            s += f
    return s


def spread_edges(sk, w, x):
    """flow = base exp(beta - beta_base) relative to exp(top(x)). Returns the sum."""
    s = 0.0
    begin, first, factor = sk.edge_ptr[x], sk.first_of_state[x], w.product[x]
    size = sk.edge_ptr[x + 1] - begin
    flow, base = w.flow + begin, w.base + sk.base_of[x]
    if first >= 0:
        growth = w.growth + first
        for j in range(size):
            f = factor * base[j] * growth[j]
            flow[j] = f
            s += f
    else:
        successor = sk.successor + first_entry(sk, x)
        for j in range(size):
            f = factor * base[j] * w.growth[successor[j]]
            flow[j] = f
            s += f
    return s


def spread_free(sk, w, part):
    """The flow of the free pairs, relative to exp(top(x)), where top(x) leaves room for watched pairs."""
    for x in range(part.first, part.end):
        w.top[x] = w.scale[x]
    for k in range(part.watched, part.watched_end):
        x = sk.state_of[w.watched[k]]
        w.top[x] = max(w.top[x], w.log_mass[k] - LIFT)
    exponentiate_difference(w.scale + part.first, w.top + part.first, part.end - part.first, w.product + part.first)
    for x in range(part.first, part.end):
        w.outflow[x] = spread_pairs(sk, w, x) if sk.base_of[x] < 0 else spread_edges(sk, w, x)


def spread_watched(sk, w, part):
    """Add the rows of the watched pairs to the flow."""
    for k in range(part.watched, part.watched_end):
        w.share[k] = w.log_mass[k] - w.top[sk.state_of[w.watched[k]]]
    exponentiate(w.share + part.watched, part.watched_end - part.watched)
    for k in range(part.watched, part.watched_end):
        pair, share = w.watched[k], w.share[k]
        x, begin = sk.state_of[pair], sk.transition_ptr[pair]
        w.outflow[x] += share
        flow, row = w.flow + first_edge(sk, x, begin), w.row + begin
        for j in range(sk.transition_ptr[pair + 1] - begin):
            flow[j] += share * row[j]


def largest(values, begin, end):
    """The largest of values[begin:end]."""
    found = -INFINITY
    for x in range(begin, end):
        found = values[x] if values[x] > found else found
    return found


def normalise(sk, w, part):
    """Compute ln Z of every layer, and its outflows, which sum to one."""
    weigh_states(w, part.first, part.end)
    for layer in range(part.layer, part.layer_end):
        top = largest(w.log_out, sk.layer_ptr[layer], sk.layer_ptr[layer + 1])
        w.log_z[layer] = top
        for x in range(sk.layer_ptr[layer], sk.layer_ptr[layer + 1]):
            w.log_out[x] -= top
    write_outflows(w, part.first, part.end)
    for layer in range(part.layer, part.layer_end):
        s = 0.0
        for x in range(sk.layer_ptr[layer], sk.layer_ptr[layer + 1]):
            s += w.outflow[x]
        z = UNIT * s
        log_z, scale = log(z) + LIFT_REST, 1.0 / z
        w.log_z[layer] += log_z
        for x in range(sk.layer_ptr[layer], sk.layer_ptr[layer + 1]):
            w.log_out[x] -= log_z
            w.outflow[x] *= scale


def scale_flow(sk, w, part):
    """Scale the flow of every state to a sum of 2^500."""
    for x in range(part.first, part.end):
        begin, factor = sk.edge_ptr[x], 1.0 / (UNIT * w.outflow[x]) if w.alive[x] else 0.0
        flow = w.flow + begin
        for j in range(sk.edge_ptr[x + 1] - begin):
            flow[j] *= factor


def push_flow(sk, w, part):
    """Add up the inflows, and scale the masses of watched pairs."""
    memset(w.inflow + part.into, 0, (part.into_end - part.into) * cython.sizeof(cython.double))
    for x in range(part.first, part.end):
        begin, first = sk.edge_ptr[x], sk.first_of_state[x]
        size = sk.edge_ptr[x + 1] - begin
        flow, mass = w.flow + begin, UNIT * w.outflow[x]
        if first >= 0:
            inflow = w.inflow + first
            for j in range(size):
                inflow[j] += mass * flow[j]
        else:
            successor = sk.successor + first_entry(sk, x)
            for j in range(size):
                w.inflow[successor[j]] += mass * flow[j]
    for k in range(part.watched, part.watched_end):
        x = sk.state_of[w.watched[k]]
        w.share[k] *= UNIT * w.product[x] * w.outflow[x]


def end_of_block(sk, first, end):
    """The end of a block of about BLOCK transitions: at least one state from `first` on, none from `end` on."""
    begin, x = first_entry(sk, first), first + 1
    while x < end and first_entry(sk, x + 1) - begin <= BLOCK:
        x += 1
    return x


def spread_part(sk, sets, w, part):
    """Rows and flows of one part, block by block, so that the second read of a block finds it in the cache."""
    block = part[0]
    while block.first < part.end:
        block.end = end_of_block(sk, block.first, part.end)
        block.watched_end = block.watched
        while block.watched_end < part.watched_end and sk.state_of[w.watched[block.watched_end]] < block.end:
            block.watched_end += 1
        project_watched(sk, sets, w, cython.address(block))
        spread_free(sk, w, cython.address(block))
        spread_watched(sk, w, cython.address(block))
        scale_flow(sk, w, cython.address(block))
        block.first, block.watched = block.end, block.watched_end


def evaluate_part(sk, sets, w, number):
    """Evaluate one part at the current beta: rows, flows, inflow, outflow, ln Z_k."""
    part = part_of(sk, w, number)
    spread_part(sk, sets, w, cython.address(part))
    normalise(sk, w, cython.address(part))
    push_flow(sk, w, cython.address(part))


def evaluate(sk, sets, w):
    """Evaluate the dual at the current beta. Returns F."""
    if sk.parts > 1:
        for number in prange(sk.parts, num_threads=sk.parts, schedule="static"):
            evaluate_part(sk, sets, w, number)
    else:
        evaluate_part(sk, sets, w, 0)
    value = 0.0
    for layer in range(sk.steps):
        value += w.log_z[layer]
    return value


def move(sk, sets, w):
    """Move the weights to the current beta: by factors exp(beta - beta_base) or, after a long move, from scratch."""
    for x in range(sk.states):
        shift = w.beta[x] - w.beta_base[x] if w.alive[x] else 0.0
        w.growth[x] = w.shift[x] = shift
    for layer in range(sk.steps + 1):
        low, high = INFINITY, -INFINITY
        for x in range(sk.layer_ptr[layer], sk.layer_ptr[layer + 1]):
            if w.alive[x]:
                low = min(low, w.growth[x])
                high = max(high, w.growth[x])
        if high - low > 2.0 * MARGIN or max(high, -low) > LARGEST_GROWTH:
            fill_weights(sk, sets, w, False)
            return
    w.at_base = False
    exponentiate(w.growth, sk.states)
