"""The paper's lemmas and theorems, each checked on live runs: the measured number next to the claimed one.

    Lemma 4.1     ||P - Pbar_i||_1 <= epsilon_i for all pairs and epochs, with probability 1 - delta; the same for the
                  tighter sets of :mod:`advmdp.confidence.radii`; without a guarantee, the share of rows covered
    Theorem 4.2   as corrected (docs/errata.md, item 1): with |v(x, a, x')| <= mu(x, a) and
                  B = epsilon mu + beta(x') - beta(x) + v - sum_y Pbar(y|x, a) v(x, a, y),
                  q = w exp(B) / Z_k is the projection, and sum q ln(q / w) = -sum_k ln Z_k certifies it
                  as printed: a set that excludes the true dynamics
    Theorems 5.1 to 5.3     R, R^APP and R^ON of UC-O-REPS against their bounds, for each criterion; and
                  R^ON <= sum_t <q_t - q, z_t> <= eta F^2 L T + L ln(|X|^2|A|/L^2) / eta  for every q in Delta(M)
    Theorem 5.1   R grows like sqrt(T ln T): the exponent of T

Each function checks one statement and yields its rows.  The theorems hold with high probability; here they must hold in
every run, so a row shows the largest number of its runs.  Regret is measured against a proven lower bound on the cost
of the best fixed policy, so it is never underestimated.

Section 5 needs a problem small enough that its bounds are below L T, and difficult losses: :mod:`advmdp.verify.games`.
:mod:`advmdp.verify.learners` checks the guarantees of the other learners in the same games.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from time import monotonic
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from advmdp.confidence import (
    Box,
    Counts,
    Kinds,
    L1Ball,
    RowSet,
    bernstein_set,
    chernoff_set,
    l1_set,
    log_at_all_times,
    pointwise_set,
    weissman_set,
)
from advmdp.core.arrays import FloatArray, whole
from advmdp.core.optional import optional
from advmdp.core.streams import generator
from advmdp.criteria import Criterion, Risk, TotalLoss, WorstCase
from advmdp.game.play import play
from advmdp.learners import bounds
from advmdp.learners.uc_o_reps import UCOREPS
from advmdp.losses import Adaptive, Losses, Switching
from advmdp.model.mdp import MDP
from advmdp.model.occupancy import best_response, flow_residuals, occupancy
from advmdp.model.policy import uniform_policy
from advmdp.model.skeleton import Skeleton
from advmdp.planning.hindsight import comparator
from advmdp.projection.printed_dual import project_as_printed
from advmdp.projection.projector import Projection, project
from advmdp.verify.games import ADVERSARIES, LOSSES_AT_ONCE, bad_state, horizons, switching, world
from advmdp.verify.learners import guarantees
from advmdp.verify.rows import SURE, Row, Shown, bounded, fitted, hidden, least_exponent
from advmdp.verify.self_tuning import self_tuning

with optional:
    from scipy.special import betaincinv, logsumexp

T_ = TypeVar("T_")
DELTA = 0.05
CRITERIA: tuple[Criterion, ...] = (TotalLoss(), WorstCase(), Risk(alpha=0.25, c=2.0))
WIDTHS = (14, 27, 14, 16, 5)
"""The widths of the columns, with a space between each two: eighty in all."""
WIDTH = 80
LEAST = 5000
"""Fewer episodes give too few horizons to fit an exponent."""
SEEDS = 2
"""How many games are played of each criterion against each kind of losses, at each horizon."""
SHORT = 10_000
"""The most episodes of games that are played in Python."""
COVERAGE_DELTA, COVERAGE_EPISODES = 0.2, 100
MOST_ROWS = 0.5
"""Sets without a guarantee for all rows at once must cover more than this share of the rows."""
RARE, VISITS = 0.005, 200
PROBLEMS, ORACLE_PROBLEMS = 40, 10
EXACT, ORACLE = 1e-8, 1e-5
"""What counts as zero: for a certificate, and in a comparison with another solver, which stops at six digits."""
SHOWN_GAP = 1e-5
CORRECTED, PRINTED = "Theorem 4.2, corrected", "Theorem 4.2, printed"


def nearly_zero(statement: str, what: str, measured: float, beside: str, basis: str, limit: float = EXACT) -> Row:
    """A row for a number that the statement says is zero."""
    return Row(statement, what, measured, "<=", limit, measured <= limit, ".1e", beside, basis)


def share_of_runs(statement: str, what: str, held: ArrayLike, claimed: float, basis: str, beside: str = "") -> Row:
    """A row for a probability that is claimed to be at least ``claimed``; fails if it is significantly smaller."""
    held = np.asarray(held)
    share, beside = float(held.mean()), f"{len(held):,} runs{beside}"
    return Row(statement, what, share, ">=", claimed, share_limit(held) >= claimed, ".1%", beside, basis)


def share_limit(held: NDArray[np.bool_]) -> float:
    """Upper confidence bound on the probability, given these outcomes (Clopper and Pearson)."""
    runs, k = len(held), int(held.sum())
    return 1.0 if k == runs else float(betaincinv(k + 1, runs - k, SURE))


# Lemma 4.1


def covers(sk: Skeleton, row_set: RowSet, transition: FloatArray) -> bool:
    """Whether all rows lie in the set."""
    if isinstance(row_set, Box):
        return bool(((row_set.lower <= transition) & (transition <= row_set.upper)).all())
    return bool(rows_covered(sk, row_set, transition).all())


def rows_covered(sk: Skeleton, row_set: RowSet, transition: FloatArray) -> NDArray[np.bool_]:
    """Whether each row lies in its ball."""
    assert isinstance(row_set, L1Ball)
    first = sk.transition_ptr[:-1]
    distance = np.add.reduceat(np.abs(transition - row_set.center), first)
    free = np.add.reduceat(row_set.center, first) == 0.0
    held: NDArray[np.bool_] = free | (distance <= row_set.radius)
    return held


@dataclass(frozen=True)
class Kind:
    """A kind of set, its failure probability as a multiple of delta, and a scale at which it visibly fails."""

    name: str
    make: Callable[[Skeleton, Counts, FloatArray | float, float], RowSet]
    multiple: int
    narrow: float
    all_times: bool = False
    """Whether its logarithm has the visits in the place of T."""


KINDS = (
    Kind("l1, S the next layer", partial(l1_set, possible=False), 1, 0.3),
    Kind("l1, S the possible successors", partial(l1_set, possible=True), 1, 0.3),
    Kind("weissman", weissman_set, 1, 0.4),
    Kind("chernoff", chernoff_set, 1, 0.4, all_times=True),
    Kind("bernstein", bernstein_set, 4, 0.1),  # the multiple is that of Jin et al. (2020)
)


def coverage(runs: int, seed: int, shown: Shown = hidden) -> Iterator[Row]:
    """Lemma 4.1: the share of runs in which the sets of all epochs contain P, also for narrower sets to compare.

    For sets without a guarantee: the share of rows that they cover, among pairs with more than one possible row.
    """
    mdp = MDP.random([1, 4, 4, 1], 2, seed=seed, branching=2)
    found = [covered(mdp, seed, number) for number in shown(range(runs), "coverage")]
    held = np.array([one.runs for one in found])
    for j, kind in enumerate(KINDS):
        narrow = f"; {kind.narrow:g} times as wide: {held[:, j, 1].mean():.1%}"
        basis = "1 - delta" if kind.multiple == 1 else f"1 - {kind.multiple} delta"
        what = f"runs covered in all epochs: {kind.name}"
        yield share_of_runs("Lemma 4.1", what, held[:, j, 0], 1.0 - kind.multiple * COVERAGE_DELTA, basis, narrow)
    rows = np.sum([one.rows for one in found], axis=0)
    for (inside, total), which in zip(rows.tolist(), ("pairs tried", "pooled, all pairs"), strict=True):
        what, share = f"rows covered: pointwise, {which}", inside / total
        basis, beside = "most; no guarantee", f"{total:,} rows"
        yield Row("Lemma 4.1", what, share, ">", MOST_ROWS, share > MOST_ROWS, ".1%", beside, basis)


@dataclass(frozen=True)
class Covered:
    """What the sets of one run covered."""

    runs: NDArray[np.bool_]
    """For each kind, at full and at narrower scale: whether the sets of all epochs contain P."""
    rows: NDArray[np.int64]
    """How many rows the pointwise sets covered, and out of how many: for pairs tried, and pooled for all pairs."""


def covered(mdp: MDP, seed: int, number: int) -> Covered:
    """Coverage in one run of UC-O-REPS, from the counters of its epochs."""
    sk, T = mdp.skeleton, COVERAGE_EPISODES
    learner = UCOREPS(sk, horizon=T, delta=COVERAGE_DELTA)
    log_term = float(np.log(T * sk.num_states * sk.num_actions / COVERAGE_DELTA))
    losses = Switching(sk, period=10, seed=seed).block(0, T)
    rng = generator(seed, "verify", "coverage", str(number))
    counts = learner.counts
    assert counts is not None  # it counts, in epochs
    epochs: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    for loss in losses:
        learner.update(mdp.sample(learner.policy, rng), loss)
        if learner.epochs > len(epochs) + 1:
            epochs.append((counts.visits.copy(), counts.seen.copy()))
    every, counted = at_once(mdp, epochs)
    sqrt_visits = log_at_all_times(sk, counted.visits, COVERAGE_DELTA)
    terms = [sqrt_visits if kind.all_times else log_term for kind in KINDS]
    sets = [
        kind.make(every.skeleton, counted, term, c)
        for kind, term in zip(KINDS, terms, strict=True)
        for c in (1.0, kind.narrow)
    ]
    held = [covers(every.skeleton, one, every.transition) for one in sets]
    return Covered(np.reshape(held, (len(KINDS), 2)), pointwise_rows(every, counted, len(epochs)))


def at_once(mdp: MDP, epochs: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]]) -> tuple[MDP, Counts]:
    """A world in which each pair has a copy, as another action, for every epoch, with the counters of that epoch."""
    sk, copies = mdp.skeleton, len(epochs)
    visits, seen = (np.array(of_epochs) for of_epochs in zip(*epochs, strict=True))
    rows = [slice(a, b) for a, b in zip(sk.transition_ptr[:-1], sk.transition_ptr[1:], strict=True)]
    place = np.concatenate([np.tile(np.arange(row.start, row.stop), copies) for row in rows])
    ends = np.cumsum(np.repeat(np.diff(sk.transition_ptr), copies))
    larger = Skeleton(sk.layer_ptr, sk.pair_ptr * copies, np.append(0, ends), sk.successor[place])
    every = MDP(larger, mdp.transition[place])
    counts = Counts(every.skeleton)
    counts.visits[:] = visits.T.ravel()
    counts.seen[:] = np.concatenate([seen[:, row].ravel() for row in rows])
    return every, counts


def pointwise_rows(every: MDP, counts: Counts, epochs: int) -> NDArray[np.int64]:
    """How many rows pointwise sets cover, and out of how many: for pairs tried, and pooled by epoch for all pairs.

    Without what is added for neglected pairs, which needs the visits of states: the sets are no smaller than these.
    """
    sk = every.skeleton
    widths = np.diff(sk.transition_ptr)
    kinds = Kinds.of(sk, widths * epochs + np.arange(sk.num_pairs) % epochs)
    found = []
    for pooled, asked in ((None, (widths > 1) & (counts.visits > 0)), (kinds, widths > 1)):
        inside = rows_covered(sk, pointwise_set(sk, counts, 1.0, pooled, revisit=False), every.transition)
        found.append([(inside & asked).sum(), asked.sum()])
    return np.array(found)


# Theorem 4.2


@dataclass(frozen=True)
class Certificate:
    """How far a projection deviates from Theorem 4.2, as corrected."""

    formula: float
    """max |ln q - ln(w exp(B) / Z_k)|."""
    gap: float
    """sum q ln(q / w) + sum_k ln Z_k, at least 0 for every q and all multipliers with |v| <= mu."""
    outside: float
    """By how much q violates the constraints of Delta(M, i), or v exceeds mu."""


def certificate(r: Projection) -> Certificate:
    """Compute the deviations from the multipliers v, mu and beta with the theorem's formulas alone."""
    sk, ball = r.skeleton, r.row_set
    assert isinstance(ball, L1Ball)
    first, source = sk.transition_ptr[:-1], np.repeat(sk.state_of_pair, np.diff(sk.transition_ptr))
    over = sk.over_transitions
    visited = np.add.reduceat(ball.center, first) > 0.0
    v, mu = np.where(over(visited), r.v, 0.0), np.where(visited, r.mu, 0.0)
    mean = np.add.reduceat(ball.center * v, first)
    exponent = r.log_weights + over(ball.radius * mu - mean) + r.beta[sk.successor] - r.beta[source] + v
    layers = [slice(a, b) for a, b in zip(sk.layer_transition_ptr[:-1], sk.layer_transition_ptr[1:], strict=True)]
    log_z = [float(logsumexp(exponent[layer])) for layer in layers]
    formula = max(float(np.abs(exponent[a] - z - r.log_q[a]).max()) for a, z in zip(layers, log_z, strict=True))
    pairs = np.add.reduceat(r.q, first)
    misses = np.add.reduceat(np.abs(r.q - ball.center * over(pairs)), first) - ball.radius * pairs
    outside = [flow_residuals(sk, r.q).largest, float(misses[visited].max(initial=0.0)), *(np.abs(v) - over(mu))]
    return Certificate(formula, float(r.q @ (r.log_q - r.log_weights)) + sum(log_z), max(outside))


