"""SelfTuning: several learners inside one confidence set, mixed while they play, so that nobody has to choose.

The set of an epoch, Delta(M, i), is convex in q.  So experts whose q_{t,e} lie in it can be mixed, and with z_t in the
subdifferential of f(.; l_t) at the mixture,

    q_t = sum_e p_t(e) q_{t,e}  is in Delta(M, i(t)),
    sum_t f(q_t) - f(u)  <=  sum_t <q_t - q_{t,e}, z_t>  +  sum_t <q_{t,e} - u, z_t>         for every expert e.
                             (what mixing costs)            (the regret of that expert)

The counts and the epochs are shared, and are those of the path that was taken; so what unknown dynamics cost is what
they cost UC-O-REPS (Theorem 5.2).  It has the widest set; that of the others lies in it.  Weights p_t come from
AdaHedge (de Rooij et al. 2014), which has no learning rate: what mixing costs is at most twice the sum of its
mixability gaps, and that is known while playing (``mixing_cost``).

The experts.  One is UC-O-REPS with the theory's step; it carries the guarantee.  The others are soft responses
project(q_1 exp(-eta s)) to the sum of all losses, to smoothed losses, to the last loss, and for each period to the mean
loss and to the last loss at the coming phase.  Their steps have no units and need no horizon:

    eta = a c L / sqrt(sum_s span_s^2)   for sums,   a c L / sqrt(mean of span_s^2)   for the others,
    c = sqrt(ln(|X|^2|A|/L^2)),   span_s = the sum over layers of max z_s - min z_s,

where an episode whose span is above ten times the median of the last ones counts as ten medians, and a is one of a few
paces.  docs/selftuning.md has the derivation.
"""

from collections.abc import Mapping, Sequence
from math import inf, log, sqrt
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.confidence import L1Ball, confidence_set, inside, kinds_for, pointwise_set
from advmdp.core.arrays import FloatArray, apart, floats, frozen, owned, whole
from advmdp.core.errors import InputError
from advmdp.criteria import Criterion
from advmdp.learners import bounds
from advmdp.learners.base import WEIGHT
from advmdp.learners.domains import LARGEST_SCORE, MEASURE, POLICY, SLACK, Domain, State, is_log
from advmdp.learners.episode import checked_losses
from advmdp.learners.epochs import Epochs
from advmdp.learners.kernels.mirror_descent import Descent
from advmdp.learners.kernels.mixture import Mixture
from advmdp.learners.mirror_descent import SUBGRADIENT, Belief, Steps
from advmdp.learners.parameters import between, horizon_of
from advmdp.learners.projected import ProjectedLearner, failed_projection, uniform_logarithms
from advmdp.model.kernels.world import Dynamics
from advmdp.model.occupancy import flow_residuals
from advmdp.model.policy import checked_policy
from advmdp.model.skeleton import Skeleton
from advmdp.planning.optimism import make_plan
from advmdp.projection.kernels.memory import Bounds, Layout, Workspace
from advmdp.projection.projector import ITERATIONS, MOST_THREADS, TOLERANCE

DESCENT, CUMULATIVE, DISCOUNTED, LAST, MEAN, AGO, RULE, HINT, FOUND = range(9)
"""What an expert responds to."""
PACES = {
    "all": (CUMULATIVE, (4.0, 16.0, 64.0, 256.0)),
    "smoothed": (DISCOUNTED, (10.0, 100.0)),
    "last": (LAST, (10.0, 100.0)),
}
"""The losses that an expert responds to, and the paces of those that do."""
SEASONAL_PACES = {"mean": (MEAN, (100.0,)), "last": (AGO, (100.0,))}
FOUND_PACES = (100.0,)
HINT_PACE = 100.0
FIRST = "UC-O-REPS"
"""The expert that carries the guarantee."""
VALID = "chernoff"
"""The set of the guarantee."""
SPANS = 25
"""Episodes whose median span says what is usual."""
LONGEST_PERIOD = 10_000
MOST_LAGS = 512
MOST_KEPT = 2**18
"""Entries of the last losses that are kept, to find periods in them."""
ROOM = 64
"""Numbers between the arrays of a thread, as in :func:`advmdp.core.arrays.apart`."""


