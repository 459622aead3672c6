"""Online mirror descent over occupancy measures, with the relative entropy: what O-REPS and its kin share.

    z_t in the subdifferential of f(.; l_t) at q_t,  or an estimate of l_t from the losses along the path
    q_{t+1} = argmin over q in the set of  <q, z_t> eta + D(q || q_t)               [the projection, certified]
    pi_{t+1} = pi^{q_{t+1}}

The learners differ in the set (rows in an L1 ball, in a box, or known) and in z_t.  Everything is in log domain.

Where no horizon is given, eta becomes eta_1 / sqrt(t) in episode t and what that takes away from earlier losses is
handed back to q_1 (dual stabilisation, Fang et al. 2020; for one state it is Hedge with a falling step).
"""

from abc import abstractmethod
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.confidence import RowSet, count_path
from advmdp.confidence.sets import RowSets
from advmdp.core.arrays import FloatArray, apart, floats, fraction, frozen, owned
from advmdp.core.compiling import check_threads, compiled
from advmdp.core.errors import InputError, ProjectionError
from advmdp.criteria import Criterion, evaluate_terms
from advmdp.learners.base import Feedback
from advmdp.learners.compiled import TOTAL, CompiledLearner
from advmdp.learners.domains import LOG_MEASURE, LOG_PAIRS, MEASURE, POLICY, State
from advmdp.learners.episode import Block, checked_losses, enter, given_block, reveal
from advmdp.learners.epochs import Epochs
from advmdp.learners.importance import estimate
from advmdp.learners.parameters import horizon_of, theory_or
from advmdp.model.dynamics import Dynamics, unknown_dynamics
from advmdp.model.mdp import MDP, Trajectory
from advmdp.model.skeleton import Skeleton
from advmdp.planning.optimism import Plan, largest_reach, make_plan
from advmdp.projection.kernels.solver import SOLVED, solve
from advmdp.projection.kernels.types import BETA, Structure, Workspace
from advmdp.projection.projector import ITERATIONS, TOLERANCE, Projector
from advmdp.projection.status import Status

Ints = NDArray[np.int64]
NEW_EPOCH = -1
"""That an epoch is over, beside the statuses of a projection."""
SUBGRADIENT, IMPORTANCE, UPPER = 0, 1, 2
"""Where z_t comes from: the whole loss; the path's losses over q_t(x, a); or over u_t(x, a) + gamma."""


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
    chance: FloatArray  # scratch: what the losses along a path are divided by


class Steps(NamedTuple):
    """eta_t = eta or, any time, eta / sqrt(t); the fixed share, with the logarithms that it mixes; and whence z_t."""

    eta: float
    anytime: bool
    share: float
    log_start: FloatArray
    source: int
    gamma: float
    counting: bool  # whether visits are counted, in epochs


class MirrorDescent(CompiledLearner[Belief]):
    """Keeps q_t, and takes entropic steps within a set."""

    kept: ClassVar = {"log_q": LOG_MEASURE, "q": MEASURE, "log_pairs": LOG_PAIRS, "policy": POLICY}
    _epochs: Epochs

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
        """To be followed by :meth:`_begin`, when all parameters are there."""
        super().__init__(told, criterion, feedback)
        self.horizon = None if horizon is None else horizon_of(horizon)
        self.eta = theory_or("eta", eta)
        self.share = fraction("share", share)
        self._projector = Projector(self.skeleton, threads=threads)
        self._threads = threads
        self._epochs = Epochs(self.skeleton)

    @abstractmethod
    def _theory_eta(self, T: int) -> float:
        """The step size of the theory for T episodes."""

    @abstractmethod
    def _new_set(self) -> RowSet:
        """The set of the epoch that begins."""

    def _log_start(self) -> FloatArray:
        """The logarithms of what q_1 is the projection of: the uniform measure on each layer."""
        widths = np.diff(self.skeleton.layer_transition_ptr)
        return np.repeat(-np.log(widths), widths)

    def _begin(self, source: int = SUBGRADIENT, gamma: float = 0.0, counting: bool = True) -> None:
        """q_1, and the first epoch."""
        self._check_threads()
        sk = self.skeleton
        anytime = isinstance(self.eta, str) and self.horizon is None
        eta = self._theory_eta(self.horizon or 1) if isinstance(self.eta, str) else self.eta
        self._steps = Steps(eta, anytime, self.share, frozen(self._log_start()), source, gamma, counting)
        self._row_set = self._new_set()
        start = self._projector.project(self._steps.log_start, self._row_set)
        (log_w, z, chance), counts = apart(sk.num_transitions, sk.num_transitions, sk.num_steps), self._epochs.counts
        self._memory = Belief(
            start.log_q, start.q, start.log_pairs, start.policy, counts.visits, counts.new_visits, counts.new_seen,
            log_w, frozen(log_w), z, chance,
        )  # fmt: skip
        self._plan = make_plan(sk, self._memory.policy)

    @property
    def q(self) -> FloatArray:
        """q_t, whose policy is played next."""
        return owned(self._memory.q)

    @property
    def log_q(self) -> FloatArray:
        """ln q_t, which keeps its meaning where q_t underflows."""
        return owned(self._memory.log_q)

    @property
    def row_set(self) -> RowSet:
        """The set of this epoch."""
        return self._row_set

    @property
    def compiled(self) -> bool:
        return self.criterion.terms is not None

    def update(self, trajectory: Trajectory, loss: ArrayLike) -> None:
        if self.feedback == "bandit":
            super().update(trajectory, loss)
            return
        sk, terms = self.skeleton, self.criterion.terms
        losses = checked_losses(sk, floats(loss, "loss")[None])[0]
        if terms is None:
            # A criterion in Python gives its subgradient here; a linear one with that gradient does the rest.
            losses, terms = self.criterion.subgradient(sk, self.q, losses), TOTAL
        elif losses.size > sk.num_transitions and not self.criterion.takes_several:
            raise InputError(f"loss for {self.criterion!r}", f"{losses.shape[1]} losses at once", "one")
        self._learn(unknown_dynamics(sk), given_block(sk, trajectory, losses, terms), terms)
        self.episode += 1

    def _learn(self, world: Dynamics, block: Block, terms: FloatArray | None = None) -> None:
        """All episodes of a block.  The kernel comes back where an epoch ends, for the set of the next."""
        terms = self.criterion.terms if terms is None else terms
        assert terms is not None
        projector, criterion = self._projector, frozen(terms)
        self._check_threads()

        def play_on(b: int, fresh: bool) -> tuple[int, bool]:
            b, status = run(
                world, block, projector.structure, projector.bounds(self._row_set), projector.memory, self._memory,
                criterion, self._steps, self._plan, self.episode, b, fresh,
            )  # fmt: skip
            self._check_solved(status, self.episode + b)
            return b, status == NEW_EPOCH

        self._epochs.play(len(block.losses), play_on, self._begin_epoch)
        self.gap = float(block.gap[-1])

    def _begin_epoch(self, b: int) -> None:
        self._row_set = self._new_set()

    def _check_solved(self, status: int, episode: int) -> None:
        """Raise unless the last projection was solved."""
        if status == Status.UNFIT:
            after = f"the logarithms of q and the losses after episode {episode}, for the next step"
            raise InputError(after, Status.UNFIT.message, "a smaller eta, or smaller losses")
        if status not in (NEW_EPOCH, Status.SOLVED):
            said = f"{Status(status).message}; the tolerance is {TOLERANCE:g}"
            raise ProjectionError(f"the projection after episode {episode}: {said}")

    def _check_threads(self) -> None:
        if self._threads > 1:
            check_threads()

    def restore(self, state: State) -> None:
        super().restore(state)
        self._row_set = self._new_set()


