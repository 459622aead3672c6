"""Every change of an agent: checked, made, and logged in one commit before the call returns.

A method here checks its arguments, changes the state (:mod:`advmdp.live.state`), writes the events to the log
(:mod:`advmdp.live.log`) in one commit, and only then returns.  So whatever was acknowledged is on disk.  If anything
fails in between, the memory may be ahead of the log, and the recorder rejects further calls.  Reopening continues from
the log.

Events are idempotent.  A state belongs to one layer, so an arrival in it identifies a step.  Repeating an event changes
nothing; contradicting one is a :class:`ConflictError`.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from advmdp.core.arrays import whole
from advmdp.core.errors import AdvMDPError, ConflictError, InputError, LogError, warn_caller
from advmdp.core.wording import number, one_of
from advmdp.live.costs import read_costs
from advmdp.live.log import Event, Log
from advmdp.live.opening import learners_for, past_losses
from advmdp.live.state import FINISHED, PATIENCE, STOPPED, AgentState, Running
from advmdp.live.worlds import Step, WorldVersion
from advmdp.model.by_name import ByName, Label, action_name, state_name
from advmdp.model.mdp import path_from_names

SNAPSHOT = 2000
"""The number of events between snapshots, which only make opening faster."""


UNTAUGHT = 10
"""A learner of whole losses warns when this many episodes have ended with only costs of steps."""


class Recorder:
    """The state of an agent and its log, changed together."""

    def __init__(self, log: Log, state: AgentState, kept: int) -> None:
        self.log = log
        self.state = state
        self.mutex = threading.RLock()
        self._kept = kept
        """The number of the event after which the snapshot was taken."""
        self._broken = False
        self._closed = False
        self._warned = state.counts["clipped"] > 0
        """Whether a cost outside the units was seen, which is reported once."""
        self._untaught = False
        """Whether it was reported that no whole loss was told."""

    def begin(self, event_id: str | None) -> int:
        """Begin an episode, or find the one with this id; return its number."""
        name = self._name("begun", event_id)
        if name is not None and (event := self.log.named(name)) is not None:
            assert event.episode is not None
            return event.episode
        with self._writing() as events:
            for late in self.state.overdue():
                self._give_up(late, events)
            r = self.state.begin()
            events.append(Event("begun", r.number, 0, {"world": r.world, "version": r.version}, None, name))
            self._decide(r, events)
        return r.number

    def arrive(self, id: int, state: Label, cost: float | None) -> None:
        """Record where the last decision of an episode led, and its cost."""
        r = self.find(id)
        world = self.state.worlds[r.world]
        sk, x = world.skeleton, self._arrived(r, state)
        step = world.layer_of[x] - 1
        if 0 <= step < len(r.transitions):
            if (before := int(sk.successor[r.transitions[step]])) != x:
                expected = f"{sk.state_label(before)}, as reported before"
                raise ConflictError(f"episode {id}, step {step}", f"an arrival in {state}", expected)
            if cost is not None:
                self.cost(id, cost, int(sk.state_of_pair[r.pairs[step]]))
            return
        if r.ended:
            raise InputError(f"episode {id}", f"it has ended ({r.ended})", "an episode that has not ended")
        p = r.pairs[-1]
        if (taken := world.successors[p].get(x)) is None:
            following = ", ".join(sk.state_label(y) for y in list(world.successors[p])[:8])
            raise InputError(f"episode {id}, {sk.where_pair(p)}", f"an arrival in {state}", f"one of {following}")
        paid = None if cost is None else self.state.terms.units.check(f"cost of episode {id}, step {step}", cost)
        with self._writing() as events:
            self.state.arrive(r, taken)
            events.append(Event("arrived", id, step, {"state": state_name(sk, x), "transition": taken}))
            if paid is not None:
                self.state.cost(r, step, paid)
                events.append(Event("cost", id, step, {"cost": paid}))
            if step == sk.num_steps - 1:
                self.state.end(r, FINISHED)
                events.append(Event("ended", id, 0, {"why": FINISHED}))
            else:
                self._decide(r, events)
        if paid is not None:
            self._warn_if_clipped(lambda: sk.pair_label(p), paid)
        self._warn_if_untaught(r)

    def cost(self, id: int, cost: float, at: Label | None) -> None:
        """Record the cost of a step."""
        r = self.find(id)
        step = self._step(r, at)
        paid = self.state.terms.units.check(f"cost of episode {id}, step {step}", cost)
        if step in r.costs:
            if r.costs[step] != paid:
                expected = f"{r.costs[step]:g}, as reported before"
                raise ConflictError(f"episode {id}, step {step}", f"a cost of {paid:g}", expected)
            return
        with self._writing() as events:
            self.state.cost(r, step, paid)
            events.append(Event("cost", id, step, {"cost": paid}))
        self._warn_if_clipped(lambda: self.state.worlds[r.world].skeleton.pair_label(r.pairs[step]), paid)
        self._warn_if_untaught(r)

    def end(self, id: int) -> None:
        """End an episode before its last state."""
        r = self.find(id)
        if r.ended:
            return
        with self._writing() as events:
            self.state.end(r, STOPPED)
            events.append(Event("ended", id, 0, {"why": STOPPED}))
        self._warn_if_untaught(r)

    def tell(self, id: int, loss: ByName | Any) -> None:
        """Record the whole loss of an episode."""
        r = self.find(id)
        if self.state.bandit and self.state.groups is None:
            given = f"a whole loss for {self.state.terms.learner}, which learns from the costs along its path"
            raise InputError("tell", given, f"Episode.cost for each step; or learner={learners_for('full')}")
        world = self.state.worlds[r.told_in] if r.told is not None else self.state.world
        costs = read_costs(world.skeleton, loss, self._left_behind(world))
        if r.told is not None:
            if not np.array_equal(costs, r.told, equal_nan=True):
                raise ConflictError(
                    f"loss of episode {r.number}", "different from the loss told before", "the same loss"
                )
            return
        self.state.terms.units.check_all(world.skeleton, costs)
        self.state.fill(r, costs)
        with self._writing() as events:
            self.state.tell(r, costs)
            events.append(Event("told", r.number, 0, {"world": world.number}, costs))
        if (i := self.state.terms.units.first_outside(costs)) is not None:
            self._warn_if_clipped(lambda: world.skeleton.transition_label(i), float(costs[i]))

    def observe(
        self,
        states: Sequence[Label],
        actions: Sequence[Label],
        costs: Sequence[float] | None,
        event_id: str | None,
    ) -> int:
        """Record an episode that somebody else decided; return its number."""
        world, name = self.state.world, self._name("observed", event_id)
        before = None if name is None else self.log.named(name)
        if before is not None:
            world = self.state.worlds[before.body["world"]]
        path = path_from_names(world.skeleton, states, actions)
        body = {"world": world.number, "pairs": path.pairs.tolist(), "transitions": path.transitions.tolist()}
        if not isinstance(costs, Iterable | None):
            raise InputError("costs", f"{costs!r}", "a list of costs, one for each action")
        paid = None if costs is None else [self.state.terms.units.check("costs", cost) for cost in costs]
        if paid is not None and len(paid) != len(actions):
            raise InputError("costs", f"{len(paid)} costs", f"{len(actions)}, one for each action")
        body["costs"] = paid
        if before is not None:
            if before.body != body or before.episode is None:
                raise ConflictError(f"observed episode {event_id!r}", "another path or other costs", "the same")
            return before.episode
        with self._writing() as events:
            id = self.state.observe(body["transitions"])
            events.append(Event("observed", id, 0, body, None, name))
        if paid is not None and (k := self.state.terms.units.first_outside(np.array(paid, float))) is not None:
            self._warn_if_clipped(lambda: world.skeleton.pair_label(int(path.pairs[k])), paid[k])
        return id

    def extend(self, steps: Iterable[Step], remove: Iterable[tuple[str, str]]) -> None:
        """Change the world."""
        self.check_usable()
        state = self.state
        made_for = [
            name for name in ("kinds", "rules", "groups", "window", "discount") if state.terms.parameters.get(name)
        ]
        if state.dynamics is not None or made_for:
            what = f"the parameter {made_for[0]}" if made_for else "known dynamics"
            raise InputError("extend", f"{state.terms.learner} with {what}, made for the old world", "a new agent")
        world = state.world.extended(steps, remove)
        if world.skeleton == state.world.skeleton and world.removed == state.world.removed:
            return
        with self._writing() as events:
            state.extend(world, past_losses(self.log, self.log.last + 1))
            events.append(Event("extended", None, 0, {"world": world.described()}))

    def find(self, id: int) -> Running:
        """Find an episode, open or in the log."""
        self.check_usable()
        known = whole("episode", id, 0)
        if (r := self.state.running.get(known)) is not None:
            return r
        found = self.state.recall(self.log.of_episode(known, self.log.last + 1))
        if found is None:
            raise InputError("episode", f"{id}", f"an episode of this agent ({self.state.counts['begun']} so far)")
        return found

    def check_usable(self) -> None:
        """Raise an error after a failure, or when closed."""
        if self._closed:
            raise LogError(f"{self.log.path}", "a closed agent", "an open one (am.Agent.open)")
        if self._broken:
            given = "an agent that failed during a change"
            raise LogError(f"{self.log.path}", given, "close() and am.Agent.open, which continues from the log")

    def close(self) -> None:
        """Take a snapshot, and close the file."""
        if not self._closed and not self._broken and self._kept < self.log.last:
            with suppress(AdvMDPError):
                self._keep_snapshot()
        self._closed = True
        self.log.close()

    def _warn_if_clipped(self, place: Callable[[], str], cost: float) -> None:
        """Warn once that a cost is outside the units: if all costs clip to the same value, nothing can be learned.

        The event is already in the log, so a warning turned into an error does not interrupt it.
        """
        low, high, _ = self.state.terms.units
        if self._warned or low <= cost <= high:
            return
        self._warned = True
        units = f"the units, {number(low)} to {number(high)}{' by default' if (low, high) == (0.0, 1.0) else ''}"
        says = f"the cost {number(cost)} of {place()} is outside {units}; the agent learns such costs clipped"
        how = "make the agent with units=(least, greatest cost of a step), or outside='error' to refuse them"
        warn_caller(f"{says}. To change this, {how}. Later ones are only counted (status().clipped)")

    def _warn_if_untaught(self, r: Running) -> None:
        """Warn once if a learner of whole losses gets only costs of steps, from which it cannot learn."""
        counts, name = self.state.counts, self.state.terms.learner
        if self._untaught or self.state.bandit or not (r.ended and r.costs) or counts["told"] or counts["late"]:
            return
        if sum(bool(one.ended and one.costs) for one in self.state.running.values()) == UNTAUGHT:
            self._untaught = True
            says = (
                f"{name} learns from whole losses (Agent.tell), but {UNTAUGHT} episodes ended with only costs of steps"
            )
            warn_caller(f"{says}, so it has learned no costs; learner={learners_for('bandit')} learns from such costs")

    def _arrived(self, r: Running, state: Label) -> int:
        """The number of the state of an arrival; an unknown name is compared only with those that can follow."""
        world = self.state.worlds[r.world]
        try:
            return world.skeleton.state(state)
        except InputError:
            if r.ended or not isinstance(state, str):
                raise
        sk, p = world.skeleton, r.pairs[-1]
        following = [sk.state_label(y) for y in world.successors[p]]
        place = f"episode {r.number}, {sk.where_pair(p)}"
        raise InputError(place, f"an arrival in {state!r}", one_of(state, following[:8]))

    def _step(self, r: Running, at: Label | None) -> int:
        """The step of a reported cost: the last one, or the one taken in the state ``at``."""
        if at is None:
            if not r.transitions:
                raise InputError(f"cost of episode {r.number}", "no finished step", "arrive first, or at=, the state")
            return len(r.transitions) - 1
        world = self.state.worlds[r.world]
        x = world.skeleton.state(at)
        step = world.layer_of[x]
        taken = len(r.transitions) if r.ended else len(r.pairs)
        if step >= taken or int(world.skeleton.state_of_pair[r.pairs[step]]) != x:
            raise InputError(f"cost of episode {r.number}", f"a step in {at}", "a state on its path")
        return step

    def _decide(self, r: Running, events: list[Event]) -> None:
        sk, p, step = self.state.worlds[r.world].skeleton, self.state.choose(r), len(r.transitions)
        self.state.decide(r, p)
        names = {"state": state_name(sk, r.state), "action": action_name(sk, r.state, p)}
        shares = r.policy[sk.pair_ptr[r.state] : sk.pair_ptr[r.state + 1]]
        events.append(Event("decided", r.number, step, {**names, "pair": p, "version": r.version}, shares))

    def _give_up(self, r: Running, events: list[Event]) -> None:
        if not r.ended:
            self.state.end(r, PATIENCE)
            events.append(Event("ended", r.number, 0, {"why": PATIENCE}))
        if r.handle is not None:
            self.state.drop(r)
            events.append(Event("dropped", r.number, 0, {}))

    def _name(self, kind: str, event_id: str | None) -> str | None:
        self.check_usable()
        if event_id is not None and (not isinstance(event_id, str) or not event_id):
            raise InputError("event_id", f"{event_id!r}", "a string")
        return None if event_id is None else f"{kind}:{event_id}"

    def _left_behind(self, world: WorldVersion) -> set[tuple[Any, ...]]:
        """The pairs and transitions that only other worlds have; their costs are ignored."""
        if len(self.state.worlds) == 1:
            return set()
        here = {key for step in world.steps for key in (step, step[:2])}
        every = {key for one in self.state.worlds for step in one.steps for key in (step, step[:2])}
        return every - here

    @contextmanager
    def _writing(self) -> Iterator[list[Event]]:
        """Change the state and collect the events, then write them; if that fails, the agent is broken."""
        self.check_usable()
        events: list[Event] = []
        self._broken = True
        yield events
        self.log.append(events)
        self._broken = False
        if self.log.last - self._kept >= SNAPSHOT:
            self._keep_snapshot()

    def _keep_snapshot(self) -> None:
        self.log.keep_snapshot(self.state.dump())
        self._kept = self.log.last
