"""Settings of all tests: kernels compile on first use, so no deadline; on CI the examples are always the same ones.

With several workers the kernels are compiled before they start, into the cache that all of them read, and not by each.
"""

import os

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import settings

import advmdp as am

mpl.use("Agg")
settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_configure(config: pytest.Config) -> None:
    if getattr(config.option, "numprocesses", None):
        mdp = am.MDP.random([1, 2, 1], 2, seed=0)
        sk = mdp.skeleton
        am.project(sk, np.zeros(8), am.L1Ball(np.zeros(8), np.ones(6)))
        for learner in (am.UCOREPS(sk, horizon=2), am.FollowLeader(sk)):
            learner.update(mdp.sample(learner.policy, np.random.default_rng(0)), np.zeros(8))
            am.play(mdp, am.losses.Switching(sk, period=2), learner, 2)
