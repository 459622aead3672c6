"""The bandit learner for the online loop-free stochastic shortest path problem: Neu, Gyorgy & Szepesvari, "The online
loop-free stochastic shortest-path problem" (COLT 2010).

Knows P, sees the losses along its path, handles the total loss.  With q_t(x) the probability of x under pi_t,

    l^_t(x, a) = l_t(x, a, x') / (q_t(x) pi_t(a|x))  on the pairs visited, 0 elsewhere
    Q^_t       = the values of (P, pi_t, l^_t), by backward induction
    w_{t+1}(a|x) proportional to exp(-eta sum_{s <= t} Q^_s(x, a)),    pi_{t+1} = (1 - gamma) w_{t+1} + gamma / |A(x)|

Guarantee, in expectation, with alpha the least probability with which any policy visits any state.  The paper's is of
order L^2 sqrt(T |A| ln|A|) / alpha.  The paper has rewards, and needs gamma > 0 for them.  For losses, gamma = 0 and
sqrt(alpha) suffice: E[sum_a pi(a|x) Q^(x, a)^2] <= (L - k)^2 |A| / q_t(x), since at each step j >= k the estimates of
its pairs together weigh at most |A| / q_t(x).  So with C = |A| L (L + 1)(2L + 1) / (12 alpha),

    E[R] <= L ln|A| / eta + eta T C + gamma T L (L + 1) / 2

which is 2 sqrt(L ln|A| T C) for eta = sqrt(L ln|A| / (T C)) and gamma = 0.  If some policy misses some state, alpha is
0 and there is no guarantee; eta is then the value for alpha = 1 / |X|.
"""

from functools import cached_property
from math import inf, log, sqrt
from typing import Literal

import numpy as np

from advmdp.core.arrays import FloatArray, fraction
from advmdp.criteria import Criterion
from advmdp.learners.entropic import Entropic
from advmdp.learners.kernels.entropic import Explorer
from advmdp.learners.parameters import horizon_of, theory_or
from advmdp.model.mdp import MDP
from advmdp.model.occupancy import best_response


class OSSP(Entropic):
    """OSSP: exponential weights in each state on estimated values.

    It knows the dynamics, sees the losses along its path, and handles the total loss. Its guarantee needs every
    policy to visit every state.

    Parameters
    ----------
    mdp
        The world, with its probabilities.
    horizon
        The number of episodes T.
    criterion
        The total loss, the only criterion it supports.
    eta
        The step size; "theory" is the value of its guarantee.
    gamma
        The share of actions taken at random.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> game = am.play(mdp, am.losses.Stochastic(mdp.skeleton), am.OSSP(mdp, horizon=500), episodes=500)
    >>> game.regret < game.learner.bound(500)
    True
    """

    sees = "bandit"
    assumes = "oblivious"
    weighs = True

    def __init__(
        self,
        mdp: MDP,
        horizon: int,
        criterion: Criterion | None = None,
        eta: float | Literal["theory"] = "theory",
        gamma: float = 0.0,
    ) -> None:
        super().__init__(mdp, criterion)
        self.horizon, self.gamma = horizon_of(horizon), fraction("gamma", gamma)
        self.eta = theory_or("eta", eta)
        self._rate = sqrt(self._entropy / (horizon * self._variance)) if isinstance(self.eta, str) else self.eta
        self._rule = Explorer(self._memory, self._rate, self.gamma)

    @cached_property
    def alpha(self) -> float:
        """The smallest probability with which a policy visits a state, over all policies and states."""
        assert self.mdp is not None
        return float(least_visits(self.mdp).min())

    @property
    def _entropy(self) -> float:
        return self.skeleton.num_steps * log(max(2, self.skeleton.num_actions))

    @property
    def _variance(self) -> float:
        sk = self.skeleton
        L, alpha = sk.num_steps, self.alpha if self.alpha > 0.0 else 1.0 / sk.num_states
        return sk.num_actions * L * (L + 1) * (2 * L + 1) / (12.0 * alpha)

    def bound(self, episodes: int) -> float:
        """Bound the expected regret of the whole game; infinite with another eta or length, or if alpha is 0."""
        if self.eta != "theory" or episodes != self.horizon or self.alpha == 0.0:
            return inf
        L = self.skeleton.num_steps
        at_random = self.gamma * episodes * L * (L + 1) / 2.0
        return 2.0 * sqrt(self._entropy * episodes * self._variance) + at_random


def least_visits(mdp: MDP) -> FloatArray:
    """min over pi of Pr[x | P, pi] for every state, by backward induction with a loss of one for entering it."""
    successor = mdp.skeleton.successor
    rest = [best_response(mdp, (successor == x).astype(np.float64))[1] for x in range(1, mdp.skeleton.num_states)]
    return np.array([1.0, *rest])
