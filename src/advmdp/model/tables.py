"""Transition tables: one row per possible transition, in any order, and their conversion to flat arrays.

Sparse models start here: a row is (state, action, successor, probability).  States are numbered through the layers, and
the actions of a state are 0, 1, 2, ...  :meth:`Table.compress` sorts the rows by (state, action, successor) and counts
them into the pointers of a skeleton.  It uses only whole-array operations, so ten million rows take seconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.core.arrays import FloatArray, exact_floats, integers
from advmdp.core.errors import InputError, ModelError

TOLERANCE = 1e-9
"""The largest deviation of a row's sum from one that counts as rounding."""


class Pointers(NamedTuple):
    """The four arrays of a skeleton."""

    layer_ptr: NDArray[np.int64]
    pair_ptr: NDArray[np.int64]
    transition_ptr: NDArray[np.int64]
    successor: NDArray[np.int64]


@dataclass(frozen=True)
class Table:
    """Rows (state, action, successor, probability) over layers of the given sizes."""

    sizes: list[int]
    state: NDArray[np.int64]
    action: NDArray[np.int64]
    successor: NDArray[np.int64]
    probability: FloatArray

    @classmethod
    def of(
        cls,
        layers: Sequence[int],
        state: ArrayLike,
        action: ArrayLike,
        successor: ArrayLike,
        probability: ArrayLike | None = None,
    ) -> "Table":
        """Check the columns: equal lengths, states within the layers, actions from 0."""
        sizes = checked_sizes(layers)
        states, actions = integers(state, "state"), integers(action, "action")
        successors = integers(successor, "successor")
        count, total = len(states), sum(sizes)
        limits = {"state": (states, total), "action": (actions, count), "successor": (successors, total)}
        for name, (column, limit) in limits.items():
            if len(column) != count:
                raise InputError(name, f"{len(column)} rows", f"{count}, as in state")
            if (bad := (column < 0) | (column >= limit)).any():
                row = int(np.argmax(bad))
                scope = "the actions of a state are 0, 1, 2, ..." if name == "action" else "the states of all layers"
                raise InputError(f"row {row} of the table", f"{name} {column[row]}", f"0 to {limit - 1} ({scope})")
        weights = np.ones(count) if probability is None else exact_floats(probability, "probability", (count,))
        return cls(sizes, states, actions, successors, weights)

    def with_start(self, initial: FloatArray) -> "Table":
        """Add a start before the first layer, whose one action leads there by ``initial``; states shift by one."""
        first = np.flatnonzero(initial)
        zeros = np.zeros(len(first), np.int64)
        return Table(
            [1, *self.sizes],
            np.concatenate([zeros, self.state + 1]),
            np.concatenate([zeros, self.action]),
            np.concatenate([first + 1, self.successor + 1]),
            np.concatenate([initial[first], self.probability]),
        )

    def with_end(self) -> "Table":
        """Add an end after a last layer of several states, reached by their one action; a single end stays."""
        if self.sizes[-1] == 1:
            return self
        total = sum(self.sizes)
        last = np.arange(total - self.sizes[-1], total)
        return Table(
            [*self.sizes, 1],
            np.concatenate([self.state, last]),
            np.concatenate([self.action, np.zeros_like(last)]),
            np.concatenate([self.successor, np.full_like(last, total)]),
            np.concatenate([self.probability, np.ones(len(last))]),
        )

    def compress(self) -> tuple[Pointers, FloatArray]:
        """The pointers of a skeleton, and the probabilities in the order of its transitions."""
        state, action, successor, probability = self.state, self.action, self.successor, self.probability
        key = state * (int(action.max(initial=0)) + 1) + action
        if not _ascending(key, successor):
            order = np.lexsort((successor, key))
            state, action, key = state[order], action[order], key[order]
            successor, probability = successor[order], probability[order]
        first = np.flatnonzero(np.diff(key, prepend=-1))
        pair_ptr = running(np.bincount(state[first], minlength=sum(self.sizes)))
        rank = np.arange(len(first)) - pair_ptr[state[first]]
        if (gaps := rank != action[first]).any():
            row = first[np.argmax(gaps)]
            missing = f"the next action of state {state[row]} is {action[row]}"
            raise ModelError("actions are 0, 1, 2, ...", f"state {state[row]}", missing, f"{rank[np.argmax(gaps)]}")
        return Pointers(running(self.sizes), pair_ptr, np.append(first, len(key)), successor), probability


