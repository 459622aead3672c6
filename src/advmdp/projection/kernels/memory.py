# cython: wraparound=True
# (for Python objects, whose last entry is [-1])
"""The Python objects that own the arrays of the kernels, each with a C struct of pointers to them as its `view`.

A :class:`Layout` belongs to a skeleton, :class:`Bounds` to a confidence set, a :class:`Workspace` to one projection at
a time. All memory is allocated here, once, except that for masses out of range (`far.py`).
"""

import cython
import numpy as np
from cython.cimports.advmdp.projection.kernels.types import (
    LANES,
    ROOM,
    RUN,
    Floats,
    Indices,
    Ints,
    Reals,
    Tally,
    int8_t,
    int32_t,
    int64_t,
)
from cython.cimports.cpython.mem import PyMem_RawFree
from cython.cimports.libc.stdint import uintptr_t

from advmdp.core.arrays import apart

WIDEST = 12  # layers up to this width are solved directly
KRYLOV = 24  # the most directions of a GMRES cycle
FEWEST = 8  # the fewest
STATES = (
    "beta", "beta_base", "growth", "shift", "scale", "top", "log_total", "log_out", "outflow", "inflow", "before",
    "defect", "step", "product", "pull", "push", "pinned",
)  # fmt: skip
PAIRS = ("offset", "log_mass", "log_a", "log_b", "mass_a", "mass_b", "mass")


@cython.cfunc
def address_of(array) -> cython.p_void:
    """The address of an array's numbers; NULL if it is empty."""
    place: uintptr_t = array.ctypes.data if array.size else 0
    return cython.cast(cython.p_void, place)


def aligned_states(pair_ptr, transition_ptr, successor):
    """Which states have pairs that all have the same successors in the same order."""
    aligned = np.ones(len(pair_ptr) - 1, np.bool_)
    same: cython.bint
    pairs: cython.const[int64_t][::1] = pair_ptr
    entries: cython.const[int64_t][::1] = transition_ptr
    to: cython.const[int32_t][::1] = successor
    found: cython.uchar[::1] = aligned.view(np.uint8)
    x: cython.Py_ssize_t
    pair: cython.Py_ssize_t
    j: cython.Py_ssize_t
    for x in range(pairs.shape[0] - 1):
        begin = entries[pairs[x]]
        for pair in range(pairs[x] + 1, pairs[x + 1]):
            start, size = entries[pair], entries[pair] - entries[pair - 1]
            same = entries[pair + 1] - start == size
            for j in range(size if same else 0):
                same = same and to[begin + j] == to[start + j]
            if not same:
                found[x] = 0
                break
    return aligned


def reached_states(pair_ptr, transition_ptr, successor):
    """Which states are reachable from the first one."""
    reached = np.zeros(len(pair_ptr) - 1, np.int8)
    reached[0] = 1
    pairs: cython.const[int64_t][::1] = pair_ptr
    entries: cython.const[int64_t][::1] = transition_ptr
    to: cython.const[int32_t][::1] = successor
    found: int8_t[::1] = reached
    x: cython.Py_ssize_t
    i: cython.Py_ssize_t
    for x in range(found.shape[0]):
        if found[x]:
            for i in range(entries[pairs[x]], entries[pairs[x + 1]]):
                found[to[i]] = 1
    return reached


def first_if_consecutive(begin, sizes, successor):
    """The first of the sizes[r] successors from begin[r] on if these are consecutive states, else -1."""
    first = np.full(len(begin), -1, np.int64)
    starts: cython.const[int64_t][::1] = begin
    counts: cython.const[int64_t][::1] = sizes
    to: cython.const[int32_t][::1] = successor
    found: int64_t[::1] = first
    r: cython.Py_ssize_t
    j: cython.Py_ssize_t
    for r in range(found.shape[0]):
        size = counts[r]
        j = 1
        while j < size and to[starts[r] + j] == to[starts[r]] + j:
            j += 1
        if size > 0 and j >= size:
            found[r] = to[starts[r]]
    return first


def divide(layer_transition_ptr, threads):
    """Divide the layers into one range per thread, with about equal numbers of transitions."""
    steps = len(layer_transition_ptr) - 1
    shares = layer_transition_ptr[-1] * np.arange(1, threads) / threads
    cuts = np.abs(layer_transition_ptr[:, None] - shares).argmin(axis=0)
    return np.unique(np.concatenate([[0], cuts, [steps]])).astype(np.int64)


def list_edges(pair_ptr, transition_ptr, aligned):
    """edge_ptr, and base_of: the place of a state's edges in `base`, if its pairs share them."""
    last = np.where(aligned, np.minimum(pair_ptr[:-1] + 1, pair_ptr[1:]), pair_ptr[1:])
    edges = transition_ptr[last] - transition_ptr[pair_ptr[:-1]]
    shared = np.where(aligned, edges, 0)
    edge_ptr, base_of = np.zeros((2, len(pair_ptr)), np.int64)
    edge_ptr[1:] = np.cumsum(edges)
    base_of[:-1] = np.where(aligned, np.cumsum(shared) - shared, -1)
    base_of[-1] = shared.sum()
    return edge_ptr, base_of


