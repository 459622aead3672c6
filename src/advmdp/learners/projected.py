"""Learners that project: the common part of mirror descent and SelfTuning.

Both keep q_t inside the set of the epoch and take a subgradient z_t of f(.; l_t) at q_t.  A rule does the rest.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import inf
from typing import ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.confidence import Kinds, Recent, RowSet, confidence_set
from advmdp.confidence.kernels.counting import count_in_epoch
from advmdp.confidence.recent import CLOCK, PATHS
from advmdp.core.arrays import MOST, FloatArray, floats, frozen, integers, owned
from advmdp.core.errors import AdvMDPError, InputError, ProjectionError
from advmdp.core.threads import check_threads
from advmdp.criteria import Criterion
from advmdp.learners import bounds
from advmdp.learners.compiled import TOTAL, CompiledLearner, Memory
from advmdp.learners.domains import MEASURE, POLICY, Domain, State
from advmdp.learners.episode import (
    checked_losses,
    given_block,
    late_block,
    losses_along,
    pairs_along,
    part_of_path,
    whole_path,
)
from advmdp.learners.epochs import Epochs
from advmdp.learners.kernels.episode import Block
from advmdp.learners.kernels.mirror_descent import Descent
from advmdp.learners.kernels.mixture import Mixture
from advmdp.learners.open_episodes import Delays, OpenEpisodes, Played
from advmdp.model.by_name import ByName, loss_vector
from advmdp.model.kernels.world import Dynamics
from advmdp.model.mdp import Trajectory
from advmdp.model.skeleton import Skeleton
from advmdp.projection.projector import TOLERANCE
from advmdp.projection.status import Status


class MemoryWithMeasure(Memory, Protocol):
    """Arrays that include q_t."""

    @property
    def q(self) -> FloatArray: ...


M = TypeVar("M", bound=MemoryWithMeasure)


class ProjectedLearner(CompiledLearner[M]):
    """A learner that keeps q_t in the set of the epoch, for any convex criterion; losses may arrive late."""

    takes_late_losses = True
    remembered: ClassVar[Mapping[str, Domain]] = {"policy": POLICY, "q": MEASURE}
    """The arrays of ``_memory`` to store when an episode begins, since learning from its loss needs them."""
    counts_visits = True
    """Whether it estimates the dynamics, and so has epochs."""
    needs_set = False
    """Whether learning from a late loss also needs the set in which the episode was played."""
    _open: OpenEpisodes
    _recent: Recent | None = None
    """The recent counts, if the world drifts."""
    _epochs: Epochs
    _rule: Descent | Mixture
    _row_set: RowSet
    _threads: int | None

    @abstractmethod
    def _enter_set(self) -> None:
        """Build the set from the counters, and use it."""

    @property
    def q(self) -> FloatArray:
        """The occupancy measure q_t, whose policy is played next."""
        return owned(self._memory.q)

    @property
    def row_set(self) -> RowSet:
        """The set of this epoch."""
        return self._row_set

    @property
    def compiled(self) -> bool:
        return self.criterion.terms is not None

    @property
    def outstanding(self) -> list[int]:
        return list(self._open)

    @property
    def delays(self) -> Delays:
        """The accumulated delay of late losses."""
        return Delays(*self._open.sums.tolist())

    def policy_of(self, episode: int) -> FloatArray:
        policy = self._open.find(episode).arrays["policy"]
        assert policy.dtype == np.float64
        return owned(policy)  # type: ignore[arg-type]

    @property
    def _begun(self) -> int:
        """The number of episodes that have begun, which is also the number of the next one."""
        return self.episode + len(self._open) + self._open.dropped

    def begin(self) -> int:
        self._settle()
        if self.counts_visits:
            counts, first = self._epochs.counts, self.skeleton.layer_pair_ptr[1]
            paths = int((counts.visits[:first] + counts.new_visits[:first]).sum())
            self._open.behind = max(self._open.behind, self._begun - paths)
        number, arrays = self._begun, {name: getattr(self._memory, name) for name in self.remembered}
        self._open.add(number, arrays, self._row_set if self.needs_set else None)
        return number

    def drop(self, episode: int) -> None:
        self._open.find(episode)
        del self._open.open[episode]
        self._open.dropped += 1

    def count(self, transitions: Trajectory | ArrayLike) -> None:
        path, counts = part_of_path(self.skeleton, transitions), self._epochs.counts
        self._open.used = True
        if not self.counts_visits:
            return
        pairs = pairs_along(self.skeleton, path)
        over = count_in_epoch(counts.visits, counts.new_visits, counts.new_seen, pairs, path)
        over |= self._recent is not None and self._recent.left == 1
        row = np.full((1, self.skeleton.num_steps), -1)
        row[0, np.searchsorted(self.skeleton.layer_pair_ptr, pairs, side="right") - 1] = path
        self._counted(row)
        if over:
            self._enter_epoch()
            self._open.stale = True

    def take_counts(self, seen: ArrayLike) -> None:
        sk, counts = self.skeleton, self._epochs.counts
        given = integers(seen, "seen")
        if self._recent is not None:
            raise InputError("take_counts", "a learner with a window or a discount", "a learner without them")
        if given.shape != counts.seen.shape or given.min() < 0 or given.max() > MOST // len(given):
            raise InputError("seen", f"{given}", f"{len(counts.seen)} counts, one for each transition")
        counts.seen[:], counts.new_seen[:], counts.new_visits[:] = given, 0, 0
        np.add.reduceat(given, sk.transition_ptr[:-1], out=counts.visits)
        self._open.used = True
        if self.counts_visits:
            self._enter_set()
            self._open.stale = True

    def update(self, trajectory: Trajectory, loss: ByName, episode: int | None = None) -> None:
        """Learn from the path and the loss of an episode.

        Without ``episode``, the episode began and ended just now. With the number of an open episode, this is
        :meth:`count` followed by :meth:`learn`. Both give the same result bit for bit if no other episode was open.

        Parameters
        ----------
        trajectory
            The path of the episode.
        loss
            The whole loss; for bandit feedback, the losses along the path.
        episode
            The number of an open episode; by default a new one.
        """
        sk = self.skeleton
        if episode is None:
            self._update_at_once(trajectory, loss)
            return
        path = whole_path(sk, trajectory)
        late = self._late(loss, episode, path)
        self.count(path)
        self._learn_late(episode, *late)

    def _update_at_once(self, trajectory: Trajectory, loss: ByName) -> None:
        sk = self.skeleton
        losses, terms = linear_if_python(self.criterion, sk, self.q, checked_losses(sk, loss_vector(sk, loss)[None])[0])
        self._optimise(Dynamics(sk), given_block(sk, trajectory, losses, terms), terms)
        self.episode += 1

    def learn(self, loss: ByName, episode: int, trajectory: Trajectory | ArrayLike | None = None) -> None:
        if trajectory is None and self.feedback == "bandit":
            raise InputError("trajectory", "None", "the path along which the losses were seen")
        path = part_of_path(self.skeleton, np.empty(0, np.int64) if trajectory is None else trajectory)
        self._learn_late(episode, *self._late(loss, episode, path))

    def _late(self, loss: ByName, episode: int, path: NDArray[np.int64]) -> tuple[Block, FloatArray]:
        """Check the late loss of an open episode; return it as a block, with the terms of its criterion."""
        sk, played = self.skeleton, self._open.find(episode)
        if self.feedback == "bandit":
            never = pairs_along(sk, path)[self._never_taken(played, path)]
            if never.size:
                given = f"{sk.where_pair(int(never[0]))}, which the policy never takes"
                raise InputError("trajectory", given, "a path of the episode's policy")
            return late_block(sk, path, self._shown(path, loss), TOTAL), TOTAL
        given = checked_losses(sk, loss_vector(sk, loss)[None])[0]
        losses, terms = linear_if_python(self.criterion, sk, floats(played.arrays["q"], "q"), given)
        return late_block(sk, path, losses, terms), terms

    def _shown(self, path: NDArray[np.int64], loss: ByName) -> FloatArray:
        """The losses that a bandit learner sees, as an array over all transitions, NaN elsewhere."""
        return losses_along(self.skeleton, path, loss)

    def _never_taken(self, played: Played, path: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which steps the episode's policy never takes; none for learners that do not divide by its probability."""
        return (played.arrays["policy"][pairs_along(self.skeleton, path)] <= 0.0) & self.weighs

    def _learn_late(self, episode: int, block: Block, terms: FloatArray) -> None:
        """Compute z_s at the q_s that was played, then take the step from the current q."""
        self._check_threads()
        world, seen = Dynamics(self.skeleton), self._open
        self._rule.optimise(frozen(terms), self.skeleton.num_steps)
        with self._as_played(seen.find(episode)):
            self._rule.observe(world, block)
        del seen.open[episode]
        self._rule.place(episode, self._begun + 1, len(seen), seen.stale)
        self._moved()
        _, status = self._rule.play(world, block, 0, True, self.episode)
        if status:
            raise self._failure(status, self.episode)
        self.gap = float(block.gap[0])
        self.episode += 1

    @contextmanager
    def _as_played(self, played: Played) -> Iterator[None]:
        """Restore the memory, and the set if it matters, as they were when an episode began."""
        now = {name: getattr(self._memory, name).copy() for name in played.arrays}
        other = None if played.row_set is self._row_set else played.row_set
        self._put(played.arrays, other)
        try:
            yield
        finally:
            self._put(now, None if other is None else self._row_set)

    def _put(self, arrays: State, row_set: RowSet | None) -> None:
        for name, array in arrays.items():
            getattr(self._memory, name)[...] = array
        if row_set is not None:
            self._within(row_set)

    def _settle(self) -> None:
        """Move q into the set of a new epoch, or compute a new q if the current one is for an earlier episode."""
        if not (self._open.stale or self._open.spent):
            return
        self._rule.place(self._begun, self._begun, len(self._open), self._open.stale)
        status, self.gap = self._project_again()
        if status:
            raise self._failure(status, self.episode)
        self._moved()

    def _moved(self) -> None:
        """Record that q changes: if it enters a new set, all open episodes were played in another set."""
        self._open.sums[3] += len(self._open) if self._open.stale else 0
        self._open.stale = self._open.spent = False

    @abstractmethod
    def _project_again(self) -> tuple[int, float]:
        """Project onto the set of the epoch; return the status and the gap."""

    @abstractmethod
    def _within(self, row_set: RowSet) -> None:
        """Let the rule project onto this set."""

    def state(self) -> State:
        recent: State = {} if self._recent is None else dict(self._recent.state())
        return super().state() | self._open.state() | recent

    def restore(self, state: State) -> None:
        super().restore(state)
        if self._recent is not None:
            if PATHS not in state or CLOCK not in state:
                raise InputError(f"state of {type(self).__name__}", "no recent paths", f"{PATHS} and {CLOCK}")
            self._recent.restore(state[PATHS], state[CLOCK])
        self._enter_set()
        like: State = {name: getattr(self._memory, name) for name in self.remembered}
        sets = type(self._row_set) if self.needs_set else None
        self._open.restore(type(self).__name__, self.skeleton, state, like, self.remembered, sets)

    def play_block(self, world: Dynamics, block: Block) -> None:
        self._settle()
        super().play_block(world, block)

    def _learn(self, world: Dynamics, block: Block) -> None:
        terms = self.criterion.terms
        assert terms is not None
        self._optimise(world, block, terms)

    def _optimise(self, world: Dynamics, block: Block, terms: FloatArray) -> None:
        """Play all episodes of a block, for the criterion with this table of terms."""
        self._check_threads()
        self._rule.optimise(frozen(terms), self.skeleton.num_steps)
        self._rule.place(self._begun, self._begun + 1, len(self._open), self._open.stale)
        self._rule.end_after(-1 if self._recent is None else self._recent.left)
        self._moved()
        super()._learn(world, block)
        self.gap = float(block.gap[-1])

    def _next_epoch(self, episodes: int) -> None:
        self._enter_epoch()
        self._open.sums[3] += len(self._open)

    def _enter_epoch(self) -> None:
        """Start the counters of the next epoch, and build the set."""
        if self._recent is None:
            self._epochs.counts.next_epoch()
        else:
            self._recent.recount(self._epochs.counts)
            self._rule.end_after(self._recent.left)
        self._enter_set()

    def _counted(self, paths: NDArray[np.int64]) -> None:
        if self._recent is not None:
            self._recent.add(paths)

    def _set_of(
        self, name: str, horizon: int | None, delta: float, scale: float = 1.0, kinds: Kinds | None = None,
        possible: bool = False,
    ) -> RowSet:  # fmt: skip
        """The confidence set of that name, built from the counts."""
        counts = self._epochs.counts
        if self._recent is None:
            return confidence_set(name, self.skeleton, counts, horizon, delta, scale, kinds, possible)
        return self._recent.confidence_set(name, counts, horizon, delta, scale, kinds, possible)

    def _is_stationary(self, horizon: int | None) -> bool:
        """Whether all episodes up to the horizon have the same weight in the counts."""
        return self._recent is None or (
            self._recent.drift == 0.0 and self._recent.window is not None and horizon is not None
            and self._recent.window >= horizon
        )  # fmt: skip

    def _cost_of_delays(self, episodes: int, F: float) -> float:
        """What late losses add to the bound of UC-O-REPS; proven for subgradients from 0 to F."""
        if self._open.in_order:
            return 0.0
        if self.criterion.terms is None:
            return inf
        sk = self.skeleton
        e = (bounds.eta(sk, 1, 1.0)) ** 2
        return self._open.cost(sk, episodes, F, e, int(np.diff(sk.layer_transition_ptr).max()))

    def _failure(self, status: int, episode: int) -> AdvMDPError:
        return failed_projection(status, episode)

    def _check_threads(self) -> None:
        if self._threads is not None and self._threads > 1:
            check_threads()


def failed_projection(status: int, episode: int) -> AdvMDPError:
    """The error for a projection that failed after an episode."""
    if status == Status.UNFIT:
        after = f"the logarithms of q and the losses after episode {episode}, for the next step"
        return InputError(after, Status.UNFIT.message, "a smaller eta, or smaller losses")
    said = f"{Status(status).message}; the tolerance is {TOLERANCE:g}"
    return ProjectionError(f"the projection after episode {episode}: {said}")


def uniform_logarithms(sk: Skeleton) -> FloatArray:
    """The logarithms of the measure that is uniform on each layer; its projection is q_1."""
    widths = np.diff(sk.layer_transition_ptr)
    return np.repeat(-np.log(widths), widths)


def linear_if_python(
    criterion: Criterion, sk: Skeleton, q: FloatArray, loss: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The loss and the table of terms for one update.

    For a criterion in Python, these are its subgradient and the linear criterion with that gradient.
    """
    if (terms := criterion.terms) is None:
        return criterion.subgradient(sk, q, loss), TOTAL
    if loss.size > sk.num_transitions and not criterion.takes_several:
        raise InputError(f"loss for {criterion!r}", f"{loss.shape[1]} losses at once", "one")
    return loss, terms
