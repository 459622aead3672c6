"""From named steps to layers: turns a list of steps into a table of numbered states.

A step is a row (state, action, next state, probability), or a row without the probability, with any hashable labels.
The layer of a state is its number of steps from the start, which must be the same on every path.  All paths must have
the same length.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from advmdp.core.arrays import floats
from advmdp.core.errors import InputError, ModelError
from advmdp.model.tables import TOLERANCE, Table

FIELDS = ("state", "action", "next state", "probability")
Following = dict[Hashable, dict[Hashable, dict[Hashable, float]]]


def layered(
    steps: Iterable[Any], initial: Mapping[Hashable, float] | None, probabilities: bool = True
) -> tuple[Table, tuple[str, ...], tuple[str, ...]]:
    """The table of the steps with a single start and end, and the names of its states and of its pairs' actions.

    Without ``probabilities``, every row gets probability 1; callers then use only the structure.
    """
    following = _read(steps, FIELDS if probabilities else FIELDS[:3])
    layers = _layers(following, _first(following, initial))
    taken = {state for layer in layers for state in layer}
    if initial is not None and len(layers[0]) > 1:
        start = _unused("start", taken)
        following[start] = {start: {state: initial[state] for state in layers[0]}}
        layers.insert(0, [start])
    if len(layers[-1]) > 1:
        end = _unused("end", taken)
        following |= {state: {end: {end: 1.0}} for state in layers[-1]}
        layers.append([end])
    return _numbered(following, layers)


def _read(steps: Iterable[Any], fields: tuple[str, ...]) -> Following:
    """state -> action -> next state -> probability."""
    following: Following = {}
    row, expected = 0, f"({', '.join(fields)})"
    try:
        for found in steps:
            step = () if isinstance(found, str) else tuple(found)
            if len(step) != len(fields):
                raise InputError(f"row {row} of the steps", f"{found!r}", expected)
            state, action, successor, probability = (*step, 1.0)[:4]
            outcomes = following.setdefault(state, {}).setdefault(action, {})
            if successor in outcomes:
                given = f"{state!r}, {action!r} -> {successor!r} for a second time"
                raise ModelError("distinct successors", f"row {row} of the steps", given, "each outcome once")
            outcomes[successor] = float(probability)
            row += 1
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(f"row {row} of the steps", f"unusable ({error})", expected) from None
    if not following:
        raise InputError("steps", "none", f"at least one row {expected}")
    return following


def _unused(name: str, taken: set[Hashable]) -> str:
    """A name for an added state that no other state has yet."""
    while name in taken:
        name = f"({name})"
    return name


def _first(following: Following, initial: Mapping[Hashable, float] | None) -> list[Hashable]:
    """The states of the first layer: the one that no step leads to, or those with weight in ``initial``."""
    if initial is not None:
        weights = floats(list(initial.values()), "initial") if isinstance(initial, Mapping) else np.array(np.nan)
        if not (weights >= 0.0).all() or not abs(weights.sum() - 1.0) <= TOLERANCE:
            raise ModelError("rows sum to one", "initial", f"{initial}", "a dictionary from states to a distribution")
        if unknown := [state for state in initial if state not in following]:
            raise InputError("initial", f"state {unknown[0]!r}, which has no steps", "states with steps")
        return [state for state, weight in initial.items() if weight != 0.0]
    reached = {x for actions in following.values() for outcomes in actions.values() for x in outcomes}
    first = [state for state in following if state not in reached]
    if not first:
        expected = "a start that no step leads to; to unroll loops, see advmdp.time_expand"
        raise ModelError("one start, one end", "steps", "no start: every state has a step that leads to it", expected)
    if len(first) > 1:
        given = f"{len(first)} states that no step leads to ({', '.join(map(repr, first[:5]))})"
        expected = "one; for several, give their distribution as initial"
        raise ModelError("one start, one end", "steps", given, expected)
    return first


def _layers(following: Following, first: list[Hashable]) -> list[list[Hashable]]:
    """The states by their distance from the start, in order of appearance."""
    layer_of = dict.fromkeys(first, 0)
    layers = [first]
    while any(state in following for state in layers[-1]):
        found: dict[Hashable, None] = {}
        for state in layers[-1]:
            if state not in following:
                given = f"state {state!r} has no step, but others of its layer do"
                expected = "paths of equal length; let short ones wait in a state with one action"
                raise ModelError("no dead ends", f"layer {len(layers) - 1}", given, expected)
            found |= {x: None for outcomes in following[state].values() for x in outcomes}
        for state in found:
            if layer_of.setdefault(state, len(layers)) != len(layers):
                given = f"state {state!r} is reached after {layer_of[state]} and after {len(layers)} steps"
                raise ModelError(
                    "successors in the next layer", "steps", given, "one number; name a state for each step"
                )
        layers.append(list(found))
    if lost := [state for state in following if state not in layer_of]:
        raise ModelError("one start, one end", "steps", f"state {lost[0]!r} cannot be reached", "only reachable states")
    return layers


def _numbered(following: Following, layers: list[list[Hashable]]) -> tuple[Table, tuple[str, ...], tuple[str, ...]]:
    """States numbered through the layers, actions in order of appearance."""
    states = [state for layer in layers for state in layer]
    number = {state: x for x, state in enumerate(states)}
    rows = [
        (number[state], a, number[successor], probability)
        for state in states[: -len(layers[-1])]
        for a, outcomes in enumerate(following[state].values())
        for successor, probability in outcomes.items()
    ]
    state, action, successor, probability = (np.array(column) for column in zip(*rows, strict=True))
    table = Table.of([len(layer) for layer in layers], state, action, successor, probability)
    action_names = tuple(str(action) for state in states[: -len(layers[-1])] for action in following[state])
    return table, tuple(map(str, states)), action_names
