"""The worlds of an agent: its first one, and one more for each extension.

A world is a skeleton with names. An extension adds steps, with new states, actions or successors, and removes actions
and the states that become unreachable. Knowledge carries over by name: transition i of an old world is the one with the
same (state, action, next state) in the new one.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advmdp.core.errors import InputError, ModelError
from advmdp.core.streams import Key, stream_key
from advmdp.model.by_name import Label, action_name, state_name
from advmdp.model.skeleton import Skeleton

ARRAYS = ("layer_ptr", "pair_ptr", "transition_ptr", "successor")
NAMES = ("state_names", "action_names")
Step = tuple[str, str, str]


@dataclass(frozen=True, eq=False)
class WorldVersion:
    """A skeleton, its number among the worlds of an agent, and the pairs removed from its states."""

    number: int
    skeleton: Skeleton
    removed: tuple[tuple[str, str], ...] = ()
    maps: "dict[int, NDArray[np.int64]]" = field(default_factory=dict)
    """By the number of a later world, the places of this world's transitions in it."""

    def stream(self, seed: int) -> Key:
        """The random stream for actions in this world."""
        return stream_key(seed, "agent", str(self.number))

    @cached_property
    def steps(self) -> list[tuple[Label, Label, Label]]:
        """(state, action, next state) of each transition."""
        sk, found = self.skeleton, []
        pairs, states = sk.over_transitions(np.arange(sk.num_pairs)).tolist(), sk.state_of_pair.tolist()
        for p, y in zip(pairs, sk.successor.tolist(), strict=True):
            found.append((state_name(sk, states[p]), action_name(sk, states[p], p), state_name(sk, y)))
        return found

    @cached_property
    def numbers(self) -> dict[tuple[Label, Label, Label], int]:
        """The number of each transition by name."""
        return {step: i for i, step in enumerate(self.steps)}

    @cached_property
    def pairs(self) -> set[tuple[Label, Label]]:
        """All (state, action)."""
        return {step[:2] for step in self.steps}

    @cached_property
    def successors(self) -> list[dict[int, int]]:
        """By pair, the number of the transition to each successor."""
        sk = self.skeleton
        ends, following = sk.transition_ptr.tolist(), sk.successor.tolist()
        return [{following[i]: i for i in range(ends[p], ends[p + 1])} for p in range(sk.num_pairs)]

    @cached_property
    def layer_of(self) -> list[int]:
        """The layer of each state."""
        found: list[int] = np.repeat(np.arange(self.skeleton.num_steps + 1), self.skeleton.layer_sizes).tolist()
        return found

    def map_to(self, other: "WorldVersion") -> NDArray[np.int64]:
        """The places of this world's transitions in another world; -1 for missing ones."""
        if other.number == self.number:
            return np.arange(self.skeleton.num_transitions)
        if other.number not in self.maps:
            self.maps[other.number] = np.array([other.numbers.get(step, -1) for step in self.steps], np.int64)
        return self.maps[other.number]

    def extended(self, steps: Iterable[Step], remove: Iterable[tuple[str, str]]) -> "WorldVersion":
        """The world with these steps added and these pairs (state, action) removed."""
        sk = self.skeleton
        if sk.state_names is None or sk.action_names is None:
            raise InputError("extend", "a world without names", "a world with names, such as from Skeleton.from_steps")
        pairs = [_names("remove", pair, "(state, action)", 2) for pair in _rows("remove", remove)]
        gone = dict.fromkeys((state, action) for state, action in pairs)
        for state, action in gone:
            sk.pair(state, action)
        rows = [_names("the step", step, "(state, action, next state)", 3) for step in _rows("steps", steps)]
        added = [(state, action, successor) for state, action, successor in rows]
        kept = [step for step in self.steps if step[:2] not in gone]
        every = list(dict.fromkeys([*kept, *added]))
        start = sk.state_names[0]
        reached = _reachable(start, every)
        alive = [step for step in every if step[0] in reached]
        if lost := [step for step in added if step[0] not in reached]:
            raise ModelError("one start, one end", "extend", f"state {lost[0][0]!r} cannot be reached", "a path to it")
        again = {step[:2] for step in added}
        removed = [pair for pair in (*self.removed, *gone) if pair not in again]
        return WorldVersion(self.number + 1, Skeleton.from_steps(alive), tuple(dict.fromkeys(removed)))

    def described(self) -> dict[str, Any]:
        """Ready for JSON."""
        arrays = {name: getattr(self.skeleton, name).tolist() for name in ARRAYS}
        return arrays | {name: getattr(self.skeleton, name) for name in NAMES} | {"removed": self.removed}

    @classmethod
    def of(cls, number: int, described: dict[str, Any]) -> "WorldVersion":
        """What :meth:`described` gave."""
        skeleton = Skeleton(*(described[name] for name in (*ARRAYS, *NAMES)))
        return cls(number, skeleton, tuple((state, action) for state, action in described["removed"]))


def _rows(name: str, given: Any) -> list[Any]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError("extend", f"{name}={given!r}", "a list")
    return list(given)


def _names(what: str, given: Any, expected: str, length: int) -> tuple[str, ...]:
    if isinstance(given, str) or not hasattr(given, "__len__") or len(given) != length:
        raise InputError("extend", f"{what} {given!r}", expected)
    return tuple(map(str, given))


def _reachable(start: Label, steps: list[Any]) -> set[Label]:
    following: dict[Label, list[Label]] = {}
    for state, _, successor in steps:
        following.setdefault(state, []).append(successor)
    found, left = {start}, [start]
    while left:
        for state in following.get(left.pop(), ()):
            if state not in found:
                found.add(state)
                left.append(state)
    return found
