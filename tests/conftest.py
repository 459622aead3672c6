"""Settings of all tests: kernels compile on first use, so no deadline; on CI the examples are always the same ones.

With several workers the kernels are compiled before they start, into the cache that all of them read, and not by each.
"""

import os

import matplotlib as mpl
import pytest
from hypothesis import settings

from advmdp.warm import warm

mpl.use("Agg")
settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_configure(config: pytest.Config) -> None:
    if getattr(config.option, "numprocesses", None):
        warm()