class Expert(NamedTuple):
    """What it is called, what it responds to, at which pace, and where that is among the arrays."""

    name: str
    kind: int
    pace: float = 0.0
    period: int = 1
    first: int = 0


class Pool(NamedTuple):
    """The arrays of the mixture: a row for each expert, each kind of loss, each phase of a period."""

    q: FloatArray
    policy: FloatArray
    measures: FloatArray  # (K, n): q_e
    policies: FloatArray  # (K, pairs)
    betas: FloatArray  # (K, states): where projections begin
    sums: FloatArray  # (5, n): all losses, smoothed, the last, the forecast, the prediction by lag
    means: FloatArray  # (phases, n)
    ago: FloatArray  # (phases, n)
    rules: FloatArray  # (rules, pairs)
    believed: FloatArray  # (K,): what each would have paid
    weights: FloatArray  # (K,)
    account: FloatArray  # (3,): the mixability gaps, what the mixture would have paid, squared spans
    spans: FloatArray
    past: FloatArray  # (lags, n): the last losses
    errors: FloatArray  # (2, lags + 1): of the prediction by each lag, and how many these are
    awake: NDArray[np.int64]  # (K,)
    log_q: FloatArray  # of UC-O-REPS
    log_pairs: FloatArray
    z: FloatArray  # scratch from here on
    reduced: FloatArray
    mass: FloatArray
    losses: FloatArray
    gaps: FloatArray
    scratch: FloatArray
    visits: NDArray[np.int64]
    new_visits: NDArray[np.int64]
    new_seen: NDArray[np.int64]


def _rows_are_policies(sk: Skeleton, state: State, name: str) -> NDArray[np.bool_]:
    totals = np.add.reduceat(state[name], sk.pair_ptr[:-2], axis=1)
    return np.repeat(np.abs(totals - 1.0) <= SLACK, np.diff(sk.pair_ptr)[:-1], axis=1)


def _rows_flow(sk: Skeleton, state: State, name: str) -> NDArray[np.bool_]:
    fits = [flow_residuals(sk, row).largest <= SLACK for row in state[name]]
    return np.repeat(np.array(fits)[:, None], sk.num_transitions, axis=1)


def _is_log_of_first(sk: Skeleton, state: State, name: str) -> NDArray[np.bool_]:
    first = state["measures"][0]
    return is_log(state[name], first if name == "log_q" else np.add.reduceat(first, sk.transition_ptr[:-1]))


def _sum_to_one(sk: Skeleton, state: State, name: str) -> NDArray[np.bool_]:
    return np.full(state[name].shape, abs(state[name].sum() - 1.0) <= SLACK)


MEASURES = Domain("occupancy measures, one for each expert", 0.0, 1.0 + SLACK, _rows_flow)
POLICIES = Domain("policies, one in each row", 0.0, 1.0 + SLACK, _rows_are_policies)
START = Domain("a number that projections can begin with", -LARGEST_SCORE, LARGEST_SCORE)
RECORD = Domain("losses less the least of their layer, or sums of such", 0.0, LARGEST_SCORE)
WEIGHTS = Domain("weights that sum to 1", 0.0, 1.0 + SLACK, _sum_to_one)
FLAG = Domain("0 or 1", 0, 1)
LOG_FIRST = Domain("a logarithm of the first measure", -np.inf, SLACK, _is_log_of_first)


