"""Optimism over confidence sets: extended backward induction, and upper occupancy bounds.

If the row of a pair may be any in C(x, a), its least possible cost is, with key(x') = l(x, a, x') + V(x'),

    min over p in C(x, a) of <p, key>

A greedy method finds it.  In an L1 ball, mass epsilon/2 moves to the best successor, taken from the worst first
(Jaksch, Ortner & Auer 2010, Section 3.1.2).  In a box, all entries start at their lower bounds, and the best ones are
filled up first.  Backward induction with such rows gives the best policy in the best plausible world,

    Q(x, a) = c(x, a) + min over p in C(x, a) of <p, key>,    V(x) = min_a Q(x, a),    V(x_L) = 0

and with -1 at one state x as the only cost it gives the largest probability of that state under a policy,

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
from advmdp.model.by_name import ByName, loss_vector
from advmdp.model.kernels.world import Dynamics
from advmdp.model.occupancy import Values
from advmdp.model.policy import checked_policy
from advmdp.model.skeleton import Skeleton
from advmdp.planning.kernels.optimism import Plan, appraise_policy, plan_optimistically, reach, visit
from advmdp.projection.kernels.memory import Bounds


def make_plan(sk: Skeleton, policy: FloatArray) -> Plan:
    """A plan that writes its policy into this array."""
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
    sk: Skeleton, loss: ByName, row_set: RowSet, span: float = np.inf
) -> tuple[FloatArray, FloatArray]:
    """Find the best policy in the most favourable world whose rows lie in a set.

    Parameters
    ----------
    sk
        The skeleton.
    loss
        A loss over transitions.
    row_set
        Where the rows may lie.
    span
        The values of a layer are kept within this of the largest one; no limit by default.

    Returns
    -------
    policy : numpy.ndarray
        A deterministic policy. Ties go to the first action.
    values : numpy.ndarray
        The optimistic expected loss from each state to the end.

    Raises
    ------
    InputError
        If an argument does not fit.

    Examples
    --------
    >>> import numpy as np
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> loss = am.losses.Stochastic(mdp.skeleton).at(0)
    >>> rows = am.L1Ball(mdp.transition, np.full(mdp.skeleton.num_pairs, 0.2))
    >>> policy, values = am.optimistic_response(mdp.skeleton, loss, rows)
    >>> bool(values[0] <= am.best_response(mdp, loss)[1])
    True
    """
    expect(Skeleton, sk, "skeleton")
    losses = exact_floats(loss_vector(sk, loss), "loss", (sk.num_transitions,))
    if not np.isfinite(losses).all():
        i = int(np.argmin(np.isfinite(losses)))
        raise InputError(f"loss at {sk.where_transition(i)}", f"{losses[i]}", "a finite number")
    if not is_number(span) or not span >= 0.0:
        raise InputError("span", f"{span!r}", "0 or more")
    plan, sets, no_cost = make_plan(sk, np.empty(sk.num_pairs)), _bounds(sk, row_set), np.zeros(sk.num_pairs)
    plan_optimistically(Dynamics(sk), sets, losses, no_cost, -np.inf, float(span), plan)
    return plan.policy, plan.values


def policy_interval(sk: Skeleton, policy: ByName, loss: ByName, row_set: RowSet) -> tuple[Values, Values]:
    """Bound what a policy may cost from each state and pair on, over all worlds whose rows lie in a set.

    Parameters
    ----------
    sk
        The skeleton.
    policy
        One probability for each pair, or a dictionary by name.
    loss
        One number for each transition, or a dictionary by name.
    row_set
        Where the rows may lie.

    Returns
    -------
    tuple of Values
        ``low`` and ``high``, the least and the greatest. The true value is between them if the set has the true rows.

    Raises
    ------
    InputError
        If the loss is not finite, or the policy is not a distribution.

    Examples
    --------
    >>> import numpy as np
    >>> import advmdp as am
    >>> sk = am.Skeleton.from_steps([("a", "go", "b"), ("a", "go", "c"), ("b", "on", "d"), ("c", "on", "d")])
    >>> anything = am.Box(np.zeros(4), np.ones(4))
    >>> low, high = am.policy_interval(sk, am.uniform_policy(sk), [0.0, 0.0, 0.25, 0.75], anything)
    >>> float(low.state[0]), float(high.state[0])
    (0.25, 0.75)
    """
    expect(Skeleton, sk, "skeleton")
    losses = exact_floats(loss_vector(sk, loss), "loss", (sk.num_transitions,))
    if not np.isfinite(losses).all():
        i = int(np.argmin(np.isfinite(losses)))
        raise InputError(f"loss at {sk.where_transition(i)}", f"{losses[i]}", "a finite number")
    pi, world, sets, found = np.array(checked_policy(sk, policy)), Dynamics(sk), _bounds(sk, row_set), []
    for sign in (1.0, -1.0):
        plan, pairs = make_plan(sk, pi), np.empty(sk.num_pairs)
        appraise_policy(world, sets, sign * losses, plan, pairs)
        found.append(Values(sign * plan.values + 0.0, sign * pairs + 0.0))
    return found[0], found[1]


def upper_occupancy(sk: Skeleton, policy: ByName, row_set: RowSet) -> FloatArray:
    """Compute the largest probability of visiting each pair, over all worlds whose rows lie in a set.

    Parameters
    ----------
    sk
        The skeleton.
    policy
        One probability for each pair.
    row_set
        Where the rows may lie.

    Returns
    -------
    numpy.ndarray
        One probability for each pair.

    Examples
    --------
    >>> import numpy as np
    >>> import advmdp as am
    >>> sk = am.Skeleton.dense([1, 2, 1], actions=1)
    >>> am.upper_occupancy(sk, am.uniform_policy(sk), am.Box(np.zeros(4), np.ones(4)))
    array([1., 1., 1.])
    """
    expect(Skeleton, sk, "skeleton")
    pi, world, sets = np.array(checked_policy(sk, policy)), Dynamics(sk), _bounds(sk, row_set)
    plan = make_plan(sk, pi)
    layers = np.repeat(np.arange(sk.num_steps), np.diff(sk.layer_ptr)[:-1])
    reached = np.array([reach(world, sets, int(k), x, plan) for x, k in enumerate(layers)])
    bounds: FloatArray = pi * reached[sk.state_of_pair]
    return bounds


def upper_visits(sk: Skeleton, policy: ByName, row_set: RowSet, groups: ArrayLike) -> FloatArray:
    """Compute the largest probability of visiting each group of transitions, over all worlds whose rows lie in a set.

    Parameters
    ----------
    sk
        The skeleton.
    policy
        One probability for each pair, or a dictionary by name.
    row_set
        Where the rows may lie.
    groups
        A label for each transition.

    Returns
    -------
    numpy.ndarray
        For each label, in ascending order, the largest probability that a path takes one of its transitions.

    Raises
    ------
    InputError
        If there is not one label for each transition.

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
