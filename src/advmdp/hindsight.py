"""The comparator of the regret: the best stationary policy in hindsight, and a proof of how good it is.

Sections 2 and 3 of the paper.  The regret compares with

    min over q in Delta(M) of G_T(q),        G_T(q) = sum_{t < T} f^C(q; l_t),

for the true P; here at the horizon and at shorter prefixes T_1 < T_2 < ... of the same sequence.  The sequence is drawn
anew, block by block, on each pass over it: memory does not grow with T, and passes are what takes time.

Pairs.  In Delta(M) the rows of q are those of P, so all is said in x = (q(x, a)), a vector over pairs.  The criteria of
the paper see a loss through its means over successors, sum_{x'} P(x'|x, a) l(x, a, x'), and what of them is linear in q
adds up to one vector.

Sums.  TEL adds up to a linear form, RISK with c = 2 to a quadratic one, <b, x> + <x, H x> / 2.  One pass gathers them
for all prefixes; what is left is backward induction, or a quadratic program.

Cuts.  Every other G_T is looked at in points y, each of which gives a line below it, height(y) + <slope(y), x - y>.  A
convex combination of such lines is one too, and backward induction finds its least value over Delta(M).  That is
``lower``, proven for any weights; a linear program finds the best weights, and also a point that the lines know little
of, towards which the next pass looks from the best point known.

Curvature.  Where f^C is a table of terms, a pass first looks where Newton's method points: at the least point of the
quadratic model of G_T over Delta(M).  MM has no second derivative.  There the worst of d losses is replaced by their
mean with weights proportional to exp(<q, l[:, i]> / mu), which gives lines below as well, and mu descends as the steps
become small.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.arrays import FloatArray, exact_floats, expect, frozen, integers, whole
from advmdp.compiled import compiled
from advmdp.criteria import RISK, RISK_LEMMA, WORST, Criterion
from advmdp.errors import AdvMDPError, InputError
from advmdp.losses import Losses, Policies
from advmdp.mdp import MDP
from advmdp.occupancy_measures import best_response, occupancy, policy_of
from advmdp.policy import uniform_policy
from advmdp.streams import stream_key, uniforms

__all__ = ["Blocks", "Comparator", "Played", "comparator", "comparators", "total_comparator"]

Pointers = NDArray[np.int64]
Progress = Callable[[float], object]

GAP = 1e-4
PASSES = 200
NOTHING, TINY = 1e-9, float(np.finfo(np.float64).tiny)

LONGEST, ENTRIES = 1024, 2**20
"""A block has at most so many episodes and, above one episode, so many numbers."""
SAMPLE, SAMPLE_ENTRIES, SAMPLE_SHARE, SAMPLE_SHORTEST = 1000, 2**22, 10, 50
"""The same of a sample.  It is drawn of a sequence so many times longer, for prefixes with so many episodes of it."""
MOST_PAIRS, MATRICES = 2048, 2**24
"""Above so many pairs there is no matrix over them, and all such matrices together have at most so many entries."""
STEPS = (1.0, 0.5)
"""Where to look on Newton's step."""
TOWARDS = (1.0, 0.5, 0.2)
"""Where to look on the way from the best point known to the one that the lines know little of."""
FIRST_MU, SHRINK, HARD = 0.3, 0.4, 1e-300
"""mu at first; what remains of it when it descends; and a mu with which the worst loss has all the weight."""
VERTICES, RIDGE = 1000, 1e-12


class Blocks(Protocol):
    """A sequence that can be drawn again and again: the losses of episodes first, ..., stop - 1, stacked."""

    def block(self, first: int, stop: int, /) -> FloatArray: ...


@dataclass(frozen=True)
class Played:
    """An adaptive sequence as it was played: its losses against the policies of the game, by episode."""

    losses: Losses
    policies: Policies

    def block(self, first: int, stop: int, /) -> FloatArray:
        return self.losses.block(first, stop, self.policies)


@dataclass(frozen=True, eq=False)
class Comparator:
    """The best policy in hindsight of the first ``episodes`` episodes, which were drawn ``passes`` times to find it."""

    policy: FloatArray
    q: FloatArray
    value: float
    """G_T(q): what the policy pays."""
    lower: float
    """What any policy pays at the least."""
    episodes: int
    passes: int

    @property
    def gap(self) -> float:
        """(value - lower) / value: no policy pays less by a larger fraction.

        A value of less than 1e-9 an episode counts as that much, as it is rounding that decides there.
        """
        return _gap(self.value, self.lower, self.episodes)


