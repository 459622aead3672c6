"""Off-policy evaluation: what a policy would have paid in the logged episodes, with an interval.

If whole losses were told, only the dynamics are unknown.  With l the mean of the losses told,

    V = <q^{Pbar, pi}, l>,      low = min over P in C of <q^{P, pi}, l>,      high = max over P in C of <q^{P, pi}, l>,

by extended backward induction over the set C, which contains the true rows with probability 1 - delta.  The interval is
valid simultaneously for all policies, so you may use it to choose the best of many.

If only the costs of the steps taken are known, paths are weighted: :mod:`advmdp.live.weighting` has the estimators.

A log holds the losses that occurred.  If losses react to what is played, another policy would have had other losses,
which no log can show; :meth:`advmdp.Game.policy_regret` computes them in a simulated world.
"""

from dataclasses import dataclass
from os import PathLike
from typing import Literal, NamedTuple

import numpy as np

from advmdp.confidence import RowSet
from advmdp.core.arrays import FloatArray, real
from advmdp.core.errors import InputError
from advmdp.core.wording import number, one_of, plural
from advmdp.live.agent import Agent
from advmdp.live.costs import Units
from advmdp.live.evidence import Evidence, gather
from advmdp.live.history import History
from advmdp.live.weighting import weighted_estimates
from advmdp.model.by_name import ByName
from advmdp.model.occupancy import policy_values
from advmdp.model.policy import checked_policy
from advmdp.model.skeleton import Skeleton
from advmdp.planning.optimism import policy_interval

WHOLE = "whole losses"
Method = Literal["whole losses", "doubly robust", "self-normalised", "importance"]
IMPOSSIBLE = "no logged path is possible under this policy"
FAR = 2.0
"""The text names a mean weight that is larger than this, or smaller than its inverse."""
METHODS = (WHOLE, "doubly robust", "self-normalised", "importance")
"""The methods, in the order in which :func:`evaluate` prefers them."""


class Estimate(NamedTuple):
    """The estimated cost of an episode, in the caller's units."""

    cost: float
    """NaN if no logged path is possible under the policy."""
    low: float
    high: float
    episodes: int
    """The number of episodes that it is based on."""


@dataclass(frozen=True)
class Evaluation:
    """What a policy would have paid, as :func:`evaluate` estimates it.

    Costs are for one episode, in the units of the agent.

    Attributes
    ----------
    cost
        What the policy would have paid; NaN if it is not known, because no logged path is possible under the policy.
    low
        The lower end of the interval, which contains the truth with probability ``1 - delta``.
    high
        Its upper end.
    method
        The method of the estimate.
    episodes
        The number of episodes that the estimate is based on.
    left_out
        The number of episodes of the log that it could not use.
    logged
        What was paid per episode, over the episodes used that reached the end with all costs known; NaN without any. It
        comes from the log, whatever was removed from the world since.
    logged_episodes
        The number of these episodes.
    weight
        The mean weight of a path; 1 for whole losses. If well below 1, the agent rarely did what the policy does; if
        0, it never did.
    clipped
        The number of costs in the log outside the units. Estimates clip them; ``logged`` does not.
    delta
        The probability that the interval misses the truth.
    estimates
        The estimates of all methods that the log allows.

    Examples
    --------
    >>> import advmdp as am
    >>> sk = am.Skeleton.from_steps([("home", "bus", "work"), ("home", "walk", "work")])
    >>> with am.Agent.open("commute.db", skeleton=sk) as agent:
    ...     for day in range(20):
    ...         episode = agent.begin()
    ...         episode.arrive("work")
    ...         agent.tell(episode, {("home", "bus"): 0.5, ("home", "walk"): 0.25})
    >>> am.evaluate("commute.db", {"home": "walk"}).cost
    0.25
    """

    cost: float
    """What the policy would have paid; NaN if it is not known, because no logged path is possible under the policy."""
    low: float
    high: float
    """The interval, at level ``1 - delta``; approximate unless the method is whole losses."""
    method: str
    episodes: int
    """The number of episodes that the estimate is based on."""
    left_out: int
    """Episodes of the log that it could not use."""
    logged: float
    """What was paid per episode in ``logged_episodes`` of the episodes used; NaN where there are none."""
    logged_episodes: int
    """Of the episodes used, those that reached the end with all costs known."""
    weight: float
    """The mean weight of a path; 1 for whole losses. If well below 1, the agent rarely did what the policy does."""
    clipped: int
    """The number of costs in the log outside the units. Estimates clip them; ``logged`` does not."""
    delta: float
    estimates: dict[str, Estimate]
    """The estimates of all methods that the log allows."""

    def __str__(self) -> str:
        sure = f"between {number(self.low)} and {number(self.high)} with probability {1.0 - self.delta:g}"
        needs = "a whole loss" if self.method == WHOLE else "a finished path with all costs"
        left = f", {self.left_out:,} without {needs} left out" if self.left_out else ""
        based = f"{self.method}, {plural(self.episodes, 'episode')}{left}"
        outside = f"; {plural(self.clipped, 'cost')} outside the units, clipped in the estimate" if self.clipped else ""
        return f"{self._said()} {sure} ({based}); paid: {self._paid()}{outside}"

    __repr__ = __str__

    def _said(self) -> str:
        """The estimate, and the mean weight if it is far from 1."""
        if np.isnan(self.cost):
            return f"not known: {IMPOSSIBLE} (weight 0);"
        rare = "" if 1.0 / FAR <= self.weight <= FAR else f" (mean weight {number(self.weight)}, should be near 1)"
        return f"{number(self.cost)} per episode{rare},"

    def _paid(self) -> str:
        """What was paid per episode, and in which."""
        if np.isnan(self.logged):
            return "unknown"
        if self.logged_episodes < self.episodes:
            return f"{number(self.logged)} in the {self.logged_episodes:,} of them that ended with all costs known"
        return f"{number(self.logged)} in {'this episode' if self.episodes == 1 else 'these episodes'}"