def projection_problem(seed: int, number: int) -> tuple[Skeleton, FloatArray, L1Ball]:
    """Random weights, and balls around estimates from a few visits (none for some pairs)."""
    rng = generator(seed, "verify", "projection", str(number))
    layers = [1, *rng.integers(2, 5, 2).tolist(), 1]
    mdp = MDP.random(layers, int(rng.integers(2, 4)), seed=int(rng.integers(2**32)))
    sk = mdp.skeleton
    visits = rng.integers(0, 12, sk.num_pairs)
    counts = simulated(mdp, visits, rng)
    return sk, rng.normal(size=sk.num_transitions), L1Ball(counts.center(sk), rng.uniform(0.05, 1.9, sk.num_pairs))


def simulated(mdp: MDP, visits: NDArray[np.int64], rng: np.random.Generator) -> Counts:
    """The counters after these numbers of visits of each pair."""
    sk = mdp.skeleton
    counts = Counts(sk)
    counts.visits[:] = visits
    for p, (a, b) in enumerate(zip(sk.transition_ptr[:-1], sk.transition_ptr[1:], strict=True)):
        counts.seen[a:b] = rng.multinomial(counts.visits[p], mdp.transition[a:b])
    return counts


def corrected_dual(seed: int, shown: Shown = hidden) -> Iterator[Row]:
    """Theorem 4.2 as corrected, on random problems, compared with CVXPY if it is installed."""
    problems = [projection_problem(seed, number) for number in range(PROBLEMS)]
    found = [project(*problem) for problem in problems]
    certificates = [certificate(r) for r in found]
    for kind, what in (
        ("formula", "|ln q - ln(w exp(B) / Z)|, from v, mu and beta"),
        ("gap", "sum q ln(q / w) + sum ln Z, the certificate"),
        ("outside", "q outside Delta(M, i), or |v| above mu"),
    ):
        worst = max(getattr(one, kind) for one in certificates)
        yield nearly_zero(CORRECTED, what, worst, f"{PROBLEMS} random problems", "zero, rounded")
    if find_spec("cvxpy") is None or find_spec("clarabel") is None:
        return
    few = list(zip(problems, found, strict=True))[:ORACLE_PROBLEMS]
    theirs = [oracle(*problem) for problem, _ in shown(few, "projection, by CVXPY")]
    ours = [float(r.q @ (r.log_q - r.log_weights)) for _, r in few]
    worst = float(np.abs(np.subtract(ours, theirs)).max())
    what = "min of sum q ln(q / w): ours and CVXPY's"
    yield nearly_zero(CORRECTED, what, worst, f"{len(few)} of the problems", "its accuracy", ORACLE)


