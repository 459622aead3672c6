"""One pass each over the transitions of a world: occupancy measures, values, best responses, trajectories.

    q(x, a, x') = q(x) pi(a|x) P(x'|x, a),   q(x') = sum_{x, a} q(x, a, x')                  forward
    Q(x, a) = sum_{x'} P(x'|x, a) (l(x, a, x') + V(x')),   V(x) = sum_a pi(a|x) Q(x, a)  or  min_a Q(x, a)     backward

A pass stops at a state whose policy is not a distribution, or at a value that is not finite.
"""

import cython
from cython.cimports.advmdp.core.kernels.types import counters_of, floats_of, reals_of
from cython.cimports.advmdp.model.kernels.world import Dynamics
from cython.cimports.libc.math import INFINITY, NAN, fabs, isfinite
from cython.cimports.libc.string import memset

TOLERANCE = cython.declare(cython.double, 1e-9)  # as in advmdp.model.tables


def row_total(weights, first, last):
    """The sum of weights[first:last], or NaN if one of them is negative or NaN."""
    total = 0.0
    for i in range(first, last):
        if not weights[i] >= 0.0:
            return NAN
        total += weights[i]
    return total


def first_broken(world, policy):
    """The first state at which the policy is not a distribution, or -1."""
    for x in range(world.states - 1):
        if not fabs(row_total(policy, world.pair_ptr[x], world.pair_ptr[x + 1]) - 1.0) <= TOLERANCE:
            return x
    return -1


def push_forward(world, transition, policy, mass, q):
    """Compute q = q^{P, pi} layer by layer; return -1, or the first state where pi is not a distribution."""
    memset(mass, 0, world.states * cython.sizeof(cython.double))
    mass[0] = 1.0
    for x in range(world.states - 1):
        first, last = world.pair_ptr[x], world.pair_ptr[x + 1]
        total = row_total(policy, first, last)
        if not fabs(total - 1.0) <= TOLERANCE:
            return x
        for p in range(first, last):
            share = mass[x] * (policy[p] / total)
            for i in range(world.transition_ptr[p], world.transition_ptr[p + 1]):
                flow = share * transition[i]
                q[i] = flow
                mass[world.successor[i]] += flow
    return -1


def evaluate(world, transition, loss, policy, state_values, pair_values):
    """V and Q of a policy. Returns where it broke: a state without a valid policy, or a pair without a finite value."""
    broken: Broken = Broken(-1, -1)
    state_values[world.states - 1] = 0.0
    for x in range(world.states - 2, -1, -1):
        first, last = world.pair_ptr[x], world.pair_ptr[x + 1]
        total = row_total(policy, first, last)
        if not fabs(total - 1.0) <= TOLERANCE:
            broken.state = x
            return broken
        expected = 0.0
        for p in range(last - 1, first - 1, -1):
            value = expected_value(world, transition, loss, state_values, p)
            if not isfinite(value):
                broken.pair = p
                return broken
            pair_values[p] = value
            expected += policy[p] * value
        state_values[x] = expected / total
    return broken


def improve(world, transition, loss, policy, values):
    """The best policy and its values, ties to the first action; returns -1, or a pair whose value is not finite."""
    values[world.states - 1] = 0.0
    for x in range(world.states - 2, -1, -1):
        best, least = world.pair_ptr[x], INFINITY
        for p in range(world.pair_ptr[x + 1] - 1, world.pair_ptr[x] - 1, -1):
            value = expected_value(world, transition, loss, values, p)
            if not isfinite(value):
                return p
            policy[p] = 0.0
            best = p if value <= least else best
            least = value if value <= least else least
        policy[best] = 1.0
        values[x] = least
    return -1


def expected_value(world, transition, loss, values, p):
    """sum_{x'} P(x'|x, a) (l(x, a, x') + V(x')), from the last successor to the first."""
    value = 0.0
    for i in range(world.transition_ptr[p + 1] - 1, world.transition_ptr[p] - 1, -1):
        value += transition[i] * (loss[i] + values[world.successor[i]])
    return value


def pick(weights, first, last, u):
    """The index in first..last at which the running sum of the weights passes u; never one with weight zero."""
    chosen = first
    total = 0.0
    for i in range(first, last):
        if weights[i] > 0.0:
            chosen = i
            total += weights[i]
            if u < total:
                break
    return chosen


def sample_path(world, policy, uniform, states, pairs, transitions):
    """Fill one trajectory; returns -1, or the first state on it at which the policy is not a distribution."""
    x: cython.Py_ssize_t = 0
    states[0] = 0
    for k in range(world.steps):
        first, last = world.pair_ptr[x], world.pair_ptr[x + 1]
        if not fabs(row_total(policy, first, last) - 1.0) <= TOLERANCE:
            return x
        p = pick(policy, first, last, uniform[2 * k])
        i = pick(world.transition, world.transition_ptr[p], world.transition_ptr[p + 1], uniform[2 * k + 1])
        x = world.successor[i]
        pairs[k], transitions[k], states[k + 1] = p, i, x
    return -1


def find_broken(world: Dynamics, policy) -> int:
    """The first state at which the policy is not a distribution, or -1."""
    return first_broken(cython.address(world.view), reals_of(policy))


def occupy(world: Dynamics, policy, mass, q) -> int:
    """Fill q^{P, pi}; returns -1, or the first state where pi is not a distribution."""
    view = cython.address(world.view)
    return push_forward(view, view.transition, reals_of(policy), floats_of(mass), floats_of(q))


def value_policy(world: Dynamics, loss, policy, state_values, pair_values) -> tuple:
    """Fill V and Q; returns (state, pair) where it broke, or -1 each."""
    broken = evaluate(
        cython.address(world.view), world.view.transition, reals_of(loss), reals_of(policy), floats_of(state_values),
        floats_of(pair_values),
    )  # fmt: skip
    return broken.state, broken.pair


def respond(world: Dynamics, loss, policy, values) -> int:
    """Fill the best policy and its values; returns -1, or a pair whose value is not finite."""
    return improve(
        cython.address(world.view), world.view.transition, reals_of(loss), floats_of(policy), floats_of(values)
    )


def sample(world: Dynamics, policy, uniform, states, pairs, transitions) -> int:
    """Fill one trajectory; returns -1, or the first state on it at which the policy is not a distribution."""
    return sample_path(
        cython.address(world.view), reals_of(policy), reals_of(uniform), counters_of(states), counters_of(pairs),
        counters_of(transitions),
    )  # fmt: skip
