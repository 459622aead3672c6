"""The best sequence of policies with at most S switches, the comparator of dynamic regret.

    min over 0 = t_0 < t_1 < ... < t_s < T, s <= S, of   sum_i  min over policies of  sum_{t_i <= t < t_{i+1}} <q, l_t>

The result is exact up to rounding: dynamic programming considers all T^2 / 2 segments
(:mod:`advmdp.planning.kernels.segments`), each a backward induction on its summed losses.  This needs the total loss:
under other criteria the losses of a segment do not reduce to a sum.  It also needs losses that do not react: if they
do, other policies would have met other losses.
"""

from dataclasses import dataclass
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import MOST, FloatArray, expect, frozen, whole
from advmdp.core.errors import InputError
from advmdp.model.mdp import MDP
from advmdp.model.occupancy import best_response
from advmdp.planning.hindsight.polytope import Polytope
from advmdp.planning.hindsight.sequence import Blocks, Progress, Source
from advmdp.planning.hindsight.sums import means_over_successors
from advmdp.planning.kernels.segments import extend, width

WORK = 2**42
"""The most transitions to pass over in all: about a quarter of an hour of work."""


@dataclass(frozen=True, eq=False)
class SwitchingComparator:
    """The best sequence of policies with a limited number of switches.

    Attributes
    ----------
    policies
        The policy of each segment, (segments, num_pairs); fewer segments if more would not help.
    starts
        The episode in which each segment begins.
    values
        ``values[j, t]`` is what the best sequence with at most j switches pays in the first t episodes.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> losses = am.losses.Switching(mdp.skeleton, period=50, seed=1)
    >>> am.switching_comparator(mdp, losses, episodes=100, switches=1).starts
    array([ 0, 50])
    """

    policies: FloatArray
    """(segments, pairs): the policy of each segment; fewer segments than switches + 1 where more would not help."""
    starts: NDArray[np.int64]
    """(segments,): the episode that each begins with."""
    values: FloatArray
    """(switches + 1, episodes + 1): what the best sequence with at most j switches pays in the first t episodes."""

    @property
    def switches(self) -> int:
        """The largest number of switches that was allowed."""
        return len(self.values) - 1

    @property
    def episodes(self) -> int:
        """The number of episodes."""
        return len(self.values[0]) - 1

    @property
    def value(self) -> float:
        """What the sequence pays."""
        return float(self.values[-1, -1])

    def __repr__(self) -> str:
        return f"SwitchingComparator({self.episodes:,} episodes, {self.switches} switches: {self.value:,.2f})"


def switching_comparator(
    mdp: MDP, losses: Blocks, episodes: int, switches: int, *, progress: Progress | None = None
) -> SwitchingComparator:
    """Find the best sequence of policies with a limited number of switches, exactly, for the total loss.

    Its time grows with the square of ``episodes``.

    Parameters
    ----------
    mdp
        The world.
    losses
        Losses that do not react.
    episodes
        The number of episodes.
    switches
        The largest number of switches.
    progress
        A function that is called with the fraction done.

    Returns
    -------
    SwitchingComparator
        The policies and what they pay.

    Raises
    ------
    InputError
        If the losses react, or if the search would take hours.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> losses = am.losses.Switching(mdp.skeleton, period=50, seed=1)
    >>> switching = am.switching_comparator(mdp, losses, episodes=100, switches=1)
    >>> switching.value < am.comparator(mdp, losses, am.TotalLoss(), episodes=100).value
    True
    """
    polytope = Polytope(expect(MDP, mdp, "mdp"))
    count, most = whole("episodes", episodes, 1, MOST), whole("switches", switches, 0)
    check_switching(mdp, losses, count, most)
    source = Source(polytope, losses, count, None)
    if len(source.shape) > 1:
        raise InputError("losses", f"{source.dimensions} at once", "one loss at a time, which the total loss sums")
    best, start = np.full((most + 1, count + 1), np.inf), np.zeros((most + 1, count + 1), np.int64)
    best[:, 0] = 0.0
    running, ends = _running_sums(polytope, source), width()
    scratch = np.empty(mdp.skeleton.num_pairs * ends), np.empty(mdp.skeleton.num_states * ends), np.empty(ends)
    for first in range(1, count + 1, ends):
        stop = min(first + ends, count + 1)
        extend(mdp.dynamics, running, first, stop, best, start, scratch)
        if progress is not None:
            progress((stop / (count + 1)) ** 2)
    return _traced(mdp, running, best, start)


def check_switching(mdp: MDP, losses: Blocks, episodes: int, switches: int) -> None:
    """Raise if the losses react, or if the computation would take hours."""
    if getattr(losses, "memory", 0):
        given = f"{losses!r}, which reacts: other policies would have met other losses"
        raise InputError("losses", given, "losses that do not react, for regret against policies that switch")
    each = mdp.skeleton.num_transitions + switches
    if episodes * episodes // 2 * each > WORK:
        given = f"{episodes:,} for up to {switches} switches, {episodes * episodes // 2:.1e} segments"
        raise InputError("episodes", given, f"at most {isqrt(2 * WORK // each):,} in this world, or no switches")


def _running_sums(polytope: Polytope, source: Source) -> FloatArray:
    """(episodes + 1, pairs): the cost of each pair in the episodes before t, averaged over its successors."""
    running = np.zeros((source.episodes + 1, polytope.sk.num_pairs))
    t = 0
    for block in source.blocks(0, source.episodes, 0.0, 1.0):
        means = means_over_successors(polytope, block)[:, 0]
        np.cumsum(np.concatenate([running[t : t + 1], means]), axis=0, out=running[t : t + len(block) + 1])
        t += len(block)
    return running


def _traced(mdp: MDP, running: FloatArray, best: FloatArray, start: NDArray[np.int64]) -> SwitchingComparator:
    """Recover the segments of the best sequence, from the last to the first."""
    ends = [best.shape[1] - 1]
    for j in range(len(best) - 1, -1, -1):
        ends.append(int(start[j, ends[-1]]))
        if ends[-1] == 0:
            break
    cuts = ends[::-1]
    sums = running[cuts[1:]] - running[cuts[:-1]]
    policies = np.array([best_response(mdp, mdp.skeleton.over_transitions(one))[0] for one in sums])
    return SwitchingComparator(frozen(policies), frozen(np.array(cuts[:-1])), frozen(best))
