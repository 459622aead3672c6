"""The paper's lemmas and theorems, each checked on live runs: the measured number next to the claimed one.

    Lemma 4.1     the confidence sets contain P with probability 1 - delta: :mod:`advmdp.verify.coverage`
    Theorem 4.2   the dual of the projection: :mod:`advmdp.verify.dual`
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
from itertools import chain
from time import monotonic
from typing import TypeVar

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from advmdp.core.arrays import whole
from advmdp.core.optional import optional
from advmdp.core.streams import generator
from advmdp.criteria import Criterion, Risk, TotalLoss, WorstCase
from advmdp.game.play import play
from advmdp.learners import bounds
from advmdp.learners.uc_o_reps import UCOREPS
from advmdp.losses import Adaptive, Losses
from advmdp.model.mdp import MDP
from advmdp.model.occupancy import best_response
from advmdp.model.skeleton import Skeleton
from advmdp.planning.hindsight import comparator
from advmdp.verify.coverage import coverage
from advmdp.verify.dual import CORRECTED, corrected_dual, printed_dual
from advmdp.verify.games import ADVERSARIES, LOSSES_AT_ONCE, bad_state, horizons, switching, world
from advmdp.verify.learners import guarantees
from advmdp.verify.rows import (
    DELTA,
    EXACT,
    Row,
    Shown,
    bounded,
    fitted,
    hidden,
    least_exponent,
    nearly_zero,
)  # fmt: skip
from advmdp.verify.self_tuning import self_tuning

with optional:
    pass

T_ = TypeVar("T_")
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
SHOWN_GAP = 1e-5


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
