"""Shadow baselines: what simple rules would have paid in the episodes that an agent has played.

    replay      the best response to the last loss told before the episode began
    leader      the best response to the sum of all losses told by then
    at random   the uniform policy
    incumbent   a fixed policy of the caller, such as the one in use today

Replay and leader plan in the world as estimated when the episode began. So they know only what the agent knew. Each is
then judged like any policy (:mod:`advmdp.live.evaluation`): in the estimate from the whole log, with the minimum and
the maximum over the confidence set. Without whole losses, only fixed policies can be judged, by weighted paths.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from advmdp.confidence import RowSet
from advmdp.core.arrays import FloatArray
from advmdp.live.evaluation import METHODS, Estimate, all_estimates, believed_interval
from advmdp.live.evidence import Evidence, ToldLoss, estimated
from advmdp.live.history import History
from advmdp.model.occupancy import best_response, occupancy
from advmdp.model.policy import checked_policy, uniform_policy

REPLAY, LEADER, RANDOM, INCUMBENT = "replay the last loss", "best so far", "at random", "incumbent"
MOST = 20_000_000
"""The largest number of loss entries to judge; of a longer log, the last episodes are judged."""


@dataclass(frozen=True, eq=False)
class Shadow:
    """What a baseline would have paid, per episode and in the caller's units."""

    name: str
    estimate: Estimate
    """Its cost is NaN if no logged path is possible under the policy."""
    course: FloatArray | None
    """The estimate of each episode; None for weighted paths."""


def shadows(
    history: History, evidence: Evidence, delta: float, fixed: Mapping[str, object] | None = None
) -> list[Shadow]:
    """All baselines that the log can judge; ``fixed`` are policies of the caller, by name."""
    sk = evidence.skeleton
    policies = {RANDOM: uniform_policy(sk)}
    policies |= {name: checked_policy(sk, policy) for name, policy in (fixed or {}).items()}  # type: ignore[arg-type]
    if not evidence.told:
        return [] if not evidence.paths else [_weighted(history, evidence, *one, delta) for one in policies.items()]
    recent = _recent(evidence)
    losses, row_set = [one.loss for one in recent], evidence.row_set(delta)
    began = {one.episode: s for s, one in enumerate(recent)}
    replayed, led = [policies[RANDOM]] * len(recent), [policies[RANDOM]] * len(recent)
    for episode, last, leader in _rules(history, evidence, set(began)):
        replayed[began[episode]], led[began[episode]] = last, leader
    found = [
        _changing(history, evidence, row_set, REPLAY, losses, replayed),
        _changing(history, evidence, row_set, LEADER, losses, led),
    ]
    return found + [_changing(history, evidence, row_set, name, losses, [pi]) for name, pi in policies.items()]


def judged_on(evidence: Evidence) -> list[int]:
    """The episodes that baselines are judged on: the last with a whole loss, else those with a path and its costs."""
    return [one.episode for one in (_recent(evidence) if evidence.told else evidence.paths)]


def _recent(evidence: Evidence) -> list[ToldLoss]:
    return evidence.told[-max(1, MOST // evidence.skeleton.num_transitions) :]


def _weighted(history: History, evidence: Evidence, name: str, policy: FloatArray, delta: float) -> Shadow:
    found, _ = all_estimates(evidence, policy, delta, history.terms.units)
    return Shadow(name, next(found[method] for method in METHODS if method in found), None)


def _rules(history: History, evidence: Evidence, wanted: set[int]) -> Iterator[tuple[int, FloatArray, FloatArray]]:
    """For each wanted episode, the policies of replay and leader when it began; reads the log in order."""
    sk, now = evidence.skeleton, history.worlds[-1]
    told = {one.episode: np.nan_to_num(one.loss, nan=0.5) for one in evidence.told}
    seen, total, last = np.zeros(sk.num_transitions, np.int64), np.zeros(sk.num_transitions), None
    place = {world.number: world.map_to(now) for world in history.worlds}
    at: dict[int, int] = {}
    for event in history.events():
        episode = event.episode
        if episode is None:
            continue
        if event.kind == "begun":
            at[episode] = event.body["world"]
            if episode in wanted and last is not None:
                world = estimated(sk, seen)
                yield episode, best_response(world, last)[0], best_response(world, total)[0]
        elif event.kind == "observed":
            taken = place[event.body["world"]][event.body["transitions"]]
            np.add.at(seen, taken[taken >= 0], 1)
        elif event.kind == "arrived" and (i := int(place[at[episode]][event.body["transition"]])) >= 0:
            seen[i] += 1
        elif event.kind == "told" and episode in told:
            last = told[episode]
            total += last


def _changing(
    history: History, evidence: Evidence, row_set: RowSet, name: str, losses: Sequence[FloatArray],
    policies: Sequence[FloatArray],
) -> Shadow:  # fmt: skip
    """A baseline with one policy for each loss, or one for all.  Intervals of different policies are summed."""
    sk, units, world = evidence.skeleton, history.terms.units, evidence.world
    groups: dict[bytes, tuple[FloatArray, list[int]]] = {}
    for s in range(len(losses)):
        policy = policies[s if len(policies) > 1 else 0]
        groups.setdefault(policy.tobytes(), (policy, []))[1].append(s)
    ends, course = np.zeros(3), np.empty(len(losses))
    for policy, members in groups.values():
        chosen, q = [losses[s] for s in members], occupancy(world, policy)
        ends += len(members) * np.array(believed_interval(evidence, chosen, policy, row_set))
        course[members] = [q @ np.nan_to_num(loss, nan=0.5) for loss in chosen]
    cost, low, high = units.costs(ends / len(losses), sk.num_steps).tolist()
    return Shadow(name, Estimate(cost, low, high, len(losses)), units.costs(course, sk.num_steps))