class Layout:
    """The structure of a skeleton, from its four arrays, divided between threads."""

    def __init__(self, layer_ptr, pair_ptr, transition_ptr, successor, threads):
        num_states = len(pair_ptr) - 1
        edge_ptr, base_of = list_edges(pair_ptr, transition_ptr, aligned_states(pair_ptr, transition_ptr, successor))
        entries = transition_ptr[pair_ptr[:-1]]
        first_of_pair = first_if_consecutive(transition_ptr[:-1], np.diff(transition_ptr), successor)
        self.arrays = {
            "layer_ptr": layer_ptr, "pair_ptr": pair_ptr, "transition_ptr": transition_ptr, "successor": successor,
            "edge_ptr": edge_ptr, "base_of": base_of,
            "first_of_state": first_if_consecutive(entries, np.diff(edge_ptr), successor),
            "first_of_pair": first_of_pair.astype(np.int32),
            "state_of": np.repeat(np.arange(num_states, dtype=np.int32), np.diff(pair_ptr)),
            "reached": reached_states(pair_ptr, transition_ptr, successor),
            "part_ptr": divide(transition_ptr[pair_ptr[layer_ptr[:-1]]], threads),
        }  # fmt: skip
        self.threads = threads
        view = cython.address(self.view)
        view.steps, view.states, view.pairs = len(layer_ptr) - 2, num_states, len(transition_ptr) - 1
        view.transitions, view.parts = len(successor), len(self.arrays["part_ptr"]) - 1
        view.longest = np.max(np.diff(transition_ptr), initial=1)
        view.widest = np.diff(layer_ptr).max()
        view.connected = bool(self.arrays["reached"].all())
        view.reached = cython.cast(cython.pointer(cython.const[int8_t]), address_of(self.arrays["reached"]))
        view.layer_ptr = cython.cast(Ints, address_of(layer_ptr))
        view.pair_ptr = cython.cast(Ints, address_of(pair_ptr))
        view.transition_ptr = cython.cast(Ints, address_of(transition_ptr))
        view.successor = cython.cast(Indices, address_of(successor))
        view.edge_ptr = cython.cast(Ints, address_of(edge_ptr))
        view.base_of = cython.cast(Ints, address_of(base_of))
        view.first_of_state = cython.cast(Ints, address_of(self.arrays["first_of_state"]))
        view.first_of_pair = cython.cast(Indices, address_of(self.arrays["first_of_pair"]))
        view.state_of = cython.cast(Indices, address_of(self.arrays["state_of"]))
        view.part_ptr = cython.cast(Ints, address_of(self.arrays["part_ptr"]))


class Bounds:
    """Pointers to the arrays of a :class:`advmdp.confidence.sets.RowSets`."""

    def __init__(self, sets):
        self.sets = sets
        view = cython.address(self.view)
        view.is_box, view.blocking = sets.is_box, sets.blocking
        view.radius = cython.cast(Reals, address_of(sets.radius))
        view.low = cython.cast(Reals, address_of(sets.low))
        view.high = cython.cast(Reals, address_of(sets.high))
        view.log_low = cython.cast(Reals, address_of(sets.log_low))
        view.log_high = cython.cast(Reals, address_of(sets.log_high))


