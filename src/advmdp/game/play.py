"""Algorithm 1: a learner against a sequence of losses in a world, and what it cost.

Trajectories are drawn from the stream of the seed that is called "world", 2 L numbers an episode, so any episode can be
drawn again.  Where the learner's step, the criterion and the losses can, blocks of episodes run in compiled code; else
one episode at a time runs in Python.  The results are the same to the bit, as they are for any way of cutting a game
into blocks, and so is a game that was killed and taken up again from its last checkpoint.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from os import PathLike
from typing import Literal

import numpy as np

from advmdp.core.arrays import expect, whole
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
from advmdp.losses import Losses
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
    """Play ``episodes`` episodes and account for them exactly.

    ``criterion`` is what is accounted for: the learner's own unless said.  ``progress`` shows a bar on a terminal; a
    function is called with the number of episodes played, from time to time.

    The learner is shown what it declares to need: the whole loss or that along its path, the dynamics or the skeleton.
    ``feedback`` and ``dynamics`` say what this game grants, and then a learner that needs more is refused.

    With ``checkpoint``, a file, the game is saved every ``checkpoint_seconds`` and when it is interrupted (Ctrl-C), and
    the same call takes it up from there, with the same results as if it had never stopped; a larger ``episodes`` plays
    on.  A file that is damaged, or of another game, is refused (:class:`advmdp.CheckpointError`).  The learner is
    handed over as it was made and is moved on by playing.

    The best fixed policy of any criterion but the total loss must be searched for, to the relative gap
    ``comparator_gap``; with ``comparator_at="end"`` only for the whole game, and regret before that is left empty.

    ``switches``, a number S or several, adds the regret against the best sequence of policies that switches at most S
    times, exact, as the columns ``regret_switches_S`` of the curve: for the total loss, and losses that do not react.

    With ``delay`` d the loss of episode t is revealed after episode t + d: a number, one for each episode, or a
    function of the episode.  Losses that are due after the last episode are not revealed, and these episodes stay open
    (``learner.outstanding``).  docs/feedback.md says which learners can be played so, and what it costs.
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
    count = whole("episodes", episodes, 1)
    if late is not None and late.last is not None and late.last < count:
        raise InputError("delay", f"{late.last} delays", f"one for each of {count} episodes")
    if losses.episodes is not None and count > losses.episodes:
        raise InputError("episodes", f"{count}", f"at most {losses.episodes}, as many as {losses!r} has")
    several = _switches(match, count, switches)
    with closing(match):
        if match.path is not None and match.path.exists():
            load(match)
        with shown(progress, count) as show:
            match.run(count, show, checkpoint_seconds)
        return match.game(count, comparator_gap, comparator_at == "end", several, progress)


def _switches(match: Match, episodes: int, switches: int | Sequence[int]) -> list[int]:
    """The numbers of switches, each once, if the regret against them can be worked out in this game."""
    given = switches if isinstance(switches, Sequence) else [switches]
    several = list(dict.fromkeys(whole("switches", one, 1) for one in given))
    if several and match.criterion != TotalLoss():
        raise InputError("switches", f"{several} with {match.criterion!r}", "the total loss, where they are exact")
    if several:
        check_switching(match.mdp, match.losses, episodes, max(several))
    return several


def _fit(
    mdp: MDP, losses: Losses, learner: Learner, feedback: Feedback | None, dynamics: Literal["known", "unknown"] | None
) -> None:
    """Refuse a learner that this game is not for, and say which ones it is for."""
    expect(MDP, mdp, "mdp")
    expect(Losses, losses, "losses")  # type: ignore[type-abstract]
    expect(Learner, learner, "learner")  # type: ignore[type-abstract]
    name, total = type(learner).__name__, learner.criterion == TotalLoss()
    granted: Literal["skeleton", "dynamics"] = "skeleton" if dynamics == "unknown" else "dynamics"
    optimises: Literal["any", "total"] = "total" if total else "any"
    if feedback == "bandit" and learner.feedback == "full":
        given = f"{name}, which must see the whole loss, in a game that shows the losses along the path"
        raise InputError("learner", given, f"one that sees no more: {fitting('bandit', granted, optimises)}")
    if granted == "skeleton" and learner.mdp is not None:
        others = fitting(feedback or learner.feedback, granted, optimises)
        given = f"{name}, which must know the dynamics, in a game where they are unknown"
        raise InputError("learner", given, f"one that is told the skeleton: {others}")
    if learner.mdp is not None and not np.array_equal(learner.mdp.transition, mdp.transition):
        others = fitting(learner.feedback, "skeleton", optimises)
        given = f"{name}, which was told other dynamics than this world's"
        raise InputError("learner", given, f"one made of this MDP, or one that need not be told: {others}")
    if (losses.dimensions or 1) > 1 and not learner.criterion.takes_several:
        given = f"{losses.dimensions} losses at once for {name} with {learner.criterion!r}, which takes one"
        raise InputError("losses", given, f"one, or WorstCase() and one of {fitting('full', granted, 'any')}")