def oracle(sk: Skeleton, log_weights: FloatArray, ball: L1Ball) -> float:
    """min sum q ln(q / w) subject to (1), (2) and (3), written in CVXPY and solved by Clarabel."""
    cp: Any = import_module("cvxpy")  # its types are incomplete
    n, pair = sk.num_transitions, sk.over_transitions(np.arange(sk.num_pairs))
    q = cp.Variable(n, nonneg=True)
    leaves, enters = np.zeros((2, sk.num_states, n))
    leaves[sk.state_of_pair[pair], np.arange(n)] = 1.0
    enters[sk.successor, np.arange(n)] = 1.0
    of_pair = np.zeros((sk.num_pairs, n))
    of_pair[pair, np.arange(n)] = 1.0
    bound = of_pair @ ball.center > 0.0
    miss = of_pair[bound] @ cp.abs(q - cp.multiply(ball.center, of_pair.T @ (of_pair @ q)))
    rules = [leaves[0] @ q == 1.0, leaves[1:-1] @ q == enters[1:-1] @ q]
    rules.append(miss <= cp.multiply(ball.radius[bound], of_pair[bound] @ q))
    divergence = cp.sum(cp.rel_entr(q, np.exp(log_weights)))
    return float(cp.Problem(cp.Minimize(divergence), rules).solve(solver=cp.CLARABEL))


