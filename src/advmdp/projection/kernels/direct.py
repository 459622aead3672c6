"""Newton's step by elimination, for narrow layers.

The matrix of `newton.py` couples a layer with itself and with its two neighbours. It is stored row by row over the
three layers, `band[x, c - first state of the layer before x]`, and eliminated from the first layer to the last. Near
balance it is a symmetric positive matrix with its rows scaled, so no pivoting is needed. The factors are kept: the last
step of a projection is so small that those of the step before will do.
"""

from advmdp.confidence.sets import RowSets
from advmdp.projection.kernels.compiled import compiled_in_place, compiled_inline, compiled_sums, unsigned
from advmdp.projection.kernels.dual import UNIT
from advmdp.projection.kernels.lanes import LANES, add_lanes
from advmdp.projection.kernels.structure import first_entry
from advmdp.projection.kernels.types import (
    DEFECT,
    EDGE_PTR,
    FIRST_OF_PAIR,
    MASS_A,
    MASS_B,
    PINNED,
    PULL,
    PUSH,
    STATE_OF,
    STEP,
    TIGHT,
    VECTORS,
    Floats,
    Index,
    Structure,
    Work,
)
from advmdp.projection.kernels.vectors import copy_row

SMALLEST_PIVOT = 1e-12


@compiled_sums
def add_edges(structure: Structure, work: Work, far: bool, back: Floats) -> None:
    """The diagonal, the mean over successors, and the mean over predecessors."""
    band, flow, push, pull, pinned = work.band, work.flow, work.states[PUSH], work.states[PULL], work.states[PINNED]
    edge_ptr, successor, layer_ptr = structure.states[EDGE_PTR], structure.successor, structure.layer_ptr
    band[:] = 0.0
    for layer in range(1, layer_ptr.shape[0] - 2):
        before, here = layer_ptr[layer - 1], layer_ptr[layer]
        for x in range(here, layer_ptr[layer + 1]):
            band[x, x - before] = 2.0 - pinned[x] * pull[x] if pull[x] > 0.0 else 1.0
            if pull[x] == 0.0:
                continue
            edge, entry = edge_ptr[x], first_entry(structure, x)
            for j in range(edge_ptr[x + 1] - edge):
                y = successor[entry + j]
                if pull[y] > 0.0:
                    band[x, y - before] -= UNIT * flow[edge + j]
                    band[y, x - here] -= 0.0 if far else flow[edge + j] * push[x] * pull[y]
            if far:
                for i in range(entry, first_entry(structure, x + 1)):
                    band[successor[i], x - here] -= back[i] if pull[successor[i]] > 0.0 else 0.0


@compiled_sums
def three_vectors(
    p: Floats, low: Floats, high: Floats, is_box: bool, begin: int, size: int, keep: tuple[float, float],
    vectors: Floats,
) -> None:  # fmt: skip
    """p - p_A/mass_a, p - p_B/mass_b and p, and zeros behind them to fill the lanes."""
    keep_a, keep_b = keep
    at = unsigned(begin)
    for j in range(unsigned(size)):
        here, bound = p[at + j], low[at + j]
        in_a = (here > bound) & (here < high[at + j]) if is_box else here > bound
        in_b = (not is_box) & (here < bound)
        vectors[0, j] = here * (keep_a if in_a else 1.0)
        vectors[1, j] = here * (keep_b if in_b else 1.0)
        vectors[2, j] = here
    for j in range(unsigned(size), unsigned(size + LANES - 1)):
        vectors[0, j] = vectors[1, j] = vectors[2, j] = 0.0


