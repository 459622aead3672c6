"""The guarantees of all learners but UC-O-REPS, checked on live runs: quoted bounds, regret and their growth.

    R(T) = max over games of E[regret after T episodes]  <=  bound(T)
    R = b T^a with an exponent a not significantly above that of the bound, both fitted to the same horizons

Each guarantee is checked in the games to which it applies: independent losses for learners that assume them, also
switching losses for the others, and also losses that react for those that allow any.  Several guarantees are in
expectation, hence the mean over seeds.

A bound is for the worst case, and so is R(T) for each T.  In a single game, regret grows linearly in T while the
difference between good and bad is too small to be learned, and more slowly later.  A bound above L T is vacuous: it
limits neither the regret nor the exponent, so the exponent is shown but not judged.  This is the case for UCRL2, REGAL
and UCBVI at the horizons of these games.  There UCBVI has hardly begun to learn, and its regret is linear in T.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from advmdp.criteria import TotalLoss
from advmdp.game.play import play
from advmdp.learners import bounds
from advmdp.learners.base import Learner
from advmdp.learners.parameters import parameter_names
from advmdp.learners.registry import LEARNERS, make_learner
from advmdp.losses import Adaptive, Losses
from advmdp.model.mdp import MDP
from advmdp.model.skeleton import Skeleton
from advmdp.verify.games import bad_action, bad_state, horizons, switching, world
from advmdp.verify.rows import Row, Shown, bounded, fitted, hidden, least_exponent

LONGEST = 10**5
"""The most episodes of a game; there are hundreds of games."""
SEEDS = 4
"""How many games a mean is taken over."""
ELSEWHERE = ("UCOREPS", "Uniform", "FollowLeader", "ReplayLast")
"""The learner of the theorems, and learners without a guarantee."""
NOTES = {"UOBREPS": "its constant taken as 1"}
"""Notes on bounds."""

Game = Callable[[Skeleton, int], Losses]
GAMES: dict[str, Game] = {
    "a bad state": lambda sk, seed: bad_state(sk, TotalLoss(), seed),
    "a bad action": bad_action,
    "switching losses": lambda sk, seed: switching(sk, TotalLoss(), seed),
    "losses that react": lambda sk, seed: Adaptive(sk, seed=seed, strength=0.9),
}
MEETS = {"stochastic": 2, "oblivious": 3, "arbitrary": 4}
"""How many of the games, in this order, satisfy the assumptions of a guarantee."""


@dataclass(frozen=True)
class Contender:
    """A learner that can be made for a world, a horizon and a seed."""

    title: str
    make: Callable[[MDP, int, int], Learner]
    note: str = ""


def contenders() -> list[Contender]:
    """Every learner with its own guarantee, once for each kind of feedback, with the theory's parameters."""
    found = []
    for name, kind in LEARNERS.items():
        if name not in ELSEWHERE:
            either = kind.sees == "full or bandit"
            proven: dict[str, Any] = {"guarantee": True} if "guarantee" in parameter_names(kind) else {}
            for options in ({"feedback": "full"}, {"feedback": "bandit"}) if either else (proven,):
                title = ", ".join([name, *(value for value in options.values() if isinstance(value, str))])
                found.append(Contender(title, partial(made, name, options), NOTES.get(name, "")))
    return found


def made(name: str, options: dict[str, Any], mdp: MDP, horizon: int, seed: int) -> Learner:
    """The learner of that name, with the horizon and the seed if it takes them."""
    return make_learner(name, mdp, offered={"horizon": horizon, "seed": seed}, **options)


def guarantees(episodes: int, seed: int, shown: Shown = hidden) -> Iterator[Row]:
    """A row for every learner, from games of at most this many episodes."""
    grid = horizons(min(episodes, LONGEST))
    for contender in shown(contenders(), "learners"):
        yield guarantee(contender, grid, seed)


def guarantee(contender: Contender, grid: Sequence[int], seed: int) -> Row:
    """Compare the bound with the largest mean regret at the last horizon, and the growth of both."""
    mdp, T = world(), grid[-1]
    bound = [contender.make(mdp, horizon, seed).bound(horizon) for horizon in grid]
    games = list(GAMES)[: MEETS[contender.make(mdp, T, seed).assumes]]
    regret = np.array([[mean_regret(contender, mdp, GAMES[game], t, seed) for game in games] for t in grid])
    worst = regret.max(axis=1)
    exponent, error = fitted(grid, worst.tolist())
    played = games[int(regret[-1].argmax())]
    beside = f"grows as T^{exponent:.2f} ± {error:.2f}"
    text = f"{contender.title}: mean R in {SEEDS} games, T = {T:,}; the worst of {len(games)} kinds: {played}"
    row = bounded(mdp.skeleton, "Other learners", text, float(worst[-1]), bound[-1], T, beside)
    notes = [row.basis, contender.note]
    if bound[-1] < bounds.trivial(mdp.skeleton, T):
        claimed, _ = fitted(grid, bound)
        sure = least_exponent(exponent, error, len(grid)) > claimed
        # An exponent above the bound's, though not significantly, is no success and must not be shown as one.
        unsure = ", not surely less" if exponent > claimed and not sure else ""
        notes.insert(1, f"as T^{claimed:.2f}{unsure}")
        row = replace(row, holds=row.holds and not sure)
    return replace(row, basis=", ".join(filter(None, notes)))


def mean_regret(contender: Contender, mdp: MDP, game: Game, T: int, seed: int) -> float:
    """The mean regret over seeds, against the exact best fixed policy in hindsight."""
    seeds, sk = range(seed, seed + SEEDS), mdp.skeleton
    return float(np.mean([play(mdp, game(sk, s), contender.make(mdp, T, s), T, seed=s).regret for s in seeds]))
