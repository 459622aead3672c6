"""SelfTuning: a mixture of learners inside one confidence set, with nothing to tune.

The set of an epoch, Delta(M, i), is convex in q.  So a mixture of experts whose q_{t,e} lie in the set also lies in it.
With z_t in the subdifferential of f(.; l_t) at the mixture,

    q_t = sum_e p_t(e) q_{t,e}  is in Delta(M, i(t)),
    sum_t f(q_t) - f(u)  <=  sum_t <q_t - q_{t,e}, z_t>  +  sum_t <q_{t,e} - u, z_t>         for every expert e.
                             (the cost of mixing)           (the regret of that expert)

The experts share counts and epochs, which come from the path taken, so the cost of unknown dynamics is that of
UC-O-REPS (Theorem 5.2).  UC-O-REPS has the widest set, which contains the set of the others.  AdaHedge (de Rooij et al.
2014) gives the weights p_t, without a learning rate.  The cost of mixing is at most twice the sum of its mixability
gaps, which is known during play (``mixing_cost``).

One expert is UC-O-REPS with the theory's step, which carries the guarantee.  The others are soft responses
project(q_1 exp(-eta s)) to the sum of all losses, to smoothed losses, to the last loss, and, for each period, to the
mean loss and the last loss at the coming phase.  Their steps have no units and need no horizon:

    eta = a c L / sqrt(sum_s span_s^2)   for sums,   a c L / sqrt(mean of span_s^2)   for the others,
    c = sqrt(ln(|X|^2|A|/L^2)),   span_s = the sum over layers of max z_s - min z_s,

where a is one of a few paces, and spans are capped at ten times the median of the last ones.  docs/selftuning.md has
the derivation.
"""

from collections.abc import Mapping, Sequence
from math import inf, log, sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from advmdp.confidence import L1Ball, RowSet, inside, kinds_for, pointwise_set, recent_counts
from advmdp.core.arrays import FloatArray, apart, frozen, owned, whole
from advmdp.core.errors import InputError
from advmdp.core.threads import check_threads, left_behind, threads_to_use
from advmdp.criteria import Criterion
from advmdp.learners import bounds
from advmdp.learners.base import WEIGHT
from advmdp.learners.domains import State, check_state, episodes_of
from advmdp.learners.episode import checked_losses
from advmdp.learners.epochs import Epochs
from advmdp.learners.kernels.mirror_descent import Descent
from advmdp.learners.kernels.mixture import Mixture
from advmdp.learners.mirror_descent import SUBGRADIENT, Belief, Steps
from advmdp.learners.open_episodes import OpenEpisodes
from advmdp.learners.parameters import between, horizon_of
from advmdp.learners.pool import (
    AGO,
    DESCENT,
    FIRST,
    FOUND,
    HINT,
    KEPT,
    MEAN,
    NUMBER,
    REMEMBERED,
    Pool,
    all_experts,
    chosen_experts,
    make_pool,
)
from advmdp.learners.projected import ProjectedLearner, failed_projection, uniform_logarithms
from advmdp.model.by_name import ByName, loss_vector
from advmdp.model.kernels.world import Dynamics
from advmdp.model.policy import checked_policy
from advmdp.model.skeleton import Skeleton
from advmdp.planning.optimism import make_plan
from advmdp.projection.kernels.memory import Bounds, Layout, Workspace
from advmdp.projection.projector import ITERATIONS, MOST_THREADS, TOLERANCE

VALID = "chernoff"
"""The confidence set of the guarantee."""
LONGEST_PERIOD = 10_000
LARGE = 400_000
"""The number of transitions from which on threads are used by default."""


