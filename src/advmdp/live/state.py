"""What an agent knows: the result of its events in order, and nothing else.

Each method here is one event.  The agent calls it when the event happens, and again for every event of the log when it
is rebuilt; both give the same bits, since actions are drawn from a stream that is a function of (seed, world, episode,
step) and everything else is arithmetic in the same order.

Rules for what is missing:

    an episode that ends early, or that ``patience`` ends, counts the transitions that it saw
    full information: a loss is learned when it is told, whether or not the episode has ended
    bandit: the losses along the path are learned when the episode has ended and all its costs are there
    bandit with groups: a whole loss is learned when it is told and the episode has ended; of groups that the path did
    not see it may lack entries, and they are ignored
    the loss of an episode that began before an extension may lack what is new; that is taken to cost what is least in
    its layer, unless ``missing`` is a number
    after ``patience`` later episodes, an episode without its loss is dropped; what comes then is logged, not learned
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray, owned
from advmdp.core.errors import InputError
from advmdp.core.files import archive_bytes, parse_archive
from advmdp.core.streams import uniforms
from advmdp.criteria import criterion_from
from advmdp.learners.base import Learner, make_again
from advmdp.learners.registry import LEARNERS, make_learner
from advmdp.live.costs import Missing, Units
from advmdp.live.log import Event
from advmdp.live.worlds import World
from advmdp.model.mdp import MDP
from advmdp.model.skeleton import Skeleton

KIND, VERSION = "agent", 2
FINISHED, STOPPED, PATIENCE = "finished", "stopped", "patience"
"""Why an episode ended: it reached the end, the caller stopped it, or it took too long."""
COUNTED = ("begun", "finished", "unfinished", "told", "dropped", "late", "observed", "clipped")
"""What is counted, by name."""


@dataclass(frozen=True)
class Terms:
    """What an agent was opened with, but for its world."""

    learner: str
    parameters: dict[str, Any]
    criterion: Any
    units: Units
    missing: Missing
    patience: int | None
    seed: int

    def make(self, told: Skeleton | MDP) -> Learner:
        """The learner as it begins."""
        return make_learner(self.learner, told, criterion_from(self.criterion), **self.parameters)

    def described(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {**vars(self), "units": list(self.units)}

    @classmethod
    def of(cls, described: dict[str, Any]) -> "Terms":
        """What :meth:`described` gave."""
        units = described["units"]
        return cls(**{**described, "units": Units(units[0], units[1], units[2])})


@dataclass(eq=False)
class Running:
    """An episode: the world and the policy that it began with, its path, and what is known of its costs."""

    number: int
    world: int
    version: int
    policy: FloatArray
    handle: int | None
    """The number that the learner knows it by, until its loss was learned or dropped."""
    state: int = 0
    pairs: list[int] = field(default_factory=list)
    transitions: list[int] = field(default_factory=list)
    costs: dict[int, float] = field(default_factory=dict)
    """By step, as they were told one by one."""
    paid: dict[int, float] = field(default_factory=dict)
    """By step, from single costs, else from a whole loss."""
    told: FloatArray | None = None
    """The whole loss in the caller's units, over the transitions of ``told_in``."""
    told_in: int = 0
    ended: str | None = None


