"""REGAL: Bartlett & Tewari, "REGAL: a regularization based algorithm for reinforcement learning in weakly communicating
MDPs" (UAI 2009), with episodes: UCRL2 with a cap on the span of the value function.

Knows, sees and assumes what UCRL2 does.  If the optimal values of the states of a layer differ by at most H, less
optimism suffices.  Extended backward induction then sets

    V(x) = max(V(x), max over y in the layer of V(y) - H)

This only raises V.  If H is right and V was below the optimal value, it still is: V*(x) >= max_y V*(y) - H >=
max_y V(y) - H.  The original searches for the plausible worlds with that span, which is intractable; raising the values
is the operator of Fruit et al. (2018).

Guarantee, if H is right: that of UCRL2, with 1 + H, the range of a step and what follows, in place of L.  The learner
cannot check H, and :meth:`REGAL.bound` relies on it.
"""

from advmdp.core.arrays import expect, is_number
from advmdp.core.errors import InputError
from advmdp.criteria import Criterion
from advmdp.learners.base import Feedback
from advmdp.learners.ucrl2 import UCRL2
from advmdp.model.skeleton import Skeleton


class REGAL(UCRL2):
    """REGAL: UCRL2 with a known limit on how much the values of a layer differ.

    Parameters
    ----------
    skeleton
        The world without its probabilities.
    span
        The largest difference between the optimal values of two states of a layer.
    criterion
        The total loss, the only criterion it supports.
    feedback
        "full", or "bandit" for the losses along the path only.
    delta
        The guarantee holds with probability 1 - delta.
    confidence_scale
        A factor on radii and bonuses. Below 1 the guarantee does not apply.

    Raises
    ------
    InputError
        If the span is not between 0 and the number of steps.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> learner = am.REGAL(mdp.skeleton, span=0.5, confidence_scale=0.1)
    >>> am.play(mdp, am.losses.Stochastic(mdp.skeleton), learner, episodes=500).regret < 50
    True
    """

    def __init__(
        self,
        skeleton: Skeleton,
        span: float = 1.0,
        criterion: Criterion | None = None,
        feedback: Feedback = "full",
        delta: float = 0.05,
        confidence_scale: float = 1.0,
    ) -> None:
        most = expect(Skeleton, skeleton, "skeleton").num_steps
        if not is_number(span) or not 0.0 <= span <= most:
            raise InputError("span", f"{span!r}", f"a number from 0 to {most}, the largest possible span of the values")
        self.span = float(span)
        super().__init__(skeleton, criterion, feedback, delta, confidence_scale)
