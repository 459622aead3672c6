"""UC-O-REPS, Upper Confidence Online Relative Entropy Policy Search: Algorithms 2 and 3 of Rosenberg & Mansour (2019).

Knows the skeleton, sees the whole loss after each episode, handles any convex criterion f.  With q_1 uniform,

    traverse U_t under pi_t, observe l_t;  count;  if some pair of U_t has n_i(x, a) >= max(1, N_i(x, a)): a new epoch
    z_t in the subdifferential of f(.; l_t) at q_t
    q_{t+1} = argmin over q in Delta(M, i(t+1)) of  eta <q, z_t> + D(q || q_t)      [the projection, certified]
    pi_{t+1} = pi^{q_{t+1}}

with Delta(M, i) the set of Section 4.1 around the estimates of epoch i, and eta = sqrt(ln(|X|^2|A|/L^2) / (F^2 T)).
Guarantee (Theorem 5.1): regret at most 15 F L|X| sqrt(T |A| ln(T|X||A|/delta)), with probability 1 - 2 delta.

docs/errata.md describes where the code departs from the paper: the epoch test (item 2), the set of the next epoch (4),
unvisited pairs (5).  If the skeleton is not dense, the uniform measure need not be an occupancy measure, and q_1 is its
projection.  The parameters below make the algorithm work at realistic horizons.
"""

from math import inf
from typing import ClassVar, Literal

from numpy.typing import ArrayLike

from advmdp.confidence import CHOICES, INSIDE_THE_PAPERS, Confidence, RowSet, kinds_for, recent_counts
from advmdp.criteria import Criterion
from advmdp.learners import bounds
from advmdp.learners.mirror_descent import MirrorDescent
from advmdp.learners.parameters import between, one_of
from advmdp.model.skeleton import Skeleton


class UCOREPS(MirrorDescent):
    """UC-O-REPS: online mirror descent inside confidence sets, exactly as published.

    It knows the skeleton, sees the whole loss, and handles any convex criterion. :class:`SelfTuning` uses it as one
    of its experts and needs no tuning.

    Parameters
    ----------
    skeleton
        The world without its probabilities.
    horizon
        The number of episodes T. Without it the step size falls like 1 / sqrt(t), the radii hold for all times
        simultaneously, and the online part of the regret is of order sqrt(t) for every t.
    criterion
        The criterion to minimise; the total loss by default.
    eta
        The step size; "theory" is the value of Theorem 5.1. A value ten times as large often learns faster.
        :func:`advmdp.bounds.online` gives the bound for any value.
    delta
        The theorems hold with probability 1 - 2 delta.
    confidence
        The confidence set. "l1" is the paper's. "weissman" and "chernoff" are tighter and also valid, so the theorems
        apply. "bernstein" bounds each probability separately, with probability 1 - 4 delta. "pointwise" is much
        tighter and usually works best, but no theorem applies.
    confidence_scale
        A factor on radii and widths. Below 1 the theorems do not apply; for "l1", 0.1 to 0.3 usually works best.
    successors
        "layer" is the paper's radius. "possible" counts only the successors that the skeleton allows: also valid, and
        never worse.
    share
        The fraction of q_1 to mix in before each projection, for losses whose best policy changes. A good value is
        one over the number of episodes between changes. The share adds at most
        L T (ln(1 / (1 - share)) / eta + share F) to the regret.
    kinds
        A label for each pair, for "pointwise" only. Estimates of pairs with the same label shrink towards each other.
    window, discount, drift
        For dynamics that change: count the last ``window`` episodes only, or weigh an episode by ``discount`` to the
        power of its age. The radii allow every row to change by ``drift`` per episode, in L1 norm. No regret bound is
        proven for these.
    threads
        The number of threads that share a projection. They help from about 400,000 transitions on. The result does
        not depend on it.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> learner = am.UCOREPS(mdp.skeleton, horizon=500, confidence="pointwise")
    >>> game = am.play(mdp, am.losses.Stochastic(mdp.skeleton), learner, episodes=500)
    >>> game.regret < 0.1 * game.total_loss
    True
    """

    optimises = "any"
    added: ClassVar = {"kinds": None, "window": None, "discount": None, "drift": 0.0}

    def __init__(
        self,
        skeleton: Skeleton,
        horizon: int | None = None,
        criterion: Criterion | None = None,
        eta: float | Literal["theory"] = "theory",
        delta: float = 0.05,
        confidence: Confidence = "l1",
        confidence_scale: float = 1.0,
        successors: Literal["layer", "possible"] = "layer",
        share: float = 0.0,
        kinds: ArrayLike | None = None,
        window: int | None = None,
        discount: float | None = None,
        drift: float = 0.0,
        threads: int = 1,
    ) -> None:
        super().__init__(skeleton, horizon, criterion, eta=eta, share=share, threads=threads)
        self.delta = between("delta", delta, 1.0)
        self.confidence = one_of("confidence", confidence, CHOICES)
        self.confidence_scale = between("confidence_scale", confidence_scale)
        self.successors = one_of("successors", successors, ("layer", "possible"))
        self._kinds = kinds_for(self.confidence, self.skeleton, kinds)
        self.kinds = None if self._kinds is None else list(self._kinds.labels)
        self.window, self.discount, self.drift = window, discount, drift
        self._recent = recent_counts(self.skeleton, window, discount, drift, self.confidence, self._kinds)
        self._begin()

    def _theory_eta(self, T: int) -> float:
        return bounds.eta(self.skeleton, T, self.criterion.lipschitz(self.skeleton))

    def _new_set(self) -> RowSet:
        """Delta(M, i) for the new epoch."""
        return self._set_of(
            self.confidence, self.horizon, self.delta, self.confidence_scale, self._kinds, self.successors == "possible"
        )  # fmt: skip

    def bound(self, episodes: int) -> float:
        """Bound the regret: Theorem 5.1 as printed, plus what late losses add.

        Parameters
        ----------
        episodes
            The number of episodes.

        Returns
        -------
        float
            The bound. Infinite if the theorem does not cover the parameters, and for lengths other than the horizon,
            since eta and the radii depend on the horizon.
        """
        sets = self.confidence in INSIDE_THE_PAPERS and self.confidence_scale == 1.0
        sets = sets and self._is_stationary(self.horizon)
        if not sets or self.eta != "theory" or self.share > 0.0 or episodes != self.horizon:
            return inf
        F = self.criterion.lipschitz(self.skeleton)
        return bounds.total(self.skeleton, episodes, self.delta, F) + self._cost_of_delays(episodes, F)
