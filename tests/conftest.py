"""Settings of all tests: no deadlines, since machines are shared; on CI, examples are reproducible.

At the end of a run it says what was skipped, and what to install or do so that it is not.
"""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import matplotlib as mpl
import pytest
from hypothesis import settings

from advmdp.core.errors import MissingPackageError
from advmdp.core.optional import EXTRAS

MISSING = {package for package in EXTRAS if find_spec(package) is None}
mpl.use("Agg")
settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # background jobs of a shell ignore it, and so do their children
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Stop if tests that share a folder or threads would run in parallel: some versions of xdist ignore groups."""
    if os.environ.get("PYTEST_XDIST_WORKER") and session.config.getoption("loadgroup", False):
        for item in session.items:
            if item.get_closest_marker("xdist_group") and "@" not in item.nodeid:
                raise pytest.UsageError(f"{item.nodeid} lost its xdist_group: install what constraints.txt lists")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Iterator[None]:
    """Skip a test that needs a package of an extra that is not installed: not every Python has wheels of all."""
    try:
        return (yield)
    except BaseException as error:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, ImportError) and (package := needed(cause)) in MISSING:
                pytest.skip(f"no {package}; to run them: pip install 'advmdp[{EXTRAS[package]}]'")
            cause = cause.__cause__ or cause.__context__
        raise


def needed(error: ImportError) -> str:
    """The package that was not found."""
    return error.args[0] if isinstance(error, MissingPackageError) else f"{error.name}".partition(".")[0]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print one line for each reason to skip; a file that is skipped as a whole counts once."""
    counts: Counter[tuple[str, str]] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        what = "file" if isinstance(report, pytest.CollectReport) else "test"
        counts[report.longrepr[2].removeprefix("Skipped: "), what] += 1
    for (reason, what), count in sorted(counts.items()):
        terminalreporter.write_line(f"{count} {what}{'s' * (count > 1)} skipped: {reason}", yellow=True)
    if config.option.markexpr == "not slow":
        terminalreporter.write_line("The slow tests were left out: make test runs them all.", yellow=True)


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of :func:`tests.helpers.stores.small_spec`, with one failed run; tests must not change it."""
    from tests.helpers.stores import make_store, small_spec, spoil

    root = make_store(tmp_path_factory.mktemp("experiment") / "small", small_spec())
    spoil(root, small_spec())
    return root