def checked_sizes(layers: Sequence[int]) -> list[int]:
    """``layers`` as a list of at least two positive numbers."""
    sizes = [int(size) for size in integers(layers, "layers")]
    if len(sizes) < 2 or min(sizes) < 1:
        raise InputError("layers", f"sizes {sizes}", "at least two layers of at least one state")
    return sizes


def running(counts: ArrayLike) -> NDArray[np.int64]:
    """The running sums 0, c_0, c_0 + c_1, ...: the start of each owner's range, and the end."""
    return np.concatenate([[0], np.cumsum(counts)], dtype=np.int64)


def dense_pointers(sizes: Sequence[int], actions: Sequence[int]) -> Pointers:
    """The pointers of a skeleton whose layer k has sizes[k] states with actions[k] actions to all of the next."""
    layer_ptr = running(sizes)
    steps = range(len(sizes) - 1)
    pairs = [sizes[k] * actions[k] for k in steps]
    return Pointers(
        layer_ptr,
        running(np.repeat([*actions, 0], sizes)),
        running(np.repeat(sizes[1:], pairs)),
        np.concatenate([np.tile(np.arange(layer_ptr[k + 1], layer_ptr[k + 2]), pairs[k]) for k in steps]),
    )


def check_dense(rows: FloatArray, name: str, unavailable: bool) -> None:
    """Check that each rows[x, a] is a distribution, or zero for an unavailable action if ``unavailable``.

    The check comes before an added start shifts all numbers, so errors name rows as given.
    """
    if (bad := ~(rows >= 0.0)).any():
        x, a, y = np.unravel_index(int(np.argmax(bad)), rows.shape)
        raise no_probability(f"{name}[{x}, {a}, {y}]", rows[x, a, y])
    totals = rows.sum(axis=2)
    bad = ~(np.abs(totals - 1.0) <= TOLERANCE)
    if unavailable:
        bad &= totals != 0.0
    if bad.any():
        x, a = np.unravel_index(int(np.argmax(bad)), bad.shape)
        raise no_distribution(f"{name}[{x}, {a}]", totals[x, a])


def check_sparse(
    state: NDArray[np.int64],
    action: NDArray[np.int64],
    successor: NDArray[np.int64],
    probability: FloatArray,
    name: str,
) -> None:
    """Check that the probabilities of each (state, action) sum to one; ``name`` has a place for both numbers."""
    if (bad := ~(probability >= 0.0)).any():
        i = int(np.argmax(bad))
        where = f"{name.format(state[i], action[i])}, successor {successor[i]}"
        raise no_probability(where, probability[i])
    _, example, pair = np.unique(state * (action.max(initial=0) + 1) + action, return_index=True, return_inverse=True)
    totals = np.bincount(pair, probability, len(example))
    if (bad := ~(np.abs(totals - 1.0) <= TOLERANCE)).any():
        p = int(np.argmax(bad))
        raise no_distribution(name.format(state[example[p]], action[example[p]]), totals[p])


def distribution(values: ArrayLike, name: str, size: int) -> FloatArray:
    """Check that ``values`` is a distribution over that many entries."""
    weights = exact_floats(values, name, (size,))
    if not (weights >= 0.0).all() or not abs(weights.sum() - 1.0) <= TOLERANCE:
        raise ModelError("rows sum to one", name, f"{weights}", "nonnegative numbers that sum to 1")
    return weights


def no_probability(where: str, value: float) -> ModelError:
    """The error for an entry that is negative or NaN."""
    rule = "no NaN" if np.isnan(value) else "no negative probability"
    return ModelError(rule, where, f"probability {value}", "a number from 0 to 1")


def no_distribution(where: str, total: float) -> ModelError:
    """The error for a row with a sum other than one."""
    return ModelError("rows sum to one", where, f"a sum of {total:.12g}", "1 (to nine digits)")


def _ascending(key: NDArray[np.int64], successor: NDArray[np.int64]) -> bool:
    """Whether the rows are already in order, as those of a generator usually are."""
    climb = np.diff(key)
    return bool(((climb > 0) | ((climb == 0) & (np.diff(successor) >= 0))).all())
