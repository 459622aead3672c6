"""Blocks of episodes: many for :meth:`Learner.play_block`, or the one that ``update`` takes.

A bandit learner must not read losses off its path. In a block that ``update`` makes, these are NaN, so a kernel that
reads one by mistake spoils its result visibly.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.core.arrays import FloatArray, expect, frozen, integers
from advmdp.core.errors import InputError
from advmdp.learners.kernels.episode import Block
from advmdp.losses import Reaction
from advmdp.model.by_name import ByName, loss_vector, path_losses
from advmdp.model.mdp import Trajectory
from advmdp.model.skeleton import Skeleton

_NONE = np.empty(0)


def make_block(
    sk: Skeleton, losses: FloatArray | Reaction, account: FloatArray, total: FloatArray, uniforms: FloatArray
) -> Block:
    """Make a block of episodes to play, with given or reacting losses; ``uniforms`` draw the trajectories."""
    reaction = losses if isinstance(losses, Reaction) else None
    losses = losses.losses if isinstance(losses, Reaction) else losses
    paths = Trajectory.empty(sk.num_steps, len(losses))
    return _block(sk, losses, account, paths, total=total, uniforms=uniforms, reaction=reaction)


def given_block(sk: Skeleton, trajectory: Trajectory, loss: FloatArray, account: FloatArray) -> Block:
    """Make a block of one episode whose trajectory is given."""
    return _block(sk, loss.reshape(1, sk.num_transitions, -1), account, _path(sk, trajectory))


def told_block(sk: Skeleton, trajectory: Trajectory, loss: ByName, feedback: str, account: FloatArray) -> Block:
    """Make the block for ``update``: one episode with the whole loss, or with the losses along the path."""
    if feedback == "full":
        losses = checked_losses(sk, loss_vector(sk, loss)[None])[0]
        if losses.size > sk.num_transitions:
            raise InputError("loss", f"{losses.shape[1]} losses at once", "one")
        return given_block(sk, trajectory, losses, account)
    path = _path(sk, trajectory)
    given = path_losses(sk, loss, path.transitions[0])
    if given.shape != (sk.num_steps,) or not (given.min() >= 0.0 and given.max() <= 1.0):
        raise InputError(
            "loss", np.array2string(given, threshold=6), f"{sk.num_steps} numbers from 0 to 1, one per step"
        )
    losses = np.full((1, sk.num_transitions, 1), np.nan)
    losses[0, path.transitions[0], 0] = given
    return _block(sk, losses, account, path)


def late_block(sk: Skeleton, path: NDArray[np.int64], loss: FloatArray, account: FloatArray) -> Block:
    """Make a block of one episode that was counted before its loss arrived; missing steps have the number -1."""
    taken, pairs = np.full((1, sk.num_steps), -1), np.full((1, sk.num_steps), -1)
    states = np.full((1, sk.num_steps + 1), -1)
    of = pairs_along(sk, path)
    steps = np.searchsorted(sk.layer_pair_ptr, of, side="right") - 1
    taken[0, steps], pairs[0, steps], states[0, steps] = path, of, sk.state_of_pair[of]
    return _block(sk, loss.reshape(1, sk.num_transitions, -1), account, Trajectory(states, pairs, taken))


def losses_along(sk: Skeleton, path: NDArray[np.int64], loss: ByName) -> FloatArray:
    """The losses along a path as an array over all transitions, NaN elsewhere."""
    given = path_losses(sk, loss, path)
    if given.shape != path.shape or not ((given >= 0.0) & (given <= 1.0)).all():
        raise InputError("loss", np.array2string(given, threshold=6), f"{len(path)} numbers from 0 to 1, one per step")
    losses = np.full(sk.num_transitions, np.nan)
    losses[path] = given
    return losses


def pairs_along(sk: Skeleton, path: NDArray[np.int64]) -> NDArray[np.int64]:
    """The pair of each transition."""
    return np.searchsorted(sk.transition_ptr, path, side="right") - 1


def part_of_path(sk: Skeleton, transitions: Trajectory | ArrayLike) -> NDArray[np.int64]:
    """Check the transitions of a path, complete or not: steps in order, and adjacent steps connected."""
    given = transitions.transitions if isinstance(transitions, Trajectory) else transitions
    taken = integers(given, "transitions")
    if taken.size and (taken.min() < 0 or taken.max() >= sk.num_transitions):
        raise InputError("transitions", np.array2string(taken, threshold=6), f"numbers below {sk.num_transitions}")
    pairs = pairs_along(sk, taken)
    steps, states = np.searchsorted(sk.layer_pair_ptr, pairs, side="right"), sk.state_of_pair[pairs]
    ahead = np.diff(steps)
    if (ahead < 1).any() or ((ahead == 1) & (sk.successor[taken[:-1]] != states[1:])).any():
        raise InputError("transitions", np.array2string(taken, threshold=6), "steps that lead from one to the next")
    return taken


def checked_losses(sk: Skeleton, losses: FloatArray, first: int | None = None) -> FloatArray:
    """Check a stack of losses: each over transitions and within [0, 1], as every guarantee assumes."""
    n = sk.num_transitions
    if losses.ndim not in (2, 3) or losses.shape[1] != n or losses.size == 0:
        raise InputError("loss", f"shape {losses.shape[1:]}", f"({n},) or ({n}, d)")
    if not (losses.min() >= 0.0 and losses.max() <= 1.0):  # written so that NaN fails too
        bad = np.argwhere(~((losses >= 0.0) & (losses <= 1.0)))[0]
        when = "" if first is None else f" of episode {first + bad[0]}"
        where = f"loss{when} at {sk.where_transition(int(bad[1]))}"
        raise InputError(where, f"{losses[tuple(bad)]}", "a number from 0 to 1")
    return losses


def whole_path(sk: Skeleton, trajectory: Trajectory) -> NDArray[np.int64]:
    """Check a trajectory and return its transitions."""
    taken: NDArray[np.int64] = _path(sk, trajectory).transitions[0]
    return taken


def _path(sk: Skeleton, trajectory: Trajectory) -> Trajectory:
    """Check that the trajectory fits the skeleton, since kernels index by it, and shape it as a block of one."""
    taken = integers(expect(Trajectory, trajectory, "trajectory").transitions, "trajectory.transitions")
    if taken.shape != (sk.num_steps,) or taken.min() < 0 or taken.max() >= sk.num_transitions:
        given = np.array2string(taken, threshold=6)
        raise InputError("trajectory", f"transitions {given}", f"{sk.num_steps} numbers below {sk.num_transitions}")
    pairs = np.searchsorted(sk.transition_ptr, taken, side="right") - 1
    states = np.append(sk.state_of_pair[pairs], sk.num_states - 1)
    if states[0] != 0 or (sk.successor[taken] != states[1:]).any():
        raise InputError(
            "trajectory", f"transitions {taken}", "steps from the first state on, each leading to the next"
        )
    return Trajectory(states.reshape(1, -1), pairs.reshape(1, -1), taken.reshape(1, -1))


def _block(
    sk: Skeleton,
    losses: FloatArray,
    account: FloatArray,
    paths: Trajectory,
    *,
    total: FloatArray = _NONE,
    uniforms: FloatArray = _NONE,
    reaction: Reaction | None = None,
) -> Block:
    """Make a block, with memory for costs and evaluation."""
    count, n = len(losses), sk.num_transitions
    arrays = {
        "losses": np.ascontiguousarray(losses).reshape(count, n, -1), "uniforms": np.ascontiguousarray(uniforms),
        "total": total, "states": paths.states, "pairs": paths.pairs, "transitions": paths.transitions,
        "paid": np.zeros(count), "believed": np.zeros(count), "gap": np.zeros(count),
        "q": np.empty(n), "mass": np.empty(sk.num_states), "z": np.empty(n), "seen": np.empty(sk.num_steps),
    }  # fmt: skip
    return Block(arrays, frozen(account), reaction)
