"""UC-O-REPS, Upper Confidence Online Relative Entropy Policy Search: Algorithms 2 and 3 of Rosenberg & Mansour (2019).

Knows the skeleton, sees the whole loss after each episode, handles any convex criterion f.  With q_1 uniform,

    traverse U_t under pi_t, observe l_t;  count;  if some pair of U_t has n_i(x, a) >= max(1, N_i(x, a)): a new epoch
    z_t in the subdifferential of f(.; l_t) at q_t
    q_{t+1} = argmin over q in Delta(M, i(t+1)) of  eta <q, z_t> + D(q || q_t)      [the projection, certified]
    pi_{t+1} = pi^{q_{t+1}}

with Delta(M, i) the set of Section 4.1 around the estimates of epoch i, and eta = sqrt(ln(|X|^2|A|/L^2) / (F^2 T)).
Guarantee (Theorem 5.1): regret at most 15 F L|X| sqrt(T |A| ln(T|X||A|/delta)), with probability 1 - 2 delta.

Where the paper cannot be taken literally, docs/errata.md says what is done: the epoch test (item 2), the set of the
epoch to be played (4), pairs without visits (5).  In a skeleton that is not dense, where the uniform measure is none of
its occupancy measures, q_1 is the one closest to it.  What makes it work at real horizons is in its parameters.
"""

from math import inf
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp import bounds
from advmdp.arrays import FloatArray, floats, fraction, frozen, owned, taken, whole
from advmdp.compiled import compiled
from advmdp.confidence import Counts, RowSet, bernstein_set, l1_set
from advmdp.criteria import Criterion, TotalLoss, evaluate_terms
from advmdp.errors import InputError, ProjectionError
from advmdp.learners.base import Learner
from advmdp.learners.episode import Block, World, checked_losses, enter, given_block, no_world
from advmdp.mdp import Trajectory
from advmdp.policy import checked_policy
from advmdp.projection.projector import ITERATIONS, TOLERANCE, Projector
from advmdp.projection.solver import SOLVED, solve
from advmdp.projection.types import BETA, RowSets, Structure, Workspace
from advmdp.skeleton import Skeleton

__all__ = ["UCOREPS"]

Ints = NDArray[np.int64]
LINEAR = TotalLoss().terms
LEARNED = ("log_q", "q", "log_pairs", "policy")
COUNTED = ("visits", "new_visits", "seen", "new_seen")
DONE, NEW_EPOCH, UNSOLVED = 0, 1, 2


class Belief(NamedTuple):
    """What changes from episode to episode."""

    log_q: FloatArray
    q: FloatArray
    log_pairs: FloatArray
    policy: FloatArray
    visits: Ints  # N_i
    new_visits: Ints  # n_i
    new_seen: Ints  # m_i
    log_w: FloatArray  # scratch
    weights: FloatArray  # the same, read-only, as the projection takes them
    z: FloatArray  # scratch


class Steps(NamedTuple):
    """eta_t = eta or, any time, eta / sqrt(t); and the fixed share, with the logarithms that it mixes."""

    eta: float
    anytime: bool
    share: float
    log_start: FloatArray


