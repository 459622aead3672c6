"""Gymnasium in both directions: its tabular environments as MDPs, and adversarial MDPs as Gymnasium environments.

Import.  :func:`tabular_model` unrolls a tabular environment into an MDP with losses; ``model/gymnasium_tables.py``
explains how.

:meth:`TabularModel.priced` puts an adversary into such a world: any sequence of losses sets the cost of moves.  After
termination, each remaining step repeats the cost of the last one under the environment's own rewards: 1 in a hole of
FrozenLake, 0 at its goal.  (Losses drawn for all transitions alike would also charge for waiting, like for a move.)

Export.  :class:`AdversarialEnv` presents a loop-free MDP with a sequence of losses as a Gymnasium environment.  Its
episode t is episode t of the losses.  It draws the same random numbers as :func:`advmdp.play` (row t of the stream
"world": number 2 k + 1 determines the successor of step k, and number 2 k is left to the player), and it keeps the same
account.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from advmdp.core.arrays import FloatArray, exact_floats, expect, floats, frozen, whole
from advmdp.core.errors import InputError
from advmdp.core.optional import optional
from advmdp.core.streams import stream_key, uniforms
from advmdp.criteria import TotalLoss
from advmdp.game.ledger import Ledger, curve, marks
from advmdp.game.result import Outcome
from advmdp.learners.episode import checked_losses
from advmdp.losses import LOSS, Losses, Policies, Stochastic, Units
from advmdp.model.gymnasium_tables import UnrolledTable, unrolled
from advmdp.model.mdp import MDP
from advmdp.model.occupancy import occupancy
from advmdp.model.policy import checked_policy
from advmdp.planning.hindsight import total_comparator

with optional:
    import gymnasium
    from gymnasium.envs.registration import EnvSpec
    from gymnasium.spaces import Discrete


class TabularModel(UnrolledTable):
    """A Gymnasium environment, unrolled for a number of steps, as a loop-free MDP with its rewards as losses.

    Attributes
    ----------
    mdp
        The world.
    loss
        The loss of each transition, in [0, 1], from the environment's rewards.
    moves
        Whether each transition is a move of the environment; the others wait, start or end.
    aftermath
        For each transition that waits, the largest loss of a step that led there; 0 for the others.
    scale
        The reward that one unit of loss is worth.
    offset
        The return of an episode without loss.

    Examples
    --------
    >>> from advmdp.integrations.gymnasium import tabular_model
    >>> lake = tabular_model("FrozenLake-v1", steps=20)
    >>> lake.reward(loss=19.0)
    1.0
    """

    @property
    def losses(self) -> Losses:
        """The environment's own losses: the same in every episode."""
        losses = Stochastic(self.mdp.skeleton, means=self.loss, noise=0.0)
        losses.units = self.units
        return losses

    @property
    def units(self) -> Units:
        """The units of its own losses: a cost is minus a reward."""
        return Units("negative reward", float(self.scale), -float(self.offset)) if self.scale > 0.0 else LOSS

    def priced(self, losses: Losses) -> Losses:
        """Put an adversary into this world: losses for moves, and the aftermath once an episode is done.

        Parameters
        ----------
        losses
            Any losses on the skeleton of this world.

        Returns
        -------
        Losses
            ``losses`` for moves; ``aftermath`` for transitions that wait.
        """
        return Priced(self, losses)


class Priced(Losses):
    """Losses that apply to moves only; see :meth:`TabularModel.priced`."""

    def __init__(self, model: TabularModel, losses: Losses) -> None:
        inner = expect(Losses, losses, "losses")  # type: ignore[type-abstract]
        if inner.skeleton != model.mdp.skeleton:
            raise InputError("losses", f"made for another skeleton, {inner.skeleton!r}", f"{model.mdp.skeleton!r}")
        super().__init__(inner.skeleton, inner.dimensions)
        self.inner, self.memory, self.episodes = inner, inner.memory, inner.episodes
        self._moves, self._rest = model.moves, model.aftermath

    def _block(self, first: int, stop: int, policies: Policies | None) -> FloatArray:
        block = self.inner.block(first, stop, policies)
        keep, rest = (vector.reshape(-1, *(1,) * (block.ndim - 2)) for vector in (self._moves, self._rest))
        return np.where(keep, block, rest)

    def __repr__(self) -> str:
        return f"Priced({self.inner!r})"


