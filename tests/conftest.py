"""Settings of all tests: kernels compile on first use, so no deadline; on CI the examples are always the same ones."""

import os

import matplotlib as mpl
from hypothesis import settings

mpl.use("Agg")
settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")
