"""Extended backward induction over confidence sets; :mod:`advmdp.planning.optimism` has the mathematics.

Each row costs one pass, plus a heap if it must be filled in order.
"""

import cython
import numpy as np
from cython.cimports.advmdp.core.kernels.types import counters_of, floats_of, ints_of, reals_of
from cython.cimports.advmdp.model.kernels.world import Dynamics
from cython.cimports.advmdp.projection.kernels.memory import Bounds
from cython.cimports.libc.math import INFINITY
from cython.cimports.libc.stdint import int8_t
from cython.cimports.libc.string import memcpy, memset

FREE = cython.declare(cython.double, 2.0)  # a radius of 2 or more is no constraint


class Plan:
    """A policy, its values, and the scratch memory of backward induction.

    ``whole`` marks pairs that lead to all of the next layer, in order; ``widest`` is the most transitions of a pair.
    """

    def __init__(self, policy, values, whole, widest):
        self.policy, self.values = policy, values
        self.scratch = np.empty(widest), np.empty(widest, np.int64), np.empty(widest, np.int64), whole
        flags: cython.const[int8_t][::1] = whole.view(np.int8)
        view = cython.address(self.view)
        view.policy, view.values, view.whole = floats_of(policy), floats_of(values), cython.address(flags[0])
        view.keys, view.heap = floats_of(self.scratch[0]), counters_of(self.scratch[1])
        view.order, view.widest = counters_of(self.scratch[2]), widest


def induct(world, sets, loss, cost, floor, span, plan):
    """Extended backward induction, with a ``cost`` for each pair in addition to the loss.

    No V is below ``floor``, or more than ``span`` below the largest of its layer.  Among actions below the floor, the
    lowest wins: a pair never visited, whose cost is minus infinity, comes before all others.
    """
    values, keys, policy = plan.values, plan.keys, plan.policy
    values[world.states - 1] = 0.0
    for k in range(world.steps - 1, -1, -1):
        worst = -INFINITY
        for x in range(world.layer_ptr[k], world.layer_ptr[k + 1]):
            best, least = world.pair_ptr[x], INFINITY
            for p in range(world.pair_ptr[x], world.pair_ptr[x + 1]):
                first = world.transition_ptr[p]
                for i in range(first, world.transition_ptr[p + 1]):
                    keys[i - first] = loss[i] + values[world.successor[i]]
                value = cost[p] + least_mean(world, sets, p, plan)
                policy[p] = 0.0
                if value < least:
                    best, least = p, value
            policy[best] = 1.0
            values[x] = max(floor, least)
            worst = max(worst, values[x])
        for x in range(world.layer_ptr[k], world.layer_ptr[k + 1]):
            values[x] = max(values[x], worst - span)


def appraise(world, sets, loss, plan, pairs):
    """Q of the plan's policy, and its values, with the rows of the sets that make them least."""
    values, keys, policy = plan.values, plan.keys, plan.policy
    values[world.states - 1] = 0.0
    for x in range(world.states - 2, -1, -1):
        values[x] = 0.0
        for p in range(world.pair_ptr[x], world.pair_ptr[x + 1]):
            first = world.transition_ptr[p]
            for i in range(first, world.transition_ptr[p + 1]):
                keys[i - first] = loss[i] + values[world.successor[i]]
            pairs[p] = least_mean(world, sets, p, plan)
            values[x] += policy[p] * pairs[p]


def largest_reach(world, sets, k, x, plan):
    """max over P in the sets of Pr[x | P, pi], for x in layer k and the plan's policy."""
    values, policy = plan.values, plan.policy
    memset(values + world.layer_ptr[k], 0, (world.layer_ptr[k + 1] - world.layer_ptr[k]) * cython.sizeof(cython.double))
    values[x] = -1.0
    for j in range(k - 1, -1, -1):
        start, width = world.layer_ptr[j + 1], world.layer_ptr[j + 2] - world.layer_ptr[j + 1]
        ordered: cython.bint = sets.is_box and width <= plan.widest
        if ordered:
            sort_layer(values + start, width, plan)
        for y in range(world.layer_ptr[j], world.layer_ptr[j + 1]):
            values[y] = 0.0
            for p in range(world.pair_ptr[y], world.pair_ptr[y + 1]):
                if policy[p] > 0.0:
                    if ordered and plan.whole[p]:
                        mean = fill_layer(world, sets, p, values + start, width, plan)
                    else:
                        mean = reach_row(world, sets, p, plan)
                    values[y] += policy[p] * mean
    return -values[0]


def largest_visit(world, sets, of, group, last, plan):
    """max over P in the sets of Pr[a path of the plan's policy takes a transition of the group], none after step last.

    ``of`` has the group of every transition.
    """
    values, policy, keys = plan.values, plan.policy, plan.keys
    start = world.layer_ptr[last + 1]
    memset(values + start, 0, (world.layer_ptr[last + 2] - start) * cython.sizeof(cython.double))
    for x in range(start - 1, -1, -1):
        values[x] = 0.0
        for p in range(world.pair_ptr[x], world.pair_ptr[x + 1]):
            if policy[p] > 0.0:
                first, least, most = world.transition_ptr[p], 0.0, -1.0
                for i in range(first, world.transition_ptr[p + 1]):
                    keys[i - first] = -1.0 if of[i] == group else values[world.successor[i]]
                    least, most = min(least, keys[i - first]), max(most, keys[i - first])
                values[x] += policy[p] * (least_mean(world, sets, p, plan) if least < most else least)
    return -values[0]


