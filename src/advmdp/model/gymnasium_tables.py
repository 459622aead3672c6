"""Unrolls Gymnasium's tabular environments into loop-free MDPs.

A toy-text environment has a table ``P[s][a] = [(probability, s', reward, done), ...]`` and an
``initial_state_distrib``.  :func:`unrolled` unrolls H steps of it (:func:`advmdp.time_expand`):

    a step that ends the episode leads to a copy of s', "s' done", which waits until step H at reward 0;
    rows with the same (s, a, s', done) become one transition, with their total probability and expected reward;
    rewards become losses, with lo = min(0, least reward) and hi = max(0, greatest reward),

        loss = (hi - reward) / (hi - lo),    return of an episode = H hi - (hi - lo) (loss of the episode).

Waiting costs the loss of reward 0, so the last equation holds exactly even if an episode ends early; if rows with
different rewards were merged, it holds in expectation.  The best policy for losses is therefore the best for rewards,
and regret in losses times (hi - lo) is regret in rewards.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import LARGEST, FloatArray, floats, frozen, owned, real, whole
from advmdp.core.errors import InputError
from advmdp.core.optional import optional
from advmdp.model.expansion import Expansion, time_expand
from advmdp.model.mdp import MDP
from advmdp.model.tables import TOLERANCE, distribution


@dataclass(frozen=True, eq=False)
class UnrolledTable:
    """A tabular environment, unrolled for a number of steps, as a loop-free MDP with its rewards as a loss."""

    mdp: MDP
    loss: FloatArray
    """(num_transitions,) in [0, 1]."""
    moves: NDArray[np.bool_]
    """(num_transitions,) whether it is a move of the environment; the others wait, start or end."""
    aftermath: FloatArray
    """(num_transitions,) for one that waits, the largest loss of a step that led there; else 0."""
    scale: float
    """hi - lo: the reward that one unit of loss is worth."""
    offset: float
    """H hi: the return of an episode without loss."""

    def reward(self, loss: float, episodes: int = 1) -> float:
        """Convert a loss to a return.

        Parameters
        ----------
        loss
            A loss, summed over episodes.
        episodes
            The number of episodes.

        Returns
        -------
        float
            The return, summed over episodes.
        """
        return self.offset * episodes - self.scale * loss


def unrolled(env: object, steps: int) -> UnrolledTable:
    """Unroll ``steps`` steps of a tabular environment, given as an object or by its id, such as "FrozenLake-v1".

    The environment's own step limit is ignored.
    """
    with optional:
        from scipy.sparse import coo_array
    steps = whole("steps", steps, 1)
    name, table, initial = _model_of(make_environment(env) if isinstance(env, str) else env)
    rows = _outcomes(name, table, len(initial))
    lo, hi = min(0.0, float(rows.reward.min())), max(0.0, float(rows.reward.max()))
    S, A = 2 * len(initial), int(rows.action.max()) + 1
    merged = rows.merged(S, A)
    own = [np.flatnonzero(merged.action == a) for a in range(A)]
    dynamics = [
        coo_array((merged.probability[at], (merged.state[at], merged.successor[at])), shape=(S, S)) for at in own
    ]
    names = [f"{s}{done}" for done in ("", " done") for s in range(S // 2)]
    expansion = time_expand(dynamics, steps, np.concatenate([initial, np.zeros(S // 2)]), names)
    # Clip, since expected rewards are rounded.  If all rewards are zero, there is no loss.
    loss = np.clip((hi - merged.reward) / (hi - lo or 1.0), 0.0, 1.0)
    return UnrolledTable(expansion.mdp, *_carried(expansion, merged.key(S, A), loss), scale=hi - lo, offset=steps * hi)


def _carried(
    expansion: Expansion, key: NDArray[np.int64], loss: FloatArray
) -> tuple[FloatArray, NDArray[np.bool_], FloatArray]:
    """Loss, moves and aftermath over transitions of the expansion; added transitions have no loss."""
    sk, (_, S, A) = expansion.mdp.skeleton, expansion.original
    action = sk.over_transitions(expansion.pair_action)
    state, after = sk.over_transitions(expansion.state[sk.state_of_pair]), expansion.state[sk.successor]
    real = action >= 0
    losses = np.zeros(sk.num_transitions)
    losses[real] = loss[np.searchsorted(key, ((state * A + action) * S + after)[real])]
    waits = real & (state >= S // 2)
    ends = ~waits & (after >= S // 2)  # of steps that can be taken: FrozenLake's own goal leads to itself, done
    last_step = np.zeros(S)
    np.maximum.at(last_step, after[ends], losses[ends])
    return owned(losses), frozen(real & ~waits), owned(np.where(waits, last_step[state], 0.0))


class Outcomes(NamedTuple):
    """Rows of a table P, as columns; a done successor is a copy of its state, numbered after all states."""

    state: NDArray[np.int64]
    action: NDArray[np.int64]
    successor: NDArray[np.int64]
    probability: FloatArray
    reward: FloatArray

    def key(self, S: int, A: int) -> NDArray[np.int64]:
        """One number for (s, a, s')."""
        return (self.state * A + self.action) * S + self.successor

    def merged(self, S: int, A: int) -> "Outcomes":
        """One row for each (s, a, s'), sorted: the sum of the probabilities, and the expected reward."""
        key, which = np.unique(self.key(S, A), return_inverse=True)
        probability = floats(np.bincount(which, self.probability), "probability")
        reward = np.bincount(which, self.probability * self.reward) / probability
        return Outcomes(key // S // A, key // S % A, key % S, probability, reward)


def _gymnasium() -> Any:
    """Gymnasium, which is optional."""
    with optional:
        import gymnasium
    return gymnasium


def make_environment(
    name: str, options: Mapping[str, Any] | None = None, allow_import: Iterable[str] | None = None
) -> object:
    """Make an environment from its id; ``options`` go to ``gymnasium.make``.

    ``allow_import`` are the modules and packages that may be imported for it, besides Gymnasium's; if None, any may.
    """
    gymnasium = _gymnasium()
    try:
        if allow_import is not None:
            _check_imports(name, (*OWN, *allow_import))
        return gymnasium.make(name, **(options or {}))
    except InputError:
        raise
    except Exception as error:  # an environment's own code may raise anything
        given = f"'{name}', which Gymnasium cannot make ({type(error).__name__}: {error})"
        raise InputError("env", given, "an environment, or the id of one") from None


OWN = ("gymnasium", "__main__", "__mp_main__")
"""Modules that are always allowed: Gymnasium, and the running script, also in its child processes."""


def _check_imports(name: str, allowed: tuple[str, ...]) -> None:
    """Refuse an id that needs other modules: the one before a colon, or the module of the registered class."""
    module, _, known = name.rpartition(":")
    if module:
        _check_import(name, module, allowed)
        import_module(module)  # which registers its environments
    for spec in _gymnasium().registry.values():
        if spec.id == known or spec.id.startswith(f"{known}-v"):  # without a version the latest is meant
            made_by = spec.entry_point
            home = made_by.partition(":")[0] if isinstance(made_by, str) else getattr(made_by, "__module__", "")
            _check_import(name, home, allowed)


def _check_import(name: str, module: str, allowed: tuple[str, ...]) -> None:
    if not any(module == one or module.startswith(f"{one}.") for one in allowed):
        given = f"'{name}', whose code is in the module {module}"
        expected = (
            f"an environment of Gymnasium's own, or --allow-import {module} (allow_import=['{module}'] in Python)"
        )
        raise InputError("env", given, expected)


def _model_of(env: object) -> tuple[str, Any, FloatArray]:
    """The name of an environment, its table and its initial distribution."""
    bare = getattr(env, "unwrapped", env)
    name = type(bare).__name__
    table, initial = getattr(bare, "P", None), getattr(bare, "initial_state_distrib", None)
    if table is None:
        expected = "one with a table P[s][a], such as FrozenLake, CliffWalking or Taxi"
        raise InputError("env", f"{name}, which has no tabular model", expected)
    if initial is None:
        raise InputError(f"{name}.initial_state_distrib", "nothing", "the distribution of the first state")
    if getattr(bare, "fickle_passenger", False):
        given = "a fickle passenger, which the table P does not model"
        raise InputError(name, given, "fickle_passenger=False")
    try:
        states = len(table)
    except TypeError:
        raise InputError(f"{name}.P", f"{table!r}", "a table by state") from None
    return name, table, distribution(initial, f"{name}.initial_state_distrib", states)


def _outcomes(name: str, table: Any, states: int) -> Outcomes:
    """Every outcome of the table, then the waiting of done states."""
    rows: list[tuple[int, int, int, float, float]] = []
    for s in range(states):
        try:
            actions = dict(table[s]) if isinstance(table[s], Mapping) else dict(enumerate(table[s]))
        except (LookupError, TypeError):
            actions = {}
        if not actions:
            raise InputError(f"{name}.P, state {s}", "no actions", "P[s][a] for s = 0, 1, ...")
        for a, given in actions.items():
            where, total = f"{name}.P, state {s}, action {a}", 0.0
            if not isinstance(given, Iterable):
                raise InputError(where, f"{given!r}", "a list of (probability, next state, reward, done)")
            for outcome in given:
                probability, successor, reward, done = _outcome(where, outcome, states)
                total += probability
                if probability > 0.0:
                    rows.append((s, whole(where, a, 0), successor + done * states, probability, reward))
            if not abs(total - 1.0) <= TOLERANCE:
                raise InputError(where, f"probabilities with a sum of {total}", "1 (to nine digits)")
    most = max(row[1] for row in rows)
    if most >= len(rows):
        where = next(f"{name}.P, state {row[0]}" for row in rows if row[1] == most)
        raise InputError(where, f"action {most}", "actions 0, 1, 2, ...")
    rows += [(s, 0, s, 1.0, 0.0) for s in range(states, 2 * states)]
    return Outcomes(*(np.array(column) for column in zip(*rows, strict=True)))


def _outcome(where: str, outcome: Any, states: int) -> tuple[float, int, float, bool]:
    try:
        probability, successor, reward, done = outcome
    except (TypeError, ValueError):
        raise InputError(where, f"{outcome!r}", "(probability, next state, reward, done)") from None
    if not 0.0 <= real(probability) <= 1.0 + TOLERANCE:
        raise InputError(where, f"probability {probability!r}", "a number from 0 to 1")
    if not isinstance(successor, int | np.integer) or not 0 <= successor < states:
        raise InputError(where, f"next state {successor!r}", f"0 to {states - 1}")
    if not abs(real(reward)) <= LARGEST:
        raise InputError(where, f"reward {reward!r}", f"a number from {-LARGEST:g} to {LARGEST:g}")
    if not isinstance(done, bool | np.bool_) and not (isinstance(done, int) and done in (0, 1)):
        raise InputError(where, f"done {done!r}", "true or false")
    return float(probability), int(successor), float(reward), bool(done)