def comparator(
    mdp: MDP,
    losses: Blocks,
    criterion: Criterion,
    episodes: int,
    *,
    gap: float = GAP,
    passes: int = PASSES,
    allow_gap: bool = False,
    progress: Progress | None = None,
) -> Comparator:
    """The best policy in hindsight of the first ``episodes`` episodes; see :func:`comparators`."""
    prefixes = [whole("episodes", episodes, 1)]
    found = comparators(
        mdp, losses, criterion, prefixes, gap=gap, passes=passes, allow_gap=allow_gap, progress=progress
    )
    return found[0]


def comparators(
    mdp: MDP,
    losses: Blocks,
    criterion: Criterion,
    episodes: Sequence[int],
    *,
    gap: float = GAP,
    passes: int = PASSES,
    allow_gap: bool = False,
    progress: Progress | None = None,
) -> tuple[Comparator, ...]:
    """The best policies in hindsight at the prefixes ``episodes``, which ascend; all are sought in the same passes.

    Each is proven to be the best up to the fraction ``gap`` of its value.  Where ``passes`` over the sequence are not
    enough for that there is an error, or with ``allow_gap`` the best found, which says what its gap is.  ``progress``
    is called with the fraction done; nobody knows the number of passes before, so each counts for half of the rest.
    """
    world = _World(expect(MDP, mdp, "mdp"))
    prefixes = _ascending(episodes)
    source = _Source(world, losses, prefixes[-1], progress)
    task = _task(world, criterion, source.dimensions)
    if not isinstance(gap, int | float | np.number) or not gap > 0.0:
        raise InputError("gap", f"{gap!r}", "a number above 0")
    most = whole("passes", passes, 1)
    if task.exact:
        found = _summed(task, source, prefixes, gap)
    else:
        found = [search.result() for search in _searched(task, source, prefixes, gap, most)]
    source.tell(1.0)
    worst = max(found, key=lambda one: one.gap)
    if worst.gap > gap and not allow_gap:
        raise AdvMDPError(
            f"comparator of {worst.episodes} episodes: a gap of {worst.gap:.2g} after {worst.passes} passes; expected "
            f"{gap:.2g} (more passes or a larger gap may do; allow_gap=True takes the best found)"
        )
    return tuple(found)


def total_comparator(mdp: MDP, total: ArrayLike, episodes: int) -> Comparator:
    """The best policy in hindsight for TEL from the sum of the losses, which a game in progress adds up by itself."""
    expect(MDP, mdp, "mdp")
    policy, value = best_response(mdp, exact_floats(total, "total", (mdp.skeleton.num_transitions,)))
    return Comparator(frozen(policy), frozen(occupancy(mdp, policy)), value, value, whole("episodes", episodes, 0), 0)


def _gap(value: float, lower: float, episodes: int) -> float:
    return (value - lower) / max(abs(value), NOTHING * max(episodes, 1))


def _ascending(episodes: Sequence[int]) -> list[int]:
    prefixes: list[int] = integers(episodes, "episodes").tolist()
    if not prefixes or prefixes[0] < 1 or any(a >= b for a, b in pairwise(prefixes)):
        raise InputError("episodes", f"{prefixes}", "numbers from 1 on that ascend")
    return prefixes


