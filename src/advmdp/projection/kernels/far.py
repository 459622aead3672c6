"""Masses that no float64 can hold.

A state may have lost all its mass but exp(-5000), and mass may return to it later, so its rows must stay right. Here
the balance is measured on log q alone, entry by entry: ln inflow(x') is a log-sum-exp over the entries into x', and
the probabilities backward, exp(log q(x,a,x') - ln inflow(x')), are of order one whatever the mass. Newton runs on them
as it does on ordinary flows. Costs two exponentials per entry and an array of
their number, and is only used when some mass is out of range.
"""

import numpy as np

from advmdp.confidence.sets import RowSets
from advmdp.projection.kernels.answer import write_logs
from advmdp.projection.kernels.compiled import compiled, compiled_inline
from advmdp.projection.kernels.dual import SMALLEST_MASS, UNIT
from advmdp.projection.kernels.exponential import exponential
from advmdp.projection.kernels.parts import part_of
from advmdp.projection.kernels.structure import first_entry
from advmdp.projection.kernels.types import (
    DEFECT,
    INFLOW,
    LIFT_OF,
    LOG_IN,
    LOG_OUT,
    PRODUCT,
    Floats,
    Structure,
    Work,
)


@compiled
def add_log_inflow(structure: Structure, work: Work, layer: int, log_q: Floats) -> None:
    """ln inflow into the layer after `layer`, where every state x of `layer` passes on exp(lift(x)) of what it has."""
    begin, end = structure.layer_ptr[layer + 1], structure.layer_ptr[layer + 2]
    log_in, sums, lift = work.states[LOG_IN], work.states[PRODUCT], work.states[LIFT_OF]
    log_in[begin:end] = -np.inf
    sums[begin:end] = 0.0
    for x in range(structure.layer_ptr[layer], begin):
        for i in range(first_entry(structure, x), first_entry(structure, x + 1)):
            y = structure.successor[i]
            log_in[y] = max(log_in[y], log_q[i] + lift[x])
    for x in range(structure.layer_ptr[layer], begin):
        for i in range(first_entry(structure, x), first_entry(structure, x + 1)):
            y = structure.successor[i]
            if log_q[i] > -np.inf:
                sums[y] += exponential(log_q[i] + lift[x] - log_in[y])
    for y in range(begin, end):
        if sums[y] > 0.0:
            log_in[y] += np.log(sums[y])


@compiled_inline
def write_dual(structure: Structure, log_w: Floats, sets: RowSets, work: Work, log_q: Floats, log_pair: Floats) -> None:
    """log q of the dual, before any lift."""
    work.states[LIFT_OF][:] = 0.0
    for number in range(structure.parts.shape[0] - 1):
        write_logs(structure, log_w, sets, work, part_of(structure, work, number), log_q, log_pair)


@compiled
def measure_far(structure: Structure, log_w: Floats, sets: RowSets, work: Work, back: Floats, log_pair: Floats) -> None:
    """defect(x) for every state, and the probability backward of every entry."""
    defect, log_in, log_out = work.states[DEFECT], work.states[LOG_IN], work.states[LOG_OUT]
    write_dual(structure, log_w, sets, work, back, log_pair)
    for layer in range(structure.layer_ptr.shape[0] - 2):
        add_log_inflow(structure, work, layer, back)
        begin, end = structure.layer_ptr[layer], structure.layer_ptr[layer + 1]
        for x in range(begin, end):
            defect[x] = log_out[x] - log_in[x] if x > 0 and work.alive[x] else 0.0
        for i in range(first_entry(structure, begin), first_entry(structure, end)):
            back[i] = exponential(back[i] - log_in[structure.successor[i]])


@compiled
def forward_pass_far(
    structure: Structure, log_w: Floats, sets: RowSets, work: Work, log_q: Floats, log_pair: Floats
) -> None:
    """lift(x) = ln mu'(x)/mu(x), where mu' is out of range through log q of the dual.

    `forward_pass` comes first: log q of an entry is only as good as ln u, its mass in range is exact.
    """
    mass = work.states[INFLOW]
    write_dual(structure, log_w, sets, work, log_q, log_pair)
    for layer in range(structure.layer_ptr.shape[0] - 3):
        add_log_inflow(structure, work, layer, log_q)
        for y in range(structure.layer_ptr[layer + 1], structure.layer_ptr[layer + 2]):
            if work.alive[y]:
                log_in = np.log(UNIT * mass[y]) if mass[y] >= SMALLEST_MASS else work.states[LOG_IN, y]
                work.states[LIFT_OF, y] = log_in - work.states[LOG_OUT, y]
