"""Algorithm 1: play a learner against a sequence of losses in a world, and account for the cost.

Trajectories are drawn from the seed's stream "world", 2 L numbers per episode, so any episode can be drawn again.  If
the learner, the criterion and the losses allow it, blocks of episodes run in compiled code; otherwise Python plays one
episode at a time.  The results are the same to the bit, however a game is divided into blocks, and even if it was
killed and resumed from its last checkpoint.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from os import PathLike
from typing import Literal

import numpy as np

from advmdp.core.arrays import MOST, expect, whole
from advmdp.core.errors import InputError
from advmdp.core.files import path_of
from advmdp.criteria import Criterion, TotalLoss
from advmdp.game.checkpoint import SECONDS, load
from advmdp.game.late import Delay, LateLosses
from advmdp.game.match import Match
from advmdp.game.progress import shown
from advmdp.game.result import Game
from advmdp.learners.base import Feedback, Learner
from advmdp.learners.registry import fitting
from advmdp.losses import Losses, Units
from advmdp.model.mdp import MDP
from advmdp.planning.hindsight import check_switching


def play(
    mdp: MDP,
    losses: Losses,
    learner: Learner,
    episodes: int,
    seed: int = 0,
    *,
    progress: bool | Callable[[float], None] = False,
    criterion: Criterion | None = None,
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_seconds: float = SECONDS,
    comparator_gap: float = 1e-4,
    comparator_at: Literal["marks", "end"] = "marks",
    switches: int | Sequence[int] = (),
    delay: Delay = 0,
    feedback: Feedback | None = None,
    dynamics: Literal["known", "unknown"] | None = None,
) -> Game:
    """Play a learner against losses in a world, and account for every episode exactly.

    The learner gets what its class declares: the whole loss or the losses along its path, the dynamics or the
    skeleton. It is changed by playing. Where the learner, the criterion and the losses allow it, blocks of episodes
    run in compiled code, with the same result to the bit.

    Parameters
    ----------
    mdp
        The world.
    losses
        The losses, one for each episode.
    learner
        A learner that was made for this skeleton and has not played yet.
    episodes
        The number of episodes.
    seed
        Fixes the trajectories.
    progress
        Whether to show a progress bar on a terminal; or a function that is called with the number of episodes played.
    criterion
        What is accounted for; by default, what the learner optimises.
    checkpoint
        A file in which the game is saved from time to time and when it is interrupted. The same call resumes from it,
        with the result of a game that never stopped. To continue a finished game, pass a larger ``episodes``.
    checkpoint_seconds
        The time between checkpoints.
    comparator_gap
        The relative gap to which the best fixed policy is searched, for criteria other than the total loss.
    comparator_at
        "marks" computes the regret at all marks of the curve; "end" only for the whole game.
    switches
        A number, or several. For each number S, the curve gets a column ``regret_switches_S``: the regret against the
        best sequence of policies with at most S switches. For the total loss, and losses that do not react.
    delay
        With a delay d, the loss of episode t is revealed after episode t + d: a number, one for each episode, or a
        function of the episode. Losses that are due after the last episode are not revealed, and these episodes stay
        open (``learner.outstanding``). docs/feedback.md says which learners accept late losses, and what they cost.
    feedback
        The feedback that this game grants, "full" or "bandit". A learner that needs more is refused.
    dynamics
        Whether this game tells the dynamics, "known" or "unknown". A learner that needs more is refused.

    Returns
    -------
    Game
        What was paid, the regret, and the curve of both.

    Raises
    ------
    InputError
        If the parts do not fit together.
    CheckpointError
        If the checkpoint is damaged or belongs to another game.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 3, 1], actions=2, seed=0)
    >>> losses = am.losses.Switching(mdp.skeleton, period=100, seed=1)
    >>> game = am.play(mdp, losses, am.SelfTuning(mdp.skeleton), episodes=500, seed=2)
    >>> game.total_loss < 0.5 * 500 * mdp.skeleton.num_steps
    True
    """
    if comparator_at not in ("marks", "end"):
        raise InputError("comparator_at", f"{comparator_at!r}", "'marks' or 'end'")
    if dynamics not in (None, "known", "unknown"):
        raise InputError("dynamics", f"{dynamics!r}", "'known' or 'unknown'")
    if feedback not in (None, "full", "bandit"):
        raise InputError("feedback", f"{feedback!r}", "'full' or 'bandit'")
    _fit(mdp, losses, learner, feedback, dynamics)
    late = None if isinstance(delay, int) and delay == 0 else LateLosses(delay)
    if late is not None and not learner.takes_late_losses:
        raise learner.takes_losses_in_order()
    path = None if checkpoint is None else path_of("checkpoint", checkpoint)
    match = Match(mdp, losses, learner, seed, criterion, path, late=late)
    count = whole("episodes", episodes, 1, MOST)
    if late is not None and late.last is not None and late.last < count:
        raise InputError("delay", f"{late.last} delays", f"one for each of {count} episodes")
    if losses.episodes is not None and count > losses.episodes:
        raise InputError("episodes", f"{count}", f"at most {losses.episodes}, the length of the losses")
    several = _switches(match, count, switches)
    with closing(match):
        if match.path is not None and match.path.exists():
            load(match)
        with shown(progress, count) as show:
            match.run(count, show, checkpoint_seconds)
        return match.game(count, comparator_gap, comparator_at == "end", several, progress)


def _switches(match: Match, episodes: int, switches: int | Sequence[int]) -> list[int]:
    """The distinct numbers of switches; raises if the regret against them cannot be computed in this game."""
    given = switches if isinstance(switches, Sequence) else [switches]
    several = list(dict.fromkeys(whole("switches", one, 1) for one in given))
    if several and match.criterion != TotalLoss():
        raise InputError("switches", f"{several} with {match.criterion!r}", "the total loss, for which they are exact")
    if several:
        check_switching(match.mdp, match.losses, episodes, max(several))
    return several


def _fit(
    mdp: MDP, losses: Losses, learner: Learner, feedback: Feedback | None, dynamics: Literal["known", "unknown"] | None
) -> None:
    """Raise if the learner does not fit this game, and name learners that do."""
    expect(MDP, mdp, "mdp")
    expect(Losses, losses, "losses")  # type: ignore[type-abstract]
    expect(Learner, learner, "learner")  # type: ignore[type-abstract]
    name, total = type(learner).__name__, learner.criterion == TotalLoss()
    granted: Literal["skeleton", "dynamics"] = "skeleton" if dynamics == "unknown" else "dynamics"
    optimises: Literal["any", "total"] = "total" if total else "any"
    expect(Units, losses.units, "losses.units")
    if feedback == "bandit" and learner.feedback == "full":
        given = f"{name}, which must see the whole loss, in a game that shows only the losses along the path"
        raise InputError("learner", given, f"a bandit learner: {fitting('bandit', granted, optimises)}")
    if granted == "skeleton" and learner.mdp is not None:
        others = fitting(feedback or learner.feedback, granted, optimises)
        given = f"{name}, which must know the dynamics, in a game where they are unknown"
        raise InputError("learner", given, f"a learner that knows the skeleton only: {others}")
    if learner.mdp is not None and not np.array_equal(learner.mdp.transition, mdp.transition):
        others = fitting(learner.feedback, "skeleton", optimises)
        given = f"{name}, which was made for other dynamics"
        raise InputError("learner", given, f"one made for this MDP, or one that knows the skeleton only: {others}")
    if (losses.dimensions or 1) > 1 and not learner.criterion.takes_several:
        given = f"{losses.dimensions} losses at once for {name} with {learner.criterion!r}, which accepts one"
        raise InputError("losses", given, f"one, or WorstCase() and one of {fitting('full', granted, 'any')}")
