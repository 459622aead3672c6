"""Measures learners from other libraries on our worlds: seconds per episode, without compilation.

None of them handles arbitrary losses.  They see rewards 1 - loss, and only their speed is compared.  rlberry 0.6 has
four, compiled by Numba.  rlberry-scool has only UCBVI, in plain Python, and needs rlberry 0.7.  So each library has its
own environment (``make .venv-peers/ready``), and this file imports only NumPy at the top: ``python -m benchmarks.peers
WORLD.npz`` prints, with any interpreter, the times of its peers as JSON.

The comparison favours them: losses are drawn beforehand, and their logs are off.
"""

import contextlib
import json
import logging
import sys
import time
import warnings
from bisect import bisect
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module, metadata
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import advmdp as am

__all__ = ["World", "times_of"]

FAST = ("rlberry 0.6",)
PLAIN = ("rlberry 0.7", "rlberry-scool 0.7")
CHUNK, CHUNKS, MOST_LOSSES = 0.3, 5, 2_000_000


@dataclass(frozen=True)
class World:
    """What a peer needs of an MDP and its losses, as plain arrays."""

    steps: int
    pair_ptr: np.ndarray
    transition_ptr: np.ndarray
    successor: np.ndarray
    transition: np.ndarray
    losses: np.ndarray
    """(episodes, transitions); they repeat when they end."""

    @classmethod
    def of(cls, mdp: "am.MDP", losses: "am.losses.Losses", count: int) -> "World":
        """The world with the losses of at most ``count`` episodes; fewer if they take too much memory."""
        sk = mdp.skeleton
        block = losses.block(0, max(1, min(count, MOST_LOSSES // sk.num_transitions)))
        return cls(len(sk.layer_ptr) - 2, sk.pair_ptr, sk.transition_ptr, sk.successor, mdp.transition, block)

    @classmethod
    def load(cls, path: Path) -> "World":
        with np.load(path, allow_pickle=False) as file:
            return cls(int(file["steps"]), *(file[name] for name in list(cls.__dataclass_fields__)[1:]))

    def save(self, path: Path) -> None:
        np.savez(path, **asdict(self))


def environment(world: World, seed: int) -> Any:
    """The world as a Gymnasium environment.  It is fast: lists, and one bisection per step."""
    import gymnasium
    from rlberry.spaces import Discrete  # its counters refuse Gymnasium's own

    choices = set(np.diff(world.pair_ptr).tolist()) - {0}
    if len(choices) != 1:
        raise ValueError(f"the peers need one number of actions everywhere, but states have {sorted(choices)}")
    actions = choices.pop()
    states = int(world.successor.max()) + 1
    pair_ptr, successor = world.pair_ptr.tolist(), world.successor.tolist()
    ptr = world.transition_ptr.tolist()
    # Without the last entry of a row, so that rounding cannot lead beyond the row.
    sums = [np.cumsum(world.transition[a : b - 1]).tolist() for a, b in pairwise(ptr)]
    rewards, draw = 1.0 - world.losses, Random(seed).random

    class Episodes(gymnasium.Env):
        observation_space, action_space, reward_range = Discrete(states), Discrete(actions), (0.0, 1.0)
        episode, state, step_number, total = -1, 0, 0, 0.0

        def reset(
            self, *, seed: int | None = None, options: dict[str, Any] | None = None
        ) -> tuple[int, dict[str, Any]]:
            self.episode += 1
            self.state = self.step_number = 0
            self.row = rewards[self.episode % len(rewards)]
            return 0, {}

        def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
            pair = pair_ptr[self.state] + int(action)
            taken = ptr[pair] + bisect(sums[pair], draw())
            self.state = successor[taken]
            self.step_number += 1
            reward = float(self.row[taken])
            self.total += reward
            return self.state, reward, self.step_number == world.steps, False, {}

    return Episodes()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence the peers' warnings and progress lines."""
    logger = logging.getLogger("rlberry_logger")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logger.disabled, before = True, logger.disabled
        try:
            yield
        finally:
            logger.disabled = before


def installed(packages: tuple[str, ...]) -> bool:
    """Whether the packages are installed in these versions."""
    found = {d.name.lower(): d.version for d in metadata.distributions()}
    return all(found.get(p.split()[0], "").startswith(f"{p.split()[1]}.") for p in packages)


def agent_of(module: str, name: str, world: World) -> Any:
    kind = getattr(import_module(module), name)
    agent = kind(environment(world, seed=0), horizon=world.steps, copy_env=False, seeder=0)
    agent.set_writer(None)  # time the learning, not its log
    return agent


def time_of(module: str, name: str, packages: tuple[str, ...], world: World) -> float | None:
    """The best seconds per episode, or None if the packages are missing."""
    if not installed(packages):
        return None
    with quiet():
        agent = agent_of(module, name, world)

        def seconds(count: int) -> float:
            begin = time.perf_counter()
            agent.fit(count)
            return time.perf_counter() - begin

        seconds(2)  # compiles
        chunk = max(3, int(CHUNK / seconds(1)))
        seconds(chunk)
        # At its end, fit plans once more for the policy that it recommends; subtract this.
        extra = min(seconds(0) for _ in range(CHUNKS))
        return (min(seconds(chunk) for _ in range(CHUNKS)) - extra) / chunk


TIMES: dict[str, Callable[[World], float | None]] = {
    "UCBVI (rlberry 0.6)": partial(time_of, "rlberry.agents.ucbvi", "UCBVIAgent", FAST),
    "PSRL (rlberry 0.6)": partial(time_of, "rlberry.agents.psrl", "PSRLAgent", FAST),
    "RLSVI (rlberry 0.6)": partial(time_of, "rlberry.agents.rlsvi", "RLSVIAgent", FAST),
    "OptQL (rlberry 0.6)": partial(time_of, "rlberry.agents.optql", "OptQLAgent", FAST),
    "UCBVI (rlberry-scool)": partial(time_of, "rlberry_scool.agents.ucbvi", "UCBVIAgent", PLAIN),
}


def times_of(world: World) -> dict[str, float]:
    """Seconds per episode of every installed peer."""
    return {name: seconds for name, measure in TIMES.items() if (seconds := measure(world)) is not None}


if __name__ == "__main__":
    print(json.dumps(times_of(World.load(Path(sys.argv[1])))))
