"""The state of an agent: the result of its events in order, and nothing else.

Each method here is one event.  The agent calls it when the event happens, and again for every event of the log when it
is rebuilt.  Both give the same result bit for bit: actions are drawn from a stream that is a function of (seed, world,
episode, step), and everything else is arithmetic in the same order.

Rules for incomplete feedback:

    an episode that ends early, or that ``patience`` ends, counts the transitions seen
    full information: a loss is learned when it is told, whether or not the episode has ended
    bandit: the losses along the path are learned when the episode has ended and all its costs are known
    bandit with groups: a whole loss is learned when it has been told and the episode has ended; entries of groups that
    the path did not see are ignored, and may be missing
    if an episode began before an extension, its loss may lack the new entries; these get the smallest cost of their
    layer, unless ``missing`` is a number
    after ``patience`` later episodes, an episode without its loss is dropped; later events are logged, not learned
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
from advmdp.live.worlds import WorldVersion
from advmdp.model.mdp import MDP
from advmdp.model.skeleton import Skeleton

KIND, VERSION = "agent", 2
FINISHED, STOPPED, PATIENCE = "finished", "stopped", "patience"
"""Why an episode ended: it reached the end, the caller stopped it, or it took too long."""
COUNTED = ("begun", "finished", "unfinished", "told", "dropped", "late", "observed", "clipped")
"""The names of the counts."""


@dataclass(frozen=True)
class Terms:
    """The settings of an agent, except its world."""

    learner: str
    parameters: dict[str, Any]
    criterion: Any
    units: Units
    missing: Missing
    patience: int | None
    seed: int

    def make(self, told: Skeleton | MDP) -> Learner:
        """Make the untrained learner."""
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
    """An episode: its world and policy, its path, and its known costs."""

    number: int
    world: int
    version: int
    policy: FloatArray
    handle: int | None
    """Its number in the learner, until its loss is learned or dropped."""
    state: int = 0
    pairs: list[int] = field(default_factory=list)
    transitions: list[int] = field(default_factory=list)
    costs: dict[int, float] = field(default_factory=dict)
    """By step, as reported one by one."""
    paid: dict[int, float] = field(default_factory=dict)
    """By step, from single costs, else from a whole loss."""
    told: FloatArray | None = None
    """The whole loss in the caller's units, over the transitions of ``told_in``."""
    told_in: int = 0
    ended: str | None = None