class SelfTuning(ProjectedLearner[Pool]):
    """A mixture of experts inside one confidence set, with nothing to tune.

    AdaHedge weighs the experts: UC-O-REPS, and soft responses to all, smoothed, last, and periodic losses.

    Parameters
    ----------
    skeleton
        The world without its probabilities.
    horizon
        The number of episodes, if it is known. It sets the step of UC-O-REPS; ``bound`` needs it.
    criterion
        The criterion to minimise; the total loss by default.
    delta
        The guarantee holds with probability 1 - 2 delta.
    guarantee
        True keeps UC-O-REPS in the valid confidence set "chernoff", and the other experts inside it;
        :meth:`Learner.bound` then holds. By default the set is "pointwise": it covers most rows of P but not all at
        once. It learns faster, but no theorem applies.
    periods
        Numbers of episodes after which the losses may repeat: 7 for the days of a week.
    kinds
        A label for each pair. Estimates of pairs with the same label shrink towards each other.
    rules
        Your own policies by name, such as the one in use today. Each becomes an expert, so the mixture is never far
        behind it. :meth:`set_rule` changes one between episodes.
    experts
        The names of the experts to use; all by default.
    window, discount, drift
        For dynamics that change, as in :class:`UCOREPS`.
    threads
        The number of threads that project experts in parallel. The result does not depend on it. By default one, and
        in worlds of 400,000 transitions or more one for each core, or as many as ``OMP_NUM_THREADS`` says.

    Raises
    ------
    InputError
        If a parameter is out of range, or names no expert.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random(layers=[1, 3, 3, 1], actions=2, seed=0)
    >>> learner = am.SelfTuning(mdp.skeleton)
    >>> losses = am.losses.Switching(mdp.skeleton, period=100, seed=1)
    >>> game = am.play(mdp, losses, learner, episodes=300, seed=2)
    >>> game.total_loss < am.play(mdp, losses, am.Uniform(mdp.skeleton), episodes=300, seed=2).total_loss
    True
    """

    optimises = "any"
    kept: ClassVar = KEPT
    added: ClassVar = {"window": None, "discount": None, "drift": 0.0}
    remembered: ClassVar = REMEMBERED
    _epochs: Epochs
    _rule: Mixture

    def __init__(
        self,
        skeleton: Skeleton,
        horizon: int | None = None,
        criterion: Criterion | None = None,
        delta: float = 0.05,
        guarantee: bool = False,
        periods: Sequence[int] = (2, 7),
        kinds: Sequence[int] | None = None,
        rules: Mapping[str, ArrayLike] | None = None,
        experts: Sequence[str] | None = None,
        window: int | None = None,
        discount: float | None = None,
        drift: float = 0.0,
        threads: int | None = None,
    ) -> None:
        super().__init__(skeleton, criterion)
        self.horizon = None if horizon is None else horizon_of(horizon)
        self.delta, self.guarantee = between("delta", delta, 1.0), _flag("guarantee", guarantee)
        self.periods = _periods(periods)
        self._kinds = kinds_for("pointwise", self.skeleton, kinds)
        self.kinds = None if self._kinds is None else list(self._kinds.labels)
        self.window, self.discount, self.drift = window, discount, drift
        self._confidence = "weissman" if self.guarantee else "pointwise"
        self._recent = recent_counts(self.skeleton, window, discount, drift, self._confidence, self._kinds)
        self.rules = _rules(self.skeleton, rules)
        self._threads = None if threads is None else whole("threads", threads, 1, MOST_THREADS)
        self._experts = chosen_experts(all_experts(self.skeleton, self.periods, self.rules), experts)
        self._crew = self._threads or threads_for(self.skeleton, len(self._experts))
        self._epochs, self._open = Epochs(self.skeleton), OpenEpisodes()
        self._memory = make_pool(
            self.skeleton, self._experts, self.periods, self.rules, self._epochs.counts, self._crew
        )
        self._begin()

    @property
    def experts(self) -> list[str]:
        """The names of the experts."""
        return [expert.name for expert in self._experts]

    def _is_default(self, name: str, value: object) -> bool:
        if name == "experts":
            return value == [one.name for one in all_experts(self.skeleton, self.periods, self.rules)]
        return super()._is_default(name, value)

    @property
    def weights(self) -> FloatArray:
        """The weight of each expert in the next episode."""
        return owned(self._memory.weights)

    def marked(self) -> dict[str, float]:
        """The weight of each expert, for the columns ``weight_<expert>`` of ``game.curve``."""
        shares = self._memory.weights.tolist()
        return {f"{WEIGHT}{name}": share for name, share in zip(self.experts, shares, strict=True)}

    @property
    def mixing_cost(self) -> float:
        """AdaHedge's certificate: the believed loss of the mixture exceeds that of any expert by at most this."""
        return 2.0 * float(self._memory.account[0])

    @property
    def believed(self) -> FloatArray:
        """The believed loss of each expert so far: sum_t <q_{t,e}, z_t>, with the minimum of each layer subtracted."""
        return owned(self._memory.believed)

    @property
    def believed_by_mixture(self) -> float:
        """The believed loss of the mixture so far: sum_t <q_t, z_t>, with the minimum of each layer subtracted."""
        return float(self._memory.account[1])

    @property
    def summed(self) -> FloatArray:
        """The sum of all subgradients z_t so far, with the minimum of each layer subtracted."""
        return owned(self._memory.sums[0])

    def hint(self, loss: ByName) -> None:
        """Give a forecast of the next loss, to which one expert responds.

        The forecast is for the next episode only. If forecasts are useless, their expert soon loses its weight.

        Parameters
        ----------
        loss
            The forecast, over transitions.

        Raises
        ------
        InputError
            If there is no expert called "hint", or if the forecast is not a loss.
        """
        if "hint" not in self.experts:
            raise InputError("hint", "a forecast", f"an expert called 'hint' among {', '.join(self.experts)}")
        losses = checked_losses(self.skeleton, loss_vector(self.skeleton, loss)[None])[0]
        if losses.size > self.skeleton.num_transitions:
            raise InputError("hint", f"{losses.shape[1]} losses at once", "one")
        self._check(self._rule.take_hint(Dynamics(self.skeleton), losses.ravel(), self.episode))

    def set_rule(self, name: str, policy: ArrayLike) -> None:
        """Change the policy of one of your rules, from the next episode on.

        Parameters
        ----------
        name
            The name of the rule.
        policy
            One probability for each pair.

        Raises
        ------
        InputError
            If there is no such rule, or if ``policy`` is not a policy.
        """
        if not isinstance(name, str) or name not in self.rules:
            raise InputError("rule", f"{name!r}", f"one of {', '.join(self.rules) or 'none: pass rules= first'}")
        number = list(self.rules).index(name)
        self._memory.rules[number] = checked_policy(self.skeleton, policy)
        self._check(self._rule.take_rules(Dynamics(self.skeleton)))

    def begin(self) -> int:
        number = super().begin()
        for e, expert in enumerate(self._experts):  # a forecast, or a phase of a period, is for one episode
            self._open.spent |= expert.kind in (MEAN, AGO, FOUND) or (expert.kind == HINT and self._memory.awake[e] > 0)
            self._memory.awake[e] = expert.kind != HINT
        return number

    def state(self) -> State:
        return super().state() | ({"numbers": self._memory.numbers.copy()} if self._open.used else {})

    def restore(self, state: State) -> None:
        super().restore(state)
        numbers, lags = self._memory.numbers, len(self._memory.numbers)
        if self._open.used:
            check_state(type(self).__name__, self.skeleton, {"numbers": NUMBER}, {"numbers": numbers}, state)
            numbers[:] = state["numbers"]
        elif lags:  # losses came in order
            last = int(episodes_of(self.skeleton, state) or 0) - 1
            newest = last - (last - np.arange(lags)) % lags
            numbers[:] = np.where(newest >= 0, newest, -1)

    def bound(self, episodes: int) -> float:
        """Bound the regret: Theorem 5.1 for UC-O-REPS, plus AdaHedge's bound on the cost of mixing.

        The cost of mixing is at most S sqrt(T ln K) + 2 S for K experts whose losses differ by at most S in each
        episode. For the criteria of this library, subgradients lie in [0, F] and S = F L. Other criteria may have
        subgradients in [-F, F], and S = 2 F L. docs/selftuning.md has the proof. If losses arrived late,
        ``mixing_cost``, known only afterwards, replaces this bound, and the bound of docs/feedback.md is added.

        Parameters
        ----------
        episodes
            The number of episodes.

        Returns
        -------
        float
            The bound. Infinite without ``guarantee`` or ``horizon``, and for lengths other than the horizon.
        """
        if not self.guarantee or episodes != self.horizon or FIRST not in self.experts:
            return inf
        if not self._is_stationary(self.horizon):
            return inf
        F = self.criterion.lipschitz(self.skeleton)
        most = F * self.skeleton.num_steps * (2.0 if self.criterion.terms is None else 1.0)
        late, total = self._cost_of_delays(episodes, F), bounds.total(self.skeleton, episodes, self.delta, F)
        if not self._open.in_order:
            return total + late + self.mixing_cost
        mixing = most * (sqrt(episodes * log(len(self.experts))) + 2.0) if len(self.experts) > 1 else 0.0
        return total + mixing

    def _begin(self) -> None:
        """Make the rule, start the first epoch, and compute the measures for the first episode."""
        sk, pool = self.skeleton, self._memory
        layout = Layout(sk.layer_ptr, sk.pair_ptr, sk.transition_ptr, sk.successor, 1)
        workspaces = [Workspace(layout) for _ in range(self._crew)]
        table = np.array([[expert.kind, expert.period, expert.first] for expert in self._experts], np.int64)
        paces, log_start = np.array([expert.pace for expert in self._experts]), frozen(uniform_logarithms(sk))
        F = self.criterion.lipschitz(sk)
        eta = bounds.eta(sk, self.horizon or 1, F)
        descent = None
        if self._experts[0].kind == DESCENT:
            steps = Steps(eta, self.horizon is None, 0.0, log_start, SUBGRADIENT, 0.0, False, self.horizon or 0)
            log_w, z, chance = apart(sk.num_transitions, sk.num_transitions, sk.num_steps)
            belief = Belief(
                pool.log_q, pool.measures[0], pool.log_pairs, pool.policies[0], pool.visits, pool.new_visits,
                pool.new_seen, log_w, z, chance, self._open.sums,
            )  # fmt: skip
            plan = make_plan(sk, pool.policies[0])
            descent = Descent(belief, steps, plan, workspaces[0], TOLERANCE, ITERATIONS)
        scale = sk.num_steps * bounds.eta(sk, 1)
        self._rule = Mixture(pool, table, paces, log_start, scale, descent, workspaces, TOLERANCE, ITERATIONS)
        self._enter_set()
        self._check_threads()
        self._check(self._rule.begin(Dynamics(sk)))

    def _enter_set(self) -> None:
        """Build from the counters the set of UC-O-REPS, which contains the mixture, and the set of the others.

        UC-O-REPS is more optimistic than the others, so it retries a pair that misled them if that pair matters.
        """
        sk, counts = self.skeleton, self._epochs.counts
        if self._recent is not None and self._recent.ages:
            self._row_set = self._set_of(self._confidence, self.horizon, self.delta, kinds=self._kinds)
            self._within(self._row_set)
            return
        first, others = (pointwise_set(sk, counts, 1.0, self._kinds, revisit) for revisit in (True, False))
        if self.guarantee:
            valid = self._set_of(VALID, self.horizon, self.delta)
            assert isinstance(valid, L1Ball)
            first, others = valid, inside(sk, others, valid)
        self._row_set = first
        self._rule.within(Bounds(others.bounds(sk)), others.some(sk), Bounds(first.bounds(sk)))

    def _within(self, row_set: RowSet) -> None:
        bounds = Bounds(row_set.bounds(self.skeleton))
        self._rule.within(bounds, row_set.some(self.skeleton), bounds)

    def _project_again(self) -> tuple[int, float]:
        return self._rule.project_again(Dynamics(self.skeleton), self.episode, self._open.stale)

    def _check_threads(self) -> None:
        """If nobody said how many threads, go on with one where a fork left the others behind."""
        if self._threads is None and left_behind():
            self._rule.use_one_thread()
        elif self._crew > 1:
            check_threads()

    def _check(self, status: int) -> None:
        if status:
            raise failed_projection(status, self.episode)


def threads_for(sk: Skeleton, experts: int) -> int:
    """How many threads to use if nobody said: one, except in a large world."""
    return min(threads_to_use(), experts, MOST_THREADS) if sk.num_transitions >= LARGE else 1


def _flag(name: str, value: bool) -> bool:
    if not isinstance(value, bool):
        raise InputError(name, f"{value!r}", "True or False")
    return value


def _rules(sk: Skeleton, given: Mapping[str, ArrayLike] | None) -> dict[str, list[float]]:
    if given is not None and not isinstance(given, Mapping):
        raise InputError("rules", f"{given!r}", "a dictionary of policies by name")
    return {str(name): checked_policy(sk, policy).tolist() for name, policy in (given or {}).items()}


def _periods(values: Sequence[int]) -> tuple[int, ...]:
    if not isinstance(values, list | tuple):
        raise InputError("periods", f"{values!r}", "numbers of episodes, such as (7,)")
    periods = tuple(whole("periods", value, 2, LONGEST_PERIOD) for value in values)
    if len(set(periods)) < len(periods):
        raise InputError("periods", f"{periods}", "each period once")
    return periods