def sort_layer(values, width, plan):
    """Sort the values of a layer, once for all rows that lead to the whole layer."""
    memcpy(plan.keys, values, width * cython.sizeof(cython.double))
    heapify(plan.keys, plan.heap, width, 1.0)
    for left in range(width, 0, -1):
        plan.order[width - left] = plan.heap[0]
        plan.heap[0] = plan.heap[left - 1]
        sift(plan.keys, plan.heap, 0, left - 1, 1.0)


def fill_layer(world, sets, p, values, width, plan):
    """min over rows of a box of <row, values>, for a row that leads to the whole next layer, in its order."""
    if sets.radius[p] >= FREE:
        return values[plan.order[0]]
    first, mean, room = world.transition_ptr[p], 0.0, 1.0
    for j in range(width):
        mean += sets.low[first + j] * values[j]
        room -= sets.low[first + j]
    for k in range(width):
        if room <= 0.0:
            break
        best = plan.order[k]
        part = min(room, sets.high[first + best] - sets.low[first + best])
        mean += part * values[best]
        room -= part
    return mean


def reach_row(world, sets, p, plan):
    """min over rows of C(x, a) of <row, values>; quick for the many rows that lead to zeros only."""
    first, least = world.transition_ptr[p], 0.0
    for i in range(first, world.transition_ptr[p + 1]):
        plan.keys[i - first] = plan.values[world.successor[i]]
        least = min(least, plan.keys[i - first])
    return least_mean(world, sets, p, plan) if least < 0.0 else 0.0


def least_mean(world, sets, p, plan):
    """min over rows of C(x, a) of <row, keys>."""
    first, keys = world.transition_ptr[p], plan.keys
    width = world.transition_ptr[p + 1] - first
    best: cython.Py_ssize_t = 0
    mean = total = 0.0
    for j in range(width):
        best = j if keys[j] < keys[best] else best
        mean += sets.low[first + j] * keys[j]
        total += sets.low[first + j]
    if sets.radius[p] >= FREE:
        return keys[best]
    if sets.radius[p] == 0.0:
        return mean
    if sets.is_box:
        return mean + fill(sets, first, width, 1.0 - total, plan)
    move = min(0.5 * sets.radius[p], 1.0 - sets.low[first + best])
    return mean + move * keys[best] - drain(sets, first, width, best, move, plan)


def fill(sets, first, width, room, plan):
    """The cost of a mass of ``room`` that fills a box from the lower bounds up, the smallest keys first."""
    heap, cost = plan.heap, 0.0
    heapify(plan.keys, heap, width, 1.0)
    for left in range(width, 0, -1):
        if room <= 0.0:
            break
        j = heap[0]
        part = min(room, sets.high[first + j] - sets.low[first + j])
        cost += part * plan.keys[j]
        room -= part
        heap[0] = heap[left - 1]
        sift(plan.keys, heap, 0, left - 1, 1.0)
    return cost


def drain(sets, first, width, best, move, plan):
    """The cost saved by taking away a mass of ``move``: from the largest keys first, and never from the best."""
    heap, cost = plan.heap, 0.0
    heapify(plan.keys, heap, width, -1.0)
    for left in range(width, 0, -1):
        if move <= 0.0:
            break
        j = heap[0]
        part = 0.0 if j == best else min(move, sets.low[first + j])
        cost += part * plan.keys[j]
        move -= part
        heap[0] = heap[left - 1]
        sift(plan.keys, heap, 0, left - 1, -1.0)
    return cost


def heapify(keys, heap, count, sign):
    """Arrange the numbers 0 .. count - 1 as a heap with the smallest sign * key on top."""
    for j in range(count):
        heap[j] = j
    for j in range(count // 2 - 1, -1, -1):
        sift(keys, heap, j, count, sign)


def sift(keys, heap, j, count, sign):
    """Restore the heap below position j."""
    child = 2 * j + 1
    while child < count:
        if child + 1 < count and sign * keys[heap[child + 1]] < sign * keys[heap[child]]:
            child += 1
        if sign * keys[heap[j]] <= sign * keys[heap[child]]:
            return
        heap[j], heap[child] = heap[child], heap[j]
        j = child
        child = 2 * j + 1


def plan_optimistically(
    world: Dynamics, bounds: Bounds, loss, cost, floor: cython.double, span: cython.double, plan: Plan
) -> None:
    """Fill the plan by extended backward induction; see `induct`."""
    induct(
        cython.address(world.view), cython.address(bounds.view), reals_of(loss), reals_of(cost), floor, span,
        cython.address(plan.view),
    )  # fmt: skip


def appraise_policy(world: Dynamics, bounds: Bounds, loss, plan: Plan, pairs) -> None:
    """Fill the plan's values, and ``pairs``, with the least that its policy may cost; see `appraise`."""
    appraise(
        cython.address(world.view), cython.address(bounds.view), reals_of(loss), cython.address(plan.view),
        floats_of(pairs),
    )  # fmt: skip


def visit(world: Dynamics, bounds: Bounds, of, group: cython.Py_ssize_t, last: cython.Py_ssize_t, plan: Plan) -> float:
    """The largest probability that a path of the plan's policy takes a transition of the group."""
    return largest_visit(
        cython.address(world.view), cython.address(bounds.view), ints_of(of), group, last, cython.address(plan.view)
    )


def reach(world: Dynamics, bounds: Bounds, k: cython.Py_ssize_t, x: cython.Py_ssize_t, plan: Plan) -> float:
    """The largest probability of state x of layer k under the plan's policy."""
    return largest_reach(cython.address(world.view), cython.address(bounds.view), k, x, cython.address(plan.view))
