"""O-REPS, Online Relative Entropy Policy Search: Zimin & Neu, "Online learning in episodic Markovian decision processes
by relative entropy policy search" (NIPS 2013).

Knows P.  It is UC-O-REPS with the set reduced to the true rows, Delta(P).  q_1 is the occupancy measure of P with the
largest entropy over pairs, and

    q_{t+1} = argmin over q in Delta(P) of  eta <q, z_t> + D(q || q_t)

sees      the whole loss: z_t in the subdifferential of f at q_t, eta = sqrt(ln(|X||A|/L) / (F^2 T)); or
          the losses along its path: z_t(x, a) = l_t(x, a, x') / q_t(x, a) on the pairs visited, 0 elsewhere,
          eta = sqrt(L ln(|X||A|/L) / (T|X||A|))
criteria  any convex one if it sees the whole loss, else the total loss
guarantee R <= 2 F L sqrt(T ln(|X||A|/L)) with the whole loss, for any losses;
          E[R] <= 2 sqrt(L|X||A| T ln(|X||A|/L)) with the losses along the path, if these do not react to it

The estimate is for a pair, not a transition: the loss may depend on x', but given the pair, the world chooses x'.
"""

from math import inf
from typing import Literal

import numpy as np

from advmdp.confidence import Point
from advmdp.core.arrays import FloatArray
from advmdp.criteria import Criterion
from advmdp.learners import bounds
from advmdp.learners.base import Feedback
from advmdp.learners.mirror_descent import IMPORTANCE, SUBGRADIENT, MirrorDescent
from advmdp.model.mdp import MDP


class OREPS(MirrorDescent):
    """O-REPS: online mirror descent for known dynamics, with full information or bandit feedback.

    With full information it handles any convex criterion; with bandit feedback, the total loss.

    Parameters
    ----------
    mdp
        The world, with its probabilities.
    horizon
        The number of episodes T. Without it the step size falls like 1 / sqrt(t).
    criterion
        The criterion to minimise; the total loss by default.
    feedback
        "full", or "bandit" for the losses along the path only.
    eta
        The step size; "theory" is the value of its paper.
    threads
        The number of threads that share a projection. The result does not depend on it.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> game = am.play(mdp, am.losses.Switching(mdp.skeleton, 50), am.OREPS(mdp, horizon=500), episodes=500)
    >>> game.regret < game.learner.bound(500)
    True
    """

    knows = "dynamics"
    sees = "full or bandit"
    optimises = "any"

    def __init__(
        self,
        mdp: MDP,
        horizon: int | None = None,
        criterion: Criterion | None = None,
        feedback: Feedback = "full",
        eta: float | Literal["theory"] = "theory",
        threads: int = 1,
    ) -> None:
        super().__init__(mdp, horizon, criterion, feedback, eta=eta, threads=threads)
        self.assumes = "arbitrary" if self.feedback == "full" else "oblivious"
        self.weighs = self.feedback == "bandit"
        self._begin(SUBGRADIENT if self.feedback == "full" else IMPORTANCE, counting=False)

    @property
    def _transition(self) -> FloatArray:
        assert self.mdp is not None
        return self.mdp.transition

    def _theory_eta(self, T: int) -> float:
        sk = self.skeleton
        if self.feedback == "full":
            return float(np.sqrt(bounds.entropy(sk) / T)) / self.criterion.lipschitz(sk)
        return float(np.sqrt(sk.num_steps * bounds.entropy(sk) / (T * sk.num_states * sk.num_actions)))

    def _new_set(self) -> Point:
        return Point(self._transition)

    def _log_start(self) -> FloatArray:
        """Uniform over the pairs of a layer: D(q || .) is then minus the entropy over pairs, up to a constant."""
        sk, P = self.skeleton, self._transition
        pairs = np.diff(sk.layer_pair_ptr)
        log_rows = np.log(P, where=P > 0.0, out=np.zeros_like(P))
        start: FloatArray = log_rows - np.repeat(np.log(pairs), np.diff(sk.layer_transition_ptr))
        return start

    def bound(self, episodes: int) -> float:
        """Bound the regret of the whole game by the guarantee of its paper; infinite with another eta or length.

        Late losses add to the bound with full information, and make it infinite with bandit feedback.
        """
        sk = self.skeleton
        L, pairs = sk.num_steps, sk.num_states * sk.num_actions
        if self.eta != "theory" or episodes != self.horizon:
            return inf
        if self.feedback == "full":
            F, e, width = self.criterion.lipschitz(sk), bounds.entropy(sk), int(np.diff(sk.layer_pair_ptr).max())
            return 2.0 * F * L * float(np.sqrt(episodes * e)) + self._open.cost(sk, episodes, F, e, width)
        if not self._open.in_order:
            return inf
        return 2.0 * float(np.sqrt(L * pairs * episodes * bounds.entropy(sk)))