class Workspace:
    """The memory that a projection writes to, except the arrays of the answer."""

    def __init__(self, layout: Layout):
        self.layout = layout
        sk, w = cython.address(layout.view), cython.address(self.view)
        self.allocate()
        self.beta = self.arrays["beta"]
        self.point_at_states()
        self.point_at_pairs()
        w.weight, w.base, w.log_z = self.floats("weight"), self.floats("base"), self.floats("log_z")
        w.scratch, w.stride = self.floats("scratch"), sk.longest + LANES
        w.run, w.run_stride = self.floats("run"), len(self.arrays["run"]) // (6 * sk.parts)
        w.tallies = cython.cast(cython.pointer(Tally), self.floats("tallies"))
        w.narrow = sk.widest <= WIDEST
        w.band, w.basis = self.floats("matrices"), self.floats("matrices")
        w.band_width, w.directions = 3 * sk.widest + LANES - 1, self.count_directions()
        w.hessenberg = w.basis + (w.directions + 1) * sk.states
        w.alive = cython.cast(cython.pointer(int8_t), address_of(self.arrays["alive"]))
        w.forbidden = cython.cast(cython.pointer(int8_t), address_of(self.arrays["forbidden"]))
        w.watched_ptr = cython.cast(cython.pointer(int64_t), address_of(self.arrays["watched_ptr"]))

    def __dealloc__(self):
        if self.view.back != cython.NULL:
            PyMem_RawFree(self.view.back - ROOM)

    def floats(self, name):
        return cython.cast(Floats, address_of(self.arrays[name]))

    def count_directions(self):
        """As many GMRES directions as are small beside the arrays of transitions; direct steps rarely need any."""
        sk = cython.address(self.layout.view)
        leaving = sk.transitions // sk.states
        return min(KRYLOV, max(FEWEST, leaving // 4, min(leaving, 2 * FEWEST) if sk.widest > WIDEST else 0))

    def allocate(self):
        """Allocate all arrays in one block of float64, which also holds the small integers."""
        sk = cython.address(self.layout.view)
        directions, states = self.count_directions(), sk.states
        longest_state = int(np.diff(self.layout.arrays["transition_ptr"][self.layout.arrays["pair_ptr"]]).max())
        run = max(RUN, longest_state) + ROOM
        # The two ways to compute Newton's step share their memory.
        band = states * (3 * sk.widest + LANES - 1) if sk.widest <= WIDEST else 0
        sizes = {
            "matrices": max(band, (directions + 1) * states + (directions + 3) * (directions + 1)),
            "weight": sk.transitions, "base": int(self.layout.arrays["base_of"][-1]), "log_z": sk.steps,
            "scratch": sk.parts * 6 * (sk.longest + LANES), "run": sk.parts * 6 * run,
            "tallies": sk.parts * run * (cython.sizeof(Tally) // 8),
        } | dict.fromkeys(STATES, states) | dict.fromkeys(PAIRS, sk.pairs)  # fmt: skip
        small = {
            "status": (sk.pairs, np.int8), "tight": (sk.pairs, np.int8), "ready": (sk.pairs, np.int8),
            "alive": (states, np.int8), "forbidden": (sk.parts, np.int8), "watched": (sk.pairs, np.int32),
            "watched_ptr": (sk.parts + 1, np.int64),
        }  # fmt: skip
        words = [-(-count * np.dtype(kind).itemsize // 8) for count, kind in small.values()]
        blocks = apart(*sizes.values(), *words)
        self.arrays = dict(zip(sizes, blocks, strict=False))
        for (name, (count, kind)), block in zip(small.items(), blocks[len(sizes) :], strict=True):
            self.arrays[name] = block.view(kind)[:count]

    def point_at_states(self):
        w = cython.address(self.view)
        w.beta, w.beta_base, w.growth = self.floats("beta"), self.floats("beta_base"), self.floats("growth")
        w.shift = self.floats("shift")
        w.scale, w.top, w.log_total = self.floats("scale"), self.floats("top"), self.floats("log_total")
        w.log_out, w.outflow, w.inflow = self.floats("log_out"), self.floats("outflow"), self.floats("inflow")
        w.before, w.defect, w.step = self.floats("before"), self.floats("defect"), self.floats("step")
        w.product, w.pull, w.push = self.floats("product"), self.floats("pull"), self.floats("push")
        w.pinned = self.floats("pinned")
        w.log_in, w.lift, w.swept, w.inverse = w.push, w.pinned, w.top, w.before
        w.open_, w.violation, w.apart = w.product, w.outflow, w.step

    def point_at_pairs(self):
        w = cython.address(self.view)
        w.offset, w.log_mass, w.mass = self.floats("offset"), self.floats("log_mass"), self.floats("mass")
        w.log_a, w.log_b = self.floats("log_a"), self.floats("log_b")
        w.mass_a, w.mass_b = self.floats("mass_a"), self.floats("mass_b")
        w.cost = w.mass
        w.bound, w.excess, w.doubt, w.dual = w.log_mass, w.mass_a, w.mass_b, w.offset
        w.status = cython.cast(cython.pointer(int8_t), address_of(self.arrays["status"]))
        w.tight = cython.cast(cython.pointer(int8_t), address_of(self.arrays["tight"]))
        w.able = w.tight
        w.ready = cython.cast(cython.pointer(int8_t), address_of(self.arrays["ready"]))
        w.watched = cython.cast(cython.pointer(int32_t), address_of(self.arrays["watched"]))


def new_answer(layout: Layout):
    """Allocate an answer: log q, q, ln q(x,a) and the policy in one block, with room around each."""
    n: cython.Py_ssize_t = layout.view.transitions
    pairs: cython.Py_ssize_t = layout.view.pairs
    block = np.empty(2 * (n + pairs) + 5 * ROOM)
    q = 2 * ROOM + n
    log_pair = q + n + ROOM
    policy = log_pair + pairs + ROOM
    return (
        block,
        block[ROOM : ROOM + n],
        block[q : q + n],
        block[log_pair : log_pair + pairs],
        block[policy : policy + pairs],
    )
