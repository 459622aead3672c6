"""Online mirror descent over occupancy measures with the relative entropy: the common part of O-REPS and its variants.

    z_t in the subdifferential of f(.; l_t) at q_t,  or an estimate of l_t from the losses along the path
    q_{t+1} = argmin over q in the set of  <q, z_t> eta + D(q || q_t)               [the projection, certified]
    pi_{t+1} = pi^{q_{t+1}}

The learners differ in the set (rows in an L1 ball, in a box, or known) and in z_t.  All computation is in the log
domain.

Without a horizon, the step in episode t is eta_1 / sqrt(t).  A falling step lowers the weight of earlier losses, and
q_1 gets the difference (dual stabilisation, Fang et al. 2020; in one state this is Hedge with a falling step).
"""

from abc import abstractmethod
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from advmdp.confidence import RowSet
from advmdp.core.arrays import FloatArray, apart, fraction, frozen, owned
from advmdp.criteria import Criterion
from advmdp.learners.base import Feedback
from advmdp.learners.compiled import CompiledLearner
from advmdp.learners.domains import LOG_MEASURE, LOG_PAIRS, MEASURE, POLICY
from advmdp.learners.epochs import Epochs
from advmdp.learners.groups import Groups
from advmdp.learners.kernels.mirror_descent import Descent
from advmdp.learners.open_episodes import OpenEpisodes
from advmdp.learners.parameters import horizon_of, theory_or
from advmdp.learners.projected import ProjectedLearner, uniform_logarithms
from advmdp.model.by_name import ByName
from advmdp.model.kernels.world import Dynamics
from advmdp.model.mdp import MDP, Trajectory
from advmdp.model.skeleton import Skeleton
from advmdp.planning.optimism import make_plan
from advmdp.projection.projector import ITERATIONS, TOLERANCE, Projector

Ints = NDArray[np.int64]
SUBGRADIENT, IMPORTANCE, UPPER, GROUPED = 0, 1, 2, 3
"""The source of z_t: the whole loss; the path's losses over q_t(x, a), or over u_t(x, a) + gamma; or the groups'."""


class Belief(NamedTuple):
    """The arrays that change from episode to episode."""

    log_q: FloatArray
    q: FloatArray
    log_pairs: FloatArray
    policy: FloatArray
    visits: Ints  # N_i
    new_visits: Ints  # n_i
    new_seen: Ints  # m_i
    log_w: FloatArray  # scratch
    z: FloatArray  # scratch
    chance: FloatArray  # scratch: the divisors of the losses along a path
    delays: FloatArray  # see :mod:`advmdp.learners.open_episodes`


class Steps(NamedTuple):
    """The step eta_t = eta, or eta / sqrt(t) if ``anytime``; the fixed share of the start; and the source of z_t."""

    eta: float
    anytime: bool
    share: float
    log_start: FloatArray
    source: int
    gamma: float
    counting: bool  # whether it counts visits, in epochs
    horizon: int  # 0 if unknown
    groups: Groups | None = None  # transitions observed together


class MirrorDescent(ProjectedLearner[Belief]):
    """A learner that keeps q_t and takes entropic steps within a set."""

    kept: ClassVar = {"log_q": LOG_MEASURE, "q": MEASURE, "log_pairs": LOG_PAIRS, "policy": POLICY}
    remembered: ClassVar = {"q": MEASURE, "log_pairs": LOG_PAIRS, "policy": POLICY}
    _epochs: Epochs
    _rule: Descent

    def __init__(
        self,
        told: Skeleton | MDP,
        horizon: int | None,
        criterion: Criterion | None = None,
        feedback: Feedback | None = None,
        *,
        eta: float | Literal["theory"] = "theory",
        share: float = 0.0,
        threads: int = 1,
    ) -> None:
        """Subclasses call :meth:`_begin` next, when they have set their parameters."""
        super().__init__(told, criterion, feedback)
        self.horizon = None if horizon is None else horizon_of(horizon)
        self.eta = theory_or("eta", eta)
        self.share = fraction("share", share)
        self._projector = Projector(self.skeleton, threads=threads)
        self._threads = threads
        self._epochs, self._open = Epochs(self.skeleton), OpenEpisodes()

    @abstractmethod
    def _theory_eta(self, T: int) -> float:
        """The theory's step size for T episodes."""

    @abstractmethod
    def _new_set(self) -> RowSet:
        """The set of the new epoch."""

    def _log_start(self) -> FloatArray:
        """The logarithms of the measure whose projection is q_1."""
        return uniform_logarithms(self.skeleton)

    def _begin(
        self, source: int = SUBGRADIENT, gamma: float = 0.0, counting: bool = True, groups: Groups | None = None
    ) -> None:
        """Start the first epoch with q_1."""
        self._check_threads()
        sk = self.skeleton
        anytime = isinstance(self.eta, str) and self.horizon is None
        eta = self._theory_eta(self.horizon or 1) if isinstance(self.eta, str) else self.eta
        start = frozen(self._log_start())
        self._steps = Steps(eta, anytime, self.share, start, source, gamma, counting, self.horizon or 0, groups)
        self.counts_visits, self.needs_set = counting, source in (UPPER, GROUPED)
        self._row_set = self._new_set()
        first = self._projector.project(start, self._row_set)
        (log_w, z, chance), counts = apart(sk.num_transitions, sk.num_transitions, sk.num_steps), self._epochs.counts
        self._memory = Belief(
            first.log_q, first.q, first.log_pairs, first.policy, counts.visits, counts.new_visits, counts.new_seen,
            log_w, z, chance, self._open.sums,
        )  # fmt: skip
        plan = make_plan(sk, self._memory.policy)
        self._rule = Descent(self._memory, self._steps, plan, self._projector.workspace, TOLERANCE, ITERATIONS)
        self._rule.within(self._projector.bounds(self._row_set))

    @property
    def log_q(self) -> FloatArray:
        """ln q_t, which stays accurate where q_t underflows."""
        return owned(self._memory.log_q)

    def _update_at_once(self, trajectory: Trajectory, loss: ByName) -> None:
        if self.feedback == "bandit":
            CompiledLearner.update(self, trajectory, loss)
        else:
            super()._update_at_once(trajectory, loss)

    def _project_again(self) -> tuple[int, float]:
        return self._rule.project_again(Dynamics(self.skeleton))

    def _within(self, row_set: RowSet) -> None:
        self._rule.within(self._projector.bounds(row_set))

    def _enter_set(self) -> None:
        """Build the set from the counters, and use it."""
        self._row_set = self._new_set()
        self._within(self._row_set)
