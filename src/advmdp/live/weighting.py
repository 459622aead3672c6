"""Off-policy estimates from the costs along logged paths, in sums of losses per episode.

Episode s followed b_s, whose probabilities are in the log, along x_0, a_0, c_0, x_1, ...  For a policy pi let

    rho_k = product over j <= k of pi(a_j|x_j) / b_s(a_j|x_j),      rho_{-1} = 1.

"importance" (per-decision importance sampling; Precup, Sutton & Singh 2000):     X_s = sum_k rho_k c_k
"doubly robust" (Jiang & Li 2016), for any Q and V(x) = sum_a pi(a|x) Q(x, a) computed before the episode:

    X_s = V(x_0) + sum_k rho_k (c_k + V(x_{k+1}) - Q(x_k, a_k)),      V(x_L) = 0.

Both are unbiased for what pi would have paid in episode s: E[rho_k (c_k + V(x_{k+1}) - Q(x_k, a_k))] is the expected
difference of two values under pi, and these telescope.  Q comes from earlier episodes, and is computed again when their
number has doubled.  So the error of the mean over episodes is a mean of martingale differences.

"self-normalised" divides the weights of each step by their mean.  It has a bias of order 1/n, and varies less if the
weights differ much.

Intervals are mean +- z s / sqrt(n), with s^2 the variance of X_s over episodes (for the self-normalised estimate, of
its linearisation). They hold asymptotically. Losses that change from episode to episode make s larger, so the interval
is then too wide rather than too narrow.

Missing weight.  E[rho_k] = 1.  If the agent almost never takes an action, its weights are enormous but usually absent
from the log, and the variance does not show that.  So the missing weight of step k, max(0, 1 - mean of rho_k), widens
the interval by the most it could contribute: times 1 for a cost, times L - k for a difference of values.

If all weights of a step are 0, no logged path is possible under the policy.  Then every estimate is NaN; the intervals
hold, and are wide.
"""

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist

import numpy as np

from advmdp.core.arrays import FloatArray
from advmdp.live.evidence import Ints, LoggedPath, estimated
from advmdp.model.occupancy import Values, policy_values
from advmdp.model.skeleton import Skeleton

Bounds = tuple[float, float, float]
"""An estimate, and the ends of its interval."""


def weighted_estimates(
    sk: Skeleton, paths: Sequence[LoggedPath], policy: FloatArray, delta: float
) -> tuple[dict[str, Bounds], float]:
    """The three estimates by name, as sums of losses per episode, and the mean weight of a whole path."""
    pairs, costs = np.array([path.pairs for path in paths]), np.array([path.losses for path in paths])
    taken = np.where(pairs >= 0, policy[pairs], 0.0)  # policies do not take removed actions
    rho = np.cumprod(taken / np.array([path.chances for path in paths]), axis=1)
    z = NormalDist().inv_cdf(1.0 - delta / 2.0)
    missing = np.maximum(0.0, 1.0 - rho.mean(axis=0))
    most = float(missing.sum())
    far = float(missing @ np.arange(sk.num_steps, 0, -1))
    found = {
        "importance": _around((rho * costs).sum(axis=1), z, 0.0, most),
        "self-normalised": _normalised(rho, costs, z, most),
        "doubly robust": _around(doubly_robust(sk, paths, policy, rho, costs), z, far, far),
    }
    if not rho[:, -1].any():
        found = {name: (np.nan, low, high) for name, (_, low, high) in found.items()}
    return found, float(rho[:, -1].mean())


def doubly_robust(
    sk: Skeleton, paths: Sequence[LoggedPath], policy: FloatArray, rho: FloatArray, costs: FloatArray
) -> FloatArray:
    """X_s for each episode."""
    seen, total = np.zeros(sk.num_transitions, np.int64), np.zeros(sk.num_transitions)
    values, found = Values(np.zeros(sk.num_states), np.zeros(sk.num_pairs)), np.empty(len(paths))
    for s, path in enumerate(paths):
        if s & (s - 1) == 0 and s:  # after 1, 2, 4, 8, ... episodes
            values = _fitted(sk, seen, total, policy)
        after = values.state[sk.successor[path.transitions]]
        found[s] = values.state[0] + rho[s] @ (costs[s] + after - values.pair[path.pairs])
        there = path.transitions >= 0
        np.add.at(seen, path.transitions[there], 1)
        np.add.at(total, path.transitions[there], costs[s][there])
    return found


def _fitted(sk: Skeleton, seen: Ints, total: FloatArray, policy: FloatArray) -> Values:
    """V and Q of the policy in the estimated world with mean losses; unseen pairs get the mean of all."""
    means = np.where(seen > 0, total / np.maximum(1, seen), total.sum() / max(1, seen.sum()))
    return policy_values(estimated(sk, seen), policy, means)


def _around(values: FloatArray, z: float, below: float, above: float) -> Bounds:
    """The mean, and its interval widened below and above by the missing weight."""
    mean, n = float(values.mean()), len(values)
    half = z * float(values.std(ddof=1)) / sqrt(n) if n > 1 else np.inf
    return mean, mean - half - below, mean + half + above


def _normalised(rho: FloatArray, costs: FloatArray, z: float, missing: float) -> Bounds:
    """The self-normalised estimate; a step whose paths all have weight 0 is unknown."""
    mean = rho.mean(axis=0)
    if not (mean > 0.0).all():
        return np.nan, -np.inf, np.inf
    each = (rho * costs).mean(axis=0) / mean
    _, low, high = _around((rho * (costs - each) / mean).sum(axis=1), z, missing, missing)
    return float(each.sum()), float(each.sum()) + low, float(each.sum()) + high