class UCOREPS(Learner):
    """UC-O-REPS.

    ``horizon`` is T.  Unless it is known, leave it out: eta becomes sqrt(ln(|X|^2|A|/L^2) / (F^2 t)) in episode t, what
    that takes away from earlier losses is handed back to q_1 (dual stabilisation, Fang et al. 2020; for one state it is
    Hedge with a falling step), and the radii replace T by N (N + 1), which makes Lemma 4.1 true for all times at once.
    Then R^ON is of order sqrt(t) for every t.

    ``eta``, a number, instead of "theory": Theorem 5.3 holds for any, and :func:`advmdp.bounds.online` says what it
    promises.  The theory's is made for the worst case; ten times as much often learns faster.

    ``confidence`` "l1" is the paper's set; "bernstein" bounds every probability on its own, tighter where rows have few
    likely successors, and holds with probability 1 - 4 delta.  ``successors`` "possible" counts in the radius only
    the successors that the skeleton allows instead of the whole next layer: as valid, since no other can occur, and
    never worse.  ``confidence_scale`` multiplies radii and widths.  Below 1 the sets may miss the truth and the
    theorems no longer apply; 0.1 to 0.3 is what usually pays at horizons people run.

    ``share`` mixes this fraction of q_1 into the weights before each projection, so that nothing is ever forgotten for
    good: for losses whose best policy moves.  About one over the number of episodes between moves is right.  Against a
    fixed policy it may cost L T (ln(1 / (1 - share)) / eta + share F) more.

    ``threads`` share a projection from 400,000 transitions on, as :class:`advmdp.Projector` says; they change nothing
    but the time, and are not saved.
    """

    optimises = "any"

    def __init__(
        self,
        skeleton: Skeleton,
        horizon: int | None = None,
        criterion: Criterion | None = None,
        eta: float | Literal["theory"] = "theory",
        delta: float = 0.05,
        confidence: Literal["l1", "bernstein"] = "l1",
        confidence_scale: float = 1.0,
        successors: Literal["layer", "possible"] = "layer",
        share: float = 0.0,
        threads: int = 1,
    ) -> None:
        super().__init__(skeleton, criterion)
        self.horizon = None if horizon is None else whole("horizon", horizon, 1)
        self.delta = _between("delta", delta, 1.0)
        self.confidence = _one_of("confidence", confidence, ("l1", "bernstein"))
        self.confidence_scale = _between("confidence_scale", confidence_scale, np.inf)
        self.successors = _one_of("successors", successors, ("layer", "possible"))
        self.share = fraction("share", share)
        self.eta: float | str = "theory" if eta == "theory" else _between("eta", eta, np.inf)
        self._steps = self._schedule()
        self._projector = Projector(skeleton, threads=threads)
        self._counts = Counts(skeleton)
        self._begin()

    def _schedule(self) -> Steps:
        sk, anytime = self.skeleton, False
        eta = self.eta
        if isinstance(eta, str):
            anytime = self.horizon is None
            eta = bounds.eta(sk, self.horizon or 1, self.criterion.lipschitz(sk))
        widths = np.diff(sk.layer_transition_ptr)
        return Steps(eta, anytime, self.share, frozen(np.repeat(-np.log(widths), widths)))

    def _begin(self) -> None:
        """q_1, and the first epoch, in which nothing is known."""
        sk = self.skeleton
        self._rows = self._new_set()
        start = self._projector.project(self._steps.log_start, self._rows)
        log_w = np.empty(sk.num_transitions)
        counts = self._counts
        self._belief = Belief(
            start.log_q.copy(), start.q.copy(), start.log_pairs.copy(), start.policy.copy(), counts.visits,
            counts.new_visits, counts.new_seen, log_w, frozen(log_w), np.empty(sk.num_transitions),
        )  # fmt: skip

    def _new_set(self) -> RowSet:
        """Delta(M, i) for the epoch that begins."""
        sk, counts = self.skeleton, self._counts
        visits = np.maximum(1.0, counts.visits)
        times = visits * (visits + 1.0) if self.horizon is None else float(self.horizon)
        log_term = np.log(times * sk.num_states * sk.num_actions / self.delta)
        if self.confidence == "bernstein":
            return bernstein_set(sk, counts, log_term, self.confidence_scale)
        return l1_set(sk, counts, log_term, self.confidence_scale, self.successors == "possible")

    @property
    def policy(self) -> FloatArray:
        return owned(self._belief.policy)

    @property
    def q(self) -> FloatArray:
        """q_t, whose policy is played next."""
        return owned(self._belief.q)

    @property
    def log_q(self) -> FloatArray:
        """ln q_t, which keeps its meaning where q_t underflows."""
        return owned(self._belief.log_q)

    @property
    def rows(self) -> RowSet:
        """The confidence set of this epoch."""
        return self._rows

    @property
    def counts(self) -> Counts:
        """The counters N_i, M_i, n_i and m_i."""
        return self._counts

    @property
    def epochs(self) -> int:
        return self._counts.epoch

    def bound(self, episodes: int) -> float:
        """Theorem 5.1 as printed; infinite with parameters for which it does not hold.

        It is about the whole game: ``episodes`` must be the horizon, for which eta and the radii are made.
        """
        sets = self.confidence == "l1" and self.confidence_scale == 1.0
        if not sets or self.eta != "theory" or self.share > 0.0 or episodes != self.horizon:
            return inf
        return bounds.total(self.skeleton, episodes, self.delta, self.criterion.lipschitz(self.skeleton))

    def update(self, trajectory: Trajectory, loss: ArrayLike) -> None:
        sk, terms = self.skeleton, self.criterion.terms
        losses = checked_losses(sk, floats(loss, "loss")[None])[0]
        if terms is None:
            # A criterion in Python gives its subgradient here; a linear one with that gradient does the rest.
            losses, terms = self.criterion.subgradient(sk, self.q, losses), LINEAR
        elif losses.size > sk.num_transitions and not self.criterion.takes_several:
            raise InputError(f"loss for {self.criterion!r}", f"{losses.shape[1]} losses at once", "one")
        self._learn(no_world(sk), given_block(sk, trajectory, losses, terms), terms)

    @property
    def compiled(self) -> bool:
        return self.criterion.terms is not None

    def play_block(self, world: World, block: Block) -> None:
        assert self.criterion.terms is not None
        self._learn(world, block, self.criterion.terms)

    def _learn(self, world: World, block: Block, terms: FloatArray) -> None:
        """All episodes of a block.  The kernel comes back where an epoch ends, for the set of the next."""
        b, status = 0, DONE
        projector = self._projector
        while b < len(block.losses):
            b, status = run(
                world, block, projector.structure, projector.bounds(self._rows), projector.memory, self._belief,
                frozen(terms), self._steps, self.episode, b, status == NEW_EPOCH,
            )  # fmt: skip
            if status == UNSOLVED:
                raise ProjectionError(f"the projection after episode {self.episode + b} is not solved to {TOLERANCE:g}")
            if status == NEW_EPOCH:
                self._counts.next_epoch()
                self._rows = self._new_set()
        self.episode += len(block.losses)
        self.gap = float(block.gap[-1])

    @property
    def parameters(self) -> dict[str, Any]:
        names = ("horizon", "eta", "delta", "confidence", "confidence_scale", "successors", "share")
        return {name: getattr(self, name) for name in names}

    def state(self) -> dict[str, NDArray[Any]]:
        counts, belief = self._counts, self._belief
        learned = {name: getattr(belief, name).copy() for name in LEARNED}
        counted = {name: getattr(counts, name).copy() for name in COUNTED}
        return {**learned, **counted, "epoch": np.array(counts.epoch)}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        counts = self._counts
        checked_policy(self.skeleton, state["policy"])
        for name in LEARNED:
            taken(getattr(self._belief, name), state[name], name)
        for name in COUNTED:
            taken(getattr(counts, name), state[name], name)
        counts.epoch = whole("epoch", int(state["epoch"]), 1)
        self._rows = self._new_set()


