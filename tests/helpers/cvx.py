"""CVXPY, which solves the problems of many oracles, for tests that may have to do without it.

Not every Python has it. A test that uses `cp` is skipped then, but not the others in its file.
"""

from typing import Any

import pytest


class _Later:
    """The module, imported when something of it is used."""

    def __getattr__(self, name: str) -> Any:
        module = pytest.importorskip("cvxpy", reason="no CVXPY; to run them: pip install 'advmdp[cvx]'")
        return getattr(module, name)


cp = _Later()
