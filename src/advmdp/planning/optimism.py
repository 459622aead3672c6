"""Optimism over confidence sets: extended backward induction, and upper occupancy bounds.

What is the least that a pair may cost, if its row may be any in C(x, a)?  With key(x') = l(x, a, x') + V(x'),

    min over p in C(x, a) of <p, key>

is found greedily.  In an L1 ball, epsilon/2 of mass moves to the best successor, taken from the worst first (Jaksch,
Ortner & Auer 2010, Section 3.1.2); in a box all entries start at their lower bounds and the best are filled up first.
Backward induction with such rows gives the best policy in the best plausible world,

    Q(x, a) = c(x, a) + min over p in C(x, a) of <p, key>,    V(x) = min_a Q(x, a),    V(x_L) = 0

and with -1 at one state x as the only cost it gives how likely that state can be under a policy,

    u(x, a) = pi(a|x) max over P in C of Pr[x | P, pi],

the upper occupancy bound of Jin et al. (2020).  Each row costs one pass, and a heap where it must be filled in order.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.confidence import FREE, RowSet
from advmdp.confidence.sets import RowSets
from advmdp.core.arrays import FloatArray, exact_floats, expect, is_number
from advmdp.core.compiling import compiled
from advmdp.core.errors import InputError
from advmdp.model.dynamics import Dynamics, unknown_dynamics
from advmdp.model.policy import checked_policy
from advmdp.model.skeleton import Skeleton

Ints = NDArray[np.int64]


class Plan(NamedTuple):
    """A policy, the values that it was chosen for, and what backward induction needs on the way."""

    policy: FloatArray
    values: FloatArray
    keys: FloatArray  # scratch, over the transitions of a pair
    heap: Ints  # scratch, the same
    order: Ints  # scratch, the same: a layer's states from the least value to the largest
    whole: NDArray[np.bool_]  # which pairs lead to all of the next layer, in order


def make_plan(sk: Skeleton, policy: FloatArray) -> Plan:
    """With this array for the policy."""
    widest = int(np.diff(sk.transition_ptr).max())
    orders = np.empty((2, widest), np.int64)
    return Plan(policy, np.zeros(sk.num_states), np.empty(widest), orders[0], orders[1], _whole(sk))


def _whole(sk: Skeleton) -> NDArray[np.bool_]:
    first, widths = sk.transition_ptr[:-1], np.diff(sk.transition_ptr)
    layers = np.diff(sk.layer_pair_ptr)
    starts, sizes = np.repeat(sk.layer_ptr[1:-1], layers), np.repeat(sk.layer_sizes[1:], layers)
    place = np.arange(sk.num_transitions) - sk.over_transitions(first)
    in_order: NDArray[np.bool_] = np.logical_and.reduceat(sk.successor == sk.over_transitions(starts) + place, first)
    whole: NDArray[np.bool_] = in_order & (widths == sizes)
    return whole


def optimistic_response(
    sk: Skeleton, loss: ArrayLike, row_set: RowSet, span: float = np.inf
) -> tuple[FloatArray, FloatArray]:
    """The policy that is best in the best world whose rows lie in the set, and V over states; ties go to the first.

    With ``span`` no value of a layer is more than that below the largest (see :mod:`advmdp.learners.regal`).
    """
    expect(Skeleton, sk, "skeleton")
    losses = exact_floats(loss, "loss", (sk.num_transitions,))
    if not np.isfinite(losses).all():
        i = int(np.argmin(np.isfinite(losses)))
        raise InputError(f"loss at {sk.where_transition(i)}", f"{losses[i]}", "a finite number")
    if not is_number(span) or not span >= 0.0:
        raise InputError("span", f"{span!r}", "0 or more")
    plan, sets, no_cost = make_plan(sk, np.empty(sk.num_pairs)), _bounds(sk, row_set), np.zeros(sk.num_pairs)
    induct(unknown_dynamics(sk), sets, losses.copy(), no_cost, -np.inf, float(span), plan)
    return plan.policy, plan.values


def upper_occupancy(sk: Skeleton, policy: ArrayLike, row_set: RowSet) -> FloatArray:
    """u(x, a), the largest probability of each pair under the policy over all worlds whose rows lie in the set."""
    expect(Skeleton, sk, "skeleton")
    pi, world, sets = np.array(checked_policy(sk, policy)), unknown_dynamics(sk), _bounds(sk, row_set)
    plan = make_plan(sk, pi)
    layers = np.repeat(np.arange(sk.num_steps), np.diff(sk.layer_ptr)[:-1])
    reach = np.array([largest_reach(world, sets, int(k), x, plan) for x, k in enumerate(layers)])
    bounds: FloatArray = pi * reach[sk.state_of_pair]
    return bounds


def _bounds(sk: Skeleton, row_set: RowSet) -> RowSets:
    return expect(RowSet, row_set, "row_set").bounds(sk)  # type: ignore[type-abstract]


@compiled
def induct(
    world: Dynamics, sets: RowSets, loss: FloatArray, cost: FloatArray, floor: float, span: float, plan: Plan
) -> None:
    """Extended backward induction, with a ``cost`` for each pair besides the loss.

    No V is below ``floor``, or more than ``span`` below the largest of its layer.  Among actions below the floor the
    lowest is taken: a pair never visited, whose cost is minus infinity, before others.
    """
    values, keys = plan.values, plan.keys
    values[len(values) - 1] = 0.0
    for k in range(len(world.layer_ptr) - 3, -1, -1):
        worst = -np.inf
        for x in range(world.layer_ptr[k], world.layer_ptr[k + 1]):
            best, least = world.pair_ptr[x], np.inf
            for p in range(world.pair_ptr[x], world.pair_ptr[x + 1]):
                first = world.transition_ptr[p]
                for i in range(first, world.transition_ptr[p + 1]):
                    keys[i - first] = loss[i] + values[world.successor[i]]
                value = cost[p] + least_mean(world, sets, p, plan)
                plan.policy[p] = 0.0
                if value < least:
                    best, least = p, value
            plan.policy[best] = 1.0
            values[x] = max(floor, least)
            worst = max(worst, values[x])
        for x in range(world.layer_ptr[k], world.layer_ptr[k + 1]):
            values[x] = max(values[x], worst - span)


@compiled
def largest_reach(world: Dynamics, sets: RowSets, k: int, x: int, plan: Plan) -> float:
    """max over P in the sets of Pr[x | P, pi], for x in layer k and the plan's policy."""
    values = plan.values
    values[world.layer_ptr[k] : world.layer_ptr[k + 1]] = 0.0
    values[x] = -1.0
    for j in range(k - 1, -1, -1):
        start, width = world.layer_ptr[j + 1], world.layer_ptr[j + 2] - world.layer_ptr[j + 1]
        ordered = sets.is_box and width <= len(plan.keys)
        if ordered:
            sort_layer(values, start, width, plan)
        for y in range(world.layer_ptr[j], world.layer_ptr[j + 1]):
            values[y] = 0.0
            for p in range(world.pair_ptr[y], world.pair_ptr[y + 1]):
                if plan.policy[p] > 0.0:
                    if ordered and plan.whole[p]:
                        mean = fill_layer(world, sets, p, start, width, plan)
                    else:
                        mean = reach_row(world, sets, p, plan)
                    values[y] += plan.policy[p] * mean
    return -float(values[0])