class AgentState:
    """The learner, the open episodes, and the account."""

    def __init__(
        self, terms: Terms, world: WorldVersion, dynamics: FloatArray | None = None, learner: Learner | None = None
    ) -> None:
        self.terms = terms
        self.worlds = [world]
        self.dynamics = dynamics
        self.learner = terms.make(self.told_world) if learner is None else learner
        self.next = 0
        self.version = 0
        self.policy = owned(self.learner.policy)
        """The policy of the current version."""
        self.running: dict[int, Running] = {}
        self.counts = dict.fromkeys(COUNTED, 0)
        self.paid = 0.0
        n = world.skeleton.num_transitions
        self.last = np.full(n, np.nan)
        """The last cost told for each transition, in the caller's units."""
        self.loss_sum, self.loss_count = np.zeros(n), np.zeros(n, np.int64)
        """The sum and the number of the losses learned, for each transition."""
        self._streams: dict[int, Any] = {}

    @property
    def world(self) -> WorldVersion:
        """The current world."""
        return self.worlds[-1]

    @property
    def told_world(self) -> Skeleton | MDP:
        """What the learner's constructor takes."""
        sk = self.world.skeleton
        return sk if self.dynamics is None else MDP(sk, self.dynamics)

    @property
    def bandit(self) -> bool:
        """Whether the learner sees only the losses along its path, or of the groups on it."""
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
        """Begin an episode with the learner's policy."""
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
        """The next pair of the episode: a pure function of (seed, world, episode, step) and its policy."""
        sk, step = self.worlds[r.world].skeleton, len(r.transitions)
        if r.world not in self._streams:
            self._streams[r.world] = self.worlds[r.world].stream(self.terms.seed)
        first, last = int(sk.pair_ptr[r.state]), int(sk.pair_ptr[r.state + 1])
        shares = r.policy[first:last]
        below = np.cumsum(shares)
        drawn = uniforms(self._streams[r.world], r.number, 1, sk.num_steps)[0, step] * below[-1]
        # By rounding, the sum may stay below the number drawn; then take the last action with positive probability.
        return first + min(int(np.searchsorted(below, drawn, "right")), int(np.flatnonzero(shares)[-1]))

    def decide(self, r: Running, pair: int) -> None:
        """Record that the episode takes this pair."""
        r.pairs.append(pair)

    def arrive(self, r: Running, transition: int) -> None:
        """Record the transition after its last decision."""
        r.transitions.append(transition)
        r.state = int(self.worlds[r.world].skeleton.successor[transition])
        if r.told is not None:
            self._pay_told(r, len(r.transitions) - 1)

    def cost(self, r: Running, step: int, cost: float) -> None:
        """Record the cost of a step."""
        r.costs[step] = cost
        self.paid += cost - r.paid.get(step, 0.0)
        r.paid[step] = cost
        self.counts["clipped"] += self.terms.units.outsiders(np.array([cost]))
        self._settle(r)

    def end(self, r: Running, why: str) -> None:
        """End the episode, and count its path, complete or not."""
        r.ended = why
        self.counts["finished" if why == FINISHED else "unfinished"] += 1
        taken = self._now(r.world, r.transitions)
        if (known := taken[taken >= 0]).size:
            self.learner.count(known)
        self._settle(r)

    def fill(self, r: Running, costs: FloatArray) -> FloatArray:
        """Fill the missing costs of an episode by the rule, or raise an error."""
        gaps, missing = np.isnan(costs), self.terms.missing
        if not gaps.any():
            return costs
        filled = np.where(gaps, self.last if isinstance(missing, str) else missing, costs)
        lacking = (gaps if missing == "error" else np.isnan(filled)) & self._needed(r)
        if r.world != self.world.number:  # the caller could not know entries added since the episode began
            known = np.isin(np.arange(len(costs)), self.worlds[r.world].map_to(self.world))
            filled = np.where(np.isnan(filled) & ~known, _guessed(self.world.skeleton, filled, self.terms), filled)
            lacking &= known
        if lacking.any():
            i = int(np.argmax(lacking))
            given = "nothing" if missing == "error" else "nothing, now or before"
            where = f"loss at {self.world.skeleton.where_transition(i)}"
            raise InputError(where, given, "a cost; missing= sets a rule for missing costs")
        return filled

    def tell(self, r: Running, costs: FloatArray) -> None:
        """Take the whole loss of an episode, over the transitions of the current world."""
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
        """Give up the loss of an episode."""
        assert r.handle is not None
        self.learner.drop(r.handle)
        r.handle = None
        self.counts["dropped"] += 1
        self._settle(r)

    def overdue(self) -> list[Running]:
        """The episodes that ``patience`` ends when the next one begins."""
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
        """Count an episode that somebody else decided."""
        taken = np.array(list(transitions), np.int64)
        if taken.size:
            self.learner.count(taken)
        number = self.next
        self.next += 1
        self.counts["observed"] += 1
        return number

    def extend(self, world: WorldVersion, past: Iterable[tuple[int, FloatArray]]) -> None:
        """Change the world; counts, costs and open episodes carry over by name.

        A new learner starts with the counts of the old one.  With full information it learns the ``past`` again, the
        last losses with the numbers of their worlds, so that it does not start from scratch.
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
        """Apply an event of the log to the episode ``r``."""
        body = event.body
        if event.kind == "begun":
            self.begin()
        elif event.kind == "observed":
            self.observe(body["transitions"])
        elif event.kind == "extended":
            self.extend(WorldVersion.of(len(self.worlds), body["world"]), past)
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
            raise InputError("event", f"unknown kind {event.kind!r}", "a kind that this version knows")

    def recall(self, events: list[Event]) -> Running | None:
        """Rebuild an episode from its events; None if there are none, or if it was observed."""
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
        """Learn a bandit episode once it is complete, and forget an episode that needs nothing more."""
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
        """Learn the losses of the groups that the path saw, once all of them have been told."""
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
        """The entries that a whole loss must have."""
        if (groups := self.groups) is None:
            return np.ones(self.world.skeleton.num_transitions, np.bool_)
        return np.isin(groups, groups[r.transitions] if r.ended else [])

    def _pay_told(self, r: Running, step: int) -> None:
        """Count the cost of a step by the whole loss, unless its own cost was reported."""
        if step not in r.paid and (cost := self._told_cost(r, step)) is not None:
            r.paid[step] = cost
            self.paid += cost

    def _told_cost(self, r: Running, step: int) -> float | None:
        """The cost of a step by the whole loss; None if missing."""
        assert r.told is not None
        place = int(self.worlds[r.world].map_to(self.worlds[r.told_in])[r.transitions[step]])
        return None if place < 0 or np.isnan(r.told[place]) else float(r.told[place])

    def _now(self, world: int, transitions: list[int]) -> NDArray[np.int64]:
        """Map transitions of a world to the current world; -1 if missing there."""
        taken = np.array(transitions, np.int64)
        return taken if world == self.world.number else self.worlds[world].map_to(self.world)[taken]

    # Snapshots.

    def dump(self) -> bytes:
        """Write the state as an archive; equal states give equal bytes."""
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
        worlds = [WorldVersion.of(number, described) for number, described in enumerate(about["worlds"])]
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
    """Map values over the transitions of an old world to a new one."""
    out = np.full(size, empty, values.dtype)
    out[moved[moved >= 0]] = values[moved >= 0]
    return out


def _guessed(sk: Skeleton, costs: FloatArray, terms: Terms) -> FloatArray:
    """Old costs in a new world; a missing entry is ``missing`` or the minimum of its layer, so that it is tried."""
    if not isinstance(terms.missing, str):
        return np.where(np.isnan(costs), terms.missing, costs)
    out = costs.copy()
    for k in range(sk.num_steps):
        layer = out[sk.layer_transition_ptr[k] : sk.layer_transition_ptr[k + 1]]
        known = layer[~np.isnan(layer)]
        layer[np.isnan(layer)] = known.min() if known.size else 0.5 * (terms.units.low + terms.units.high)
    return out
