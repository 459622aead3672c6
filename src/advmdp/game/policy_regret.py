"""Policy regret: what fixed policies would have paid in a game, with losses that react to them.

If losses react, another policy would have met other losses.  Regret ignores this: it compares with the best policy on
the losses that the learner provoked.  Policy regret (Arora, Dekel and Tewari, ICML 2012) compares with what a fixed
policy pays if it is played from the first episode on and the losses react to it:

    sum_t f(q^{pi_t}; l_t(pi_1, ..., pi_{t-1}))  -  min over the given pi of  sum_t f(q^pi; l_t(pi, ..., pi))

The code that played the learner also plays each fixed policy, on the same random streams.  So the policy's cost is
exact in the same sense: an expectation over trajectories for the losses drawn.  If losses do not react, policy regret
is ordinary regret against these policies.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from advmdp.core.arrays import FloatArray, frozen
from advmdp.core.errors import InputError
from advmdp.core.wording import plural
from advmdp.game.match import Match
from advmdp.game.progress import shown
from advmdp.game.result import Game
from advmdp.learners.baselines import Chosen, Uniform
from advmdp.learners.kernels.episode import Rule
from advmdp.losses import LOSS, Units
from advmdp.model.by_name import ByName
from advmdp.model.mdp import Trajectory
from advmdp.model.policy import checked_policy
from advmdp.model.skeleton import Skeleton

if TYPE_CHECKING:
    import polars as pl

LONG = 2**28
"""A progress bar appears if episodes times transitions, over all replays, exceed this: a few seconds."""
LISTED = 4
"""How many policies are listed by name."""

Progress = bool | Callable[[float], None] | None
Policies = ByName | Iterable[ByName] | Mapping[str, ByName]


class FixedPolicy(Uniform):
    """Plays one policy in every episode."""

    optimises: ClassVar[Literal["any", "total"]] = "any"

    def __init__(self, game: Game, policy: FloatArray) -> None:
        super().__init__(game.mdp.skeleton, game.criterion)
        self._memory = Chosen(policy.copy())
        self._rule = Rule(self._memory.policy)

    def update(self, trajectory: Trajectory, loss: ByName) -> None:
        self.episode += 1


@dataclass(frozen=True, eq=False)
class PolicyRegret:
    """What fixed policies would have paid in a game, each played from the first episode on.

    :meth:`Game.policy_regret` returns it.

    Attributes
    ----------
    learner
        The name of the learner.
    episodes
        The number of episodes.
    total_loss
        What the learner paid, in losses.
    names
        The names of the policies.
    policies
        The policies, (number of policies, num_pairs).
    paid
        What each policy pays, in losses like ``total_loss``.
    units
        What the losses are worth; ``units.cost(paid, episodes)`` converts them.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], 2, seed=0)
    >>> game = am.play(mdp, am.losses.Adaptive(mdp.skeleton), am.ReplayLast(mdp.skeleton), episodes=100)
    >>> against = game.policy_regret({"at random": am.uniform_policy(mdp.skeleton)})
    >>> against.best
    'at random'
    """

    learner: str
    episodes: int
    total_loss: float
    """What the learner paid."""
    names: tuple[str, ...]
    policies: FloatArray
    """(policies, pairs)."""
    paid: FloatArray
    """(policies,): what each would have paid, with losses that answer to it."""
    units: Units = LOSS

    @property
    def regret(self) -> float:
        """What the learner paid above the best of these policies; negative if it paid less than all of them."""
        return self.total_loss - float(self.paid.min())

    @property
    def best(self) -> str:
        """The name of the policy that pays least."""
        return self.names[int(self.paid.argmin())]

    @property
    def table(self) -> "pl.DataFrame":
        """A Polars frame with a row for each policy: its name, what it pays, and the regret against it."""
        import polars as pl

        return pl.DataFrame({"policy": self.names, "paid": self.paid, "regret": self.total_loss - self.paid})

    def __repr__(self) -> str:
        order, units, n = np.argsort(self.paid, kind="stable").tolist(), self.units, self.episodes
        listed = ", ".join(f"{self.names[k]} {units.shown(self.paid[k], n)}" for k in order[:LISTED])
        more = f" and {len(order) - LISTED} more" if len(order) > LISTED else ""
        return (
            f"PolicyRegret({self.learner} paid {units.shown(self.total_loss, n)} in {plural(n, 'episode')}; fixed "
            f"policies pay {listed}{more}; policy regret {units.shown(self.regret, sign='+')} against {self.best})"
        )


def policy_regret(game: Game, policies: Policies, progress: Progress = None) -> PolicyRegret:
    """See :meth:`advmdp.Game.policy_regret`."""
    named = named_policies(game.mdp.skeleton, policies)
    with shown_if_long(game, len(named), progress) as show:
        paid = [replayed(game, policy, show, k) for k, policy in enumerate(named.values())]
    return PolicyRegret(
        type(game.learner).__name__, game.episodes, game.total_loss, tuple(named),
        frozen(np.array(list(named.values()))), frozen(np.array(paid)), game.units,
    )  # fmt: skip


def replayed(game: Game, policy: FloatArray, show: Callable[[float], None], before: int = 0) -> float:
    """The cost of a fixed policy in the game; ``show`` gets the episodes, including ``before`` earlier replays."""
    fixed = FixedPolicy(game, policy)
    match = Match(game.mdp, game.losses, fixed, game.seed, game.criterion, None, compares=False)
    match.run(game.episodes, lambda done: show(before * game.episodes + done), 0.0)
    return match.ledger.paid


def shown_if_long(game: Game, replays: int, progress: Progress) -> AbstractContextManager[Callable[[float], None]]:
    """The progress of ``replays`` replays; by default a bar if they take more than a few seconds."""
    episodes = replays * game.episodes
    if progress is None:
        progress = episodes * game.mdp.skeleton.num_transitions * (game.losses.dimensions or 1) > LONG
    return shown(progress, episodes, "fixed policies")


def named_policies(sk: Skeleton, policies: Policies) -> dict[str, FloatArray]:
    """The checked policies by name, which is the key or the index in the list."""
    if isinstance(policies, Mapping) and not _by_state(sk, policies):
        given = {f"{name}": policy for name, policy in policies.items()}
    elif isinstance(policies, str) or not isinstance(policies, Iterable):
        raise InputError("policies", f"{policies!r}", f"an array of {sk.num_pairs}, or a list or dictionary of arrays")
    else:
        rows = list(policies)
        alone = bool(rows) and np.ndim(rows[0]) == 0 and not isinstance(rows[0], Mapping)
        single = isinstance(policies, Mapping) or alone
        given = {"policy": policies} if single else {f"{k}": row for k, row in enumerate(rows)}
    if not given:
        raise InputError("policies", "none", "one or more")
    return {name: _checked(sk, name, policy) for name, policy in given.items()}


def _by_state(sk: Skeleton, policies: Mapping[str, ByName]) -> bool:
    """Whether this is one policy by name, {state: ...}, rather than several with a name each."""
    return (
        bool(policies)
        and set(policies) <= set(sk.state_names or ())
        and all(isinstance(row, str | Mapping) for row in policies.values())
    )


def _checked(sk: Skeleton, name: str, policy: ByName) -> FloatArray:
    try:
        return checked_policy(sk, policy)
    except InputError as error:
        where = "" if error.where == "policy" else f", {error.where}"
        raise InputError(f"policies, {name!r}{where}", error.given, error.expected) from None
