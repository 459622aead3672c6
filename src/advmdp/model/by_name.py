"""Policies and losses by name: from dictionaries to vectors and back.

    policy   {state: {action: probability}}        an action left out has probability 0
             {state: action}                       the action is certain; a state with one action may be left out
    loss     {(state, action): cost}               for every successor of the pair
             {(state, action, next state): cost}   for one successor; it takes precedence over the pair's

States and actions are given by name, or by number where they have no names.
"""

from collections.abc import Mapping
from math import nan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.core.arrays import FloatArray, exact_floats, expect, floats, is_number
from advmdp.core.errors import InputError
from advmdp.model.skeleton import Skeleton

Label = str | int
ByName = ArrayLike | Mapping[Any, Any]
"""A vector, or a dictionary by name."""


def policy_from_names(sk: Skeleton, policy: Mapping[Any, Any]) -> FloatArray:
    """Turn a policy by name into a vector over pairs; the caller checks that its rows sum to one."""
    vector, said = np.zeros(sk.num_pairs), np.diff(sk.pair_ptr) == 1
    vector[sk.pair_ptr[:-1][said]] = 1.0
    for state, row in policy.items():
        x = sk.state(state)
        if x == sk.num_states - 1:
            raise InputError(f"policy at {sk.where_state(x)}", f"{row!r}", "nothing: the episode ends there")
        shares = row if isinstance(row, Mapping) else {row: 1.0}
        vector[sk.pair_ptr[x] : sk.pair_ptr[x + 1]] = 0.0
        said[x] = True
        for action, share in shares.items():
            p = sk.pair(x, action)
            if not is_number(share):
                raise InputError(f"policy at {sk.where_pair(p)}", f"{share!r}", "a probability")
            vector[p] = share
    if not said[:-1].all():
        x = int(np.argmin(said[:-1]))
        raise InputError(f"policy at {sk.where_state(x)}", "missing", "{action: probability}; it has several actions")
    return vector


def policy_by_name(sk: Skeleton, policy: ArrayLike) -> dict[Label, dict[Label, float]]:
    """Write a policy as {state: {action: probability}}.

    Parameters
    ----------
    sk
        The skeleton. Without names, numbers replace them.
    policy
        A vector over pairs.

    Returns
    -------
    dict
        {state: {action: probability}}, without the last state.

    Examples
    --------
    >>> import advmdp as am
    >>> sk = am.Skeleton.from_steps([("home", "bus", "work"), ("home", "walk", "work")])
    >>> am.policy_by_name(sk, am.uniform_policy(sk))
    {'home': {'bus': 0.5, 'walk': 0.5}}
    """
    expect(Skeleton, sk, "skeleton")
    shares = exact_floats(policy, "policy", (sk.num_pairs,)).tolist()
    ends = sk.pair_ptr.tolist()
    return {
        state_name(sk, x): {action_name(sk, x, p): shares[p] for p in range(ends[x], ends[x + 1])}
        for x in range(sk.num_states - 1)
    }


def loss_from_names(sk: Skeleton, loss: Mapping[Any, Any]) -> FloatArray:
    """Turn a loss by name into a vector over transitions, with NaN for missing entries."""
    vector = np.full(sk.num_transitions, nan)
    for key, cost in sorted(loss.items(), key=lambda item: len(item[0]) if isinstance(item[0], tuple) else 0):
        if not isinstance(key, tuple) or len(key) not in (2, 3):
            raise InputError("loss", f"the key {key!r}", "(state, action) or (state, action, next state)")
        if not is_number(cost):
            raise InputError(f"loss at {key!r}", f"{cost!r}", "a number")
        if len(key) == 3:
            vector[sk.transition(*key)] = cost
        else:
            p = sk.pair(*key)
            vector[sk.transition_ptr[p] : sk.transition_ptr[p + 1]] = cost
    return vector


def loss_vector(sk: Skeleton, loss: ByName) -> FloatArray:
    """Turn a loss by name into an array over transitions.

    Parameters
    ----------
    sk
        The skeleton with the names.
    loss
        {(state, action): cost}, {(state, action, next state): cost}, or both; an array is returned unchanged.

    Returns
    -------
    numpy.ndarray
        One number for each transition.

    Raises
    ------
    InputError
        If a name is unknown, or a transition has no cost.

    Examples
    --------
    >>> import advmdp as am
    >>> sk = am.Skeleton.from_steps([("home", "bus", "work"), ("home", "walk", "work")])
    >>> am.loss_vector(sk, {("home", "bus"): 0.5, ("home", "walk"): 0.25})
    array([0.5 , 0.25])
    """
    expect(Skeleton, sk, "skeleton")
    if not isinstance(loss, Mapping):
        return floats(loss, "loss")
    vector = loss_from_names(sk, loss)
    if np.isnan(vector).any():
        raise InputError(f"loss at {sk.where_transition(int(np.argmax(np.isnan(vector))))}", "missing", "a number")
    return vector


def path_losses(sk: Skeleton, loss: ByName, path: NDArray[np.int64]) -> FloatArray:
    """The losses along a path, from a dictionary by name or an array with one for each step."""
    return loss_from_names(sk, loss)[path] if isinstance(loss, Mapping) else floats(loss, "loss")


def loss_by_name(sk: Skeleton, loss: ArrayLike) -> dict[tuple[Label, Label, Label], float]:
    """Write a loss over transitions as {(state, action, next state): cost}.

    Parameters
    ----------
    sk
        The skeleton. Without names, numbers replace them.
    loss
        A vector over transitions.

    Returns
    -------
    dict
        {(state, action, next state): cost}.

    Examples
    --------
    >>> import advmdp as am
    >>> sk = am.Skeleton.from_steps([("home", "bus", "work"), ("home", "walk", "work")])
    >>> am.loss_by_name(sk, [0.5, 0.25])
    {('home', 'bus', 'work'): 0.5, ('home', 'walk', 'work'): 0.25}
    """
    costs = exact_floats(loss, "loss", (expect(Skeleton, sk, "skeleton").num_transitions,)).tolist()
    pairs, states = sk.over_transitions(np.arange(sk.num_pairs)).tolist(), sk.state_of_pair.tolist()
    found = {}
    for i, (p, y) in enumerate(zip(pairs, sk.successor.tolist(), strict=True)):
        x = states[p]
        found[state_name(sk, x), action_name(sk, x, p), state_name(sk, y)] = costs[i]
    return found


def state_name(sk: Skeleton, x: int) -> Label:
    """The name of a state, or its number if states have no names."""
    return x if sk.state_names is None else sk.state_names[x]


def action_name(sk: Skeleton, x: int, p: int) -> Label:
    """The name of the action of pair p in state x, or its number within the state."""
    return p - int(sk.pair_ptr[x]) if sk.action_names is None else sk.action_names[p]