@compiled
def run(
    world: World, block: Block, structure: Structure, sets: RowSets, memory: Workspace, belief: Belief,
    terms: FloatArray, steps: Steps, episode: int, b: int, counted: bool,
) -> tuple[int, int]:  # fmt: skip
    """Episodes b, b + 1, ... of the block; ``counted`` says that of b only the step is left to take.

    Returns the episode at which it stopped and why.
    """
    other = not np.array_equal(terms, block.account)
    while b < len(block.losses):
        if not counted:
            enter(world, block, b, belief.policy)
            if count_path(belief, block.pairs[b], block.transitions[b]):
                return b, NEW_EPOCH
        counted = False
        block.believed[b] = evaluate_terms(terms, world.layer_transition_ptr, belief.q, block.losses[b], belief.z)
        if other:
            block.believed[b] = evaluate_terms(
                block.account, world.layer_transition_ptr, belief.q, block.losses[b], block.z
            )
        weigh(belief, steps, episode + b)
        memory.states[BETA][:] = 0.0
        status, _, block.gap[b], _, _, _ = solve(
            structure, belief.weights, sets, memory, belief.log_q, belief.q, belief.log_pairs, belief.policy, TOLERANCE,
            ITERATIONS,
        )  # fmt: skip
        if status != SOLVED:
            return b, UNSOLVED
        b += 1
    return b, DONE


@compiled
def count_path(belief: Belief, pairs: Ints, transitions: Ints) -> bool:
    """Count the pairs and transitions of a trajectory; whether one of its pairs has doubled its visits."""
    over = False
    for k in range(len(pairs)):
        belief.new_visits[pairs[k]] += 1
        belief.new_seen[transitions[k]] += 1
        over = over or belief.new_visits[pairs[k]] >= max(1, belief.visits[pairs[k]])
    return over


@compiled
def weigh(belief: Belief, steps: Steps, t: int) -> None:
    """log w = log q - eta z, with a fixed share of q_1 where asked for."""
    eta, keep = steps.eta, 1.0
    if steps.anytime:
        # A falling eta alone would remember early losses for ever; what it loses is handed back to q_1.
        eta, keep = steps.eta / np.sqrt(t + 1.0), np.sqrt((t + 1.0) / (t + 2.0))
    for i in range(len(belief.z)):
        belief.log_w[i] = keep * (belief.log_q[i] - eta * belief.z[i]) + (1.0 - keep) * steps.log_start[i]
    if steps.share > 0.0:
        stay, back = np.log1p(-steps.share), np.log(steps.share)
        for i in range(len(belief.z)):
            belief.log_w[i] = np.logaddexp(stay + belief.log_w[i], back + steps.log_start[i])


def _between(name: str, value: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0.0 < float(value) < most:
        raise InputError(name, f"{value!r}", f"a number above 0 and below {most:g}")
    return float(value)


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise InputError(name, f"{value!r}", f"one of {', '.join(choices)}")
    return value
