"""One episode of Algorithm 1 in compiled code: what every compiled learner shares.

``play_block`` of a learner runs a loop over the episodes of a :class:`Block`; in each it lets :func:`enter` draw the
trajectory and account for the policy under the true P, and then learns.  The block holds what the adversary and the
world have in store, a row for each episode, and takes down what every episode cost.

A learner that sees the losses along its path only takes them from :func:`reveal` and looks at no others.  An episode
that is handed over with ``update`` then holds no others: in their place is NaN, which would spoil all that it touches.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.core.arrays import FloatArray, expect, floats, frozen, integers
from advmdp.core.compiling import compiled
from advmdp.core.errors import InputError
from advmdp.criteria import evaluate_terms
from advmdp.losses import Reaction, no_reaction, react
from advmdp.model.dynamics import Dynamics
from advmdp.model.mdp import Trajectory, sample_path
from advmdp.model.occupancy import push_forward
from advmdp.model.skeleton import Skeleton

Ints = NDArray[np.int64]


class Block(NamedTuple):
    """Some episodes in a row: what they hold, and what they cost."""

    losses: FloatArray  # (B, n, d)
    uniforms: FloatArray  # (B, 2 L), for the trajectories; (0, 2 L) where these are given
    account: FloatArray  # the terms of the criterion that is accounted for
    states: Ints  # (B, L + 1): the trajectories
    pairs: Ints  # (B, L)
    transitions: Ints  # (B, L)
    paid: FloatArray  # f(q^{P, pi_t}; l_t)
    believed: FloatArray  # f(q_t; l_t) of the learner's own q_t
    gap: FloatArray  # of the projection after the episode
    total: FloatArray  # (n, d): the running sum of the losses
    q: FloatArray  # scratch: q^{P, pi_t}
    mass: FloatArray  # scratch, over states
    z: FloatArray  # scratch, over transitions
    seen: FloatArray  # scratch: the losses along a path
    reaction: Reaction  # of an adaptive adversary, whose answers are the losses


def make_block(
    sk: Skeleton, losses: FloatArray | Reaction, account: FloatArray, total: FloatArray, uniforms: FloatArray
) -> Block:
    """Episodes with these losses, or losses that react, to be drawn with these uniform numbers."""
    reaction = losses if isinstance(losses, Reaction) else no_reaction()
    losses = losses.losses if isinstance(losses, Reaction) else losses
    return _block(sk, losses, account, total, uniforms, Trajectory.empty(sk.num_steps, len(losses)), reaction)


def given_block(sk: Skeleton, trajectory: Trajectory, loss: FloatArray, account: FloatArray) -> Block:
    """The one episode that went this way."""
    uniforms = np.empty((0, 2 * sk.num_steps))
    losses = loss.reshape(1, sk.num_transitions, -1)
    return _block(sk, losses, account, np.empty((0, 0)), uniforms, _path(sk, trajectory), no_reaction())


def told_block(sk: Skeleton, trajectory: Trajectory, loss: ArrayLike, feedback: str, account: FloatArray) -> Block:
    """The episode as ``update`` is told of it: with one whole loss, or with the losses along the path."""
    given = floats(loss, "loss")
    if feedback == "full":
        losses = checked_losses(sk, given[None])[0]
        if losses.size > sk.num_transitions:
            raise InputError("loss", f"{losses.shape[1]} losses at once", "one")
        return given_block(sk, trajectory, losses, account)
    if given.shape != (sk.num_steps,) or not (given.min() >= 0.0 and given.max() <= 1.0):
        raise InputError(
            "loss", np.array2string(given, threshold=6), f"{sk.num_steps} numbers from 0 to 1, a step each"
        )
    block = given_block(sk, trajectory, np.full(sk.num_transitions, np.nan), account)
    losses = np.full((1, sk.num_transitions, 1), np.nan)
    losses[0, block.transitions[0], 0] = given
    return block._replace(losses=frozen(losses))


def checked_losses(sk: Skeleton, losses: FloatArray, first: int | None = None) -> FloatArray:
    """A stack of losses, each over transitions and within [0, 1], as every guarantee assumes; else an error."""
    n = sk.num_transitions
    if losses.ndim not in (2, 3) or losses.shape[1] != n or losses.size == 0:
        raise InputError("loss", f"shape {losses.shape[1:]}", f"({n},) or ({n}, d)")
    if not (losses.min() >= 0.0 and losses.max() <= 1.0):  # NaN is neither
        bad = np.argwhere(~((losses >= 0.0) & (losses <= 1.0)))[0]
        when = "" if first is None else f" of episode {first + bad[0]}"
        where = f"loss{when} at {sk.where_transition(int(bad[1]))}"
        raise InputError(where, f"{losses[tuple(bad)]}", "a number from 0 to 1")
    return losses


def _path(sk: Skeleton, trajectory: Trajectory) -> Trajectory:
    """The trajectory as a block of one; it must be one of the skeleton's, since kernels count along it."""
    taken = integers(expect(Trajectory, trajectory, "trajectory").transitions, "trajectory.transitions")
    if taken.shape != (sk.num_steps,) or taken.min() < 0 or taken.max() >= sk.num_transitions:
        given = np.array2string(taken, threshold=6)
        raise InputError("trajectory", f"transitions {given}", f"{sk.num_steps} numbers below {sk.num_transitions}")
    pairs = np.searchsorted(sk.transition_ptr, taken, side="right") - 1
    states = np.append(sk.state_of_pair[pairs], sk.num_states - 1)
    if states[0] != 0 or (sk.successor[taken] != states[1:]).any():
        raise InputError(
            "trajectory", f"transitions {taken}", "steps that follow on each other, from the first state on"
        )
    return Trajectory(states.reshape(1, -1), pairs.reshape(1, -1), taken.reshape(1, -1))


def _block(
    sk: Skeleton, losses: FloatArray, account: FloatArray, total: FloatArray, uniforms: FloatArray, paths: Trajectory,
    reaction: Reaction,
) -> Block:  # fmt: skip
    count, n = len(losses), sk.num_transitions
    return Block(
        frozen(losses.reshape(count, n, -1)), uniforms, frozen(account), paths.states, paths.pairs, paths.transitions,
        np.zeros(count), np.zeros(count), np.zeros(count), total, np.empty(n), np.empty(sk.num_states), np.empty(n),
        np.empty(sk.num_steps), reaction,
    )  # fmt: skip


@compiled
def enter(world: Dynamics, block: Block, b: int, policy: FloatArray) -> None:
    """Episode b: draw its trajectory, account for the policy, add up the losses; nothing if the episode is given."""
    if len(block.uniforms) == 0:
        return
    sample_path(
        world.pair_ptr, world.transition_ptr, world.successor, world.transition, policy, block.uniforms[b],
        block.states[b], block.pairs[b], block.transitions[b],
    )  # fmt: skip
    push_forward(world.pair_ptr, world.transition_ptr, world.successor, world.transition, policy, block.mass, block.q)
    if len(block.reaction.losses) > 0:
        react(block.reaction, b, policy, world.transition_ptr)
    loss = block.losses[b]
    block.paid[b] = evaluate_terms(block.account, world.layer_transition_ptr, block.q, loss, block.z)
    total, flat = block.total.reshape(block.total.size), loss.reshape(loss.size)
    for i in range(len(flat)):
        total[i] += flat[i]


@compiled
def reveal(block: Block, b: int) -> FloatArray:
    """The losses along the path of episode b, one a step: all that a bandit learner is shown."""
    for k in range(len(block.seen)):
        block.seen[k] = block.losses[b, block.transitions[b, k], 0]
    return block.seen
