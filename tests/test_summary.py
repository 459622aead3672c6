"""A test run ends with what was skipped and what to install, and without messages of other libraries."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import ROOT

FILES = sorted((ROOT / "tests").rglob("*.py"))
REMEDY = r"[^;]+; (on Debian|to run it|to run them): \w+"
"""Why, and what to do about it."""


def run_pytest(*arguments: str, path: str | None = None) -> str:
    """What pytest prints, with nothing but ``path`` to find programs in."""
    environment = {**os.environ, "PATH": path} if path is not None else None
    line = [sys.executable, "-m", "pytest", "-q", "-c", "pyproject.toml", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, check=False).stdout


def test_without_a_browser_it_says_how_many_tests_were_skipped_and_what_to_install(tmp_path: Path) -> None:
    said = run_pytest("tests/experiments/test_report.py", "-k", "contrast or logarithmic", path=str(tmp_path))
    wanted = "3 tests skipped: no chromium or no chromedriver; on Debian: apt-get install chromium chromium-driver"
    assert wanted in said.splitlines()
    assert "3 skipped" in said.splitlines()[-1]


SKIPPING = """
import pytest
@pytest.mark.parametrize("i", range(4))
def test_one(i):
    pytest.skip("no tool; to run it: install the tool") if i else None
@pytest.mark.skip(reason="no disk; to run it: buy a disk")
def test_other(): pass
@pytest.mark.xfail
def test_failing(): assert False
@pytest.mark.slow
def test_long(): pass
"""


def test_reasons_are_grouped_and_slow_tests_that_were_left_out_are_mentioned(tmp_path: Path) -> None:
    (tmp_path / "test_skipping.py").write_text(SKIPPING)
    (tmp_path / "test_whole.py").write_text("import pytest\npytest.importorskip('nothing_there', reason='no library')")
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    lines = run_pytest(str(tmp_path)).splitlines()
    assert [line for line in lines if "skipped: " in line] == [
        "1 test skipped: no disk; to run it: buy a disk", "1 file skipped: no library",
        "3 tests skipped: no tool; to run it: install the tool",
    ]  # fmt: skip
    assert not any("slow" in line for line in lines)
    lines = run_pytest(str(tmp_path), "-m", "not slow").splitlines()
    assert "The slow tests were left out: make test runs them all." in lines
    assert "1 deselected" in lines[-1]


def reasons(path: Path) -> list[str]:
    """Of all that skips in a file."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in (
            "pytest.skip", "pytest.mark.skip", "pytest.mark.skipif", "pytest.importorskip",
        ):  # fmt: skip
            named = [one.value for one in node.keywords if one.arg == "reason"]
            given = named or (node.args[:1] if ast.unparse(node.func) == "pytest.skip" else [])
            assert given, f"{path}:{node.lineno}: no reason"
            found.append(text_of(given[0]))
    return found


def text_of(node: ast.expr) -> str:
    """A string as it is written; of one with values in it, what stands between them."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "".join(part.value if isinstance(part, ast.Constant) else "it" for part in parts)


def test_every_reason_to_skip_says_what_to_do_about_it() -> None:
    found = [reason for path in FILES for reason in reasons(path)]
    assert len(found) >= 4
    for reason in found:
        assert re.match(REMEDY, reason), reason


@pytest.mark.parametrize("library", ["duckdb"])
def test_libraries_that_report_leaks_when_a_process_ends_are_not_loaded_by_the_tests(library: str) -> None:
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert library not in {name.split(".")[0] for name in names}, path
