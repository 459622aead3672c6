"""Optimism over confidence sets: extended backward induction, and upper occupancy bounds.

What is the least that a pair may cost, if its row may be any in C(x, a)?  With key(x') = l(x, a, x') + V(x'),

    min over p in C(x, a) of <p, key>

is found greedily.  In an L1 ball, epsilon/2 of mass moves to the best successor, taken from the worst first (Jaksch,
Ortner & Auer 2010, Section 3.1.2); in a box all entries start at their lower bounds and the best are filled up first.
Backward induction with such rows gives the best policy in the best plausible world,

    Q(x, a) = c(x, a) + min over p in C(x, a) of <p, key>,    V(x) = min_a Q(x, a),    V(x_L) = 0

and with -1 at one state x as the only cost it gives how likely that state can be under a policy,

    u(x, a) = pi(a|x) max over P in C of Pr[x | P, pi],

the upper occupancy bound of Jin et al. (2020).  With -1 on every transition of a group, after which nothing counts, it
gives how likely a path can be to visit the group.

Each row costs one pass, and a heap where it must be filled in order.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.confidence import RowSet
from advmdp.core.arrays import FloatArray, exact_floats, expect, integers, is_number
from advmdp.core.errors import InputError
from advmdp.model.kernels.world import Dynamics
from advmdp.model.policy import checked_policy
from advmdp.model.skeleton import Skeleton
from advmdp.planning.kernels.optimism import Plan, plan_optimistically, reach, visit
from advmdp.projection.kernels.memory import Bounds


def make_plan(sk: Skeleton, policy: FloatArray) -> Plan:
    """With this array for the policy."""
    widest = int(np.diff(sk.transition_ptr).max())
    return Plan(policy, np.zeros(sk.num_states), _whole(sk), widest)


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
    plan_optimistically(Dynamics(sk), sets, losses, no_cost, -np.inf, float(span), plan)
    return plan.policy, plan.values


def upper_occupancy(sk: Skeleton, policy: ArrayLike, row_set: RowSet) -> FloatArray:
    """u(x, a), the largest probability of each pair under the policy over all worlds whose rows lie in the set."""
    expect(Skeleton, sk, "skeleton")
    pi, world, sets = np.array(checked_policy(sk, policy)), Dynamics(sk), _bounds(sk, row_set)
    plan = make_plan(sk, pi)
    layers = np.repeat(np.arange(sk.num_steps), np.diff(sk.layer_ptr)[:-1])
    reached = np.array([reach(world, sets, int(k), x, plan) for x, k in enumerate(layers)])
    bounds: FloatArray = pi * reached[sk.state_of_pair]
    return bounds


def upper_visits(sk: Skeleton, policy: ArrayLike, row_set: RowSet, groups: ArrayLike) -> FloatArray:
    """The largest probability of visiting each group of transitions, over all worlds whose rows lie in the set.

    Parameters
    ----------
    sk
        The skeleton.
    policy
        The policy, (num_pairs,).
    row_set
        Where the rows of P may lie.
    groups
        A label for each transition.

    Returns
    -------
    For each label in rising order, the largest probability that a path takes one of its transitions.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 2, 1], 2, seed=0)
    >>> every = [0] * mdp.skeleton.num_transitions
    >>> am.upper_visits(mdp.skeleton, am.uniform_policy(mdp.skeleton), am.Point(mdp.transition), every).tolist()
    [1.0]
    """
    expect(Skeleton, sk, "skeleton")
    pi, world, sets = np.array(checked_policy(sk, policy)), Dynamics(sk), _bounds(sk, row_set)
    labels = integers(groups, "groups")
    if labels.shape != (sk.num_transitions,):
        raise InputError("groups", f"{labels.size} labels", f"{sk.num_transitions}, one for each transition")
    distinct, of = np.unique(labels, return_inverse=True)
    plan, of, last = make_plan(sk, pi), of.astype(np.int64), sk.num_steps - 1
    return np.array([visit(world, sets, of, g, last, plan) for g in range(len(distinct))])


def _bounds(sk: Skeleton, row_set: RowSet) -> Bounds:
    return Bounds(expect(RowSet, row_set, "row_set").bounds(sk))  # type: ignore[type-abstract]
