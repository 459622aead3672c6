"""UOB-REPS, Upper Occupancy Bound Relative Entropy Policy Search: Jin, Jin, Luo, Sra & Yu, "Learning adversarial Markov
decision processes with bandit feedback and unknown transition" (ICML 2020).

Knows the skeleton, sees the losses along its path, handles the total loss: bandit feedback with unknown dynamics, which
Rosenberg & Mansour (2019) leave open.  Epochs are those of UC-O-REPS.  The set of epoch i is a box,

    |P(x'|x, a) - Pbar_i(x'|x, a)| <= min{1, 2 sqrt(Pbar_i u / max(1, N_i - 1)) + 14 u / (3 max(1, N_i - 1))},
    u = ln(T|X||A|/delta)

and, with u_t(x, a) the largest probability of (x, a) under pi_t over that set,

    l^_t(x, a) = l_t(x, a, x') / (u_t(x, a) + gamma)  on the pairs visited, 0 elsewhere
    q_{t+1} = argmin over q in Delta(i(t+1)) of  eta <q, l^_t> + D(q || q_t)

While the set contains P, u_t is at least the true probability of a visit.  So the estimate is optimistic: it is biased
downwards if at all, and small where little is known.  eta = gamma = sqrt(L ln(L|X||A|/delta) / (T|X||A|)).

Guarantee: R = O(L|X| sqrt(|A| T ln(T|X||A|/delta))) with probability 1 - 9 delta.  The paper gives no constant;
:meth:`UOBREPS.bound` uses 1.
"""

from math import inf
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.confidence import CHOICES, Confidence, RowSet, kinds_for, recent_counts
from advmdp.core.arrays import FloatArray
from advmdp.criteria import Criterion
from advmdp.learners.compiled import TOTAL, CompiledLearner
from advmdp.learners.episode import given_block, whole_path
from advmdp.learners.groups import Groups
from advmdp.learners.mirror_descent import GROUPED, UPPER, MirrorDescent
from advmdp.learners.parameters import between, horizon_of, one_of, theory_or
from advmdp.model.by_name import ByName
from advmdp.model.kernels.world import Dynamics
from advmdp.model.mdp import Trajectory
from advmdp.model.skeleton import Skeleton


class UOBREPS(MirrorDescent):
    """UOB-REPS: mirror descent for bandit feedback and unknown dynamics.

    It knows the skeleton, sees the losses along its path, and handles the total loss.

    Parameters
    ----------
    skeleton
        The world without its probabilities.
    horizon
        The number of episodes T.
    criterion
        The total loss, the only criterion it supports.
    eta
        The step size; "theory" is the value of its paper.
    gamma
        The bias of the loss estimates; "theory" is the value of its paper.
    delta
        The guarantee holds with probability 1 - 9 delta.
    confidence
        The confidence set: "bernstein" is its paper's. The others are those of :class:`UCOREPS`; the guarantee does
        not cover them.
    confidence_scale
        A factor on widths and radii. Below 1 the guarantee does not apply.
    kinds
        A label for each pair, for "pointwise" only.
    groups
        A label for each transition or for each pair, such as the router of a link. A path that takes a transition of a
        group sees the losses of the whole group. :meth:`update` and :meth:`learn` then take the losses of all
        transitions and ignore the unseen ones, which may be NaN. In the theory's step, the number of groups in each
        layer, summed over layers, replaces |X||A| if it is less than the number of pairs.
    window, discount, drift
        For dynamics that change, as in :class:`UCOREPS`. With ``drift`` or ``discount``, ``confidence`` must be "l1",
        "weissman" or "pointwise".
    threads
        The number of threads that share a projection. The result does not depend on it.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> learner = am.UOBREPS(mdp.skeleton, horizon=500)
    >>> am.play(mdp, am.losses.Stochastic(mdp.skeleton), learner, episodes=500, feedback="bandit").episodes
    500
    """

    sees = "bandit"
    added: ClassVar = {
        "confidence": "bernstein",
        "kinds": None,
        "groups": None,
        "window": None,
        "discount": None,
        "drift": 0.0,
    }

    def __init__(
        self,
        skeleton: Skeleton,
        horizon: int,
        criterion: Criterion | None = None,
        eta: float | Literal["theory"] = "theory",
        gamma: float | Literal["theory"] = "theory",
        delta: float = 0.05,
        confidence: Confidence = "bernstein",
        confidence_scale: float = 1.0,
        kinds: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        window: int | None = None,
        discount: float | None = None,
        drift: float = 0.0,
        threads: int = 1,
    ) -> None:
        super().__init__(skeleton, horizon_of(horizon), criterion, eta=eta, threads=threads)
        self.delta = between("delta", delta, 1.0)
        self.confidence = one_of("confidence", confidence, CHOICES)
        self.confidence_scale = between("confidence_scale", confidence_scale)
        self._kinds = kinds_for(self.confidence, self.skeleton, kinds)
        self.kinds = None if self._kinds is None else list(self._kinds.labels)
        self.window, self.discount, self.drift = window, discount, drift
        self._recent = recent_counts(self.skeleton, window, discount, drift, self.confidence, self._kinds)
        self._groups = None if groups is None else Groups(self.skeleton, groups)
        self.groups = None if self._groups is None else self._groups.labels
        self.gamma = theory_or("gamma", gamma)
        chosen = self._theory_eta(horizon) if isinstance(self.gamma, str) else self.gamma
        self._begin(UPPER if self._groups is None else GROUPED, chosen, groups=self._groups)

    def _theory_eta(self, T: int) -> float:
        L, pairs = self.skeleton.num_steps, self.skeleton.num_states * self.skeleton.num_actions
        fewer = self._groups is not None and self._groups.size < self.skeleton.num_pairs
        apart = self._groups.size if self._groups is not None and fewer else pairs
        return float(np.sqrt(L * np.log(L * pairs / self.delta) / (T * apart)))

    def _new_set(self) -> RowSet:
        return self._set_of(
            self.confidence, self.horizon, self.delta, self.confidence_scale, self._kinds
        )  # fmt: skip

    def observed(self, trajectory: Trajectory, loss: FloatArray) -> FloatArray:
        if self._groups is None:
            return super().observed(trajectory, loss)
        return self._groups.shown(trajectory.transitions, loss)

    def _shown(self, path: NDArray[np.int64], loss: ByName) -> FloatArray:
        return super()._shown(path, loss) if self._groups is None else self._groups.shown(path, loss)

    def _update_at_once(self, trajectory: Trajectory, loss: ByName) -> None:
        if self._groups is None:
            super()._update_at_once(trajectory, loss)
            return
        losses = self._shown(whole_path(self.skeleton, trajectory), loss)
        block = given_block(self.skeleton, trajectory, losses, TOTAL)
        CompiledLearner.play_block(self, Dynamics(self.skeleton), block)

    def bound(self, episodes: int) -> float:
        """Bound the regret of the whole game by ``L|X| sqrt(|A| T ln(T|X||A|/delta))``.

        Infinite with other parameters or lengths, with groups, and if losses arrived late.
        """
        sk = self.skeleton
        theory = self.eta == "theory" and self.gamma == "theory"
        sets = self.confidence == "bernstein" and self.confidence_scale == 1.0 and self._is_stationary(self.horizon)
        if not theory or not sets or episodes != self.horizon or self._groups is not None or not self._open.in_order:
            return inf
        inside = sk.num_actions * episodes * np.log(episodes * sk.num_states * sk.num_actions / self.delta)
        return sk.num_steps * sk.num_states * float(np.sqrt(inside))