# Theorem 4.2 as printed


def printed_dual(runs: int, seed: int) -> Iterator[Row]:
    """The set of the printed dual excludes the P that Lemma 4.1 promises; the set (3) of the text contains it.

    The example is a pair with a rare successor, visited so often that epsilon < 1.  Both use the same visits.
    """
    mdp = MDP.dense([[[[1.0 - RARE, RARE]]], np.ones((2, 1, 1))])
    sk, rng = mdp.skeleton, generator(seed, "verify", "printed")
    log_term = float(np.log(VISITS * sk.num_states * sk.num_actions / DELTA))
    seen = [simulated(mdp, np.full(sk.num_pairs, VISITS), rng) for _ in range(runs)]
    balls = [l1_set(sk, counts, log_term, 1.0, possible=False) for counts in seen]
    corrected = [covers(sk, ball, mdp.transition) for ball in balls]
    printed = [covered_as_printed(sk, ball, mdp.transition) for ball in balls]
    what, claimed = f"P(x'|x, a) = {RARE} after {VISITS} visits: P in the set", 1.0 - DELTA
    yield share_of_runs(CORRECTED, f"{what} (3)", corrected, claimed, "1 - delta")
    row = share_of_runs(PRINTED, f"{what} of the printed dual", printed, claimed, "Lemma 4.1 is lost")
    yield replace(row, relation="<", holds=not row.holds)
    yield from unseen_successor(mdp, L1Ball([1.0, 0.0, 1.0, 1.0], balls[0].radius))