class _World:
    """Delta(M) in pairs: x >= 0, one leaves the start, and from every other state leaves what enters it."""

    def __init__(self, mdp: MDP) -> None:
        self.mdp, self.sk = mdp, mdp.skeleton

    def over_transitions(self, x: FloatArray) -> FloatArray:
        """q of x."""
        return self.sk.over_transitions(x) * self.mdp.transition

    def by_pairs(self, q: FloatArray) -> FloatArray:
        """x of q."""
        return np.add.reduceat(q, self.sk.transition_ptr[:-1])

    def visits(self, policy: FloatArray) -> FloatArray:
        """x of a policy."""
        return self.by_pairs(occupancy(self.mdp, policy))

    def policy(self, x: FloatArray) -> FloatArray:
        """The policy of x, which may miss Delta(M) by rounding."""
        return policy_of(self.sk, self.over_transitions(np.maximum(x, 0.0)))

    def best(self, slope: FloatArray) -> tuple[FloatArray, float]:
        """The vertex of least <slope, x>, and that number."""
        policy, least = best_response(self.mdp, self.sk.over_transitions(slope))
        return self.visits(policy), least

    def least_of_lines(self, heights: FloatArray, slopes: FloatArray, about: float) -> tuple[FloatArray, FloatArray]:
        """min over x of max_j heights[j] + <slopes[j], x>, by HiGHS: the weights of lines that prove it, and the x.

        HiGHS is exact to some decimals after the point, so numbers are told in units of what the minimum is about.
        """
        from scipy.optimize import linprog
        from scipy.sparse import csr_array, hstack

        sk, pairs, lines = self.sk, np.arange(self.sk.num_pairs), len(heights)
        shape = (sk.num_states, sk.num_pairs)
        leaving = csr_array((np.ones(len(pairs)), (sk.state_of_pair, pairs)), shape=shape)
        entering = csr_array((self.mdp.transition, (sk.successor, sk.over_transitions(pairs))), shape=shape)
        start = np.append(1.0, np.zeros(sk.num_states - 2))
        scale = max(abs(about), 1e-6 * float(np.abs(slopes).max()), TINY)
        answer = linprog(
            np.append(np.zeros(len(pairs)), 1.0),
            A_ub=np.hstack([slopes / scale, np.full((lines, 1), -1.0)]),
            b_ub=-heights / scale,
            A_eq=hstack([(leaving - entering)[:-1], csr_array((len(start), 1))]),
            b_eq=start,
            bounds=[(0.0, None)] * len(pairs) + [(None, None)],
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        weights = np.maximum(-answer.ineqlin.marginals, 0.0) if answer.status == 0 else np.zeros(lines)
        if not weights.sum() > 0.0:  # the program has an answer; a solver that misses it must not end the search
            return np.append(np.zeros(lines - 1), 1.0), self.best(slopes[-1])[0]
        return weights / weights.sum(), answer.x[:-1]


class _Source:
    """The sequence in blocks, each checked, and whom to tell how far it has come."""

    def __init__(self, world: _World, losses: Blocks, episodes: int, progress: Progress | None) -> None:
        if not callable(getattr(losses, "block", None)):
            raise InputError("losses", f"a {type(losses).__name__}", "something with a method block(first, stop)")
        if getattr(losses, "memory", 0):
            raise InputError("losses", f"{losses!r}, which depends on the policies", "Played(losses, policies)")
        self.losses, self.episodes, self.tell = losses, episodes, progress or _nobody
        n, self.shape = world.sk.num_transitions, np.shape(losses.block(0, 1))[1:]
        self.dimensions = int(np.prod(self.shape[1:]))
        if self.shape[:1] != (n,) or len(self.shape) > 2 or self.dimensions == 0:
            raise InputError("losses of episode 0", f"shape {self.shape}", f"({n},) or ({n}, d)")

    def limited(self, episodes: int, entries: int) -> int:
        """As many episodes as have so many entries, but 1 at the least and ``episodes`` at the most."""
        return max(1, min(episodes, entries // int(np.prod(self.shape))))

    def block(self, first: int, stop: int) -> FloatArray:
        where = f"losses of episodes {first} to {stop - 1}"
        block = exact_floats(self.losses.block(first, stop), where, (stop - first, *self.shape))
        if not (block.min() >= 0.0 and block.max() <= 1.0):
            raise InputError(where, f"numbers from {block.min()} to {block.max()}", "numbers from 0 to 1")
        return block

    def blocks(self, first: int, stop: int, begun: float, share: float) -> Iterator[FloatArray]:
        """The blocks from first to stop, in a pass that began at a fraction of all and is a share of it."""
        length = self.limited(LONGEST, ENTRIES)
        for begin in range(first, stop, length):
            end = min(begin + length, stop)
            yield self.block(begin, end)
            self.tell(begun + share * end / self.episodes)


def _nobody(fraction: float) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True)
class _Sample:
    """Some episodes of a sequence, in memory."""

    losses: FloatArray

    @classmethod
    def of(cls, source: _Source, size: int) -> "_Sample":
        """One episode of each of ``size`` stretches of equal length, at random, so that no period is missed."""
        places = np.arange(size) + uniforms(stream_key(0, "hindsight", "sample"), 0, 1, size)[0]
        episodes = np.minimum(places * (source.episodes / size), source.episodes - 1).astype(np.int64).tolist()
        return cls(np.concatenate([source.block(t, t + 1) for t in episodes]))

    def block(self, first: int, stop: int, /) -> FloatArray:
        return self.losses[first:stop]


class _Task(ABC):
    """A criterion, as sums over the episodes of a block, in pairs."""

    exact = False
    """Whether the linear part and the second derivative are all there is to it."""
    curved = False
    """Whether it gives a second derivative."""
    floor = 0.0
    """A lower bound of every G_T."""

    def __init__(self, world: _World) -> None:
        self.world = world

    @abstractmethod
    def reduced(self, block: FloatArray) -> FloatArray:
        """What the other methods want to know of a block."""

    def linear(self, block: FloatArray, reduced: FloatArray) -> FloatArray:
        """The part that is linear in x; the next two methods leave it out."""
        return np.zeros(self.world.sk.num_pairs)

    @abstractmethod
    def evaluate(self, reduced: FloatArray, x: FloatArray, mu: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Values at the rows of x; of lines below, the heights there and the slopes."""

    def add_curvature(self, reduced: FloatArray, x: FloatArray, mu: float, H: FloatArray) -> None:
        """Add to H, above its diagonal and on it, the second derivative at x, or one to steer by: here, none."""
        return


class _Powers(_Task):
    """Sums of TEL and RISK: powers of the expected losses of steps, v_k, and of their total."""

    def __init__(self, world: _World, terms: FloatArray) -> None:
        super().__init__(world)
        risks = [row for row in terms.tolist() if row[0] in (RISK, RISK_LEMMA)]
        self.straight = sum(row[1] for row in terms.tolist()) - sum(row[1] for row in risks)
        self.moments = [(w * (1.0 - alpha), c) for kind, w, alpha, c in risks if kind == RISK_LEMMA]
        powers = [(w * alpha, w * (1.0 - alpha) * (kind == RISK), c) for kind, w, alpha, c in risks]
        self.powers = [row for row in powers if row[0] + row[1] > 0.0]
        self.curved = bool(self.powers) and world.sk.num_pairs <= MOST_PAIRS
        self.exact = not self.powers or (self.curved and all(c == 2.0 for _, _, c in self.powers))

    def reduced(self, block: FloatArray) -> FloatArray:
        return _means(self.world, block)[:, 0]

    def linear(self, block: FloatArray, reduced: FloatArray) -> FloatArray:
        total: FloatArray = self.straight * reduced.sum(axis=0)
        for share, c in self.moments:
            total += share * self.world.by_pairs(self.world.mdp.transition * (block**c).sum(axis=0).ravel())
        return total

    def evaluate(self, reduced: FloatArray, x: FloatArray, mu: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        v = _sums(self.world.sk.layer_pair_ptr, reduced, x)
        total, value, slope = v.sum(axis=0), np.zeros(len(x)), np.zeros(v.shape)
        for of_total, of_steps, c in self.powers:
            value += (of_total * total**c + of_steps * (v**c).sum(axis=0)).sum(axis=0)
            slope += c * (of_total * total ** (c - 1.0) + of_steps * v ** (c - 1.0))
        slopes = np.zeros(x.shape)
        _add_rows(self.world.sk.layer_pair_ptr, reduced, slope, slopes)
        return value, value, slopes

    def add_curvature(self, reduced: FloatArray, x: FloatArray, mu: float, H: FloatArray) -> None:
        # Where c < 2 the second derivative has no bound at v = 0; one to steer by has.
        v = np.maximum(_sums(self.world.sk.layer_pair_ptr, reduced, x[None])[:, :, 0], 1e-3)
        total, of_total, of_steps = v.sum(axis=0), np.zeros(len(reduced)), np.zeros(v.shape)
        for total_share, steps_share, c in self.powers:
            of_total += total_share * c * (c - 1.0) * total ** (c - 2.0)
            of_steps += steps_share * c * (c - 1.0) * v ** (c - 2.0)
        _add_products(self.world.sk.layer_pair_ptr, reduced, of_total, of_steps, H)


class _Maxima(_Task):
    """MM of several losses, times a weight."""

    def __init__(self, world: _World, weight: float) -> None:
        super().__init__(world)
        self.weight, self.whole = weight, np.array([0, world.sk.num_pairs])
        self.curved = world.sk.num_pairs <= MOST_PAIRS

    def reduced(self, block: FloatArray) -> FloatArray:
        return _means(self.world, block)

    def evaluate(self, reduced: FloatArray, x: FloatArray, mu: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        rows = reduced.reshape(-1, x.shape[1])
        totals = _sums(self.whole, rows, x).reshape(*reduced.shape[:2], len(x))
        value, slopes = totals.max(axis=1).sum(axis=0), np.zeros(x.shape)
        _add_rows(self.whole, rows, _soft(totals, mu).reshape(1, len(rows), len(x)), slopes)
        return self.weight * value, self.weight * (slopes * x).sum(axis=1), self.weight * slopes

    def add_curvature(self, reduced: FloatArray, x: FloatArray, mu: float, H: FloatArray) -> None:
        totals = _sums(self.whole, reduced.reshape(-1, len(x)), x[None])
        soft = _soft(totals.reshape(reduced.shape[:2]), mu)
        bent = soft.max(axis=1) < 1.0 - 1e-3  # the others are as good as straight
        soft, losses = soft[bent], reduced[bent]
        rows = (losses - (soft[:, :, None] * losses).sum(axis=1, keepdims=True)).reshape(-1, len(x))
        _add_products(self.whole, rows, self.weight / mu * soft.ravel(), np.zeros((1, len(rows))), H)


class _Written(_Task):
    """A criterion that lives in Python: one episode at a time, and no second derivative."""

    floor = -np.inf

    def __init__(self, world: _World, criterion: Criterion) -> None:
        super().__init__(world)
        self.criterion = criterion

    def reduced(self, block: FloatArray) -> FloatArray:
        return block

    def evaluate(self, reduced: FloatArray, x: FloatArray, mu: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        world, value, slopes = self.world, np.zeros(len(x)), np.zeros(x.shape)
        for j, point in enumerate(x):
            q, total = world.over_transitions(point), np.zeros(world.sk.num_transitions)
            for loss in reduced:
                value[j] += self.criterion.value(world.sk, q, loss)
                total += self.criterion.subgradient(world.sk, q, loss)
            slopes[j] = world.by_pairs(world.mdp.transition * total)
        return value, value, slopes


def _task(world: _World, criterion: Criterion, dimensions: int) -> _Task:
    if not isinstance(criterion, Criterion):
        raise InputError("criterion", f"a {type(criterion).__name__}", "a Criterion")
    terms = criterion.terms
    if terms is None:
        return _Written(world, criterion)
    if dimensions == 1:
        return _Powers(world, terms)
    if (terms[:, 0] != WORST).any():
        given = f"{dimensions} losses at once"
        raise InputError(f"losses for {criterion!r}", given, "one: only WorstCase takes several")
    return _Maxima(world, float(terms[:, 1].sum()))


def _soft(totals: FloatArray, mu: FloatArray | float) -> FloatArray:
    """Weights over the second axis, proportional to exp(totals / mu)."""
    weights: FloatArray = np.exp((totals - totals.max(axis=1, keepdims=True)) / mu)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def _means(world: _World, block: FloatArray) -> FloatArray:
    """sum_{x'} P(x'|x, a) l(x, a, x'), of shape (episodes, d, pairs)."""
    losses = block.reshape(*block.shape[:2], -1)
    means = np.empty((len(losses), losses.shape[2], world.sk.num_pairs))
    _fill_means(world.sk.transition_ptr, world.mdp.transition, losses, means)
    return means


@compiled
def _fill_means(ptr: Pointers, transition: FloatArray, losses: FloatArray, means: FloatArray) -> None:
    for t in range(losses.shape[0]):
        for j in range(losses.shape[2]):
            for p in range(len(ptr) - 1):
                mean = 0.0
                for i in range(ptr[p], ptr[p + 1]):
                    mean += transition[i] * losses[t, i, j]
                means[t, j, p] = mean


def _sums(ptr: Pointers, rows: FloatArray, x: FloatArray) -> FloatArray:
    """v[k, r, j]: the sum of rows[r] x[j] over ptr[k] .. ptr[k + 1].

    This kernel and the next two are products of matrices that BLAS would not do faster: on small ones its threads get
    in each other's way.  And so bytes do not depend on their number.
    """
    v = np.zeros((len(ptr) - 1, len(rows), len(x)))
    _add_sums(ptr, rows, np.ascontiguousarray(x.T), v)
    return v


@compiled
def _add_to(total: FloatArray, weight: float, row: FloatArray) -> None:
    """total += weight row.  Both are slices, contiguous ones, for which the compiler finds vector instructions."""
    for i in range(len(total)):
        total[i] += weight * row[i]


@compiled
def _add_sums(ptr: Pointers, rows: FloatArray, columns: FloatArray, v: FloatArray) -> None:
    for k in range(len(ptr) - 1):
        for r in range(len(rows)):
            for p in range(ptr[k], ptr[k + 1]):
                _add_to(v[k, r], rows[r, p], columns[p])


@compiled
def _add_rows(ptr: Pointers, rows: FloatArray, weights: FloatArray, slopes: FloatArray) -> None:
    """slopes[j] += sum_r weights[k, r, j] rows[r] on ptr[k] .. ptr[k + 1]."""
    for k in range(len(ptr) - 1):
        first, last = ptr[k], ptr[k + 1]
        for r in range(len(rows)):
            for j in range(len(slopes)):
                _add_to(slopes[j, first:last], weights[k, r, j], rows[r, first:last])


@compiled
def _add_products(
    ptr: Pointers, rows: FloatArray, weights: FloatArray, inner_weights: FloatArray, H: FloatArray
) -> None:
    """H[p, o] += sum_r weights[r] rows[r, p] rows[r, o] for p <= o.

    Where p and o both lie in ptr[k] .. ptr[k + 1], the weight is weights[r] + inner_weights[k, r].
    """
    for k in range(len(ptr) - 1):
        last = ptr[k + 1]
        for p in range(ptr[k], last):
            for r in range(len(rows)):
                outer = weights[r] * rows[r, p]
                inner = outer + inner_weights[k, r] * rows[r, p]
                _add_to(H[p, p:last], inner, rows[r, p:last])
                if outer != 0.0:
                    _add_to(H[p, last:], outer, rows[r, last:])


def _mirrored(H: FloatArray) -> FloatArray:
    """H with what is above its diagonal also below it."""
    return np.triu(H) + np.triu(H, 1).T


def _summed(task: _Task, source: _Source, prefixes: list[int], gap: float) -> list[Comparator]:
    """One pass: <b, x> + <x, H x> / 2 for every prefix, and its least value there and then."""
    world, pairs = task.world, task.world.sk.num_pairs
    b, upper = np.zeros(pairs), np.zeros((pairs, pairs) if task.curved else (0, 0))
    x, found = world.visits(uniform_policy(world.sk)), []
    for first, stop in pairwise([0, *prefixes]):
        for block in source.blocks(first, stop, 0.0, 1.0):
            reduced = task.reduced(block)
            b += task.linear(block, reduced)
            if task.curved:
                task.add_curvature(reduced, x, 0.0, upper)
        if task.curved:
            H = _mirrored(upper)
            x, _ = _least_of_model(world, x, float((b + H @ x / 2.0) @ x), b + H @ x, H, 1e-3 * gap)
        else:
            x, _ = world.best(b)
        policy = world.policy(x)
        x = world.visits(policy)
        slope = b + H @ x if task.curved else b
        value = float((b + slope) @ x / 2.0)
        lower = value + (world.best(slope)[1] - float(slope @ x))
        q = occupancy(world.mdp, policy)
        found.append(Comparator(frozen(policy), frozen(q), value, min(value, max(lower, 0.0)), stop, 1))
    return found


def _searched(task: _Task, source: _Source, prefixes: list[int], gap: float, most: int) -> list["_Search"]:
    """Passes that look at points for all prefixes still open, until none is.

    Of a long sequence a sample is searched before, which takes no pass, and the search goes on from what it has found.
    """
    searches = [_Search(task, stop, gap) for stop in prefixes]
    size = source.limited(SAMPLE, SAMPLE_ENTRIES)
    if size >= SAMPLE_SHORTEST and source.episodes >= SAMPLE_SHARE * size:
        places = [stop * size // source.episodes for stop in prefixes]
        sampled = sorted({place for place in places if place >= SAMPLE_SHORTEST})
        sample = _Source(task.world, _Sample.of(source, size), size, None)
        known = dict(zip(sampled, _searched(task, sample, sampled, 10.0 * gap, most), strict=True))
        for search, place in zip(searches, places, strict=True):
            if place in known:
                search.begin(known[place].policy, known[place].mu)
    for number in range(most):
        if not (left := [search for search in searches if not search.done]):
            break
        _pass(source, left, number)
    return searches


def _pass(source: _Source, searches: list["_Search"], number: int) -> None:
    """One pass: an episode counts for all prefixes that hold it, and each learns when its last episode has gone by."""
    task = searches[0].task
    x, mu = np.concatenate([search.points for search in searches]), np.concatenate([s.mus for s in searches])
    sums = [np.zeros(len(x)), np.zeros(len(x)), np.zeros(x.shape)]
    linear, curvatures = np.zeros(x.shape[1]), _Curvatures(searches)
    first = offset = 0
    for j, search in enumerate(searches):
        for block in source.blocks(first, search.episodes, 1.0 - 0.5**number, 0.5 ** (number + 1)):
            reduced = task.reduced(block)
            for total, part in zip(sums, task.evaluate(reduced, x[offset:], mu[offset:]), strict=True):
                total[offset:] += part
            curvatures.add(reduced, j)
            if number == 0:
                linear += task.linear(block, reduced)
        if number == 0:
            search.linear = linear.copy()
        mine = slice(offset, offset + len(search.points))
        first, offset = search.episodes, mine.stop
        values, heights, slopes = (total[mine] for total in sums)
        search.learn(values, heights, slopes, curvatures.of(j))


class _Curvatures:
    """The second derivatives for all prefixes, in as many matrices as memory allows: neighbours share one.

    To each an episode adds the second derivative at the first point of the shortest prefix that shares it and holds the
    episode.
    """

    def __init__(self, searches: list["_Search"]) -> None:
        task, pairs = searches[0].task, searches[0].task.world.sk.num_pairs
        count = min(len(searches), max(1, MATRICES // pairs**2)) if task.curved else 0
        self.task, self.searches = task, searches
        self.groups = np.array_split(np.arange(len(searches)), count) if count else []
        self.matrices = np.zeros((count, pairs, pairs))

    def add(self, reduced: FloatArray, j: int) -> None:
        """Episodes that prefix j holds, and no shorter one."""
        for group, matrix in zip(self.groups, self.matrices, strict=True):
            if group[-1] >= j:
                search = self.searches[max(j, group[0])]
                self.task.add_curvature(reduced, search.points[0], float(search.mus[0]), matrix)

    def of(self, j: int) -> FloatArray | None:
        shared = (matrix for group, matrix in zip(self.groups, self.matrices, strict=True) if j in group)
        return next(map(_mirrored, shared), None)


class _Search:
    """The search at one prefix: the lines below G_T, the best point known, and where to look in the next pass."""

    def __init__(self, task: _Task, episodes: int, gap: float) -> None:
        self.task, self.world, self.episodes, self.gap = task, task.world, episodes, gap
        self.value, self.lower, self.passes = np.inf, task.floor, 0
        self.center, self.trust = np.inf, 1.0
        self.heights, self.slopes = np.zeros(0), np.zeros((0, self.world.sk.num_pairs))
        self.linear = np.zeros(self.world.sk.num_pairs)
        self.begin(uniform_policy(self.world.sk), FIRST_MU)

    def begin(self, policy: FloatArray, mu: float) -> None:
        self.policy, self.best, self.mu = policy, self.world.visits(policy), mu
        self._look([(self.best, mu)])

    @property
    def done(self) -> bool:
        return self.passes > 0 and _gap(self.value, self.lower, self.episodes) <= self.gap

    def result(self) -> Comparator:
        q = occupancy(self.world.mdp, self.policy)
        return Comparator(frozen(self.policy), frozen(q), self.value, self.lower, self.episodes, self.passes)

    def learn(self, values: FloatArray, heights: FloatArray, slopes: FloatArray, H: FloatArray | None) -> None:
        """Take in what a pass has found, but for the linear part, and choose where to look in the next."""
        straight = self.points @ self.linear
        values, heights, slopes = values + straight, heights + straight, slopes + self.linear
        self.passes += 1
        self.heights = np.append(self.heights, heights - (slopes * self.points).sum(axis=1))
        self.slopes = np.concatenate([self.slopes, slopes])
        j = int(np.argmin(values))
        if values[j] < self.value:
            self.value, self.policy, self.best = float(values[j]), self.policies[j], self.points[j]
        weights, new = self.world.least_of_lines(self.heights, self.slopes, self.value)
        least = float(weights @ self.heights + self.world.best(weights @ self.slopes)[1])
        self.lower = min(max(self.lower, least), self.value)
        if self.done:
            return
        look = [] if H is None else self._newton(values, heights, slopes, H)
        self._look(look + [(self.best + step * (new - self.best), HARD) for step in TOWARDS])

    def _newton(
        self, values: FloatArray, heights: FloatArray, slopes: FloatArray, H: FloatArray
    ) -> list[tuple[FloatArray, float]]:
        """Points on Newton's next step, from where the last one led.

        If that was no better, it starts from the best of the pass, and is shorter.  The mu of MM descends when a step
        gains less than that would.
        """
        j = int(np.argmin(values[: len(STEPS)]))
        if values[j] < self.center:
            self.trust = min(1.0, 2.0 * self.trust)
        else:
            j, self.trust = int(np.argmin(values)), 0.25 * self.trust
        self.center = float(values[j])
        x, drop = _least_of_model(self.world, self.points[j], self.center, slopes[j], H, 0.02 * self.gap)
        if drop < values[j] - heights[j]:
            self.mu *= SHRINK
        return [(self.points[j] + self.trust * step * (x - self.points[j]), self.mu) for step in STEPS]

    def _look(self, look: list[tuple[FloatArray, float]]) -> None:
        """Points as policies and back, so that they lie in Delta(M) to the last bit."""
        self.policies = [self.world.policy(x) for x, _ in look]
        self.points = np.array([self.world.visits(policy) for policy in self.policies])
        self.mus = np.array([mu for _, mu in look])


def _least_of_model(
    world: _World, center: FloatArray, value: float, slope: FloatArray, H: FloatArray, fraction: float
) -> tuple[FloatArray, float]:
    """min over x of value + <slope, x - center> + <x - center, H (x - center)> / 2: the x, and how far it drops.

    Simplicial decomposition: the vertex to which the slope at x leads joins the atoms, and the next x is the least
    point of their hull.  At the end no x has less by more than ``fraction`` of the value left.
    """
    ways, bends, weights, drop = np.zeros((1, len(center))), np.zeros((1, len(center))), np.ones(1), -np.inf
    for _ in range(VERTICES):
        x, bend = center + weights @ ways, weights @ bends
        before, drop = drop, -float((slope + bend / 2.0) @ (x - center))
        vertex, least = world.best(slope + bend)
        if (slope + bend) @ x - least <= fraction * abs(value - drop) or drop <= before:
            break
        ways = np.vstack([ways, vertex - center])
        bends = np.vstack([bends, H @ (vertex - center)])
        weights = _least_in_hull(ways @ slope, ways @ bends.T, np.append(weights, 0.0))
        kept = weights > 0.0
        ways, bends, weights = ways[kept], bends[kept], weights[kept]
    return x, drop


def _least_in_hull(b: FloatArray, Q: FloatArray, weights: FloatArray) -> FloatArray:
    """min <b, w> + <w, Q w> / 2 over distributions w, from a first one.

    It goes to the least point of all w with sum one; where that way leads out, an atom is dropped, and again.
    """
    kept, w = np.arange(len(b)), weights
    while True:
        system = np.ones((len(kept) + 1, len(kept) + 1))
        system[-1, -1] = 0.0
        # The ridge makes it a strictly convex problem, whose least point exists.
        system[:-1, :-1] = Q[np.ix_(kept, kept)] + RIDGE * max(np.trace(Q), TINY) * np.eye(len(kept))
        target = np.linalg.lstsq(system, np.append(-b[kept], 1.0), rcond=None)[0][:-1]
        out = np.flatnonzero(target < 0.0)
        if not len(out):
            answer = np.zeros(len(b))
            answer[kept] = target / target.sum()
            return answer
        reach = w[out] / (w[out] - target[out])
        w = np.maximum(w + reach.min() * (target - w), 0.0)
        w[out[np.argmin(reach)]] = 0.0
        kept, w = kept[w > 0.0], w[w > 0.0]
