"""Time expansion: any finite-horizon or cyclic MDP as an equivalent loop-free one.

Section 2 of the paper calls its layers "not necessary". A state s of an MDP with loops, played for H steps, becomes the
states (h, s), one for every step h at which it can be reached. A stationary policy of the result is a policy of the
original that may depend on the step. Layer h holds the states reachable after exactly h steps; after step H an end
state closes the episode. If the initial distribution covers several states, a start precedes them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.core.arrays import FloatArray, floats, whole
from advmdp.core.errors import InputError
from advmdp.model.mdp import MDP
from advmdp.model.policy import checked_policy
from advmdp.model.skeleton import Skeleton
from advmdp.model.tables import Table, check_dense, check_sparse, distribution

NOWHERE = -1
"""Marks added parts, which have no counterpart in the original: the start, the end, and waiting when terminal."""


class Rows(NamedTuple):
    """Possible transitions of one step, as columns."""

    state: NDArray[np.int64]
    action: NDArray[np.int64]
    successor: NDArray[np.int64]
    probability: FloatArray

    def take(self, index: NDArray[Any]) -> "Rows":
        """The rows at ``index``."""
        return Rows(self.state[index], self.action[index], self.successor[index], self.probability[index])


@dataclass(frozen=True, eq=False)
class Expansion:
    """A loop-free MDP made by :func:`time_expand`, and how its parts map to the original.

    Attributes
    ----------
    mdp
        The loop-free MDP.
    original
        The number of steps H, states S and actions A of the original.
    state
        For each state, the original state; -1 for an added start or end.
    pair_step
        For each pair, the step at which it is played, 0 to H - 1; -1 for added pairs.
    pair_action
        For each pair, the original action; -1 for added pairs.

    Examples
    --------
    >>> import numpy as np
    >>> import advmdp as am
    >>> stay_or_go = np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]])
    >>> unrolled = am.time_expand(stay_or_go, steps=3)
    >>> unrolled.mdp
    MDP(4 steps, layers 1-2-2-2-1, 8 states, 1 to 2 actions, 12 pairs, 12 transitions)
    """

    mdp: MDP
    original: tuple[int, int, int]
    """(H, S, A): the steps and the numbers of states and actions of the original."""
    state: NDArray[np.int64]
    """(num_states,) the original state."""
    pair_step: NDArray[np.int64]
    """(num_pairs,) the step at which the pair is played, 0 to H - 1, or -1."""
    pair_action: NDArray[np.int64]
    """(num_pairs,) the original action, or -1."""

    def losses(self, loss: ArrayLike) -> FloatArray:
        """Map a loss of the original to the transitions of the loop-free MDP.

        Parameters
        ----------
        loss
            An array over (s, a, s'), or over (h, s, a, s') if it depends on the step. A last axis of length d holds d
            losses at once. A shape that fits both is read as (h, s, a, s').

        Returns
        -------
        numpy.ndarray
            (num_transitions,), or (num_transitions, d); 0 for added transitions.
        """
        sk = self.mdp.skeleton
        _, S, A = self.original
        table = self._over_steps(loss, "loss", (S, A, S), several=True)
        pairs = np.repeat(np.arange(sk.num_pairs), np.diff(sk.transition_ptr))
        step, action = self.pair_step[pairs], self.pair_action[pairs]
        state, successor = self.state[sk.state_of_pair[pairs]], self.state[sk.successor]
        real = action != NOWHERE
        out = np.zeros((sk.num_transitions, *table.shape[4:]))
        out[real] = table[step[real] % len(table), state[real], action[real], successor[real]]
        return out

    def policy(self, policy: ArrayLike) -> FloatArray:
        """Map a policy of the original to the pairs of the loop-free MDP.

        Parameters
        ----------
        policy
            An array over (s, a), or over (h, s, a) if it depends on the step.

        Returns
        -------
        numpy.ndarray
            (num_pairs,); 1 for added pairs.
        """
        table = self._over_steps(policy, "policy", self.original[1:], several=False)
        state = self.state[self.mdp.skeleton.state_of_pair]
        real = self.pair_action != NOWHERE
        out = np.ones(len(real))
        out[real] = table[self.pair_step[real] % len(table), state[real], self.pair_action[real]]
        checked_policy(self.mdp.skeleton, out)
        return out

    def _over_steps(self, values: ArrayLike, name: str, shape: tuple[int, ...], several: bool) -> FloatArray:
        """``values`` with a first axis for the step, of length 1 if they do not depend on it."""
        table = floats(values, name)
        stepwise = (self.original[0], *shape)
        if table.shape not in (shape, stepwise) and not (several and table.shape[:-1] in (shape, stepwise)):
            expected = f"{shape} or {stepwise}" + (", or with a last axis of d" if several else "")
            raise InputError(name, f"shape {table.shape}", expected)
        if not np.isfinite(table).all():
            raise InputError(name, "numbers that are not finite", "finite numbers")
        return table if table.shape[: len(stepwise)] == stepwise else table[np.newaxis]


def time_expand(
    transition: ArrayLike | Sequence[Any],
    steps: int,
    initial: int | ArrayLike = 0,
    state_names: Sequence[str] | None = None,
    action_names: Sequence[str] | None = None,
) -> Expansion:
    """Unroll a problem with loops into a loop-free MDP of a fixed number of steps.

    Parameters
    ----------
    transition
        An array P[s, a, s'], or P[h, s, a, s'] if it depends on the step, or a list with one SciPy sparse matrix
        P_a[s, s'] for each action. An action whose row is zero is not available in that state. A state without
        actions is terminal: the episode waits there, at no loss.
    steps
        The number of steps of an episode.
    initial
        The first state, or a distribution over states.
    state_names
        Names of the original states; a state then becomes ``name@h``.
    action_names
        Names of the original actions. Added actions, such as waiting in a terminal state, are called ``wait``.

    Returns
    -------
    Expansion
        The MDP, and how its parts map to the original.

    Raises
    ------
    InputError
        If shapes do not fit together, or if a row is not a distribution.

    Examples
    --------
    >>> import numpy as np
    >>> import advmdp as am
    >>> ring = np.roll(np.eye(3), 1, axis=1)[:, None]  # one action, which moves on
    >>> am.time_expand(ring, steps=4).mdp
    MDP(4 steps, layers 1-1-1-1-1, 5 states, 1 action, 4 pairs, 4 transitions)
    """
    count = whole("steps", steps, 1)
    num_states, num_actions, tables = _steps(transition, count)
    if state_names is not None and len(state_names) != num_states:
        raise InputError("state_names", f"{len(state_names)} names", f"{num_states}")
    if action_names is not None and len(action_names) != num_actions:
        raise InputError("action_names", f"{len(action_names)} names", f"{num_actions}")
    start = _distribution(initial, num_states)
    levels = [np.flatnonzero(start)]
    columns, sources = [], []
    offset = 0
    for h in range(count):
        here = levels[-1]
        rows = _leaving(tables[h], here, num_states)
        rank, actions = _ranked(rows)
        following = np.unique(rows.successor)
        state = offset + np.searchsorted(here, rows.state)
        successor = offset + len(here) + np.searchsorted(following, rows.successor)
        columns.append(Rows(state, rank, successor, rows.probability))
        sources.append((np.full(len(actions), h), actions))
        levels.append(following)
        offset += len(here)
    state, action, successor, probability = (np.concatenate(column) for column in zip(*columns, strict=True))
    table = Table([len(level) for level in levels], state, action, successor, probability)
    return _expansion((count, num_states, num_actions), table, levels, sources, start, state_names, action_names)


def _expansion(
    original: tuple[int, int, int],
    table: Table,
    levels: list[NDArray[np.int64]],
    sources: list[tuple[NDArray[np.int64], NDArray[np.int64]]],
    start: FloatArray,
    names: Sequence[str] | None,
    action_names: Sequence[str] | None,
) -> Expansion:
    """Add a start and an end to the table, and record what was added."""
    nothing = np.array([NOWHERE])
    labels = [f"{names[s]}@{h}" for h, level in enumerate(levels) for s in level] if names is not None else None
    if len(levels[0]) > 1:
        table = table.with_start(start[levels[0]])
        levels, sources = [nothing, *levels], [(nothing, nothing), *sources]
        labels = labels and ["start", *labels]
    if (last := len(levels[-1])) > 1:
        table = table.with_end()
        levels, sources = [*levels, nothing], [*sources, (np.full(last, NOWHERE), np.full(last, NOWHERE))]
        labels = labels and [*labels, "end"]
    pointers, probability = table.compress()
    pair_step, pair_action = (np.concatenate(column) for column in zip(*sources, strict=True))
    actions = action_names and ["wait" if a == NOWHERE else action_names[a] for a in pair_action.tolist()]
    skeleton = Skeleton(*pointers, labels, actions)
    return Expansion(MDP(skeleton, probability), original, np.concatenate(levels), pair_step, pair_action)


def _steps(transition: ArrayLike | Sequence[Any], count: int) -> tuple[int, int, list[Rows]]:
    """The numbers of states and actions, and the rows of each step, from any accepted form."""
    if isinstance(transition, list | tuple) and transition and all(hasattr(p, "tocoo") for p in transition):
        parts = [_clean(p) for p in transition]
        num_states = int(parts[0].shape[0])
        if (shapes := {p.shape for p in parts}) != {(num_states, num_states)}:
            raise InputError("transition", f"sparse matrices of shapes {sorted(shapes)}", "one shape, (S, S)")
        action = np.repeat(np.arange(len(parts)), [p.nnz for p in parts])
        state, successor, probability = (np.concatenate([getattr(p, f) for p in parts]) for f in ("row", "col", "data"))
        rows = Rows(state.astype(np.int64), action, successor.astype(np.int64), floats(probability, "transition"))
        check_sparse(*rows, "P_{1}[{0}]")
        return num_states, len(parts), [rows] * count
    dense = floats(transition, "transition")
    shape = dense.shape
    if dense.ndim not in (3, 4) or shape[-3] != shape[-1] or (dense.ndim == 4 and shape[0] != count):
        raise InputError("transition", f"shape {shape}", f"(S, A, S), or (H, S, A, S) with H = {count}")
    if dense.ndim == 3:
        return shape[-1], shape[-2], [_possible(dense, "P")] * count
    return shape[-1], shape[-2], [_possible(step, f"P[{h}]") for h, step in enumerate(dense)]


def _clean(matrix: Any) -> Any:
    """A copy in coordinate form, with duplicates summed, as SciPy defines, and stored zeros removed."""
    rows = matrix.tocsr(copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows.tocoo()


def _possible(step: FloatArray, name: str) -> Rows:
    """The entries of P[s, a, s'] that are not zero."""
    check_dense(step, name, unavailable=True)
    state, action, successor = np.nonzero(step)
    return Rows(state, action, successor, step[state, action, successor])


def _leaving(rows: Rows, states: NDArray[np.int64], num_states: int) -> Rows:
    """The rows from ``states``, sorted, with a waiting row for each state that has none."""
    here = np.zeros(num_states, bool)
    here[states] = True
    kept = rows.take(here[rows.state])
    here[kept.state] = False
    waiting = np.flatnonzero(here)
    both = Rows(
        np.concatenate([kept.state, waiting]),
        np.concatenate([kept.action, np.full(len(waiting), NOWHERE)]),
        np.concatenate([kept.successor, waiting]),
        np.concatenate([kept.probability, np.ones(len(waiting))]),
    )
    return both.take(np.lexsort((both.successor, both.action, both.state)))


def _ranked(rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For sorted rows: the rank of each row's action among those of its state, and the actions of the pairs."""
    changes = np.diff(rows.state, prepend=-1) != 0
    begins = changes | (np.diff(rows.action, prepend=NOWHERE - 1) != 0)
    pair_of_row = np.cumsum(begins) - 1
    first_pair_of_state = pair_of_row[np.flatnonzero(changes)]
    return pair_of_row - first_pair_of_state[np.cumsum(changes) - 1], rows.action[begins]


def _distribution(initial: int | ArrayLike, states: int) -> FloatArray:
    if isinstance(initial, int | np.integer):
        if not 0 <= initial < states:
            raise InputError("initial", f"state {initial}", f"0 to {states - 1}")
        return np.where(np.arange(states) == initial, 1.0, 0.0)
    return distribution(initial, "initial", states)