def covered_as_printed(sk: Skeleton, ball: L1Ball, transition: FloatArray) -> bool:
    """|P(x'|x, a) - Pbar(x'|x, a)| <= epsilon(x, a) P(x'|x, a) for every x'."""
    return bool((np.abs(transition - ball.center) <= sk.over_transitions(ball.radius) * transition).all())


def unseen_successor(mdp: MDP, ball: L1Ball) -> Iterator[Row]:
    """Project the true q with both duals: it must not move if P is in the set."""
    sk = mdp.skeleton
    truth = occupancy(mdp, uniform_policy(sk))
    moved = float(np.abs(project(sk, np.log(truth), ball).q - truth).max())
    left = float(project_as_printed(sk, np.log(truth), ball.center, ball.radius)[1])
    what, beside = "the true q, projected, x' not seen yet", f"{VISITS} visits"
    yield nearly_zero(CORRECTED, f"{what}: moved by", moved, beside, "P is in the set")
    # L-BFGS-B is not exact: a thousandth of the true value counts as zero.
    yield nearly_zero(PRINTED, f"{what}: left of its {RARE}", left, beside, "P is excluded", RARE / 1000.0)


# Section 5


@dataclass(frozen=True)
class Account:
    """The result of a game of UC-O-REPS: upper bounds on R, R^APP and R^ON, and the largest gap of a projection."""

    horizon: int
    total: float
    approximation: float
    online: float
    gap: float


def account(mdp: MDP, losses: Losses, criterion: Criterion, T: int, seed: int) -> Account:
    """Play T episodes with horizon T."""
    learner = UCOREPS(mdp.skeleton, horizon=T, criterion=criterion, delta=DELTA)
    # Only the gap of the last comparator matters, not those of the many along the way.
    game = play(mdp, losses, learner, T, seed=seed, comparator_gap=1.0)
    best, last = game.comparator, game.curve.row(-1, named=True)
    if best.gap > SHOWN_GAP:
        best = comparator(mdp, losses, criterion, T, gap=SHOWN_GAP)
    approximation, total = last["regret_approximation"], last["loss"] - best.lower
    return Account(T, total, approximation, total - approximation, last["projection_gap"])