@compiled
def sort_layer(values: FloatArray, start: int, width: int, plan: Plan) -> None:
    """The order of a layer's values, once for all the rows that lead to all of it."""
    plan.keys[:width] = values[start : start + width]
    heapify(plan.keys, plan.heap, width, 1.0)
    for left in range(width, 0, -1):
        plan.order[width - left] = plan.heap[0]
        plan.heap[0] = plan.heap[left - 1]
        sift(plan.keys, plan.heap, 0, left - 1, 1.0)


@compiled
def fill_layer(world: Dynamics, sets: RowSets, p: int, start: int, width: int, plan: Plan) -> float:
    """min over rows of a box of <row, values>, for a row that leads to the whole next layer, in its order."""
    if sets.radius[p] >= FREE:
        return float(plan.values[start + plan.order[0]])
    first, mean, room = world.transition_ptr[p], 0.0, 1.0
    for j in range(width):
        mean += sets.low[first + j] * plan.values[start + j]
        room -= sets.low[first + j]
    for k in range(width):
        if room <= 0.0:
            break
        j = plan.order[k]
        part = min(room, sets.high[first + j] - sets.low[first + j])
        mean += part * plan.values[start + j]
        room -= part
    return mean


@compiled
def reach_row(world: Dynamics, sets: RowSets, p: int, plan: Plan) -> float:
    """min over rows of C(x, a) of <row, values>; rows that lead to zeros only, and most do, cost a glance."""
    first, least = world.transition_ptr[p], 0.0
    for i in range(first, world.transition_ptr[p + 1]):
        plan.keys[i - first] = plan.values[world.successor[i]]
        least = min(least, plan.keys[i - first])
    return least_mean(world, sets, p, plan) if least < 0.0 else 0.0


@compiled
def least_mean(world: Dynamics, sets: RowSets, p: int, plan: Plan) -> float:
    """min over rows of C(x, a) of <row, keys>."""
    first, width, keys = world.transition_ptr[p], world.transition_ptr[p + 1] - world.transition_ptr[p], plan.keys
    best, mean, total = 0, 0.0, 0.0
    for j in range(width):
        best = j if keys[j] < keys[best] else best
        mean += sets.low[first + j] * keys[j]
        total += sets.low[first + j]
    if sets.radius[p] >= FREE:
        return float(keys[best])
    if sets.radius[p] == 0.0:
        return mean
    if sets.is_box:
        return mean + fill(sets, first, width, 1.0 - total, plan)
    move = min(0.5 * sets.radius[p], 1.0 - sets.low[first + best])
    return mean + float(move * keys[best]) - drain(sets, first, width, best, move, plan)


@compiled
def fill(sets: RowSets, first: int, width: int, room: float, plan: Plan) -> float:
    """What ``room`` of mass costs when it fills a box from the lower bounds up, the least keys first."""
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


@compiled
def drain(sets: RowSets, first: int, width: int, best: int, move: float, plan: Plan) -> float:
    """What ``move`` of mass costs where it is taken away: the largest keys first, and never the best."""
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


@compiled
def heapify(keys: FloatArray, heap: Ints, count: int, sign: float) -> None:
    """The numbers 0 .. count - 1 with the least sign * key on top."""
    for j in range(count):
        heap[j] = j
    for j in range(count // 2 - 1, -1, -1):
        sift(keys, heap, j, count, sign)


@compiled
def sift(keys: FloatArray, heap: Ints, j: int, count: int, sign: float) -> None:
    """Let the number at place j sink to where it belongs."""
    while True:
        child = 2 * j + 1
        if child >= count:
            return
        if child + 1 < count and sign * keys[heap[child + 1]] < sign * keys[heap[child]]:
            child += 1
        if sign * keys[heap[j]] <= sign * keys[heap[child]]:
            return
        heap[j], heap[child] = heap[child], heap[j]
        j = child
