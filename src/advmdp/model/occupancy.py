"""Occupancy measures: q <-> (P, pi), the flow equations, expected losses, and backward induction.

Section 3 of the paper.  For a policy pi and a transition function P,

    q(x, a, x') = Pr[x_k = x, a_k = a, x_{k+1} = x' | P, pi]        for x in X_k, x' in X_{k+1}.

Such a q satisfies, for every layer k and every inner state x,

    sum over layer k of q(x, a, x') = 1                                                                    (1)
    sum_{a, x'} q(x, a, x') = sum_{x', a} q(x', a, x)          (outflow of x = inflow of x)                (2)

and induces P^q(x'|x, a) = q(x, a, x') / q(x, a) and pi^q(a|x) = q(x, a) / q(x).  The expected loss of step k is the
sum of q times the loss over layer k; the total expected loss is <q, l>.  Backward induction gives the values:

    Q(x, a) = sum_{x'} P(x'|x, a) (l(x, a, x') + V(x')),   V(x) = sum_a pi(a|x) Q(x, a)  or  min_a Q(x, a),   V(x_L) = 0

Each function is one pass over the transitions.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.core.arrays import FloatArray, exact_floats, expect
from advmdp.core.errors import InputError
from advmdp.model.by_name import ByName, loss_vector
from advmdp.model.kernels.evaluation import occupy, respond, value_policy
from advmdp.model.mdp import MDP
from advmdp.model.policy import broken_policy, policy_vector
from advmdp.model.skeleton import Skeleton

Pointers = NDArray[np.int64]

LARGEST_MASS = 1e290
"""Far above any probability, and small enough that sums of such numbers stay finite."""


class Values(NamedTuple):
    """Expected losses from here to the end of the episode, as :func:`policy_values` returns them.

    Attributes
    ----------
    state
        V(x) for each state.
    pair
        Q(x, a) for each pair.

    Examples
    --------
    >>> import numpy as np
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 2, 1], actions=2, seed=0)
    >>> values = am.policy_values(mdp, am.uniform_policy(mdp.skeleton), np.ones(mdp.skeleton.num_transitions))
    >>> values.state
    array([2., 1., 1., 0.])
    """

    state: FloatArray
    pair: FloatArray


class Residuals(NamedTuple):
    """Violations of the flow equations, as :func:`flow_residuals` returns them.

    Attributes
    ----------
    layer
        For each layer, its total probability minus one: equation (1) of the paper.
    state
        For each state, outflow minus inflow: equation (2); 0 at the start and the end.

    Examples
    --------
    >>> import numpy as np
    >>> import advmdp as am
    >>> sk = am.Skeleton.dense([1, 2, 1], actions=1)
    >>> am.flow_residuals(sk, np.array([0.5, 0.25, 0.5, 0.5])).largest
    0.25
    """

    layer: FloatArray
    state: FloatArray

    @property
    def largest(self) -> float:
        """The largest violation, in absolute value."""
        return float(max(np.abs(self.layer).max(), np.abs(self.state).max()))


def occupancy(mdp: MDP, policy: ByName, out: FloatArray | None = None) -> FloatArray:
    """Compute the occupancy measure of a policy: the probability of each transition in an episode.

    Parameters
    ----------
    mdp
        The world.
    policy
        One probability for each pair.
    out
        An array to fill, over transitions; a new one by default.

    Returns
    -------
    numpy.ndarray
        q(x, a, x') for each transition. Each layer sums to one.

    Raises
    ------
    InputError
        If ``policy`` is not a policy, or if ``out`` does not fit.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.from_steps([("home", "bus", "work", 1.0), ("home", "walk", "work", 1.0)])
    >>> am.occupancy(mdp, [0.25, 0.75])
    array([0.25, 0.75])
    """
    sk = expect(MDP, mdp, "mdp").skeleton
    pi = policy_vector(sk, policy)
    q = np.empty(sk.num_transitions) if out is None else _writable(out, sk.num_transitions)
    mass = np.empty(sk.num_states)
    bad = occupy(mdp.dynamics, pi, mass, q)
    if bad >= 0:
        raise broken_policy(sk, pi, bad)
    return q


def policy_of(sk: Skeleton, q: ArrayLike) -> FloatArray:
    """Compute the policy of an occupancy measure: ``pi(a|x) = q(x, a) / q(x)``.

    Parameters
    ----------
    sk
        The skeleton.
    q
        An occupancy measure, over transitions.

    Returns
    -------
    numpy.ndarray
        One probability for each pair; uniform in states that q does not visit.

    Examples
    --------
    >>> import numpy as np
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> policy = am.uniform_policy(mdp.skeleton)
    >>> np.allclose(am.policy_of(mdp.skeleton, am.occupancy(mdp, policy)), policy)
    True
    """
    pairs = np.add.reduceat(_measure(sk, q), sk.transition_ptr[:-1])
    return _shares(pairs, sk.pair_ptr[:-1])


def transition_of(sk: Skeleton, q: ArrayLike) -> FloatArray:
    """Compute the transition probabilities of an occupancy measure: ``P(x'|x, a) = q(x, a, x') / q(x, a)``.

    Parameters
    ----------
    sk
        The skeleton.
    q
        An occupancy measure, over transitions.

    Returns
    -------
    numpy.ndarray
        One probability for each transition; uniform for pairs that q does not visit.

    Examples
    --------
    >>> import numpy as np
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> q = am.occupancy(mdp, am.uniform_policy(mdp.skeleton))
    >>> np.allclose(am.transition_of(mdp.skeleton, q), mdp.transition)
    True
    """
    return _shares(_measure(sk, q), sk.transition_ptr)


def flow_residuals(sk: Skeleton, q: ArrayLike) -> Residuals:
    """Measure how far a vector is from being an occupancy measure.

    Parameters
    ----------
    sk
        The skeleton.
    q
        A vector over transitions.

    Returns
    -------
    Residuals
        Zero, up to rounding, exactly for occupancy measures.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 3, 1], actions=2, seed=0)
    >>> am.flow_residuals(mdp.skeleton, am.occupancy(mdp, am.uniform_policy(mdp.skeleton))).largest < 1e-12
    True
    """
    measure = _measure(sk, q)
    layer = np.add.reduceat(measure, sk.layer_transition_ptr[:-1]) - 1.0
    leaving = np.add.reduceat(measure, sk.transition_ptr[sk.pair_ptr[:-2]])
    entering = np.bincount(sk.successor, measure, sk.num_states)
    state = np.zeros(sk.num_states)
    state[1:-1] = entering[1:-1] - leaving[1:]
    return Residuals(layer, state)


def expected_losses(sk: Skeleton, q: ArrayLike, loss: ByName) -> FloatArray:
    """Compute the expected loss of each step.

    Parameters
    ----------
    sk
        The skeleton.
    q
        An occupancy measure, over transitions.
    loss
        A loss over transitions, (n,), or d of them at once, (n, d).

    Returns
    -------
    numpy.ndarray
        (L,), or (L, d). The sum over steps is the total expected loss.

    Raises
    ------
    InputError
        If shapes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 2, 1], actions=2, seed=0)
    >>> q = am.occupancy(mdp, am.uniform_policy(mdp.skeleton))
    >>> am.expected_losses(mdp.skeleton, q, np.full(mdp.skeleton.num_transitions, 0.5))
    array([0.5, 0.5])
    """
    measure = _measure(sk, q)
    losses = loss_vector(sk, loss)
    if losses.ndim not in (1, 2) or len(losses) != sk.num_transitions:
        raise InputError("loss", f"shape {losses.shape}", f"({sk.num_transitions},) or ({sk.num_transitions}, d)")
    if not np.isfinite(losses).all():
        i = int(np.argmin(np.isfinite(losses).reshape(sk.num_transitions, -1).all(axis=1)))
        raise InputError(f"loss at {sk.where_transition(i)}", f"{losses[i]}", "finite numbers")
    weighted = (losses.T * measure).T
    return np.add.reduceat(weighted, sk.layer_transition_ptr[:-1], axis=0)


def policy_values(mdp: MDP, policy: ByName, loss: ByName) -> Values:
    """Compute the values of a policy for one loss, by backward induction.

    Parameters
    ----------
    mdp
        The world.
    policy
        One probability for each pair.
    loss
        A loss over transitions.

    Returns
    -------
    Values
        ``state[0]`` is the total expected loss of the policy.

    Raises
    ------
    InputError
        If ``policy`` is not a policy, or if values become infinite.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.from_steps([("home", "bus", "work", 1.0), ("home", "walk", "work", 1.0)])
    >>> am.policy_values(mdp, [0.5, 0.5], [0.2, 0.4]).pair
    array([0.2, 0.4])
    """
    sk = expect(MDP, mdp, "mdp").skeleton
    pi = policy_vector(sk, policy)
    losses = exact_floats(loss_vector(sk, loss), "loss", (sk.num_transitions,))
    values = Values(np.empty(sk.num_states), np.empty(sk.num_pairs))
    x, p = value_policy(mdp.dynamics, losses, pi, *values)
    if p >= 0:
        raise _broken_loss(sk, losses, p)
    if x >= 0:
        raise broken_policy(sk, pi, x)
    return values


def best_response(mdp: MDP, loss: ByName) -> tuple[FloatArray, float]:
    """Find the best policy for one loss, by backward induction.

    The sum of the losses of many episodes gives the best fixed policy in hindsight.

    Parameters
    ----------
    mdp
        The world.
    loss
        Finite numbers over transitions; they need not lie in [0, 1].

    Returns
    -------
    policy : numpy.ndarray
        A deterministic policy with the least total expected loss. Ties go to the first action.
    value : float
        Its total expected loss.

    Raises
    ------
    InputError
        If values become infinite.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.from_steps([("home", "bus", "work", 1.0), ("home", "walk", "work", 1.0)])
    >>> am.best_response(mdp, [0.25, 0.5])
    (array([1., 0.]), 0.25)
    """
    sk = expect(MDP, mdp, "mdp").skeleton
    losses = exact_floats(loss_vector(sk, loss), "loss", (sk.num_transitions,))
    policy = np.empty(sk.num_pairs)
    values = np.empty(sk.num_states)
    p = respond(mdp.dynamics, losses, policy, values)
    if p >= 0:
        raise _broken_loss(sk, losses, p)
    return policy, float(values[0])


def _measure(sk: Skeleton, q: ArrayLike) -> FloatArray:
    expect(Skeleton, sk, "skeleton")
    measure = exact_floats(q, "q", (sk.num_transitions,))
    if (bad := ~((measure >= 0.0) & (measure < LARGEST_MASS))).any():
        i = int(np.argmax(bad))
        raise InputError(f"q at {sk.where_transition(i)}", f"{measure[i]}", f"a number from 0 to {LARGEST_MASS:g}")
    return measure


def _writable(out: FloatArray, size: int) -> FloatArray:
    expect(np.ndarray, out, "out")
    fits = out.dtype == np.float64 and out.shape == (size,) and out.flags.c_contiguous and out.flags.writeable
    if not fits:
        raise InputError("out", f"shape {out.shape}, type {out.dtype}", f"a writable float64 vector of {size}")
    return out


def _shares(weights: FloatArray, ptr: Pointers) -> FloatArray:
    """Divide each group of ``weights`` (group g is ptr[g] .. ptr[g + 1]) by its sum; uniform if that is zero."""
    sizes = np.diff(ptr)
    totals = np.add.reduceat(weights, ptr[:-1])
    empty = totals == 0.0
    shares = weights / np.repeat(np.where(empty, 1.0, totals), sizes)
    return np.where(np.repeat(empty, sizes), np.repeat(1.0 / sizes, sizes), shares)


def _broken_loss(sk: Skeleton, loss: FloatArray, p: int) -> InputError:
    first, last = sk.transition_ptr[p], sk.transition_ptr[p + 1]
    row = np.array2string(loss[first:last], threshold=6)
    return InputError(f"loss at {sk.where_pair(p)}", f"{row}, whose value is not finite", "finite numbers")