def theorems(episodes: int, seed: int, shown: Shown = hidden) -> Iterator[Row]:
    """Theorems 5.1 to 5.3 for every criterion, the growth of R, and the gaps of all projections."""
    mdp = world()
    sk = mdp.skeleton
    gaps, played = [], 0
    for criterion in CRITERIA:
        growing = horizons(episodes) if criterion == TotalLoss() else [episodes]
        plan = [(adversary, T, seed + s) for T in growing for adversary in ADVERSARIES for s in range(SEEDS)]
        accounts: dict[Callable[..., Losses], list[Account]] = {adversary: [] for adversary in ADVERSARIES}
        for adversary, T, s in shown(plan, f"games, {name(criterion)}"):
            accounts[adversary].append(account(mdp, adversary(sk, criterion, s), criterion, T, s))
        everything = [one for found in accounts.values() for one in found]
        gaps.append(max(one.gap for one in everything))
        played += sum(one.horizon for one in everything)
        yield from against_bounds(sk, criterion, [one for one in everything if one.horizon == episodes])
        if criterion == TotalLoss():
            yield growth(sk, accounts[switching], "switching losses")
            yield growth(sk, accounts[bad_state], "one state to avoid")
    what = "the gap of every projection in these games"
    yield nearly_zero(CORRECTED, what, max(gaps), f"{played:,} projections", "zero, rounded")


def against_bounds(sk: Skeleton, criterion: Criterion, accounts: Sequence[Account]) -> Iterator[Row]:
    """Compare the largest regret of each kind with its bound."""
    T, F = accounts[0].horizon, criterion.lipschitz(sk)
    for statement, what, values, bound in (
        ("Theorem 5.1", "R", [one.total for one in accounts], bounds.total(sk, T, DELTA, F)),
        ("Theorem 5.2", "R^APP", [one.approximation for one in accounts], bounds.approximation(sk, T, DELTA, F)),
        ("Theorem 5.3", "R^ON", [one.online for one in accounts], bounds.online(sk, T, DELTA, F)),
    ):
        text = f"{what}, {name(criterion)}, T = {T:,}"
        yield bounded(sk, statement, text, max(values), bound, T, f"largest of {len(values)} games")


def name(criterion: Criterion) -> str:
    """The name of the criterion, with the number of losses if there are several."""
    if criterion == WorstCase():
        return f"WorstCase of {LOSSES_AT_ONCE}"
    return repr(criterion).replace(", reading='definition'", "").removesuffix("()")


def online_inequalities(episodes: int, seed: int, shown: Shown = hidden) -> Iterator[Row]:
    """Theorem 5.3, first line: R^ON <= sum_t <q_t - q, z_t> <= eta F^2 L T + L ln(...) / eta, for the worst q."""
    mdp, T = world(), min(episodes, SHORT)
    sk = mdp.skeleton
    for criterion in shown(CRITERIA, "Theorem 5.3, step by step"):
        F = criterion.lipschitz(sk)
        online, linear = linearised(mdp, switching(sk, criterion, seed), criterion, T, seed)
        promised = bounds.online(sk, T, DELTA, F, bounds.eta(sk, T, F))
        text = f"sum <q_t - q, z_t>, {name(criterion)}, T = {T:,}"
        row = bounded(sk, "Theorem 5.3, first line", text, linear, promised, T, f"R^ON, below it: {online:,.1f}")
        yield replace(row, holds=row.holds and online <= linear + EXACT * T, form=",.1f")


def linearised(mdp: MDP, losses: Losses, criterion: Criterion, T: int, seed: int) -> tuple[float, float]:
    """R^ON, and the largest sum_t <q_t - q, z_t> over q in Delta(M), which backward induction finds."""
    sk, rng = mdp.skeleton, generator(seed, "verify", "online")
    learner = UCOREPS(sk, horizon=T, criterion=criterion, delta=DELTA)
    believed, ours, slopes = 0.0, 0.0, np.zeros(sk.num_transitions)
    for loss in losses.block(0, T):
        z = criterion.subgradient(sk, learner.q, loss)
        believed += criterion.value(sk, learner.q, loss)
        ours += float(learner.q @ z)
        slopes += z
        learner.update(mdp.sample(learner.policy, rng), loss)
    online = believed - comparator(mdp, losses, criterion, T, gap=SHOWN_GAP).value
    return online, ours - best_response(mdp, slopes)[1]


def adaptive(episodes: int, seed: int) -> Row:
    """Theorem 5.1 against losses that penalise what the learner preferred last."""
    mdp, T = world(), min(episodes, SHORT)
    sk = mdp.skeleton
    found = account(mdp, Adaptive(sk, seed=seed, strength=0.9), TotalLoss(), T, seed)
    text = f"R, TotalLoss, losses that react, T = {T:,}"
    return bounded(sk, "Theorem 5.1", text, found.total, bounds.total(sk, T, DELTA), T, "1 game")