def tabular_model(env: object, steps: int) -> TabularModel:
    """Import a tabular Gymnasium environment.

    Parameters
    ----------
    env
        An environment with a tabular model, or its id, such as "FrozenLake-v1".
    steps
        The number of steps of an episode. The environment's own limit is ignored.

    Returns
    -------
    TabularModel
        The world and its losses.

    Raises
    ------
    InputError
        If the environment has no tabular model, or a bad one.

    Examples
    --------
    >>> import advmdp as am
    >>> from advmdp.integrations.gymnasium import tabular_model
    >>> lake = tabular_model("FrozenLake-v1", steps=20)
    >>> game = am.play(lake.mdp, lake.losses, am.Uniform(lake.mdp.skeleton), episodes=10)
    >>> bool(0.0 < lake.reward(game.total_loss, episodes=10) < 1.0)
    True
    """
    return TabularModel(**vars(unrolled(env, steps)))


@dataclass(frozen=True, eq=False)
class Account(Outcome):
    """What an agent in an :class:`integrations.gymnasium.AdversarialEnv` has paid, like :class:`advmdp.Game`.

    There is no guarantee and no projection, so the bound of the curve is infinite and its gaps are 0.

    Attributes
    ----------
    episodes
        The number of episodes.
    seed
        The seed of the trajectories.
    curve
        A Polars frame with a row at each of about a hundred marks, as in :class:`advmdp.Game`.
    comparator
        The best fixed policy in hindsight.
    exact
        Whether episodes count with the expected loss of the policy, or with the loss of the path taken.
    reacts
        Whether the losses react to the policies.
    units
        What the losses are worth.

    Examples
    --------
    >>> import advmdp as am
    >>> from advmdp.integrations.gymnasium import AdversarialEnv
    >>> mdp = am.MDP.random([1, 2, 1], actions=2, seed=0)
    >>> env = AdversarialEnv(mdp, am.losses.Stochastic(mdp.skeleton))
    >>> _ = env.reset(seed=0)
    >>> _ = env.step(0), env.step(1)
    >>> env.account().episodes
    1
    """

    exact: bool
    reacts: bool = False
    units: Units = LOSS

    def __repr__(self) -> str:
        return f"Account({self.episodes:,} episodes, {'expected' if self.exact else 'sampled'}: {self._summary()})"


