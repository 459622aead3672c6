"""MDP-E: Even-Dar, Kakade & Mansour, "Online Markov decision processes" (Mathematics of Operations Research 2009).

Knows P, sees the whole loss, handles the total loss.  Each state runs Hedge over its actions, on the Q-values of the
policy played under the loss of the episode:

    pi_{t+1}(a|x) proportional to pi_t(a|x) exp(-eta Q_t(x, a)),   Q_t of (P, pi_t, l_t),   eta = sqrt(8 ln|A| / T) / L

Guarantee, for any losses: R <= L^2 sqrt(T ln|A| / 2).  The regret of Hedge on values in [0, L - k] is at most
ln|A| / eta + eta T (L - k)^2 / 8 in a state, and the states of a layer are weighted by probabilities.
"""

from math import inf, log, sqrt
from typing import Literal

from advmdp.criteria import Criterion
from advmdp.learners.entropic import Entropic
from advmdp.learners.kernels.entropic import Hedge
from advmdp.learners.parameters import horizon_of, theory_or
from advmdp.model.mdp import MDP


class MDPE(Entropic):
    """MDP-E: an instance of Hedge in each state.

    It knows the dynamics, sees the whole loss, and handles the total loss.

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

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> game = am.play(mdp, am.losses.Switching(mdp.skeleton, 50), am.MDPE(mdp, horizon=500), episodes=500)
    >>> game.regret < game.learner.bound(500)
    True
    """

    def __init__(
        self,
        mdp: MDP,
        horizon: int,
        criterion: Criterion | None = None,
        eta: float | Literal["theory"] = "theory",
    ) -> None:
        super().__init__(mdp, criterion)
        self.horizon, self.eta = horizon_of(horizon), theory_or("eta", eta)
        self._rule = Hedge(self._memory, self._rate)

    @property
    def _rate(self) -> float:
        if isinstance(self.eta, str):
            return sqrt(8.0 * log(max(2, self.skeleton.num_actions)) / self.horizon) / self.skeleton.num_steps
        return self.eta

    def bound(self, episodes: int) -> float:
        """Bound the regret of the whole game; infinite with another eta or length."""
        if self.eta != "theory" or episodes != self.horizon:
            return inf
        return self.skeleton.num_steps**2 * sqrt(episodes * log(max(2, self.skeleton.num_actions)) / 2.0)
