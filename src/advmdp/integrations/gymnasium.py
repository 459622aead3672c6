"""Gymnasium, both ways: its tabular worlds in here, and our adversarial worlds out there for other people's agents.

In.  A toy-text environment has a table ``P[s][a] = [(probability, s', reward, done), ...]`` and an
``initial_state_distrib``.  :func:`tabular_model` unrolls H steps of it (:func:`advmdp.time_expand`):

    a step that ends the episode leads to a copy of s', "s' done", which waits there until step H at reward 0;
    rows of one (s, a, s') that end alike become one transition, with their total probability and expected reward;
    rewards become losses, with lo = min(0, least reward) and hi = max(0, greatest),

        loss = (hi - reward) / (hi - lo),    return of an episode = H hi - (hi - lo) (loss of the episode).

Waiting is a step like any other, with the loss of reward 0, so that the last equation holds exactly however early an
episode ends: what is best in losses is best in rewards, and regret in losses times (hi - lo) is regret in rewards.
Where rows with several rewards were merged it holds in expectation.

:meth:`TabularModel.priced` puts an adversary into such a world: what a move costs is up to any sequence of losses; and
who is done pays for each step that is left what the last one cost by the environment's own rewards, 1 in a hole of
FrozenLake and 0 at its goal.  (Losses drawn for all transitions alike would charge for waiting too, as for a move.)

Out.  :class:`AdversarialEnv` is a loop-free MDP with a sequence of losses as a Gymnasium environment.  Its episode t is
episode t of the losses, its randomness is that of :func:`advmdp.play` (row t of the stream "world": the successor of
step k is drawn with number 2 k + 1, and number 2 k is left to the player), and it keeps the same account.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from math import inf
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array

from advmdp.arrays import LARGEST, FloatArray, exact_floats, expect, floats, frozen, owned, real, whole
from advmdp.criteria import TotalLoss
from advmdp.errors import InputError
from advmdp.expansion import Expansion, time_expand
from advmdp.hindsight import Comparator, total_comparator
from advmdp.learners.episode import checked_losses
from advmdp.losses import Losses, Policies, Stochastic
from advmdp.mdp import MDP
from advmdp.occupancy_measures import occupancy
from advmdp.policy import checked_policy
from advmdp.regret import Ledger, curve, marks
from advmdp.streams import stream_key, uniforms
from advmdp.tables import TOLERANCE, distribution

try:
    import gymnasium
    from gymnasium.envs.registration import EnvSpec
    from gymnasium.spaces import Discrete
except ImportError:
    raise InputError("Gymnasium", "it is not installed", "it: pip install 'advmdp[gym]'") from None

__all__ = ["Account", "AdversarialEnv", "TabularModel", "make_environment", "tabular_model"]


@dataclass(frozen=True, eq=False)
class TabularModel:
    """A Gymnasium environment of so many steps as a loop-free MDP, and its rewards as a loss."""

    mdp: MDP
    loss: FloatArray
    """(num_transitions,) in [0, 1]."""
    moves: NDArray[np.bool_]
    """(num_transitions,) what the environment does; the rest is waiting, and the start and end that were added."""
    aftermath: FloatArray
    """(num_transitions,) of one that waits, the greatest own loss of a step that led there; else 0."""
    scale: float
    """hi - lo: a regret in losses is worth so many times itself in rewards."""
    offset: float
    """H hi: the return of an episode without loss."""

    @property
    def losses(self) -> Losses:
        """The environment as it is: the same loss in every episode."""
        return Stochastic(self.mdp.skeleton, means=self.loss, noise=0.0)

    def reward(self, loss: float, episodes: int = 1) -> float:
        """The return that a loss added up over so many episodes stands for."""
        return self.offset * episodes - self.scale * loss

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


def tabular_model(env: object, horizon: int) -> TabularModel:
    """``horizon`` steps of an environment with a tabular model, or of the one with that id, such as "FrozenLake-v1".

    The environment's own limit of steps is not looked at.
    """
    steps = whole("horizon", horizon, 1)
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
    # Clipped, for an expectation is rounded.  Where all rewards are zero there is no loss.
    loss = np.clip((hi - merged.reward) / (hi - lo or 1.0), 0.0, 1.0)
    return TabularModel(expansion.mdp, *_carried(expansion, merged.key(S, A), loss), scale=hi - lo, offset=steps * hi)


def _carried(
    expansion: Expansion, key: NDArray[np.int64], loss: FloatArray
) -> tuple[FloatArray, NDArray[np.bool_], FloatArray]:
    """Loss, moves and aftermath over transitions: each finds its loss by what it was; what was added has none."""
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
    """Rows of a table P, as columns; a successor that is done is the copy of its state, numbered after all states."""

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


def make_environment(
    name: str, options: Mapping[str, Any] | None = None, allow_import: Iterable[str] | None = None
) -> object:
    """The environment of that id; ``options`` are what ``gymnasium.make`` takes besides.

    ``allow_import`` are the modules and packages that may be imported for it, besides Gymnasium's; if None, any may.
    """
    try:
        if allow_import is not None:
            _check_imports(name, (*OWN, *allow_import))
        return gymnasium.make(name, **(options or {}))
    except InputError:
        raise
    except Exception as error:  # whatever the code of an environment says to what it was given
        given = f"'{name}', which Gymnasium cannot make ({type(error).__name__}: {error})"
        raise InputError("env", given, "an environment, or the id of one") from None


OWN = ("gymnasium", "__main__", "__mp_main__")
"""Gymnasium, and the script that is running, here or in a process that it started."""


def _check_imports(name: str, allowed: tuple[str, ...]) -> None:
    """Refuse an id that needs other modules: that before a colon, or that of the class that is registered for it."""
    module, _, known = name.rpartition(":")
    if module:
        _check_import(name, module, allowed)
        import_module(module)  # which registers its environments
    for spec in gymnasium.registry.values():
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
        given = "a passenger who changes their mind, which the table P knows nothing of"
        raise InputError(name, given, "fickle_passenger=False")
    try:
        states = len(table)
    except TypeError:
        raise InputError(f"{name}.P", f"{table!r}", "a table by state") from None
    return name, table, distribution(initial, f"{name}.initial_state_distrib", states)


def _outcomes(name: str, table: Any, states: int) -> Outcomes:
    """All that can happen, and at last that who is done waits."""
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


@dataclass(frozen=True, eq=False)
class Account:
    """What an agent in an :class:`AdversarialEnv` has paid, as :class:`advmdp.Game` says it of a learner."""

    episodes: int
    seed: int
    curve: pl.DataFrame
    """The columns of ``Game.curve``; nothing is guaranteed or projected, so the bound is infinite and gaps are 0."""
    comparator: Comparator
    """The best fixed policy in hindsight."""
    exact: bool
    """Whether episodes are entered with their expected loss, or with that of the path that was taken."""

    @property
    def total_loss(self) -> float:
        return float(self.curve["loss"][-1])

    @property
    def regret(self) -> float:
        return float(self.curve["regret"][-1])

    def __repr__(self) -> str:
        kind, best = "expected" if self.exact else "sampled", self.comparator.value
        paid = f"{kind} loss {self.total_loss:,.2f}, best fixed policy {best:,.2f}, regret {self.regret:+,.2f}"
        return f"Account({self.episodes:,} episodes: {paid})"


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
            self._finish(self._paid + self.skeleton.num_layers - self._steps)
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
        info, over = self._info() | {"loss": loss}, self._steps == sk.num_layers
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
        self._drawn = uniforms(self._key, t, 1, 2 * sk.num_layers)[0]
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