class AdversarialEnv(gymnasium.Env):  # type: ignore[misc]
    """A world with adversarial losses as a Gymnasium environment.

    An observation is the number of a state, which also determines the step.  An episode terminates in the last state.
    An action is a number below the size of the largest action set.  In a state with only n actions, others raise an
    error; ``info["action_mask"]`` marks the n valid ones, and ``action_space.sample(mask)`` draws from them.  The
    reward of a step is minus its loss.  ``info`` has the ``episode`` and, after a step, its ``loss``.

    Parameters
    ----------
    mdp
        The world.
    losses
        Its losses, one number for each transition. Losses that react depend on the policies, so they require
        ``policy``.
    seed
        The seed of the trajectories.
    policy
        A function without arguments that returns the agent's policy: a vector over pairs, or a table of probabilities
        (num_states, num_actions). It is called once per episode, when the first action arrives. The account is then
        exact: it records the expected loss of that policy. Without ``policy``, it records the losses along the path
        taken (and 1 for each missing step of an abandoned episode), which are equal on average if losses do not react.

    Raises
    ------
    InputError
        If the losses do not fit the world or need ``policy``.

    Examples
    --------
    >>> import advmdp as am
    >>> from advmdp.integrations.gymnasium import AdversarialEnv
    >>> mdp = am.MDP.random([1, 2, 1], actions=2, seed=0)
    >>> env = AdversarialEnv(mdp, am.losses.Stochastic(mdp.skeleton))
    >>> state, info = env.reset(seed=0)
    >>> state, reward, terminated, truncated, info = env.step(0)
    >>> terminated, sorted(info)
    (False, ['action_mask', 'episode', 'loss'])
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (Gymnasium's name and kind)

    def __init__(self, mdp: MDP, losses: Losses, seed: int = 0, policy: Callable[[], ArrayLike] | None = None) -> None:
        self.mdp = expect(MDP, mdp, "mdp")
        self.losses = expect(Losses, losses, "losses")  # type: ignore[type-abstract]
        sk = self.skeleton = mdp.skeleton
        if losses.skeleton != sk:
            raise InputError("losses", f"made for another skeleton, {losses.skeleton!r}", f"{sk!r}")
        if (losses.dimensions or 1) > 1:
            raise InputError("losses", f"{losses.dimensions} losses at once", "one, because a reward is one number")
        if policy is None and losses.memory:
            raise InputError("policy", f"none, but {losses!r} reacts to it", "a function that returns it")
        if policy is not None and not callable(policy):
            raise InputError("policy", f"{policy!r}", "a function without arguments that returns the agent's policy")
        self.policy = policy
        # Gymnasium's own checks use the spec to make a second environment; nothing is registered.
        told = {"mdp": mdp, "losses": losses, "seed": seed, "policy": policy}
        self.spec = EnvSpec("advmdp/Adversarial-v0", entry_point=type(self), kwargs=told)
        self.observation_space = Discrete(sk.num_states)
        self.action_space = Discrete(sk.num_actions)
        self.action_masks = frozen((np.arange(sk.num_actions) < np.diff(sk.pair_ptr)[:, None]).astype(np.int8))
        """(num_states, num_actions): 1 for each action that a state has; the last state has none."""
        self._marks = set(marks(10**9).tolist())
        self._begin(whole("seed", seed, 0))

    def _begin(self, seed: int) -> None:
        self.world_seed = seed
        self._key = stream_key(seed, "world", "trajectories")
        self._ledger = Ledger(np.zeros((self.skeleton.num_transitions, 1)))
        self._policies: dict[int, FloatArray] = {}
        self._episode, self._state, self._steps, self._paid = 0, 0, 0, 0.0
        self._loss: FloatArray | None = None
        """The loss of the current episode; None before its first step and after its last."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Start an episode.

        ``reset(seed=s)`` restarts at episode 0 with an empty account. ``reset()`` moves on to the next episode, or
        returns to the start of this one if no step was taken. An episode abandoned midway counts as played.

        Parameters
        ----------
        seed
            The seed of the trajectories.
        options
            Ignored.

        Returns
        -------
        tuple
            The first state and ``info``.
        """
        chosen = None if seed is None else whole("seed", seed, 0)
        super().reset(seed=chosen)
        if chosen is not None:
            self._begin(chosen)
        elif self._loss is not None:
            self._finish(self._paid + self.skeleton.num_steps - self._steps)
        self._state, self._steps, self._paid = 0, 0, 0.0
        return self._state, self._info()

    def step(self, action: SupportsIndex) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take a step.

        Parameters
        ----------
        action
            The number of an action of the current state.

        Returns
        -------
        tuple
            The next state, the reward, whether the episode has terminated, False, and ``info``.

        Raises
        ------
        InputError
            If the state has no such action, or the episode is over.
        """
        sk, x = self.skeleton, self._state
        if x == sk.num_states - 1:
            raise InputError("step", "a call after the end of the episode", "reset() first")
        a, first, last = whole("action", action, 0), int(sk.pair_ptr[x]), int(sk.pair_ptr[x + 1])
        if a >= last - first:
            most = f"0 to {last - first - 1}, see info['action_mask']"
            raise InputError(sk.where_state(x), f"action {a}", most)
        if self._loss is None:
            self._loss = self._first()
        p = first + a
        i = self._successor(int(sk.transition_ptr[p]), int(sk.transition_ptr[p + 1]))
        loss, self._state = float(self._loss[i]), int(sk.successor[i])
        self._steps, self._paid = self._steps + 1, self._paid + loss
        info, over = self._info() | {"loss": loss}, self._steps == sk.num_steps
        if over:
            self._finish(self._paid)
        return self._state, -loss, over, False, info

    def over_pairs(self, probabilities: ArrayLike) -> FloatArray:
        """Convert a table of probabilities to a policy.

        Parameters
        ----------
        probabilities
            A table (num_states, num_actions). Its last row is ignored.

        Returns
        -------
        FloatArray
            A policy over pairs.

        Raises
        ------
        InputError
            If an action that a state does not have has a probability above 0.
        """
        sk = self.skeleton
        given = exact_floats(probabilities, "policy", (sk.num_states, sk.num_actions))
        there = self.action_masks == 1
        if (beyond := (given != 0.0) & ~there)[:-1].any():
            x, a = (int(i) for i in np.argwhere(beyond)[0])
            where = f"policy at {sk.where_state(x)}"
            raise InputError(where, f"probability {given[x, a]} of action {a}", "0: the state has no such action")
        policy: FloatArray = given[there]
        return policy

    def account(self) -> Account:
        """Compute the cost and regret of the agent over all episodes so far.

        Returns
        -------
        Account
            What the agent has paid, and what the best fixed policy in hindsight would have paid.

        Raises
        ------
        InputError
            If no episode has been played.
        """
        ledger, seed = self._ledger, self.world_seed
        if ledger.episodes == 0:
            raise InputError("account", "no episodes yet", "one or more")
        best = total_comparator(self.mdp, ledger.total[:, 0], ledger.episodes)
        known = {"bound": inf, "epochs": 1.0, "comparator_gap": 0.0}  # there is no guarantee and no projection
        last = Ledger(ledger.total, ledger.episodes, ledger.paid, ledger.believed)
        last.mark(comparator=best.value)
        lines = [line for line in ledger.lines if line["episode"] < ledger.episodes]
        frame = curve([line | known for line in (*lines, *last.lines)])
        exact, losses = self.policy is not None, self.losses
        return Account(ledger.episodes, seed, frame, best, exact, losses.memory > 0, losses.units)

    def _first(self) -> FloatArray:
        """Prepare the episode when its first action arrives: random numbers, loss and the agent's policy."""
        sk, t, losses = self.skeleton, self._episode, self.losses
        if losses.episodes is not None and t >= losses.episodes:
            raise InputError("episodes", f"number {t + 1}", f"at most {losses.episodes}, the length of the losses")
        self._drawn = uniforms(self._key, t, 1, 2 * sk.num_steps)[0]
        loss: FloatArray = checked_losses(sk, losses.at(t, self._policies)[None], t)[0].reshape(-1)
        if self.policy is not None:
            said = floats(self.policy(), "policy")
            pi = checked_policy(sk, said if said.ndim == 1 else self.over_pairs(said))
            self._enter(loss, TotalLoss().value(sk, occupancy(self.mdp, pi), loss))
            if losses.memory:
                self._policies[t] = pi.copy()
                self._policies.pop(t - losses.memory, None)
        return loss

    def _finish(self, paid: float) -> None:
        """End the current episode; without a policy function, record what was paid on its path."""
        assert self._loss is not None
        if self.policy is None:
            self._enter(self._loss, paid)
        self._loss, self._episode = None, self._episode + 1

    def _enter(self, loss: FloatArray, paid: float) -> None:
        ledger = self._ledger
        ledger.total += loss.reshape(-1, 1)
        ledger.add(np.array([paid]), np.array([paid]), np.zeros(1))
        if ledger.episodes in self._marks:
            ledger.mark(comparator=total_comparator(self.mdp, ledger.total[:, 0], ledger.episodes).value)

    def _successor(self, first: int, last: int) -> int:
        """The transition at which the cumulative probability passes the number drawn; never one of probability 0."""
        row = self.mdp.transition[first:last]
        possible = np.flatnonzero(row > 0.0)
        place = int(np.searchsorted(np.cumsum(row[possible]), self._drawn[2 * self._steps + 1], side="right"))
        return first + int(possible[min(place, len(possible) - 1)])

    def _info(self) -> dict[str, Any]:
        return {"episode": self._episode, "action_mask": self.action_masks[self._state].copy()}