class SelfTuning(ProjectedLearner[Pool]):
    """Experts inside one confidence set, mixed by AdaHedge; nothing needs to be chosen.

    Parameters
    ----------
    skeleton
        The world without its probabilities.
    horizon
        The number of episodes, if it is known. Only the guarantee uses it.
    criterion
        What is to be small; the total loss by default.
    delta
        The guarantee holds with probability 1 - 2 delta.
    guarantee
        True keeps UC-O-REPS in the confidence set "chernoff", which holds P, and the other experts inside it, and
        :meth:`bound` holds. By default the set is "pointwise": it covers most rows of P, not all at once; no theorem
        holds.
    periods
        The losses may repeat after so many episodes: 7 for the days of a week.
    kinds
        An integer label for each pair (x, a). Estimates of pairs with the same label shrink towards what they have in
        common.
    rules
        Policies of your own, by name: what is done today, for example. Each joins the pool, so the mixture is never far
        behind it. :meth:`set_rule` changes one between episodes.
    experts
        The names of the experts to use; all of them by default.
    threads
        How many project the experts side by side. They change only the time, and are not saved.

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
    kept: ClassVar = {
        "q": MEASURE, "policy": POLICY, "measures": MEASURES, "policies": POLICIES, "betas": START, "sums": RECORD,
        "means": RECORD, "ago": RECORD, "rules": POLICIES, "believed": RECORD, "weights": WEIGHTS, "account": RECORD,
        "spans": RECORD, "past": RECORD, "errors": RECORD, "awake": FLAG, "log_q": LOG_FIRST, "log_pairs": LOG_FIRST,
    }  # fmt: skip
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
        threads: int = 1,
    ) -> None:
        super().__init__(skeleton, criterion)
        self.horizon = None if horizon is None else horizon_of(horizon)
        self.delta, self.guarantee = between("delta", delta, 1.0), _flag("guarantee", guarantee)
        self.periods = _periods(periods)
        self._kinds = kinds_for("pointwise", self.skeleton, kinds)
        self.kinds = None if self._kinds is None else list(self._kinds.labels)
        self.rules = {
            str(name): checked_policy(self.skeleton, policy).tolist() for name, policy in (rules or {}).items()
        }
        self._threads = whole("threads", threads, 1, MOST_THREADS)
        self._experts = _chosen(_all_experts(self.skeleton, self.periods, self.rules), experts)
        self._epochs = Epochs(self.skeleton)
        self._make_pool()
        self._begin()

    @property
    def experts(self) -> list[str]:
        """The names of the experts."""
        return [expert.name for expert in self._experts]

    @property
    def weights(self) -> FloatArray:
        """The share of each expert in the next episode."""
        return owned(self._memory.weights)

    def marked(self) -> dict[str, float]:
        """The weight of each expert, for the columns ``weight_<expert>`` of ``game.curve``."""
        shares = self._memory.weights.tolist()
        return {f"{WEIGHT}{name}": share for name, share in zip(self.experts, shares, strict=True)}

    @property
    def mixing_cost(self) -> float:
        """AdaHedge's certificate: the mixture has believed to pay at most this much more than any expert."""
        return 2.0 * float(self._memory.account[0])

    @property
    def believed(self) -> FloatArray:
        """What each expert has believed to pay so far, sum_t <q_{t,e}, z_t> less the least of every layer."""
        return owned(self._memory.believed)

    @property
    def believed_by_mixture(self) -> float:
        """The same of the mixture."""
        return float(self._memory.account[1])

    @property
    def summed(self) -> FloatArray:
        """The sum of all subgradients z_t so far, less the least of every layer."""
        return owned(self._memory.sums[0])

    def hint(self, loss: ArrayLike) -> None:
        """Take a forecast of the loss of the coming episode into account; one more expert responds to it.

        It counts in this episode only. A useless forecast soon has no weight.
        """
        if "hint" not in self.experts:
            raise InputError("hint", "a forecast", f"an expert called 'hint' among {', '.join(self.experts)}")
        losses = checked_losses(self.skeleton, floats(loss, "hint")[None])[0]
        if losses.size > self.skeleton.num_transitions:
            raise InputError("hint", f"{losses.shape[1]} losses at once", "one")
        self._check(self._rule.take_hint(Dynamics(self.skeleton), losses.ravel(), self.episode))

    def set_rule(self, name: str, policy: ArrayLike) -> None:
        """Change the policy of a rule of your own, from the coming episode on."""
        if name not in self.rules:
            raise InputError("rule", f"{name!r}", f"one of {', '.join(self.rules) or 'none: rules= names them'}")
        number = list(self.rules).index(name)
        self._memory.rules[number] = checked_policy(self.skeleton, policy)
        self._check(self._rule.take_rules(Dynamics(self.skeleton)))

    def bound(self, episodes: int) -> float:
        """Theorem 5.1 for UC-O-REPS, and what AdaHedge pays at most for mixing it with the others.

        That is S sqrt(T ln K) + 2 S for K experts whose losses of an episode differ by at most S. For the criteria of
        this library subgradients lie in [0, F], and S = F L; others may have them in [-F, F], and S = 2 F L.
        docs/selftuning.md has the proof. Infinite without ``guarantee`` and ``horizon``, and for other lengths.
        """
        if not self.guarantee or episodes != self.horizon or FIRST not in self.experts:
            return inf
        F = self.criterion.lipschitz(self.skeleton)
        most = F * self.skeleton.num_steps * (2.0 if self.criterion.terms is None else 1.0)
        mixing = most * (sqrt(episodes * log(len(self.experts))) + 2.0) if len(self.experts) > 1 else 0.0
        return bounds.total(self.skeleton, episodes, self.delta, F) + mixing

    def _make_pool(self) -> None:
        """The arrays, each with room around it."""
        sk, K = self.skeleton, len(self._experts)
        n, pairs, states, phases = sk.num_transitions, sk.num_pairs, sk.num_states, sum(self.periods)
        lags = _lags(sk) if any(expert.kind == FOUND for expert in self._experts) else 0
        shapes: dict[str, tuple[int, ...]] = {
            "q": (n,), "policy": (pairs,), "measures": (K, n), "policies": (K, pairs), "betas": (K, states),
            "sums": (5, n), "means": (phases, n), "ago": (phases, n), "rules": (len(self.rules), pairs),
            "believed": (K,), "weights": (K,), "account": (3,), "spans": (SPANS,), "past": (lags, n),
            "errors": (2, lags + 1), "log_q": (n,), "log_pairs": (pairs,),
            "z": (n,), "reduced": (n,), "mass": (self._threads * states,), "losses": (K,), "gaps": (K,),
            "scratch": (self._threads, 2 * n + pairs + 3 * ROOM),
        }  # fmt: skip
        flat = apart(*(int(np.prod(shape)) for shape in shapes.values()))
        arrays = {name: array.reshape(shape) for (name, shape), array in zip(shapes.items(), flat, strict=True)}
        counts = self._epochs.counts
        awake = np.array([expert.kind != HINT for expert in self._experts], np.int64)
        arrays["rules"][:] = np.array(list(self.rules.values())).reshape(arrays["rules"].shape)
        self._memory = Pool(
            **arrays, awake=awake, visits=counts.visits, new_visits=counts.new_visits, new_seen=counts.new_seen
        )

    def _begin(self) -> None:
        """The rule, the first epoch, and the measures for the first episode."""
        sk, pool = self.skeleton, self._memory
        layout = Layout(sk.layer_ptr, sk.pair_ptr, sk.transition_ptr, sk.successor, 1)
        workspaces = [Workspace(layout) for _ in range(self._threads)]
        table = np.array([[expert.kind, expert.period, expert.first] for expert in self._experts], np.int64)
        paces, log_start = np.array([expert.pace for expert in self._experts]), frozen(uniform_logarithms(sk))
        F = self.criterion.lipschitz(sk)
        eta = bounds.eta(sk, self.horizon or 1, F)
        descent = None
        if self._experts[0].kind == DESCENT:
            steps = Steps(eta, self.horizon is None, 0.0, log_start, SUBGRADIENT, 0.0, False)
            log_w, z, chance = apart(sk.num_transitions, sk.num_transitions, sk.num_steps)
            belief = Belief(
                pool.log_q, pool.measures[0], pool.log_pairs, pool.policies[0], pool.visits, pool.new_visits,
                pool.new_seen, log_w, z, chance,
            )  # fmt: skip
            plan = make_plan(sk, pool.policies[0])
            descent = Descent(belief, steps, plan, workspaces[0], TOLERANCE, ITERATIONS)
        scale = sk.num_steps * bounds.eta(sk, 1)
        self._rule = Mixture(pool, table, paces, log_start, scale, descent, workspaces, TOLERANCE, ITERATIONS)
        self._enter_set()
        self._check(self._rule.begin(Dynamics(sk)))

    def _enter_set(self) -> None:
        """Take the sets that the counters make: that of UC-O-REPS, in which the mixture is, and that of the others.

        UC-O-REPS may hope for more than the others, so that a pair which misled them is tried again where it matters.
        """
        sk, counts = self.skeleton, self._epochs.counts
        first, others = (pointwise_set(sk, counts, 1.0, self._kinds, revisit) for revisit in (True, False))
        if self.guarantee:
            valid = confidence_set(VALID, sk, counts, self.horizon, self.delta)
            assert isinstance(valid, L1Ball)
            first, others = valid, inside(sk, others, valid)
        self._row_set = first
        self._rule.within(Bounds(others.bounds(sk)), others.some(sk), Bounds(first.bounds(sk)))

    def _check(self, status: int) -> None:
        if status:
            raise failed_projection(status, self.episode)


