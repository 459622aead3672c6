"""The rules that a skeleton must satisfy, and a message for each that is broken.

layers ascend, none is empty, the first and the last have one state;
every state but the last has an action and every pair a successor (no dead ends), the last state has no action;
the successors of a pair lie in the next layer and are distinct;
names, if given, are distinct: those of states, and those of the actions of one state.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from advmdp.core.errors import InputError, ModelError

if TYPE_CHECKING:
    from advmdp.model.skeleton import Skeleton


def check_rules(sk: "Skeleton") -> None:
    """Check all rules, each before a property that needs it."""
    _check_layers(sk)
    _check_names(sk.state_names, "state_names", sk.num_states)
    _check_pairs(sk)
    _check_names(sk.action_names, "action_names", sk.num_pairs)
    _check_transitions(sk)
    _check_distinct_names(sk)


def _check_layers(sk: "Skeleton") -> None:
    ptr = sk.layer_ptr
    if len(ptr) < 3 or ptr[0] != 0:
        raise ModelError("pointers ascend from 0", "layer_ptr", f"{ptr.tolist()[:8]}", "0, then the end of each layer")
    if (ptr[1:] <= ptr[:-1]).any():  # compared, since differences of absurd pointers would wrap around
        k = int(np.argmax(ptr[1:] <= ptr[:-1]))
        given = f"layer_ptr goes from {ptr[k]} to {ptr[k + 1]}"
        raise ModelError("pointers ascend from 0", f"layer {k}", given, "at least one state in every layer")
    if ptr[-1] > np.iinfo(np.int32).max:
        raise InputError("layer_ptr", f"{ptr[-1]} states", "fewer than 2^31")
    for k in (0, len(ptr) - 2):
        if ptr[k + 1] - ptr[k] != 1:
            given = f"{ptr[k + 1] - ptr[k]} states"
            hint = "one state (the constructors dense and sparse add one if there are several)"
            raise ModelError("one start, one end", f"layer {k}", given, hint)


def _check_pointers(ptr: NDArray[np.int64], field: str, owners: int, unit: str, where: Callable[[int], str]) -> None:
    """Check that ``ptr`` has one entry per owner and one more, starts at 0 and never descends."""
    rule = "pointers ascend from 0"
    if len(ptr) != owners + 1:
        raise ModelError(rule, field, f"{len(ptr)} entries", f"{owners + 1}, one more than there are {unit}s")
    if ptr[0] != 0:
        raise ModelError(rule, field, f"it starts with {ptr[0]}", "0")
    if (ptr[1:] < ptr[:-1]).any():
        owner = int(np.argmax(ptr[1:] < ptr[:-1]))
        given = f"{field} goes from {ptr[owner]} down to {ptr[owner + 1]}"
        raise ModelError(rule, where(owner), given, "ascending pointers")


def _check_pairs(sk: "Skeleton") -> None:
    _check_pointers(sk.pair_ptr, "pair_ptr", sk.num_states, "state", sk.where_state)
    counts = np.diff(sk.pair_ptr)
    if (counts[:-1] == 0).any():
        x = int(np.argmax(counts[:-1] == 0))
        raise ModelError("no dead ends", sk.where_state(x), "no action", "at least one in every state but the last")
    if counts[-1] != 0:
        where = sk.where_state(sk.num_states - 1)
        raise ModelError("the episode ends", where, f"{counts[-1]} actions", "none in the last state")


def _check_transitions(sk: "Skeleton") -> None:
    _check_pointers(sk.transition_ptr, "transition_ptr", sk.num_pairs, "pair", sk.where_pair)
    widths = np.diff(sk.transition_ptr)
    if (widths == 0).any():
        where = sk.where_pair(int(np.argmax(widths == 0)))
        raise ModelError("no dead ends", where, "no successor", "at least one for every action")
    if len(sk.successor) != sk.num_transitions:
        given = f"{len(sk.successor)} entries"
        raise ModelError("pointers cover all", "successor", given, f"{sk.num_transitions}, where transition_ptr ends")
    leaving = np.diff(sk.layer_transition_ptr)
    low, high = np.repeat(sk.layer_ptr[1:-1], leaving), np.repeat(sk.layer_ptr[2:], leaving)
    if (bad := (sk.successor < low) | (sk.successor >= high)).any():
        i = int(np.argmax(bad))
        expected = f"a state of the next layer, {low[i]} to {high[i] - 1}"
        raise ModelError("successors in the next layer", sk.where_transition(i), "another layer", expected)
    _check_duplicates(sk)


def _check_duplicates(sk: "Skeleton") -> None:
    """Check that successors of a pair are distinct.  If all ascend, as constructors order them, no sort is needed."""
    climbs = np.diff(sk.successor) > 0
    climbs[sk.transition_ptr[1:-1] - 1] = True
    if climbs.all():
        return
    pair = np.repeat(np.arange(sk.num_pairs), np.diff(sk.transition_ptr))
    order = np.lexsort((sk.successor, pair))
    twice = (np.diff(sk.successor[order]) == 0) & (np.diff(pair[order]) == 0)
    if twice.any():
        where = sk.where_transition(int(order[np.argmax(twice) + 1]))
        raise ModelError("distinct successors", where, "listed twice", "each successor of a pair once")


def _check_names(names: tuple[str, ...] | None, field: str, count: int) -> None:
    if names is not None and len(names) != count:
        raise ModelError("one name each", field, f"{len(names)} names", f"{count}")


def _check_distinct_names(sk: "Skeleton") -> None:
    if sk.state_names is not None and len(sk._state_numbers) != sk.num_states:
        x = next(x for x, name in enumerate(sk.state_names) if sk._state_numbers[name] != x)
        raise ModelError("names are distinct", sk.where_state(x), "the name of another state", "a unique name")
    if sk.action_names is not None:
        seen: set[tuple[int, str]] = set()
        for p, key in enumerate(zip(sk.state_of_pair.tolist(), sk.action_names, strict=True)):
            if key in seen:
                raise ModelError("names are distinct", sk.where_pair(p), "a name used before in this state", "another")
            seen.add(key)
