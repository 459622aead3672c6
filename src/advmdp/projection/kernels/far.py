"""Masses that underflow a float64.

The mass of a state may fall to exp(-5000) and return later, so its rows must stay right. Here the balance is measured
on log q, entry by entry: ln inflow(x') is a log-sum-exp over the entries into x'. The backward probabilities,
exp(log q(x,a,x') - ln inflow(x')), are of order one for any mass, and Newton uses them like ordinary flows. This takes
two exponentials per entry and an array of that size, so it is used only when some mass is out of range.
"""

import cython
from cython.cimports.advmdp.projection.kernels.answer import write_logs
from cython.cimports.advmdp.projection.kernels.exact import exponential
from cython.cimports.advmdp.projection.kernels.types import ROOM, SMALLEST_MASS, UNIT, Floats, first_entry
from cython.cimports.cpython.mem import PyMem_RawMalloc
from cython.cimports.libc.math import INFINITY, log
from cython.cimports.libc.string import memset


def ensure_back(sk, w):
    """Allocate memory for the backward probabilities, which few problems need. False if that fails."""
    if w.back == cython.NULL:
        # Apart from other arrays, as `core.arrays.apart` explains; the workspace frees it.
        block = cython.cast(Floats, PyMem_RawMalloc((sk.transitions + 2 * ROOM) * cython.sizeof(cython.double)))
        if block != cython.NULL:
            w.back = block + ROOM
    return w.back != cython.NULL


def add_log_inflow(sk, w, layer, log_q):
    """Add up ln inflow into the layer after `layer`, with the mass of each state x of `layer` times exp(lift(x))."""
    begin, end = sk.layer_ptr[layer + 1], sk.layer_ptr[layer + 2]
    log_in, sums, lift = w.log_in, w.product, w.lift
    for y in range(begin, end):
        log_in[y] = -INFINITY
        sums[y] = 0.0
    for x in range(sk.layer_ptr[layer], begin):
        for i in range(first_entry(sk, x), first_entry(sk, x + 1)):
            y = sk.successor[i]
            log_in[y] = max(log_in[y], log_q[i] + lift[x])
    for x in range(sk.layer_ptr[layer], begin):
        for i in range(first_entry(sk, x), first_entry(sk, x + 1)):
            y = sk.successor[i]
            if log_q[i] > -INFINITY:
                sums[y] += exponential(log_q[i] + lift[x] - log_in[y])
    for y in range(begin, end):
        if sums[y] > 0.0:
            log_in[y] += log(sums[y])


def write_dual(sk, sets, w, log_q):
    """log q of the dual, before any lift."""
    memset(w.lift, 0, sk.states * cython.sizeof(cython.double))
    for number in range(sk.parts):
        write_logs(sk, sets, w, number, log_q)


def measure_far(sk, sets, w):
    """Compute defect(x) of every state, and the backward probability of every entry."""
    back = w.back
    write_dual(sk, sets, w, back)
    for layer in range(sk.steps):
        add_log_inflow(sk, w, layer, back)
        begin, end = sk.layer_ptr[layer], sk.layer_ptr[layer + 1]
        for x in range(begin, end):
            w.defect[x] = w.log_out[x] - w.log_in[x] if x > 0 and w.alive[x] else 0.0
        for i in range(first_entry(sk, begin), first_entry(sk, end)):
            back[i] = exponential(back[i] - w.log_in[sk.successor[i]])


def forward_pass_far(sk, sets, w):
    """Compute lift(x) = ln mu'(x)/mu(x) from log q of the dual where mu' is out of range.

    `forward_pass` runs first: a mass in range is exact, but log q is only as accurate as ln u.
    """
    write_dual(sk, sets, w, w.log_q)
    for layer in range(sk.steps - 1):
        add_log_inflow(sk, w, layer, w.log_q)
        for y in range(sk.layer_ptr[layer + 1], sk.layer_ptr[layer + 2]):
            if w.alive[y]:
                in_range: cython.bint = w.inflow[y] >= SMALLEST_MASS
                w.lift[y] = (log(UNIT * w.inflow[y]) if in_range else w.log_in[y]) - w.log_out[y]