@compiled_inline
def vector_of(p: Floats, low: Floats, high: Floats, is_box: bool, i: int) -> int:
    """Which of the three an entry adds: that of A, which every entry of a bound zero belongs to, of B, or p."""
    pinned = (p[i] == low[i]) & (low[i] > 0.0)
    if is_box:
        return 2 if pinned | (p[i] == high[i]) else 0
    return 1 if p[i] < low[i] else (2 if pinned else 0)


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
        shift = unsigned(layer_ptr[layer])  # the first column of every row of the next layer
        begin, end = structure.transition_ptr[pair], structure.transition_ptr[pair + 1]
        if not work.marks[TIGHT, pair] or (pull[successor[begin]] == 0.0 and end - begin == 1):
            continue
        share, mass_a, mass_b = work.share[k], work.pairs[MASS_A, pair], work.pairs[MASS_B, pair]
        keep = (1.0 - 1.0 / mass_a if mass_a > 0.0 else 1.0, 1.0 - 1.0 / mass_b if mass_b > 0.0 else 1.0)
        three_vectors(p, low, high, is_box, begin, end - begin, keep, vectors)
        at, size, first = unsigned(begin), unsigned(end - begin), structure.pairs[FIRST_OF_PAIR, pair]
        for i in range(at, unsigned(end)):
            y = unsigned(successor[i])
            factor = (1.0 if far else share) * back[i] * pull[y]
            kind = unsigned(vector_of(p, low, high, is_box, i))
            if first >= 0:
                for j in range(unsigned(0), size, unsigned(LANES)):
                    add_lanes(band, y, unsigned(first) - shift + j, factor, vectors, kind, j)
            else:
                for j in range(size):
                    band[y, unsigned(successor[at + j]) - shift] += factor * vectors[kind, j]


@compiled_inline
def subtract_pivot(band: Floats, x: Index, before: Index, inverse: float, y: Index, base: Index, size: Index) -> None:
    """Free row y, whose first column is that of the state `base`, of its part along row x; `size` columns follow x.

    `inverse` is that of the pivot. The factor stays in the place of what it has removed.
    """
    m = -band[y, x - base] * inverse
    band[y, x - base] = m
    if m != 0.0:
        to, at = x + unsigned(1) - base, x + unsigned(1) - before
        for j in range(unsigned(0), size, unsigned(LANES)):
            add_lanes(band, y, to + j, m, band, x, at + j)


@compiled_inline
def factorise(structure: Structure, work: Work) -> bool:
    """Eliminate the band, and leave in it the factors and the inverse pivots. False if a pivot vanishes."""
    band, layer_ptr = work.band, structure.layer_ptr
    inner = layer_ptr.shape[0] - 2
    for layer in range(1, inner):
        before, here, end = unsigned(layer_ptr[layer - 1]), unsigned(layer_ptr[layer]), unsigned(layer_ptr[layer + 1])
        stop = unsigned(layer_ptr[layer + 2]) if layer + 1 < inner else end
        for x in range(here, end):
            pivot = band[x, x - before]
            if abs(pivot) < SMALLEST_PIVOT:
                return False
            inverse, size = 1.0 / pivot, stop - x - unsigned(1)
            band[x, x - before] = inverse
            for y in range(x + unsigned(1), end):
                subtract_pivot(band, x, before, inverse, y, before, size)
            for y in range(end, stop):
                subtract_pivot(band, x, before, inverse, y, here, size)
    return True


@compiled_sums
def along_row(band: Floats, x: int, first: int, values: Floats, begin: int, end: int) -> float:
    """The sum of the row of x, from column `first` on, times values[begin:end]."""
    s, row, at, there = 0.0, unsigned(x), unsigned(first), unsigned(begin)
    for j in range(unsigned(end - begin)):
        s += band[row, at + j] * values[there + j]
    return s


@compiled_inline
def substitute(structure: Structure, work: Work) -> None:
    """Solve band step = defect with the factors of `factorise`."""
    band, step, layer_ptr = work.band, work.states[STEP], structure.layer_ptr
    copy_row(work.states, STEP, DEFECT)
    inner = layer_ptr.shape[0] - 2
    for layer in range(1, inner):
        before = layer_ptr[layer - 1]
        for x in range(layer_ptr[layer], layer_ptr[layer + 1]):
            step[x] += along_row(band, x, 0, step, before, x)
    for layer in range(inner - 1, 0, -1):
        before, here, end = layer_ptr[layer - 1], layer_ptr[layer], layer_ptr[layer + 1]
        stop = layer_ptr[layer + 2] if layer + 1 < inner else end
        for x in range(end - 1, here - 1, -1):
            after = along_row(band, x, x + 1 - before, step, x + 1, stop)
            step[x] = (step[x] - after) * band[x, x - before]


@compiled_in_place
def direct_step(structure: Structure, sets: RowSets, work: Work, far: bool, back: Floats) -> bool:
    """`step` by elimination, on the system that `newton_step` has set up. False if that fails."""
    add_edges(structure, work, far, back)
    add_tight(structure, sets, work, far, back)
    if not factorise(structure, work):
        return False
    substitute(structure, work)
    return True
