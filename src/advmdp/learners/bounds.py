"""The regret bounds of Section 5, as they are printed.

    Theorem 5.1     R       <= 15 F L|X| sqrt(T |A| ln(T|X||A|/delta))                  with probability 1 - 2 delta
    Theorem 5.2     R^APP   <= 3 F L|X| (2 sqrt(T ln(L/delta)) + 3 sqrt(T |A| ln(T|X||A|/delta)))       1 - 2 delta
    Theorem 5.3     R^ON    <= eta F^2 L T + L ln(|X|^2|A|/L^2) / eta                                     1 - delta
                            =  2 F L sqrt(2 T ln(|X||A|/L)),   as printed for the eta of the theory
    Corollary 5.1   E[R]    <= 25 L|X| sqrt(T |A| ln T)                        for the total loss, delta = |X||A|/T

|A| is the largest number of actions of a state.  The constants are for proofs (docs/errata.md, item 6): where a bound
is above the trivial F L T it says nothing, and ``trivial`` is there to compare it with.
"""

import numpy as np

from advmdp.core.arrays import expect, whole
from advmdp.core.errors import InputError
from advmdp.model.skeleton import Skeleton


def total(sk: Skeleton, T: int, delta: float, F: float = 1.0) -> float:
    """Theorem 5.1."""
    L, X, A = _sizes(sk, T, delta, F)
    return 15.0 * F * L * X * float(np.sqrt(T * A * np.log(T * X * A / delta)))


def approximation(sk: Skeleton, T: int, delta: float, F: float = 1.0) -> float:
    """Theorem 5.2: what not knowing the dynamics costs."""
    L, X, A = _sizes(sk, T, delta, F)
    first, second = np.sqrt(T * np.log(L / delta)), np.sqrt(T * A * np.log(T * X * A / delta))
    return 3.0 * F * L * X * float(2.0 * first + 3.0 * second)


def online(sk: Skeleton, T: int, delta: float = 0.05, F: float = 1.0, eta: float | None = None) -> float:
    """Theorem 5.3: what not knowing the losses costs; for the eta of the theory unless one is given."""
    L, X, A = _sizes(sk, T, delta, F)
    if eta is None:
        return 2.0 * F * L * float(np.sqrt(2.0 * T * np.log(X * A / L)))
    return eta * F**2 * L * T + L * float(np.log(X**2 * A / L**2)) / eta


def corollary(sk: Skeleton, T: int) -> float:
    """Corollary 5.1: the total loss, in expectation."""
    L, X, A = _sizes(sk, T, 0.5, 1.0)
    return 25.0 * L * X * float(np.sqrt(T * A * np.log(T)))


def trivial(sk: Skeleton, T: int, F: float = 1.0) -> float:
    """F L T, which no regret exceeds."""
    L, _, _ = _sizes(sk, T, 0.5, F)
    return F * L * T


def eta(sk: Skeleton, T: int, F: float = 1.0) -> float:
    """The step size of Theorem 5.1, sqrt(ln(|X|^2|A|/L^2) / (F^2 T))."""
    L, X, A = _sizes(sk, T, 0.5, F)
    return float(np.sqrt(np.log(X**2 * A / L**2) / (F**2 * T)))


def entropy(sk: Skeleton) -> float:
    """ln(|X||A|/L): L times this is the most by which the entropies over pairs of two occupancy measures differ."""
    L, X, A = _sizes(sk, 1, 0.5, 1.0)
    return float(np.log(X * A / L))


def _sizes(sk: Skeleton, T: int, delta: float, F: float) -> tuple[int, int, int]:
    """L, |X| and |A|, with the other arguments checked."""
    expect(Skeleton, sk, "skeleton")
    whole("T", T, 1)
    for name, value, most in (("delta", delta, 1.0), ("F", F, np.inf)):
        if not 0.0 < value < most:
            raise InputError(name, f"{value!r}", f"a number between 0 and {most:g}")
    return sk.num_steps, sk.num_states, sk.num_actions
