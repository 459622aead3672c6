"""The regret bounds of Section 5, as printed in the paper.

    Theorem 5.1     R       <= 15 F L|X| sqrt(T |A| ln(T|X||A|/delta))                  with probability 1 - 2 delta
    Theorem 5.2     R^APP   <= 3 F L|X| (2 sqrt(T ln(L/delta)) + 3 sqrt(T |A| ln(T|X||A|/delta)))       1 - 2 delta
    Theorem 5.3     R^ON    <= eta F^2 L T + L ln(|X|^2|A|/L^2) / eta                                     1 - delta
                            =  2 F L sqrt(2 T ln(|X||A|/L)),   as printed for the eta of the theory
    Corollary 5.1   E[R]    <= 25 L|X| sqrt(T |A| ln T)                        for the total loss, delta = |X||A|/T

|A| is the largest number of actions in a state.  The constants serve the proofs (docs/errata.md, item 6).  A bound
above ``trivial``, F L T, is vacuous.
"""

import numpy as np

from advmdp.core.arrays import expect, whole
from advmdp.learners.parameters import between
from advmdp.model.skeleton import Skeleton


def total(sk: Skeleton, T: int, delta: float, F: float = 1.0) -> float:
    """Bound the regret of UC-O-REPS: Theorem 5.1, with probability 1 - 2 delta.

    Parameters
    ----------
    sk
        The skeleton.
    T
        The number of episodes.
    delta
        Half the probability of failure.
    F
        The bound on subgradients, ``criterion.lipschitz(sk)``; 1 for the total loss.

    Returns
    -------
    float
        The bound. Above :func:`trivial` it is vacuous.

    Examples
    --------
    >>> import advmdp as am
    >>> sk = am.Skeleton.dense([1, 2, 1], actions=2)
    >>> am.bounds.total(sk, 10**7, 0.05) < am.bounds.trivial(sk, 10**7)
    True
    """
    L, X, A = _sizes(sk, T, delta, F)
    return 15.0 * F * L * X * float(np.sqrt(T * A * np.log(T * X * A / delta)))


def approximation(sk: Skeleton, T: int, delta: float, F: float = 1.0) -> float:
    """Bound the cost of not knowing the dynamics: Theorem 5.2, with probability 1 - 2 delta.

    Parameters
    ----------
    sk
        The skeleton.
    T
        The number of episodes.
    delta
        Half the probability of failure.
    F
        The bound on subgradients; 1 for the total loss.

    Returns
    -------
    float
        The bound on R^APP.

    Examples
    --------
    >>> import advmdp as am
    >>> sk = am.Skeleton.dense([1, 2, 1], actions=2)
    >>> am.bounds.approximation(sk, 1000, 0.05) < am.bounds.total(sk, 1000, 0.05)
    True
    """
    L, X, A = _sizes(sk, T, delta, F)
    first, second = np.sqrt(T * np.log(L / delta)), np.sqrt(T * A * np.log(T * X * A / delta))
    return 3.0 * F * L * X * float(2.0 * first + 3.0 * second)


def online(sk: Skeleton, T: int, delta: float = 0.05, F: float = 1.0, eta: float | None = None) -> float:
    """Bound the cost of not knowing the losses: Theorem 5.3, with probability 1 - delta.

    Parameters
    ----------
    sk
        The skeleton.
    T
        The number of episodes.
    delta
        The probability of failure.
    F
        The bound on subgradients; 1 for the total loss.
    eta
        The step size; by default that of the theorem.

    Returns
    -------
    float
        The bound on R^ON.

    Examples
    --------
    >>> import advmdp as am
    >>> sk = am.Skeleton.dense([1, 2, 1], actions=2)
    >>> am.bounds.online(sk, 1000) <= am.bounds.online(sk, 1000, eta=1.0)
    True
    """
    L, X, A = _sizes(sk, T, delta, F)
    if eta is None:
        return 2.0 * F * L * float(np.sqrt(2.0 * T * np.log(X * A / L)))
    between("eta", eta)
    return eta * F**2 * L * T + L * float(np.log(X**2 * A / L**2)) / eta


def corollary(sk: Skeleton, T: int) -> float:
    """Bound the expected regret for the total loss: Corollary 5.1.

    Parameters
    ----------
    sk
        The skeleton.
    T
        The number of episodes.

    Returns
    -------
    float
        The bound.

    Examples
    --------
    >>> import advmdp as am
    >>> sk = am.Skeleton.dense([1, 2, 1], actions=2)
    >>> am.bounds.corollary(sk, 400) / am.bounds.corollary(sk, 100) > 2.0
    True
    """
    L, X, A = _sizes(sk, T, 0.5, 1.0)
    return 25.0 * L * X * float(np.sqrt(T * A * np.log(T)))


def trivial(sk: Skeleton, T: int, F: float = 1.0) -> float:
    """Bound the regret without any theorem: F L T.

    Parameters
    ----------
    sk
        The skeleton.
    T
        The number of episodes.
    F
        The bound on subgradients; 1 for the total loss.

    Returns
    -------
    float
        The bound. Another bound above it is vacuous.

    Examples
    --------
    >>> import advmdp as am
    >>> am.bounds.trivial(am.Skeleton.dense([1, 2, 1], actions=2), 100)
    200.0
    """
    L, _, _ = _sizes(sk, T, 0.5, F)
    return F * L * T


def eta(sk: Skeleton, T: int, F: float = 1.0) -> float:
    """Compute the step size of Theorem 5.1.

    Parameters
    ----------
    sk
        The skeleton.
    T
        The number of episodes.
    F
        The bound on subgradients; 1 for the total loss.

    Returns
    -------
    float
        ``sqrt(ln(|X|^2 |A| / L^2) / (F^2 T))``.

    Examples
    --------
    >>> import advmdp as am
    >>> round(am.bounds.eta(am.Skeleton.dense([1, 2, 1], actions=2), 100), 3)
    0.144
    """
    L, X, A = _sizes(sk, T, 0.5, F)
    return float(np.sqrt(np.log(X**2 * A / L**2) / (F**2 * T)))


def entropy(sk: Skeleton) -> float:
    """Compute ``ln(|X| |A| / L)``.

    L times this is the largest difference between the entropies over pairs of two occupancy measures.

    Parameters
    ----------
    sk
        The skeleton.

    Returns
    -------
    float
        The logarithm.

    Examples
    --------
    >>> import advmdp as am
    >>> round(am.bounds.entropy(am.Skeleton.dense([1, 2, 1], actions=2)), 3)
    1.386
    """
    L, X, A = _sizes(sk, 1, 0.5, 1.0)
    return float(np.log(X * A / L))


def _sizes(sk: Skeleton, T: int, delta: float, F: float) -> tuple[int, int, int]:
    """L, |X| and |A|; also checks the other arguments."""
    expect(Skeleton, sk, "skeleton")
    whole("T", T, 1, 2**63)  # floating point holds it
    between("delta", delta, 1.0)
    between("F", F)
    return sk.num_steps, sk.num_states, sk.num_actions
