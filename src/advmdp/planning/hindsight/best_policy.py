"""The entry points: the best policies in hindsight for one or several prefixes of a sequence."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from advmdp.core.arrays import MOST, exact_floats, expect, frozen, integers, whole
from advmdp.core.errors import AdvMDPError, InputError
from advmdp.criteria import Criterion
from advmdp.model.mdp import MDP
from advmdp.model.occupancy import best_response, occupancy
from advmdp.planning.hindsight.answer import Comparator
from advmdp.planning.hindsight.polytope import Polytope
from advmdp.planning.hindsight.quadratic import summed
from advmdp.planning.hindsight.search import searched
from advmdp.planning.hindsight.sequence import Blocks, Progress, Source
from advmdp.planning.hindsight.tasks import task_of

GAP = 1e-4
PASSES = 200


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
    """Find the best fixed policy in hindsight, with a proof of how good it is.

    For the total loss one pass over the losses gives the exact answer. Other criteria are searched until the gap is
    small enough.

    Parameters
    ----------
    mdp
        The world.
    losses
        The losses.
    criterion
        What is added up over the episodes.
    episodes
        The number of episodes.
    gap
        The relative gap to reach.
    passes
        The largest number of passes over the losses.
    allow_gap
        Whether to return the best policy found if the gap is not reached, instead of raising an error.
    progress
        A function that is called with the fraction done.

    Returns
    -------
    Comparator
        The policy, what it pays, and a lower bound.

    Raises
    ------
    AdvMDPError
        If the gap is not reached.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> losses = am.losses.Switching(mdp.skeleton, period=50, seed=1)
    >>> best = am.comparator(mdp, losses, am.TotalLoss(), episodes=200)
    >>> best.policy.shape, best.episodes
    ((8,), 200)
    """
    prefixes = [whole("episodes", episodes, 1, MOST)]
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
    """The best policies in hindsight for the prefixes ``episodes``, in ascending order, all found in the same passes.

    Each is proven optimal up to the fraction ``gap`` of its value.  If this takes more than ``passes`` passes over the
    sequence, the function raises an error, or with ``allow_gap`` returns the best policy found with its gap.
    ``progress`` is called with the fraction done.  The number of passes is not known in advance, so each counts for
    half of the rest.
    """
    polytope = Polytope(expect(MDP, mdp, "mdp"))
    prefixes = _ascending(episodes)
    source = Source(polytope, losses, prefixes[-1], progress)
    task = task_of(polytope, criterion, source.dimensions)
    if not isinstance(gap, int | float | np.number) or not gap > 0.0:
        raise InputError("gap", f"{gap!r}", "a number above 0")
    most = whole("passes", passes, 1)
    if task.exact:
        found = summed(task, source, prefixes, gap)
    else:
        found = [search.result() for search in searched(task, source, prefixes, gap, most)]
    source.tell(1.0)
    worst = max(found, key=lambda one: one.gap)
    if worst.gap > gap and not allow_gap:
        raise AdvMDPError(
            f"comparator of {worst.episodes} episodes: a gap of {worst.gap:.2g} after {worst.passes} passes; expected "
            f"{gap:.2g} (allow more passes or a larger gap, or accept the best policy found with allow_gap=True)"
        )
    return tuple(found)


def total_comparator(mdp: MDP, total: ArrayLike, episodes: int) -> Comparator:
    """The best policy in hindsight for TEL, given the sum of the losses, which a game keeps while it runs."""
    expect(MDP, mdp, "mdp")
    policy, value = best_response(mdp, exact_floats(total, "total", (mdp.skeleton.num_transitions,)))
    return Comparator(frozen(policy), frozen(occupancy(mdp, policy)), value, value, whole("episodes", episodes, 0), 0)


def _ascending(episodes: Sequence[int]) -> list[int]:
    prefixes: list[int] = integers(episodes, "episodes").tolist()
    if not prefixes or prefixes[0] < 1 or any(a >= b for a, b in pairwise(prefixes)):
        raise InputError("episodes", f"{prefixes}", "ascending numbers, 1 or more")
    return prefixes
