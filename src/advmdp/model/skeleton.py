"""The skeleton of a loop-free episodic MDP: layers, actions, possible successors, and no probabilities.

Section 2 of the paper: the states form layers X_0, ..., X_L with X_0 = {x_0} and X_L = {x_L}, and transitions lead only
from one layer to the next.  So an episode has L steps.  Here action sets may differ from state to state, and a pair
(x, a) lists only its possible successors.  So the dense textbook MDP and a graph with millions of edges use the same
data structure: three flat index spaces, nested like CSR of CSR.

    states       in layer order            layer_ptr[k] .. layer_ptr[k + 1]             layers k = 0, ..., L
    pairs        (x, a), in state order    pair_ptr[x] .. pair_ptr[x + 1]               a policy is a vector over pairs
    transitions  (x, a, x'), in pair order transition_ptr[p] .. transition_ptr[p + 1]   q, P and losses are vectors
                 with x' = successor[i]                                                 over transitions

A :class:`Skeleton` is what a learner is told.  The constructor checks the rules of ``skeleton_rules.py``.
"""

import hashlib
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.core.arrays import Scalar, frozen, integers, whole
from advmdp.core.errors import InputError
from advmdp.core.html import card
from advmdp.core.wording import counted, meant
from advmdp.model.naming import layered
from advmdp.model.skeleton_rules import check_rules
from advmdp.model.tables import Table, checked_sizes, dense_pointers


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Skeleton:
    """Layers, actions and possible successors of a loop-free episodic MDP, without probabilities.

    It is what a learner is told. An episode starts in the only state of layer 0, moves one layer forward in each step
    and ends in the only state of layer L. :meth:`dense` and :meth:`sparse` are the usual constructors. The arrays
    below hold three nested index spaces:

    - States are numbered layer by layer. Layer k holds the states ``layer_ptr[k]`` to ``layer_ptr[k + 1] - 1``.
    - Pairs (state, action) are numbered state by state. A policy is a vector over pairs.
    - Transitions (state, action, next state) are numbered pair by pair. Occupancy measures, transition probabilities
      and losses are vectors over transitions.

    Parameters
    ----------
    layer_ptr
        The first state of each layer, and the number of states at the end.
    pair_ptr
        The first pair of each state, and the number of pairs at the end.
    transition_ptr
        The first transition of each pair, and the number of transitions at the end.
    successor
        The next state of each transition.
    state_names
        A distinct name for each state; optional.
    action_names
        A name for the action of each pair, distinct within a state; optional.

    Raises
    ------
    ModelError
        If a rule is broken: each layer has a state, the first and the last have one, there are no dead ends, and
        successors are distinct states of the next layer.

    Examples
    --------
    >>> import advmdp as am
    >>> am.Skeleton.dense(layers=[1, 5, 5, 1], actions=4)
    Skeleton(3 steps, layers 1-5-5-1, 12 states, 4 actions, 44 pairs, 140 transitions)
    """

    layer_ptr: NDArray[np.int64]
    pair_ptr: NDArray[np.int64]
    transition_ptr: NDArray[np.int64]
    successor: NDArray[np.int32]
    state_names: tuple[str, ...] | None
    action_names: tuple[str, ...] | None

    def __init__(
        self,
        layer_ptr: ArrayLike,
        pair_ptr: ArrayLike,
        transition_ptr: ArrayLike,
        successor: ArrayLike,
        state_names: Iterable[object] | None = None,
        action_names: Iterable[object] | None = None,
    ) -> None:
        """Take the four arrays of the layout above, and names of states (num_states) and actions (num_pairs)."""
        given = {"layer_ptr": layer_ptr, "pair_ptr": pair_ptr, "transition_ptr": transition_ptr, "successor": successor}
        keep = partial(object.__setattr__, self)
        for field, values in given.items():
            keep(field, frozen(integers(values, field)))
        keep("state_names", _names(state_names, "state_names"))
        keep("action_names", _names(action_names, "action_names"))
        check_rules(self)
        # Checked to lie inside the layers, so the narrowing is exact; it saves memory and traffic in the kernels.
        keep("successor", frozen(self.successor.astype(np.int32)))

    @classmethod
    def dense(cls, layers: Sequence[int], actions: int | Sequence[int]) -> "Skeleton":
        """Make a skeleton in which every action may lead to every state of the next layer.

        Parameters
        ----------
        layers
            The number of states in each layer. If the first or the last layer has several states, a start or an end is
            added.
        actions
            The number of actions: one number, or one for each layer but the last.

        Returns
        -------
        Skeleton
            With ``layers[k] * actions * layers[k + 1]`` transitions out of layer k.

        Raises
        ------
        InputError
            If a size is not positive, or if there are too few or too many numbers.
        """
        sizes = checked_sizes(layers)
        steps = len(sizes) - 1
        given = integers(np.atleast_1d(actions), "actions").tolist()
        counts = given * steps if len(given) == 1 else given
        if len(counts) != steps or min(counts) < 1:
            raise InputError("actions", f"{actions!r}", f"a positive number, or one for each of {steps} layers")
        if sizes[0] > 1:
            sizes, counts = [1, *sizes], [1, *counts]
        if sizes[-1] > 1:
            sizes, counts = [*sizes, 1], [*counts, 1]
        return cls(*dense_pointers(sizes, counts))

    @classmethod
    def sparse(cls, layers: Sequence[int], state: ArrayLike, action: ArrayLike, successor: ArrayLike) -> "Skeleton":
        """Make a skeleton from one row for each possible transition, in any order.

        If the first or the last layer has several states, a start or an end is added. A start shifts the numbers of
        all states by one.

        Parameters
        ----------
        layers
            The number of states in each layer; states are numbered through all layers.
        state
            The state that each transition leaves.
        action
            Its action; the actions of a state are 0, 1, 2, ...
        successor
            The state that it leads to.

        Returns
        -------
        Skeleton
            With the given transitions.
        """
        table = Table.of(layers, state, action, successor)
        if table.sizes[0] > 1:
            table = table.with_start(np.ones(table.sizes[0]))
        return cls(*table.with_end().compress()[0])

    @classmethod
    def from_steps(
        cls, steps: Iterable[tuple[Hashable, Hashable, Hashable]], initial: Iterable[Hashable] | None = None
    ) -> "Skeleton":
        """Make a skeleton from named rows (state, action, next state), without probabilities.

        The layers follow from the steps.

        Parameters
        ----------
        steps
            Rows (state, action, next state), in any order. All paths to a state must have the same length; otherwise
            use :func:`advmdp.time_expand`.
        initial
            The states in which an episode may begin, if there are several; a start is then added. By default it is
            the state that no step leads to.

        Returns
        -------
        Skeleton
            With the names of states and actions.

        Raises
        ------
        ModelError
            If a row is listed twice, or if the steps have a loop, a dead end or paths of different lengths.

        Examples
        --------
        >>> import advmdp as am
        >>> sk = am.Skeleton.from_steps([("home", "bus", "work"), ("home", "walk", "work")])
        >>> sk.pair("home", "walk")
        1
        """
        states = None if initial is None else list(initial)
        first = None if states is None else {state: 1.0 / len(states) for state in states}
        table, state_names, action_names = layered(steps, first, probabilities=False)
        return cls(*table.compress()[0], state_names, action_names)

    @cached_property
    def num_steps(self) -> int:
        """The number of steps of an episode, L in the paper. There are L + 1 layers, 0 to L."""
        return len(self.layer_ptr) - 2

    @property
    def num_layers(self) -> int:
        """Another name for :attr:`num_steps`, after the paper."""
        return self.num_steps

    @cached_property
    def num_states(self) -> int:
        """The number of states, ``|X|`` in the paper."""
        return int(self.layer_ptr[-1])

    @cached_property
    def num_pairs(self) -> int:
        """The number of pairs (state, action): the length of a policy."""
        return int(self.pair_ptr[-1])

    @cached_property
    def num_transitions(self) -> int:
        """The number of transitions (state, action, next state): the length of a loss."""
        return int(self.transition_ptr[-1])

    @cached_property
    def num_actions(self) -> int:
        """The largest number of actions of a state, ``|A|`` in the paper."""
        return int(np.diff(self.pair_ptr).max())

    @cached_property
    def layer_sizes(self) -> NDArray[np.int64]:
        """The number of states in each layer, 0 to L."""
        return frozen(np.diff(self.layer_ptr))

    @cached_property
    def layer_pair_ptr(self) -> NDArray[np.int64]:
        """The pairs of layer k are ``layer_pair_ptr[k] .. layer_pair_ptr[k + 1]``, for k < L."""
        return frozen(self.pair_ptr[self.layer_ptr[:-1]])

    @cached_property
    def layer_transition_ptr(self) -> NDArray[np.int64]:
        """The transitions that leave layer k are ``layer_transition_ptr[k] .. layer_transition_ptr[k + 1]``."""
        return frozen(self.transition_ptr[self.layer_pair_ptr])

    @cached_property
    def state_of_pair(self) -> NDArray[np.int64]:
        """The state of each pair."""
        return frozen(np.repeat(np.arange(self.num_states), np.diff(self.pair_ptr)))

    def over_transitions(self, over_pairs: NDArray[Scalar]) -> NDArray[Scalar]:
        """Repeat the value of each pair for all its successors.

        Parameters
        ----------
        over_pairs
            A vector over pairs, or a matrix with one row for each pair.

        Returns
        -------
        numpy.ndarray
            The same over transitions.

        Raises
        ------
        InputError
            If the length is not the number of pairs.
        """
        if len(over_pairs) != self.num_pairs:
            raise InputError("a vector over pairs", f"{len(over_pairs)} entries", f"{self.num_pairs}")
        return np.repeat(over_pairs, self._widths, axis=0)

    def state(self, name: str | int) -> int:
        """Find the number of a state.

        Parameters
        ----------
        name
            Its name, or its number, which is then checked.

        Returns
        -------
        int
            The number of the state.

        Raises
        ------
        InputError
            If there is no such state.
        """
        if isinstance(name, str):
            if name not in self._state_numbers:
                raise InputError("state", f"unknown name '{name}'", _one_of(name, self.state_names))
            return self._state_numbers[name]
        if (number := whole("state", name, 0)) >= self.num_states:
            raise InputError("state", f"number {name}", f"0 to {self.num_states - 1}")
        return number

    def pair(self, state: str | int, action: str | int) -> int:
        """Find the number of a pair (state, action).

        Parameters
        ----------
        state
            The name or number of the state.
        action
            The name of the action, or its number within the state.

        Returns
        -------
        int
            The number of the pair.

        Raises
        ------
        InputError
            If there is no such state or action.
        """
        x = self.state(state)
        first, last = int(self.pair_ptr[x]), int(self.pair_ptr[x + 1])
        if isinstance(action, str):
            names = () if self.action_names is None else self.action_names[first:last]
            if action not in names:
                raise InputError(self.where_state(x), f"unknown action '{action}'", _one_of(action, names))
            return first + names.index(action)
        if (number := whole("action", action, 0)) >= last - first:
            raise InputError(self.where_state(x), f"action {action}", f"one of its {last - first} actions")
        return first + number

    def transition(self, state: str | int, action: str | int, next_state: str | int) -> int:
        """Find the number of a transition.

        Parameters
        ----------
        state, action, next_state
            Names, or numbers; actions are counted within their state.

        Returns
        -------
        int
            The number.

        Raises
        ------
        InputError
            If a name is unknown, or the pair has no such successor. The message suggests similar names.
        """
        p = self.pair(state, action)
        first, last = int(self.transition_ptr[p]), int(self.transition_ptr[p + 1])
        following: list[int] = self.successor[first:last].tolist()
        if (x := self.state(next_state)) not in following:
            expected = _one_of(str(next_state), [self.state_label(y) for y in following])
            raise InputError(self.where_pair(p), f"successor {self.state_label(x)}", expected)
        return first + following.index(x)

    def state_label(self, x: int) -> str:
        """Name a state.

        Parameters
        ----------
        x
            The number of the state.

        Returns
        -------
        str
            Its name, or its number if states have no names.
        """
        return str(x) if self.state_names is None else self.state_names[x]

    def pair_label(self, p: int) -> str:
        """Name a pair, as a column of a loss table does.

        Parameters
        ----------
        p
            The number of the pair.

        Returns
        -------
        str
            Such as ``home/bus``, or ``0/1`` if there are no names.
        """
        x = int(np.searchsorted(self.pair_ptr, p, side="right")) - 1
        action = str(p - int(self.pair_ptr[x])) if self.action_names is None else self.action_names[p]
        return f"{self.state_label(x)}/{action}"

    def transition_label(self, i: int) -> str:
        """Name a transition, as a column of a loss table does.

        Parameters
        ----------
        i
            The number of the transition.

        Returns
        -------
        str
            Such as ``home/bus/station``, or ``0/1/2`` if there are no names.
        """
        p = int(np.searchsorted(self.transition_ptr, i, side="right")) - 1
        return f"{self.pair_label(p)}/{self.state_label(int(self.successor[i]))}"

    def where_state(self, x: int) -> str:
        """Describe the place of a state, for messages.

        Parameters
        ----------
        x
            The number of the state.

        Returns
        -------
        str
            Such as ``layer 2, state 7 (B)``.
        """
        layer = int(np.searchsorted(self.layer_ptr, x, side="right")) - 1
        return f"layer {layer}, state {x}" + ("" if self.state_names is None else f" ({self.state_names[x]})")

    def where_pair(self, p: int) -> str:
        """Describe the place of a pair, for messages.

        Parameters
        ----------
        p
            The number of the pair.

        Returns
        -------
        str
            Such as ``layer 2, state 7 (B), action 1 (left)``.
        """
        x = int(np.searchsorted(self.pair_ptr, p, side="right")) - 1
        name = "" if self.action_names is None else f" ({self.action_names[p]})"
        return f"{self.where_state(x)}, action {p - int(self.pair_ptr[x])}{name}"

    def where_transition(self, i: int) -> str:
        """Describe the place of a transition, for messages.

        Parameters
        ----------
        i
            The number of the transition.

        Returns
        -------
        str
            Such as ``layer 2, state 7 (B), action 1 (left), successor 9 (C)``.
        """
        p = int(np.searchsorted(self.transition_ptr, i, side="right")) - 1
        x = int(self.successor[i])
        name = "" if self.state_names is None or not 0 <= x < self.num_states else f" ({self.state_names[x]})"
        return f"{self.where_pair(p)}, successor {x}{name}"

    @cached_property
    def digest(self) -> str:
        """A hash of structure and names: equal for equal skeletons, on every machine."""
        hasher = hashlib.blake2b(digest_size=16)
        for array in (self.layer_ptr, self.pair_ptr, self.transition_ptr, self.successor):
            hasher.update(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes())
        hasher.update(repr((self.state_names, self.action_names)).encode())
        return hasher.hexdigest()

    def __reduce__(self) -> tuple[object, ...]:
        """Rebuild copies by the constructor, so that they are checked and read-only too."""
        arrays = (self.layer_ptr, self.pair_ptr, self.transition_ptr, self.successor)
        return Skeleton, (*arrays, self.state_names, self.action_names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Skeleton):
            return NotImplemented
        return self is other or self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        sizes = [str(n) for n in self.layer_sizes]
        shown = sizes if len(sizes) <= 12 else [*sizes[:4], "...", *sizes[-4:]]
        actions = np.diff(self.pair_ptr)[:-1]
        least, most = int(actions.min()), int(actions.max())
        several = f"{least} to " if least < most else ""
        steps, choice = counted(self.num_steps, "step"), f"{several}{counted(most, 'action')}"
        pairs, transitions = counted(self.num_pairs, "pair"), counted(self.num_transitions, "transition")
        return (
            f"Skeleton({steps}, layers {'-'.join(shown)}, {self.num_states} states, {choice}, {pairs}, {transitions})"
        )

    def _repr_html_(self) -> str:
        """A card for notebooks."""
        from advmdp.model.picture import layers_svg

        return card("Skeleton", self._sizes(), layers_svg(self))

    def _sizes(self) -> dict[str, str]:
        """Its sizes, formatted for display."""
        sizes = [str(n) for n in self.layer_sizes]
        layers = "-".join(sizes if len(sizes) <= 12 else [*sizes[:4], "...", *sizes[-4:]])
        numbers = {"states": self.num_states, "pairs": self.num_pairs, "transitions": self.num_transitions}
        return {"steps": f"{self.num_steps:,}", "layers": layers} | {key: f"{n:,}" for key, n in numbers.items()}

    @cached_property
    def _widths(self) -> NDArray[np.int64]:
        """The number of successors of each pair."""
        return np.diff(self.transition_ptr)

    @cached_property
    def _state_numbers(self) -> dict[str, int]:
        return {name: x for x, name in enumerate(self.state_names or ())}


def _names(names: Iterable[object] | None, field: str) -> tuple[str, ...] | None:
    if names is not None and not isinstance(names, Iterable):
        raise InputError(field, f"{names!r}", "one name for each")
    return None if names is None else tuple(map(str, names))


def _one_of(name: str, names: Sequence[str] | None) -> str:
    """'one of ...', with the first few of ``names`` and the likely intended one, for messages."""
    if not names:
        return "one of (there are no names)"
    return f"one of {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}{meant(name, names)}"
