"""The best sequences of policies with a few switches, by dynamic programming over segments.

    C(s, t) = min over policies of the cost of episodes s, ..., t - 1 together          backward induction on their sum
    D_0(t)  = C(0, t),    D_j(t) = min over s < t of D_{j-1}(s) + C(s, t),    D_j(0) = 0           at most j switches

Sums of segments are differences of running sums.  There are T^2 / 2 segments, so computing C takes most of the time.
For each start, the ends of a block are processed side by side, which fills the vector registers.  An end needs D_{j-1}
at all earlier starts, which are known because blocks come in order and starts ascend.
"""

import cython
from cython.cimports.advmdp.core.kernels.types import counters_of, floats_of
from cython.cimports.advmdp.model.kernels.world import Dynamics
from cython.cimports.libc.math import INFINITY


def gather(world, running, ends):
    """Copy the running sums at the ends side by side; a block that is not full repeats its last end."""
    for w in range(WIDTH):
        t = ends.first + w if ends.first + w < ends.stop else ends.stop - 1
        for p in range(world.pairs):
            ends.sums[p * WIDTH + w] = running[t * world.pairs + p]


def price(world, before, ends):
    """C(s, t) for one start s, with ``before`` the running sums there, and every end t of the block."""
    last = ends.costs + (world.states - 1) * WIDTH
    for w in range(WIDTH):
        last[w] = 0.0
    for x in range(world.states - 2, -1, -1):
        least = ends.costs + x * WIDTH
        for w in range(WIDTH):
            least[w] = INFINITY
        for p in range(world.pair_ptr[x], world.pair_ptr[x + 1]):
            price_pair(world, p, before[p], ends)
            lower(least, ends.row)


def price_pair(world, p, before, ends):
    """row = the cost of pair p plus the cost of the best policy after it."""
    row, sums = ends.row, ends.sums + p * WIDTH
    for w in range(WIDTH):
        row[w] = sums[w] - before
    for i in range(world.transition_ptr[p], world.transition_ptr[p + 1]):
        chance, after = world.transition[i], ends.costs + world.successor[i] * WIDTH
        for w in range(WIDTH):
            row[w] += chance * after[w]


def lower(least, row):
    """least = min(least, row)."""
    for w in range(WIDTH):
        least[w] = row[w] if row[w] < least[w] else least[w]


def enter(s, ends, found):
    """D_j(t) = min(D_j(t), D_{j-1}(s) + C(s, t)) for the ends after s; the first start wins a tie."""
    first = ends.first if ends.first > s else s + 1
    costs = ends.costs + (first - ends.first)
    width = ends.stop - first
    for j in range(found.most + 1):
        if j > 0 or s == 0:
            before = found.best[(j - 1) * (found.episodes + 1) + s] if j > 0 else 0.0
            place = j * (found.episodes + 1) + first
            keep(before, s, costs, width, found.best + place, found.start + place)


def keep(before, s, costs, width, best, start):
    """best = min(best, before + costs), and start = s where that is smaller."""
    for w in range(width):
        candidate = before + costs[w]
        start[w] = s if candidate < best[w] else start[w]
        best[w] = candidate if candidate < best[w] else best[w]


def extend(world: Dynamics, running, first, stop, best, start, scratch) -> None:
    """Fill D_j(t) and the start of its last segment for t = first, ..., stop - 1, at most WIDTH of them.

    All earlier t must be filled.  ``running`` is (episodes + 1, pairs), the sums of the mean losses of the episodes
    before t.  ``best``, infinite where not yet filled, and ``start`` are (switches + 1, episodes + 1).
    """
    view = cython.address(world.view)
    ends: Ends
    ends.first, ends.stop = first, stop
    ends.sums, ends.costs, ends.row = floats_of(scratch[0]), floats_of(scratch[1]), floats_of(scratch[2])
    found: Sequences
    found.most, found.episodes = best.shape[0] - 1, best.shape[1] - 1
    found.best, found.start = floats_of(best.reshape(-1)), counters_of(start.reshape(-1))
    sums = floats_of(running.reshape(-1))
    s: cython.Py_ssize_t
    with cython.nogil:
        gather(view, sums, cython.address(ends))
        for s in range(ends.stop - 1):
            price(view, sums + s * view.pairs, cython.address(ends))
            enter(s, cython.address(ends), cython.address(found))


def width() -> int:
    """How many ends are processed at once."""
    return WIDTH