def _lags(sk: Skeleton) -> int:
    """How many of the last losses are kept, and so the longest period that can be found."""
    return min(MOST_LAGS, MOST_KEPT // sk.num_transitions)


def _all_experts(sk: Skeleton, periods: tuple[int, ...], rules: Mapping[str, object]) -> list[Expert]:
    """UC-O-REPS, the responses to all, smoothed and last losses, those of each period, the rules, and the hint."""
    pool = [Expert(FIRST, DESCENT)]
    for name, (kind, paces) in PACES.items():
        pool += [Expert(f"{name} x{pace:g}", kind, pace) for pace in paces]
    first = 0
    for period in periods:
        for name, (kind, paces) in SEASONAL_PACES.items():
            pool += [Expert(f"{name} of {period} x{pace:g}", kind, pace, period, first) for pace in paces]
        first += period
    if _lags(sk) > 1:
        pool += [Expert(f"found x{pace:g}", FOUND, pace) for pace in FOUND_PACES]
    pool += [Expert(f"rule {name}", RULE, first=number) for number, name in enumerate(rules)]
    return [*pool, Expert("hint", HINT, HINT_PACE)]


def _chosen(pool: list[Expert], names: Sequence[str] | None) -> list[Expert]:
    """Those that are named, in the order of the pool."""
    if names is None:
        return pool
    known = [expert.name for expert in pool]
    if isinstance(names, str) or not names or any(name not in known for name in names):
        raise InputError("experts", f"{names!r}", f"some of {', '.join(known)}")
    return [expert for expert in pool if expert.name in names]


def _flag(name: str, value: bool) -> bool:
    if not isinstance(value, bool):
        raise InputError(name, f"{value!r}", "True or False")
    return value


def _periods(values: Sequence[int]) -> tuple[int, ...]:
    if not isinstance(values, list | tuple):
        raise InputError("periods", f"{values!r}", "numbers of episodes, such as (7,)")
    periods = tuple(whole("periods", value, 2, LONGEST_PERIOD) for value in values)
    if len(set(periods)) < len(periods):
        raise InputError("periods", f"{periods}", "each period once")
    return periods
