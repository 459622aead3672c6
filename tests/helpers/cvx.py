"""CVXPY, which solves the problems of many oracles, imported when a test uses it: not every Python has it.

Where it is missing, only such tests are skipped (see `conftest.py`), not the others of their files.
"""

from importlib import import_module
from typing import Any


class _Later:
    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # pytest looks for its marks
            raise AttributeError(name)
        return getattr(import_module("cvxpy"), name)


cp = _Later()
