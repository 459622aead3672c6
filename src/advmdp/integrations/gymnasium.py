"""Gymnasium, both ways: its tabular worlds in here, and our adversarial worlds out there for other people's agents.

In.  :func:`tabular_model` unrolls a tabular environment into an MDP with losses; ``model/gymnasium_tables.py`` says
how.

:meth:`TabularModel.priced` puts an adversary into such a world: what a move costs is up to any sequence of losses; and
who is done pays for each step that is left what the last one cost by the environment's own rewards, 1 in a hole of
FrozenLake and 0 at its goal.  (Losses drawn for all transitions alike would charge for waiting too, as for a move.)

Out.  :class:`AdversarialEnv` is a loop-free MDP with a sequence of losses as a Gymnasium environment.  Its episode t is
episode t of the losses, its randomness is that of :func:`advmdp.play` (row t of the stream "world": the successor of
step k is drawn with number 2 k + 1, and number 2 k is left to the player), and it keeps the same account.
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
from advmdp.losses import Losses, Policies, Stochastic
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
    """A Gymnasium environment of so many steps as a loop-free MDP, with its rewards as losses."""

    @property
    def losses(self) -> Losses:
        """The environment as it is: the same loss in every episode."""
        return Stochastic(self.mdp.skeleton, means=self.loss, noise=0.0)

    def priced(self, losses: Losses) -> Losses:
        """The same dynamics under other losses: ``losses`` for moves, the aftermath for who is done."""
        return Priced(self, losses)


class Priced(Losses):
    """Losses where there is a move to pay for; see :meth:`TabularModel.priced`."""

    def __init__(self, model: TabularModel, losses: Losses) -> None:
        inner = expect(Losses, losses, "losses")  # type: ignore[type-abstract]
        if inner.skeleton != model.mdp.skeleton:
            raise InputError("losses", f"one over another skeleton, {inner.skeleton!r}", f"{model.mdp.skeleton!r}")
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
    """``steps`` steps of an environment with a tabular model, or of the one with that id, such as "FrozenLake-v1".

    The environment's own limit of steps is not looked at.
    """
    return TabularModel(**vars(unrolled(env, steps)))


@dataclass(frozen=True, eq=False)
class Account(Outcome):
    """What an agent in an :class:`AdversarialEnv` has paid, as :class:`advmdp.Game` says it of a learner.

    Nothing is guaranteed or projected, so the bound of the curve is infinite and its gaps are 0.
    """

    exact: bool
    """Whether episodes are entered with their expected loss, or with that of the path that was taken."""

    def __repr__(self) -> str:
        return f"Account({self.episodes:,} episodes, {'expected' if self.exact else 'sampled'}: {self._paid()})"


class AdversarialEnv(gymnasium.Env):  # type: ignore[misc]
    """A world with adversarial losses as a Gymnasium environment.

    An observation is the number of a state, which says the step too; an episode ends, terminated, in the last state.
    An action is a number below that of the largest action set.  Where a state has n actions only, others are refused;
    ``info["action_mask"]`` marks the n, and ``action_space.sample(mask)`` draws from them.  The reward of a step is
    minus its loss, and ``info`` has the ``episode`` and, after a step, its ``loss``.

    ``reset(seed=s)`` begins again with episode 0 under the seed s and an empty account; ``reset()`` goes on to the next
    episode, or back to the start of this one if no step was taken.  One that is left on the way counts as played.

    ``policy``, where given, is a function without arguments that says what the agent's policy is: a vector over pairs,
    or a table of probabilities (num_states, num_actions).  It is asked once an episode, when the first action has
    arrived, and the account is then exact: it has the expected loss of that policy.  Without, it has the losses of the
    path taken (and 1 for each step of an episode that was left): the same on average, where losses do not react.
    Losses that react are told the policies, so they need it.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (Gymnasium's name and kind)

    def __init__(self, mdp: MDP, losses: Losses, seed: int = 0, policy: Callable[[], ArrayLike] | None = None) -> None:
        self.mdp = expect(MDP, mdp, "mdp")
        self.losses = expect(Losses, losses, "losses")  # type: ignore[type-abstract]
        sk = self.skeleton = mdp.skeleton
        if losses.skeleton != sk:
            raise InputError("losses", f"one over another skeleton, {losses.skeleton!r}", f"{sk!r}")
        if (losses.dimensions or 1) > 1:
            raise InputError("losses", f"{losses.dimensions} losses at once", "one, for a reward is one number")
        if policy is None and losses.memory:
            raise InputError("policy", f"nothing, but {losses!r} reacts to it", "a function that gives the agent's")
        if policy is not None and not callable(policy):
            raise InputError("policy", f"{policy!r}", "a function without arguments that gives the agent's policy")
        self.policy = policy
        # Gymnasium's own checks make a second one by it; nothing is registered.
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
        """The loss of the episode under way; None before its first step and after its last."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        chosen = None if seed is None else whole("seed", seed, 0)
        super().reset(seed=chosen)
        if chosen is not None:
            self._begin(chosen)
        elif self._loss is not None:
            self._finish(self._paid + self.skeleton.num_steps - self._steps)
        self._state, self._steps, self._paid = 0, 0, 0.0
        return self._state, self._info()

    def step(self, action: SupportsIndex) -> tuple[int, float, bool, bool, dict[str, Any]]:
        sk, x = self.skeleton, self._state
        if x == sk.num_states - 1:
            raise InputError("step", "an episode that has ended", "reset() first")
        a, first, last = whole("action", action, 0), int(sk.pair_ptr[x]), int(sk.pair_ptr[x + 1])
        if a >= last - first:
            most = f"0 to {last - first - 1}, as info['action_mask'] says"
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
        """A table of probabilities (num_states, num_actions), of which the last row is no matter, as a policy."""
        sk = self.skeleton
        given = exact_floats(probabilities, "policy", (sk.num_states, sk.num_actions))
        there = self.action_masks == 1
        if (beyond := (given != 0.0) & ~there)[:-1].any():
            x, a = (int(i) for i in np.argwhere(beyond)[0])
            where = f"policy at {sk.where_state(x)}"
            raise InputError(where, f"probability {given[x, a]} of action {a}", "0: the state does not have it")
        policy: FloatArray = given[there]
        return policy

    def account(self) -> Account:
        """Where the agent stands: all episodes that were entered, up to now."""
        ledger, seed = self._ledger, self.world_seed
        if ledger.episodes == 0:
            raise InputError("account", "no episode that was played", "one or more")
        best = total_comparator(self.mdp, ledger.total[:, 0], ledger.episodes)
        known = {"bound": inf, "epochs": 1.0, "comparator_gap": 0.0}  # nothing is guaranteed, or projected
        last = Ledger(ledger.total, ledger.episodes, ledger.paid, ledger.believed)
        last.mark(comparator=best.value)
        lines = [line for line in ledger.lines if line["episode"] < ledger.episodes]
        frame = curve([line | known for line in (*lines, *last.lines)])
        return Account(ledger.episodes, seed, frame, best, self.policy is not None)

    def _first(self) -> FloatArray:
        """Draw the episode, as its first action has arrived: its random numbers, its loss, the agent's policy."""
        sk, t, losses = self.skeleton, self._episode, self.losses
        if losses.episodes is not None and t >= losses.episodes:
            raise InputError("episodes", f"number {t + 1}", f"at most {losses.episodes}, as many as {losses!r} has")
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
        """The episode under way is over; where nobody said the policy, it is entered with what was paid."""
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
        """Where the running sum of a row passes the number drawn; never one of probability zero."""
        row = self.mdp.transition[first:last]
        possible = np.flatnonzero(row > 0.0)
        place = int(np.searchsorted(np.cumsum(row[possible]), self._drawn[2 * self._steps + 1], side="right"))
        return first + int(possible[min(place, len(possible) - 1)])

    def _info(self) -> dict[str, Any]:
        return {"episode": self._episode, "action_mask": self.action_masks[self._state].copy()}