def growth(sk: Skeleton, accounts: Sequence[Account], what: str) -> Row:
    """The exponent a of R = b T^a, fitted to all games, and the exponent of the bound, fitted to the same horizons.

    The bound is sqrt(T ln T) up to a constant, so its exponent is somewhat above 1/2.  The row fails if the exponent of
    R is significantly larger, by Student's distribution.
    """
    grid = [one.horizon for one in accounts]
    exponent, error = fitted(grid, [one.total for one in accounts])
    claimed, _ = fitted(grid, [bounds.total(sk, T, DELTA) for T in grid])
    holds = least_exponent(exponent, error, len(grid)) <= claimed
    text = f"a in R = b T^a: {what}, {len(grid)} games, T = {min(grid):,} to {max(grid):,}"
    beside, basis = f"± {error:.3f}", "that of sqrt(T ln T)"
    return Row("Theorem 5.1, growth", text, exponent, "<=", claimed, holds, ".3f", beside, basis)


# All of it


def rows(episodes: int, runs: int, seed: int, shown: Shown = hidden) -> Iterator[Row]:
    """The rows of all statements of the paper."""
    yield from coverage(runs, seed, shown)
    yield from corrected_dual(seed, shown)
    yield from printed_dual(runs, seed)
    yield from theorems(episodes, seed, shown)
    yield from online_inequalities(episodes, seed, shown)
    yield adaptive(episodes, seed)


def run(console: Console, episodes: int = 10**6, runs: int = 1000, seed: int = 0) -> bool:
    """Check everything, print each row when it is done, and return whether all statements hold."""
    whole("episodes", episodes, LEAST)
    whole("runs", runs, 1)
    begun, held = monotonic(), []
    console.print(f"The paper's statements and the learners' guarantees, {episodes:,} episodes, seed {seed}")
    looks = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *looks, TimeElapsedColumn(), console=console, transient=True, disable=not console.is_terminal
    ) as bars:

        def shown(items: Sequence[T_], title: str, /) -> Iterable[T_]:
            return bars.track(items, len(items), description=title)

        console.print(in_columns("statement", "what", "measured", "claimed", ""), style="bold")
        for row in chain(rows(episodes, runs, seed, shown), guarantees(episodes, seed, shown), self_tuning(seed)):
            console.print(in_columns(*cells(row)))  # Rich flushes it, even into a pipe
            held.append(row.holds)
    first = first_below_trivial(world().skeleton)
    console.print(
        "The regret of the total loss never exceeds L T, so a larger bound is vacuous. "
        f"The bound of Theorem 5.1 falls below L T at T = {first:,}.", highlight=False, width=WIDTH,
    )  # fmt: skip
    failed = held.count(False)
    verdict = f"[red]{failed} of {len(held)} FAIL[/]" if failed else f"[green]all {len(held)} hold[/]"
    console.print(f"{verdict}, in {monotonic() - begun:.0f} s", highlight=False)
    return failed == 0


def in_columns(*cells: str) -> Table:
    """A row of the table, eighty columns wide on any terminal and in a pipe."""
    table = Table.grid(padding=(0, 1, 0, 0))
    for width in WIDTHS:
        table.add_column(width=width, overflow="fold")
    table.add_row(*cells)
    return table


def cells(row: Row) -> tuple[str, ...]:
    """The row as text for the table."""
    measured, claimed = f"{row.measured:{row.form}}", f"{row.relation} {row.claimed:{row.form}}"
    verdict = "[green]holds[/]" if row.holds else "[red]FAILS[/]"
    beside, basis = (f"\n[dim]{text}[/]" if text else "" for text in (row.beside, row.basis))
    return row.statement, row.what, measured + beside, claimed + basis, verdict


def first_below_trivial(sk: Skeleton) -> int:
    """The first T, to two digits, at which the bound of Theorem 5.1 is below L T for the total loss."""
    exponents = np.arange(1.0, 12.0, 0.001)
    below = (int(T) for T in 10.0**exponents if bounds.total(sk, int(T), DELTA) < bounds.trivial(sk, int(T)))
    return int(float(f"{next(below, 10**12):.2g}"))