class AgentState:
    """The learner, the open episodes, and the account."""

    def __init__(
        self, terms: Terms, world: World, dynamics: FloatArray | None = None, learner: Learner | None = None
    ) -> None:
        self.terms = terms
        self.worlds = [world]
        self.dynamics = dynamics
        self.learner = terms.make(self.told_world) if learner is None else learner
        self.next = 0
        self.version = 0
        self.policy = owned(self.learner.policy)
        """That of the last version."""
        self.running: dict[int, Running] = {}
        self.counts = dict.fromkeys(COUNTED, 0)
        self.paid = 0.0
        n = world.skeleton.num_transitions
        self.last = np.full(n, np.nan)
        """The last cost told for each transition, in the caller's units."""
        self.loss_sum, self.loss_count = np.zeros(n), np.zeros(n, np.int64)
        """What was learned of each transition: the sum of its losses, and how many these were."""
        self._streams: dict[int, Any] = {}

    @property
    def world(self) -> World:
        """The world as it is now."""
        return self.worlds[-1]

    @property
    def told_world(self) -> Skeleton | MDP:
        """What the learner is made of."""
        sk = self.world.skeleton
        return sk if self.dynamics is None else MDP(sk, self.dynamics)

    @property
    def bandit(self) -> bool:
        """Whether the learner sees the losses along its path only, or of the groups that it passes."""
        return self.learner.feedback == "bandit"

    @property
    def groups(self) -> NDArray[np.int64] | None:
        """The label of each transition, for a bandit learner that sees losses in groups."""
        if (labels := getattr(self.learner, "groups", None)) is None:
            return None
        sk, given = self.world.skeleton, np.array(labels, np.int64)
        return given if len(given) == sk.num_transitions else sk.over_transitions(given)

    @property
    def seen(self) -> NDArray[np.int64]:
        """How often each transition was counted."""
        state = self.learner.state()
        return state["seen"] + state["new_seen"]  # type: ignore[return-value]

    # The events.

    def begin(self) -> Running:
        """A new episode, with the learner's policy."""
        handle, policy = self.learner.begin(), self.learner.policy
        if self.version == 0 or not np.array_equal(policy, self.policy):
            self.version += 1
            self.policy = policy
        r = Running(self.next, self.world.number, self.version, self.policy, handle)
        self.running[r.number] = r
        self.next += 1
        self.counts["begun"] += 1
        return r

    def choose(self, r: Running) -> int:
        """The pair that the episode takes next: a pure function of (seed, world, episode, step) and its policy."""
        sk, step = self.worlds[r.world].skeleton, len(r.transitions)
        if r.world not in self._streams:
            self._streams[r.world] = self.worlds[r.world].stream(self.terms.seed)
        first, last = int(sk.pair_ptr[r.state]), int(sk.pair_ptr[r.state + 1])
        shares = r.policy[first:last]
        below = np.cumsum(shares)
        drawn = uniforms(self._streams[r.world], r.number, 1, sk.num_steps)[0, step] * below[-1]
        # Rounding may leave nothing above what was drawn; the last action with a share is taken then.
        return first + min(int(np.searchsorted(below, drawn, "right")), int(np.flatnonzero(shares)[-1]))

    def decide(self, r: Running, pair: int) -> None:
        """The episode takes this pair."""
        r.pairs.append(pair)

    def arrive(self, r: Running, transition: int) -> None:
        """Its last decision led this way."""
        r.transitions.append(transition)
        r.state = int(self.worlds[r.world].skeleton.successor[transition])
        if r.told is not None:
            self._pay_told(r, len(r.transitions) - 1)

    def cost(self, r: Running, step: int, cost: float) -> None:
        """What a step cost."""
        r.costs[step] = cost
        self.paid += cost - r.paid.get(step, 0.0)
        r.paid[step] = cost
        self.counts["clipped"] += self.terms.units.outsiders(np.array([cost]))
        self._settle(r)

    def end(self, r: Running, why: str) -> None:
        """Count the path, whole or in part."""
        r.ended = why
        self.counts["finished" if why == FINISHED else "unfinished"] += 1
        taken = self._now(r.world, r.transitions)
        if (known := taken[taken >= 0]).size:
            self.learner.count(known)
        self._settle(r)

    def fill(self, r: Running, costs: FloatArray) -> FloatArray:
        """The costs of an episode with what is missing filled as the rule says, or an error."""
        gaps, missing = np.isnan(costs), self.terms.missing
        if not gaps.any():
            return costs
        filled = np.where(gaps, self.last if isinstance(missing, str) else missing, costs)
        lacking = (gaps if missing == "error" else np.isnan(filled)) & self._needed(r)
        if r.world != self.world.number:  # nobody could know what is new since the episode began
            known = np.isin(np.arange(len(costs)), self.worlds[r.world].map_to(self.world))
            filled = np.where(np.isnan(filled) & ~known, _guessed(self.world.skeleton, filled, self.terms), filled)
            lacking &= known
        if lacking.any():
            i = int(np.argmax(lacking))
            given = "nothing" if missing == "error" else "nothing, now or before"
            where = f"loss at {self.world.skeleton.where_transition(i)}"
            raise InputError(where, given, "a cost; missing= says what to do without one")
        return filled

    def tell(self, r: Running, costs: FloatArray) -> None:
        """The whole loss of an episode, over the transitions of the world as it is now."""
        filled = self.fill(r, costs)
        self.last = np.where(np.isnan(costs), self.last, costs)
        self.counts["clipped"] += self.terms.units.outsiders(costs)
        r.told, r.told_in = costs, self.world.number
        for step in range(len(r.transitions)):
            self._pay_told(r, step)
        if r.handle is None:
            self.counts["late"] += 1
            return
        if self.bandit:
            self._settle(r)
            return
        losses = self.terms.units.scaled(filled)
        self.learner.learn(losses, r.handle)
        self.loss_sum += losses
        self.loss_count += 1
        self.counts["told"] += 1
        r.handle = None
        self._settle(r)

    def drop(self, r: Running) -> None:
        """The loss of an episode will never come."""
        assert r.handle is not None
        self.learner.drop(r.handle)
        r.handle = None
        self.counts["dropped"] += 1
        self._settle(r)

    def overdue(self) -> list[Running]:
        """The episodes whose patience ends when the next one begins."""
        if self.terms.patience is None:
            return []
        limit = self.next - self.terms.patience
        found = []
        for r in self.running.values():  # the oldest first
            if r.number > limit:
                break
            found.append(r)
        return found

    def observe(self, transitions: Iterable[int]) -> int:
        """An episode that somebody else decided: it is counted, and that is all."""
        taken = np.array(list(transitions), np.int64)
        if taken.size:
            self.learner.count(taken)
        number = self.next
        self.next += 1
        self.counts["observed"] += 1
        return number

    def extend(self, world: World, past: Iterable[tuple[int, FloatArray]]) -> None:
        """The world has changed; counts, costs and open episodes carry over by name.

        A new learner begins with the counts of the old one.  With full information it is told the ``past`` again, the
        last losses with the number of their worlds, so that it does not begin from nothing.
        """
        before, seen = self.world, self.seen
        moved = before.map_to(world)
        self.worlds.append(world)
        n = world.skeleton.num_transitions
        self.learner = self.terms.make(world.skeleton)
        self.learner.take_counts(_carried(seen, moved, n))
        self.last = _carried(self.last, moved, n, np.nan)
        self.loss_sum, self.loss_count = _carried(self.loss_sum, moved, n), _carried(self.loss_count, moved, n)
        for number, costs in () if self.bandit else past:
            known = _carried(costs, self.worlds[number].map_to(world), n, np.nan)
            self.learner.learn(
                self.terms.units.scaled(_guessed(world.skeleton, known, self.terms)), self.learner.begin()
            )
        for r in [r for r in self.running.values() if r.handle is not None]:
            if self.bandit:
                r.handle = None
                self.counts["dropped"] += 1
                self._settle(r)
            else:
                r.handle = self.learner.begin()

    def replay(self, event: Event, r: Running | None, past: Iterable[tuple[int, FloatArray]] = ()) -> None:
        """An event from the log, of the episode ``r``."""
        body = event.body
        if event.kind == "begun":
            self.begin()
        elif event.kind == "observed":
            self.observe(body["transitions"])
        elif event.kind == "extended":
            self.extend(World.of(len(self.worlds), body["world"]), past)
        elif r is None:
            raise InputError(f"event of episode {event.episode}", event.kind, "an episode that has begun")
        elif event.kind == "decided":
            self.decide(r, body["pair"])
        elif event.kind == "arrived":
            self.arrive(r, body["transition"])
        elif event.kind == "cost":
            self.cost(r, event.step, body["cost"])
        elif event.kind == "told" and event.numbers is not None:
            self.tell(r, event.numbers)
        elif event.kind == "ended":
            self.end(r, body["why"])
        elif event.kind == "dropped":
            self.drop(r)
        else:
            raise InputError("event", f"of kind {event.kind!r}", "one that this version knows")

    def recall(self, events: list[Event]) -> Running | None:
        """An episode that was forgotten, from its events; None where there is none, or an observed one."""
        if not events or events[0].kind != "begun":
            return None
        begun = events[0]
        assert begun.episode is not None
        r = Running(begun.episode, begun.body["world"], begun.body["version"], np.empty(0), None)
        for event in events:
            if event.kind == "decided":
                r.pairs.append(event.body["pair"])
            elif event.kind == "arrived":
                r.transitions.append(event.body["transition"])
            elif event.kind == "cost":
                r.costs[event.step] = event.body["cost"]
            elif event.kind == "ended":
                r.ended = event.body["why"]
            elif event.kind == "told":
                r.told, r.told_in = event.numbers, event.body["world"]
        r.paid = dict(r.costs)
        for step in range(len(r.transitions)) if r.told is not None else ():
            if (cost := self._told_cost(r, step)) is not None:
                r.paid.setdefault(step, cost)
        return r

    def _settle(self, r: Running) -> None:
        """Learn what a bandit learner waits for, and forget an episode of which nothing is to come."""
        if self.bandit and r.ended and r.handle is not None:
            if not r.transitions:
                self.drop(r)
                return
            if self.groups is not None:
                self._learn_groups(r)
            elif all(step in r.costs for step in range(len(r.transitions))):
                self._learn_path(r)
        if r.ended and r.handle is None:
            self.running.pop(r.number, None)

    def _learn_path(self, r: Running) -> None:
        taken = np.array(r.transitions, np.int64)
        losses = self.terms.units.scaled(np.array([r.costs[step] for step in range(len(taken))]))
        assert r.handle is not None
        self.learner.learn(losses, r.handle, taken)
        np.add.at(self.loss_sum, taken, losses)
        np.add.at(self.loss_count, taken, 1)
        self.counts["told"] += 1
        r.handle = None

    def _learn_groups(self, r: Running) -> None:
        """Learn the losses of the groups that the path has seen, if they have been told; in part they are no use."""
        if r.told is None or r.handle is None:
            return
        try:
            filled = self.fill(r, r.told)
        except InputError:
            self.drop(r)
            return
        losses, seen = self.terms.units.scaled(filled), self._needed(r)
        self.learner.learn(losses, r.handle, np.array(r.transitions, np.int64))
        self.loss_sum[seen] += losses[seen]
        self.loss_count[seen] += 1
        self.counts["told"] += 1
        r.handle = None

    def _needed(self, r: Running) -> NDArray[np.bool_]:
        """The entries without which a whole loss cannot be learned."""
        if (groups := self.groups) is None:
            return np.ones(self.world.skeleton.num_transitions, np.bool_)
        return np.isin(groups, groups[r.transitions] if r.ended else [])

    def _pay_told(self, r: Running, step: int) -> None:
        """Enter what a step cost by the whole loss, unless its own cost was told."""
        if step not in r.paid and (cost := self._told_cost(r, step)) is not None:
            r.paid[step] = cost
            self.paid += cost

    def _told_cost(self, r: Running, step: int) -> float | None:
        """What a step cost by the whole loss, where that has it."""
        assert r.told is not None
        place = int(self.worlds[r.world].map_to(self.worlds[r.told_in])[r.transitions[step]])
        return None if place < 0 or np.isnan(r.told[place]) else float(r.told[place])

    def _now(self, world: int, transitions: list[int]) -> NDArray[np.int64]:
        """Transitions of a world as those of the world as it is now; -1 where it has none."""
        taken = np.array(transitions, np.int64)
        return taken if world == self.world.number else self.worlds[world].map_to(self.world)[taken]

    # Snapshots.

    def dump(self) -> bytes:
        """Everything, as an archive; the same state gives the same bytes."""
        about = {
            "kind": KIND, "version": VERSION, "terms": self.terms.described(), "next": self.next,
            "policy_version": self.version, "counts": self.counts, "paid": self.paid,
            "worlds": [world.described() for world in self.worlds],
            "episode": self.learner.episode, "gap": self.learner.gap,
            "running": [_described(r) for r in self.running.values()],
        }  # fmt: skip
        arrays: dict[str, NDArray[Any]] = {f"state/{name}": array for name, array in self.learner.state().items()}
        arrays |= {"last": self.last, "loss_sum": self.loss_sum, "loss_count": self.loss_count}
        arrays |= {} if self.dynamics is None else {"dynamics": self.dynamics}
        arrays |= {f"policy/{r.version}": r.policy for r in self.running.values()}
        arrays |= {f"policy/{self.version}": self.policy}
        arrays |= {f"told/{r.number}": r.told for r in self.running.values() if r.told is not None}
        return archive_bytes(about, arrays)

    @classmethod
    def load(cls, where: str, content: bytes) -> "AgentState":
        """What :meth:`dump` gave."""
        about, arrays = parse_archive(where, content, KIND, VERSION)
        worlds = [World.of(number, described) for number, described in enumerate(about["worlds"])]
        state = cls.__new__(cls)
        terms = state.terms = Terms.of(about["terms"])
        state.worlds, state.dynamics, state._streams = worlds, arrays.get("dynamics"), {}
        learned = {name[6:]: array for name, array in arrays.items() if name.startswith("state/")}
        kind, criterion = LEARNERS[terms.learner], criterion_from(terms.criterion)
        state.learner = make_again(kind, state.told_world, criterion, terms.parameters, learned, about["episode"])
        state.learner.gap = about["gap"]
        state.next, state.version, state.paid = about["next"], about["policy_version"], about["paid"]
        state.counts = {name: about["counts"][name] for name in COUNTED}
        state.last, state.loss_sum, state.loss_count = (arrays[key] for key in ("last", "loss_sum", "loss_count"))
        policies = {name[7:]: owned(array) for name, array in arrays.items() if name.startswith("policy/")}
        state.policy = policies[str(state.version)]
        state.running = {}
        for said in about["running"]:
            told = arrays.get(f"told/{said['number']}")
            r = Running(**said, policy=policies[str(said["version"])], told=told)
            r.costs, r.paid = ({int(k): v for k, v in part.items()} for part in (said["costs"], said["paid"]))
            state.running[r.number] = r
        return state


def _described(r: Running) -> dict[str, Any]:
    return {name: value for name, value in vars(r).items() if name not in ("policy", "told")}


def _carried(values: NDArray[Any], moved: NDArray[np.int64], size: int, empty: float = 0) -> NDArray[Any]:
    """Values over the transitions of an old world as values over those of a new one."""
    out = np.full(size, empty, values.dtype)
    out[moved[moved >= 0]] = values[moved >= 0]
    return out


def _guessed(sk: Skeleton, costs: FloatArray, terms: Terms) -> FloatArray:
    """Old costs in a new world: what they lack is as ``missing`` says, else the least of its layer, to be tried."""
    if not isinstance(terms.missing, str):
        return np.where(np.isnan(costs), terms.missing, costs)
    out = costs.copy()
    for k in range(sk.num_steps):
        layer = out[sk.layer_transition_ptr[k] : sk.layer_transition_ptr[k + 1]]
        known = layer[~np.isnan(layer)]
        layer[np.isnan(layer)] = known.min() if known.size else 0.5 * (terms.units.low + terms.units.high)
    return out
