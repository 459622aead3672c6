"""Makes every learner of the registry and its variants for tests, trains it in small worlds, and compares learners."""

import inspect

import numpy as np

import advmdp as am
from advmdp.learners.base import Learner
from advmdp.learners.registry import LEARNERS, fitting

__all__ = [  # the registry is imported here, and by the tests from here
    "ADAPTIVE", "BANDITS", "EITHER", "GUARANTEED", "LEARNERS", "NAMED", "SK", "VARIANTS", "WORLD",
    "Learner", "fitting", "ids", "make", "played", "same_learner", "trained",
]  # fmt: skip

EITHER = ("OREPS", "UCRL2", "REGAL", "UCBVI", "Uniform")
VARIANTS = [*((name, None) for name in LEARNERS), *((name, "bandit") for name in EITHER)]
BANDITS = [(name, kind) for name, kind in VARIANTS if kind == "bandit" or LEARNERS[name].sees == "bandit"]
GUARANTEED = [variant for variant in VARIANTS if variant[0] not in ("Uniform", "FollowLeader", "ReplayLast")]


def make(name: str, feedback: str | None, told: am.MDP | am.Skeleton, horizon: int = 60) -> Learner:
    """A learner with the theory's parameters, made from what it may know."""
    kind = LEARNERS[name]
    told = told.skeleton if kind.knows == "skeleton" and isinstance(told, am.MDP) else told
    takes = inspect.signature(kind).parameters
    given = {"horizon": horizon} if "horizon" in takes else {}
    given |= {"guarantee": True} if "guarantee" in takes else {}
    return kind(told, **given, **({"feedback": feedback} if feedback else {}))


def ids(variant: object) -> str:
    return str(variant or "")


WORLD = am.MDP.random([1, 2, 2, 1], 2, seed=0)
SK = WORLD.skeleton
NAMED = am.MDP.from_steps([
    ("home", "bus", "station", 0.8), ("home", "bus", "stuck", 0.2), ("home", "walk", "station", 1.0),
    ("station", "train", "work", 1.0), ("station", "taxi", "work", 1.0), ("stuck", "wait", "work", 1.0),
])  # fmt: skip


ADAPTIVE = am.losses.Adaptive(SK, seed=3, memory=3)


def trained(name: str, feedback: str | None = None, episodes: int = 40) -> Learner:
    learner = make(name, feedback, WORLD)
    am.play(WORLD, ADAPTIVE, learner, episodes, seed=1)
    return learner


def same_learner(one: Learner, other: Learner) -> bool:
    states = one.state(), other.state()
    return one.episode == other.episode and states[0].keys() == states[1].keys() and all(
        states[0][name].tobytes() == states[1][name].tobytes() for name in states[0]
    )  # fmt: skip


def played(learner: am.Learner, mdp: am.MDP, losses: am.losses.Losses, episodes: int, seed: int = 0) -> list:
    """Play a learner; return the trajectories, and q before each episode."""
    rng = np.random.default_rng(seed)
    history = []
    for t in range(episodes):
        trajectory = mdp.sample(learner.policy, rng)
        history.append((trajectory, np.array(learner.q)))
        learner.update(trajectory, losses.at(t))
    return history