@compiled
def run(
    world: Dynamics, block: Block, structure: Structure, sets: RowSets, memory: Workspace, belief: Belief,
    terms: FloatArray, steps: Steps, plan: Plan, episode: int, b: int, counted: bool,
) -> tuple[int, int]:  # fmt: skip
    """Episodes b, b + 1, ... of the block; ``counted`` says that episode b has been played; only its update remains.

    Returns the episode at which it stopped and why.
    """
    other = not np.array_equal(terms, block.account)
    while b < len(block.losses):
        if not counted:
            enter(world, block, b, belief.policy)
            if steps.source == SUBGRADIENT:
                block.believed[b] = evaluate_terms(
                    terms, world.layer_transition_ptr, belief.q, block.losses[b], belief.z
                )
            else:
                weigh_path(world, block, sets, belief, steps, plan, b)
            if other or steps.source != SUBGRADIENT:
                block.believed[b] = evaluate_terms(
                    block.account, world.layer_transition_ptr, belief.q, block.losses[b], block.z
                )
            if steps.counting and count_path(
                belief.visits, belief.new_visits, belief.new_seen, block.pairs[b], block.transitions[b]
            ):
                return b, NEW_EPOCH
        counted = False
        weigh(belief, steps, episode + b)
        memory.states[BETA][:] = 0.0
        status, _, block.gap[b], _, _, _ = solve(
            structure, belief.weights, sets, memory, belief.log_q, belief.q, belief.log_pairs, belief.policy, TOLERANCE,
            ITERATIONS,
        )  # fmt: skip
        if status != SOLVED:
            return b, status
        b += 1
    return b, SOLVED


@compiled
def weigh_path(world: Dynamics, block: Block, sets: RowSets, belief: Belief, steps: Steps, plan: Plan, b: int) -> None:
    """z_t from the losses along the path."""
    for k in range(block.pairs.shape[1]):
        p = block.pairs[b, k]
        if steps.source == IMPORTANCE:
            belief.chance[k] = np.exp(belief.log_pairs[p])
        else:
            reach = largest_reach(world, sets, k, block.states[b, k], plan)
            belief.chance[k] = belief.policy[p] * reach + steps.gamma
    estimate(world.transition_ptr, block.pairs[b], reveal(block, b), belief.chance, belief.z)


@compiled
def weigh(belief: Belief, steps: Steps, t: int) -> None:
    """log w = log q - eta z, with a fixed share of q_1 where asked for."""
    eta, keep = steps.eta, 1.0
    if steps.anytime:
        # A falling eta alone would remember early losses for ever; what it loses is handed back to q_1.
        eta, keep = steps.eta / np.sqrt(t + 1.0), np.sqrt((t + 1.0) / (t + 2.0))
    for i in range(len(belief.z)):
        belief.log_w[i] = belief.log_q[i] - eta * belief.z[i]
        if keep < 1.0:  # else a start of -inf times zero would be no number
            belief.log_w[i] = keep * belief.log_w[i] + (1.0 - keep) * steps.log_start[i]
    if steps.share > 0.0:
        stay, back = np.log1p(-steps.share), np.log(steps.share)
        for i in range(len(belief.z)):
            belief.log_w[i] = np.logaddexp(stay + belief.log_w[i], back + steps.log_start[i])
