"""Policy regret: fixed policies played in the world of a game, against the same losses, which react to them.

Losses that react would have been others had another policy been played.  Regret ignores this: it compares with the best
policy on the losses that the learner provoked.  Policy regret (Arora, Dekel and Tewari, ICML 2012) compares with what a
fixed policy pays when it is played from the first episode on and the losses answer to it:

    sum_t f(q^{pi_t}; l_t(pi_1, ..., pi_{t-1}))  -  min over the given pi of  sum_t f(q^pi; l_t(pi, ..., pi))

Each fixed policy is played by the machinery that played the learner, on the same random streams, so what it pays is
exact in the same sense: an expectation over trajectories for the losses drawn.  For losses that do not react, policy
regret is ordinary regret against these policies.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from advmdp.core.arrays import FloatArray, frozen
from advmdp.core.errors import InputError
from advmdp.core.wording import plural
from advmdp.game.match import Match
from advmdp.game.progress import shown
from advmdp.game.result import Game
from advmdp.learners.baselines import Chosen, Uniform
from advmdp.learners.kernels.episode import Rule
from advmdp.model.by_name import ByName
from advmdp.model.mdp import Trajectory
from advmdp.model.policy import checked_policy
from advmdp.model.skeleton import Skeleton

if TYPE_CHECKING:
    import polars as pl

LONG = 2**28
"""A bar is shown if episodes times transitions, over all replays, are more than this: a few seconds."""
LISTED = 4
"""As many policies are listed by name."""

Progress = bool | Callable[[float], None] | None
Policies = ArrayLike | Iterable[ArrayLike] | Mapping[str, ArrayLike]


class FixedPolicy(Uniform):
    """Plays one policy for ever."""

    optimises: ClassVar[Literal["any", "total"]] = "any"

    def __init__(self, game: Game, policy: FloatArray) -> None:
        super().__init__(game.mdp.skeleton, game.criterion)
        self._memory = Chosen(policy.copy())
        self._rule = Rule(self._memory.policy)

    def update(self, trajectory: Trajectory, loss: ByName) -> None:
        self.episode += 1


@dataclass(frozen=True, eq=False)
class PolicyRegret:
    """What fixed policies would have paid in a game, had each been played from the first episode on."""

    learner: str
    episodes: int
    total_loss: float
    """What the learner paid."""
    names: tuple[str, ...]
    policies: FloatArray
    """(policies, pairs)."""
    paid: FloatArray
    """(policies,): what each would have paid, with losses that answer to it."""

    @property
    def regret(self) -> float:
        """What the learner paid beyond the best of these policies: below 0 where it paid less than all of them."""
        return self.total_loss - float(self.paid.min())

    @property
    def best(self) -> str:
        """The name of the policy that pays least."""
        return self.names[int(self.paid.argmin())]

    @property
    def table(self) -> "pl.DataFrame":
        """A row for each policy: its name, what it pays, and the regret against it."""
        import polars as pl

        return pl.DataFrame({"policy": self.names, "paid": self.paid, "regret": self.total_loss - self.paid})

    def __repr__(self) -> str:
        order = np.argsort(self.paid, kind="stable").tolist()
        listed = ", ".join(f"{self.names[k]} {self.paid[k]:,.2f}" for k in order[:LISTED])
        more = f" and {len(order) - LISTED} more" if len(order) > LISTED else ""
        return (
            f"PolicyRegret({self.learner} paid {self.total_loss:,.2f} in {plural(self.episodes, 'episode')}; fixed "
            f"policies pay {listed}{more}; policy regret {self.regret:+,.2f} against {self.best})"
        )


def policy_regret(game: Game, policies: Policies, progress: Progress = None) -> PolicyRegret:
    """See :meth:`advmdp.Game.policy_regret`."""
    named = named_policies(game.mdp.skeleton, policies)
    with shown_if_long(game, len(named), progress) as show:
        paid = [replayed(game, policy, show, k) for k, policy in enumerate(named.values())]
    return PolicyRegret(
        type(game.learner).__name__, game.episodes, game.total_loss, tuple(named),
        frozen(np.array(list(named.values()))), frozen(np.array(paid)),
    )  # fmt: skip


def replayed(game: Game, policy: FloatArray, show: Callable[[float], None], before: int = 0) -> float:
    """What a fixed policy pays in the game; ``show`` is told the episodes, ``before`` games like this one included."""
    fixed = FixedPolicy(game, policy)
    match = Match(game.mdp, game.losses, fixed, game.seed, game.criterion, None, compares=False)
    match.run(game.episodes, lambda done: show(before * game.episodes + done), 0.0)
    return match.ledger.paid


def shown_if_long(game: Game, replays: int, progress: Progress) -> AbstractContextManager[Callable[[float], None]]:
    """The progress of so many replays; if nothing is said, a bar where they take more than a few seconds."""
    episodes = replays * game.episodes
    if progress is None:
        progress = episodes * game.mdp.skeleton.num_transitions * (game.losses.dimensions or 1) > LONG
    return shown(progress, episodes, "fixed policies")


def named_policies(sk: Skeleton, policies: Policies) -> dict[str, FloatArray]:
    """Each policy, checked, by its name: its key, or its place in the list."""
    if isinstance(policies, Mapping):
        given = {f"{name}": policy for name, policy in policies.items()}
    elif isinstance(policies, str) or not isinstance(policies, Iterable):
        raise InputError("policies", f"{policies!r}", f"an array of {sk.num_pairs}, or a list or dictionary of such")
    else:
        rows = list(policies)
        alone = bool(rows) and np.ndim(rows[0]) == 0
        given = {"policy": rows} if alone else {f"{k}": row for k, row in enumerate(rows)}
    if not given:
        raise InputError("policies", "none", "one or more")
    return {name: _checked(sk, name, policy) for name, policy in given.items()}


def _checked(sk: Skeleton, name: str, policy: ArrayLike) -> FloatArray:
    try:
        return checked_policy(sk, policy)
    except InputError as error:
        where = "" if error.where == "policy" else f", {error.where}"
        raise InputError(f"policies, {name!r}{where}", error.given, error.expected) from None