def evaluate(
    log: str | PathLike[str] | Agent | History,
    policy: ByName,
    *,
    delta: float = 0.05,
    method: Method | None = None,
) -> Evaluation:
    """Estimate what a policy would have paid in the logged episodes.

    Parameters
    ----------
    log
        The file of an agent, the agent, or its history.
    policy
        A vector over pairs of the current world, or a dictionary by name, {state: {action: probability}}.
    delta
        The interval holds with probability ``1 - delta``.
    method
        "whole losses", "doubly robust", "self-normalised" or "importance"; by default the first of these that the log
        allows. The first needs whole losses, and its interval holds simultaneously for all policies. The others need
        finished paths with the cost of every step. Their intervals are approximate.

    Returns
    -------
    Evaluation
        The cost per episode in your units, its interval, and what was paid.

    Raises
    ------
    InputError
        If the log has no episodes that the method can use, or the policy is invalid.

    Notes
    -----
    A log cannot tell how losses would have reacted to another policy. Paths that stopped early are left out. If
    stopping depends on their costs, weighted estimates are biased.

    Examples
    --------
    >>> import advmdp as am
    >>> sk = am.Skeleton.from_steps([("home", "bus", "work"), ("home", "walk", "work")])
    >>> agent = am.Agent.open(":memory:", skeleton=sk, units=(0, 90), seed=7)
    >>> for day in range(10):
    ...     episode = agent.begin()
    ...     episode.arrive("work")
    ...     agent.tell(episode.id, {("home", "bus"): 30 + day, ("home", "walk"): 24})
    >>> am.evaluate(agent, {"home": "bus"}).cost
    34.5
    >>> agent.close()
    """
    check_delta(delta)
    if method is not None and method not in METHODS:
        raise InputError("method", f"{method!r}", one_of(method, METHODS))
    history = History.read(log)
    evidence = gather(history)
    pi = checked_policy(evidence.skeleton, policy)
    found, weight = all_estimates(evidence, pi, delta, history.terms.units)
    chosen = next((name for name in METHODS if name in found), None) if method is None else method
    if chosen is None or chosen not in found:
        needs = "whole losses" if method == WHOLE else "finished paths with the cost of every step, or whole losses"
        raise InputError("log", f"{plural(evidence.episodes, 'episode')}, none of them usable", needs)
    cost, low, high, used = found[chosen]
    judged = evidence.told if chosen == WHOLE else evidence.paths
    known = [evidence.paid[one.episode] for one in judged if one.episode in evidence.paid]
    paid = float(np.mean(known)) if known else np.nan
    left, weight = evidence.episodes - used, 1.0 if chosen == WHOLE else weight
    return Evaluation(cost, low, high, chosen, used, left, paid, len(known), weight, evidence.clipped, delta, found)


def check_delta(delta: float) -> None:
    """Raise unless ``delta`` is a probability for an interval to miss the truth."""
    if not 0.0 < real(delta) < 1.0:
        raise InputError("delta", f"{delta!r}", "a number between 0 and 1")


def all_estimates(
    evidence: Evidence, policy: FloatArray, delta: float, units: Units
) -> tuple[dict[str, Estimate], float]:
    """The estimates of a fixed policy by method, in the caller's units, and the mean weight of a path."""
    sk, found, weight = evidence.skeleton, {}, 0.0
    if evidence.told:
        sums = believed_interval(evidence, [one.loss for one in evidence.told], policy, evidence.row_set(delta))
        found[WHOLE] = _estimate(sk, units, sums, len(evidence.told))
    if evidence.paths:
        weighted, weight = weighted_estimates(sk, evidence.paths, policy, delta)
        found |= {name: _estimate(sk, units, sums, len(evidence.paths)) for name, sums in weighted.items()}
    return found, weight


def believed_interval(
    evidence: Evidence, losses: list[FloatArray], policy: FloatArray, row_set: RowSet
) -> tuple[float, float, float]:
    """The mean, over these losses, of what the policy pays under Pbar, with its minimum and maximum over the set.

    An unknown entry may be anything from 0 to 1, and counts as 1/2 in the estimate.
    """
    sk, count = evidence.skeleton, len(losses)
    unknown = sum(np.isnan(loss).astype(float) for loss in losses)
    known = sum(np.nan_to_num(loss, nan=0.0) for loss in losses)
    cost = policy_values(evidence.world, policy, (known + 0.5 * unknown) / count).state[0]
    low = policy_interval(sk, policy, known / count, row_set)[0].state[0]
    high = policy_interval(sk, policy, (known + unknown) / count, row_set)[1].state[0]
    return float(cost), float(low), float(high)


def _estimate(sk: Skeleton, units: Units, sums: tuple[float, float, float], episodes: int) -> Estimate:
    """Turn sums of losses into costs, with the interval clipped to the possible costs of an episode."""
    mean, low, high = sums
    ends = np.array([mean, max(0.0, low), min(float(sk.num_steps), high)])
    cost, least, most = units.costs(ends, sk.num_steps).tolist()
    return Estimate(cost, least, most, episodes)
