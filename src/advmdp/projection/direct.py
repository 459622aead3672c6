"""Newton's step by elimination, for narrow layers.

The matrix of `newton.py` couples a layer with itself and with its two neighbours. It is stored row by row over the
three layers, `band[x, c - first state of the layer before x]`, and eliminated from the first layer to the last. Near
balance it is a symmetric positive matrix with its rows scaled, so no pivoting is needed.
"""

from advmdp.projection.compiled import compiled_in_place, compiled_sums
from advmdp.projection.dual import UNIT
from advmdp.projection.types import (
    DEFECT,
    EDGE_PTR,
    FIRST_OF_PAIR,
    MASS_A,
    MASS_B,
    PAIR_PTR,
    PINNED,
    PULL,
    PUSH,
    STATE_OF,
    STEP,
    TIGHT,
    VECTORS,
    Floats,
    RowSets,
    Structure,
    Work,
)
from advmdp.projection.vectors import add_to_row, copy_row

SMALLEST_PIVOT = 1e-12


@compiled_sums
def add_edges(structure: Structure, work: Work, far: bool, back: Floats) -> None:
    """The diagonal, the mean over successors, and the mean over predecessors."""
    band, flow, push, pull, pinned = work.band, work.flow, work.states[PUSH], work.states[PULL], work.states[PINNED]
    edge_ptr, successor, layer_ptr = structure.states[EDGE_PTR], structure.edge_successor, structure.layer_ptr
    band[:] = 0.0
    for layer in range(1, layer_ptr.shape[0] - 2):
        before, here = layer_ptr[layer - 1], layer_ptr[layer]
        for x in range(here, layer_ptr[layer + 1]):
            band[x, x - before] = 2.0 - pinned[x] * pull[x] if pull[x] > 0.0 else 1.0
            if pull[x] == 0.0:
                continue
            for e in range(edge_ptr[x], edge_ptr[x + 1]):
                y = successor[e]
                if pull[y] > 0.0:
                    band[x, y - before] -= UNIT * flow[e]
                    band[y, x - here] -= 0.0 if far else flow[e] * push[x] * pull[y]
            if far:
                first, last = structure.states[PAIR_PTR, x], structure.states[PAIR_PTR, x + 1]
                for i in range(structure.transition_ptr[first], structure.transition_ptr[last]):
                    y = structure.successor[i]
                    band[y, x - here] -= back[i] if pull[y] > 0.0 else 0.0


@compiled_sums
def add_tight(structure: Structure, sets: RowSets, work: Work, far: bool, back: Floats) -> None:
    """q(x,a) [p p - p_A p_A/mass_a - p_B p_B/mass_b] of the tight rows: each adds one of three vectors to row x'."""
    band, pull, p, low, high, is_box = work.band, work.states[PULL], work.row, sets.low, sets.high, sets.is_box
    vectors, successor, watched = work.scratch[0, VECTORS:], structure.successor, work.watched
    layer_ptr, layer = structure.layer_ptr, 0
    for k in range(watched[-1]):
        pair = watched[k]
        while structure.pairs[STATE_OF, pair] >= layer_ptr[layer + 1]:
            layer += 1
        shift = layer_ptr[layer]  # the first column of every row of the next layer
        begin, end = structure.transition_ptr[pair], structure.transition_ptr[pair + 1]
        if not work.marks[TIGHT, pair] or (pull[successor[begin]] == 0.0 and end - begin == 1):
            continue
        share = 1.0 if far else work.share[pair]
        scale_a = 1.0 / work.pairs[MASS_A, pair] if work.pairs[MASS_A, pair] > 0.0 else 0.0
        scale_b = 1.0 / work.pairs[MASS_B, pair] if work.pairs[MASS_B, pair] > 0.0 else 0.0
        for i in range(begin, end):
            in_b = (not is_box) & (p[i] < low[i])
            in_a = (p[i] > low[i]) & ((not is_box) or p[i] < high[i])
            vectors[0, i - begin] = p[i] * (1.0 - scale_a) if in_a else p[i]
            vectors[1, i - begin] = p[i] * (1.0 - scale_b) if in_b else p[i]
            vectors[2, i - begin] = p[i]
        for i in range(begin, end):
            y = successor[i]
            factor = share * back[i] * pull[y]
            moving = p[i] > low[i] or low[i] == 0.0
            kind = 0 if moving and not (is_box and p[i] == high[i]) else (1 if p[i] < low[i] else 2)
            first = structure.pairs[FIRST_OF_PAIR, pair]
            if first >= 0:
                add_to_row(band, y, first - shift, factor, vectors, kind, 0, end - begin)
            else:
                for j in range(begin, end):
                    band[y, successor[j] - shift] += factor * vectors[kind, j - begin]


@compiled_sums
def eliminate(structure: Structure, work: Work) -> bool:
    """Solve band step = defect. False if a pivot vanishes."""
    band, step, layer_ptr = work.band, work.states[STEP], structure.layer_ptr
    copy_row(work.states, STEP, DEFECT)
    num_layers = layer_ptr.shape[0] - 2
    for layer in range(1, num_layers):
        before, here, end = layer_ptr[layer - 1], layer_ptr[layer], layer_ptr[layer + 1]
        stop = layer_ptr[layer + 2] if layer + 1 < num_layers else end
        for x in range(here, end):
            pivot = band[x, x - before]
            if abs(pivot) < SMALLEST_PIVOT:
                return False
            for y in range(x + 1, stop):
                base = before if y < end else here
                m = band[y, x - base] / pivot
                if m != 0.0:
                    step[y] -= m * step[x]
                    add_to_row(band, y, x + 1 - base, -m, band, x, x + 1 - before, stop - x - 1)
    for layer in range(num_layers - 1, 0, -1):
        before, here, end = layer_ptr[layer - 1], layer_ptr[layer], layer_ptr[layer + 1]
        stop = layer_ptr[layer + 2] if layer + 1 < num_layers else end
        for x in range(end - 1, here - 1, -1):
            s = step[x]
            for c in range(x + 1, stop):
                s -= band[x, c - before] * step[c]
            step[x] = s / band[x, x - before]
    return True


@compiled_in_place
def direct_step(structure: Structure, sets: RowSets, work: Work, far: bool, back: Floats) -> bool:
    """`step` by elimination, on the system that `newton_step` has set up."""
    add_edges(structure, work, far, back)
    add_tight(structure, sets, work, far, back)
    return eliminate(structure, work)
