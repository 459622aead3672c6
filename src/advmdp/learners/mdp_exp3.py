"""MDP-EXP3: after Neu, Gyorgy, Szepesvari & Antos, "Online Markov decision processes under bandit feedback" (NIPS
2010), for the loop-free model, and without their assumption that every policy visits every state.

Knows P, sees the losses along its path, handles the total loss.  Like OSSP it keeps exponential weights mu_t in each
state on estimated values, but it explores states too.  Let q^E be the occupancy measure of this player: draw a state
uniformly, go there with the highest possible probability, and choose at random from there on.  Then

    q_t = (1 - gamma) q^{P, mu_t} + gamma q^E,    pi_t = pi^{q_t}
    l^_t(x, a) = l_t(x, a, x') / q_t(x, a)  on the pairs visited, 0 elsewhere
    Q^_t       = the values of (P, mu_t, l^_t)
    mu_{t+1}(a|x) proportional to exp(-eta sum_{s <= t} Q^_s(x, a))

Guarantee, in expectation, of order T^{2/3} and without the alpha of OSSP.  We have q^E(y, b) >= max_pi q^pi(y) /
(|X||A|).  Any policy that goes to x, takes a and then follows mu_t reaches y with probability at most max_pi q^pi(y).
So the second moments of the estimates, weighted as in the performance difference lemma, sum to at most
L^2 |X|^2 |A| / gamma:

    E[R] <= gamma L T + L ln|A| / eta + eta T L^2 |X|^2 |A| / (2 gamma)

which is 3 (L^4 |X|^2 |A| ln|A| / 2)^{1/3} T^{2/3} for the theory's gamma = (L|X|^2|A| ln|A| / (2T))^{1/3} and
eta = sqrt(2 gamma ln|A| / (T L|X|^2|A|)), if losses do not react to it.

q^E is computed once, by one backward induction for each state.
"""

from math import inf, log, sqrt
from typing import Literal

import numpy as np

from advmdp.core.arrays import FloatArray
from advmdp.core.errors import InputError
from advmdp.criteria import Criterion
from advmdp.learners.domains import State
from advmdp.learners.entropic import Entropic
from advmdp.learners.kernels.entropic import Visitor
from advmdp.learners.parameters import horizon_of, theory_or
from advmdp.model.kernels.world import Dynamics
from advmdp.model.mdp import MDP
from advmdp.model.occupancy import best_response, occupancy
from advmdp.model.policy import uniform_policy


class MDPEXP3(Entropic):
    """MDP-EXP3: exponential weights in each state on estimated values, with exploration of all states.

    It knows the dynamics, sees the losses along its path, and handles the total loss.

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
        The share of exploration; "theory" is the value of its guarantee.

    Raises
    ------
    InputError
        If gamma is above 1.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> game = am.play(mdp, am.losses.Stochastic(mdp.skeleton), am.MDPEXP3(mdp, horizon=500), episodes=500)
    >>> game.regret < game.learner.bound(500)
    True
    """

    sees = "bandit"
    assumes = "oblivious"
    weighs = True
    _rule: Visitor

    def __init__(
        self,
        mdp: MDP,
        horizon: int,
        criterion: Criterion | None = None,
        eta: float | Literal["theory"] = "theory",
        gamma: float | Literal["theory"] = "theory",
    ) -> None:
        super().__init__(mdp, criterion)
        self.horizon, self.eta, self.gamma = horizon_of(horizon), theory_or("eta", eta), theory_or("gamma", gamma)
        if not isinstance(self.gamma, str) and self.gamma > 1.0:
            raise InputError("gamma", f"{gamma!r}", "a number above 0 and up to 1, or 'theory'")
        self._share, self._rate = self._rates()
        self._rule = Visitor(self._memory, self._rate, self._share, visiting(mdp))
        self._rule.refresh(Dynamics(self.skeleton))

    def restore(self, state: State) -> None:
        super().restore(state)
        self._rule.refresh(Dynamics(self.skeleton))  # q_t over pairs follows from the weights

    @property
    def _sizes(self) -> tuple[int, float, float]:
        """L, |X|^2 |A| and ln|A|."""
        sk = self.skeleton
        return sk.num_steps, float(sk.num_states**2 * sk.num_actions), log(max(2, sk.num_actions))

    def _rates(self) -> tuple[float, float]:
        """gamma and eta. The theory's gamma is capped at one half, since it would exceed one in short games."""
        L, spread, entropy = self._sizes
        T = self.horizon
        gamma = self.gamma
        if isinstance(gamma, str):
            gamma = min(0.5, (L * spread * entropy / (2.0 * T)) ** (1.0 / 3.0))
        eta = sqrt(2.0 * gamma * entropy / (T * L * spread)) if isinstance(self.eta, str) else self.eta
        return gamma, eta

    def bound(self, episodes: int) -> float:
        """Bound the expected regret of the whole game; infinite with other parameters or lengths."""
        if self.eta != "theory" or self.gamma != "theory" or episodes != self.horizon:
            return inf
        (L, spread, entropy), T, gamma, eta = self._sizes, episodes, self._share, self._rate
        return gamma * L * T + L * entropy / eta + eta * T * L**2 * spread / (2.0 * gamma)


def visiting(mdp: MDP) -> FloatArray:
    """q^E over pairs: for each state, reach it with the highest probability, then choose at random; averaged."""
    sk = mdp.skeleton
    at_random, total = uniform_policy(sk), np.zeros(sk.num_pairs)
    for k in range(sk.num_steps):
        there = sk.layer_pair_ptr[k]  # the pairs of layer k begin here
        for x in range(sk.layer_ptr[k], sk.layer_ptr[k + 1]):
            policy = best_response(mdp, -(sk.successor == x).astype(np.float64))[0]
            policy[there:] = at_random[there:]
            total += np.add.reduceat(occupancy(mdp, policy), sk.transition_ptr[:-1])
    return total / (sk.num_states - 1)
