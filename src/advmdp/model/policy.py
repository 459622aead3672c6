"""Policies: pi(a|x) as a flat vector over pairs (x, a), with the actions of a state side by side.

Section 2 of the paper calls these stationary stochastic policies.  Since the layers count the steps, a stationary
policy of the layered MDP may depend on time in the original problem.  A policy may also be a dictionary by name
(:mod:`advmdp.model.by_name`).
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from advmdp.core.arrays import FloatArray, exact_floats, expect, integers
from advmdp.core.errors import InputError, ModelError
from advmdp.model.by_name import ByName, policy_from_names
from advmdp.model.kernels.evaluation import find_broken
from advmdp.model.kernels.world import Dynamics
from advmdp.model.skeleton import Skeleton


def uniform_policy(sk: Skeleton) -> FloatArray:
    """Choose every action of a state with the same probability.

    Parameters
    ----------
    sk
        The skeleton.

    Returns
    -------
    numpy.ndarray
        A policy: one probability for each pair.

    Examples
    --------
    >>> import advmdp as am
    >>> am.uniform_policy(am.Skeleton.dense([1, 2, 1], actions=2))
    array([0.5, 0.5, 0.5, 0.5, 0.5, 0.5])
    """
    expect(Skeleton, sk, "skeleton")
    counts = np.diff(sk.pair_ptr)[:-1]
    return np.repeat(1.0 / counts, counts)


def deterministic_policy(sk: Skeleton, action: ArrayLike) -> FloatArray:
    """Choose one action in every state.

    Parameters
    ----------
    sk
        The skeleton.
    action
        For every state but the last, the number of its action within the state.

    Returns
    -------
    numpy.ndarray
        A policy: one probability for each pair, 0 or 1.

    Raises
    ------
    InputError
        If a state does not have the given action.

    Examples
    --------
    >>> import advmdp as am
    >>> am.deterministic_policy(am.Skeleton.dense([1, 2, 1], actions=2), [0, 1, 1])
    array([1., 0., 0., 1., 0., 1.])
    """
    expect(Skeleton, sk, "skeleton")
    choice = integers(action, "action")
    counts = np.diff(sk.pair_ptr)[:-1]
    if choice.shape != counts.shape:
        raise InputError("action", f"{len(choice)} entries", f"{len(counts)}, one for every state but the last")
    if (bad := (choice < 0) | (choice >= counts)).any():
        x = int(np.argmax(bad))
        raise InputError(sk.where_state(x), f"action {choice[x]}", f"0 to {counts[x] - 1}")
    policy = np.zeros(sk.num_pairs)
    policy[sk.pair_ptr[:-2] + choice] = 1.0
    return policy


def policy_vector(sk: Skeleton, policy: ByName) -> FloatArray:
    """``policy`` as a vector over pairs.  The kernels check its values."""
    if isinstance(policy, Mapping):
        return policy_from_names(sk, policy)
    return exact_floats(policy, "policy", (sk.num_pairs,))


def checked_policy(sk: Skeleton, policy: ByName) -> FloatArray:
    """Turn a policy into a vector over pairs, and check that every row is a distribution.

    Parameters
    ----------
    sk
        The skeleton.
    policy
        {state: {action: probability}} or {state: action}, or an array over pairs.

    Returns
    -------
    array
        (num_pairs,).

    Raises
    ------
    InputError
        If a name is unknown, or if a row is not a distribution.

    Examples
    --------
    >>> import advmdp as am
    >>> sk = am.Skeleton.from_steps([("home", "bus", "work"), ("home", "walk", "work")])
    >>> am.checked_policy(sk, {"home": {"bus": 0.75, "walk": 0.25}})
    array([0.75, 0.25])
    >>> am.checked_policy(sk, {"home": "walk"})
    array([0., 1.])
    """
    pi = policy_vector(sk, policy)
    if (bad := find_broken(Dynamics(sk), pi)) >= 0:
        raise broken_policy(sk, pi, bad)
    return pi


def broken_policy(sk: Skeleton, policy: FloatArray, x: int) -> ModelError:
    """The error for a policy whose row at state x is not a distribution."""
    row = policy[sk.pair_ptr[x] : sk.pair_ptr[x + 1]]
    given = f"{np.array2string(row, threshold=6, precision=6)}, which sums to {row.sum():.12g}"
    return ModelError("a policy is a distribution", sk.where_state(x), given, "nonnegative numbers that sum to 1")
