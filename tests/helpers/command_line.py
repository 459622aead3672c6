"""Runs the command line in the process of the test, and captures its output and exit code."""

import io
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple

from advmdp.cli.commands import app


class Done(NamedTuple):
    """The result of a command."""

    exit_code: int
    stdout: str
    stderr: str


def invoke(*words: str) -> Done:
    """Run ``advmdp`` with these arguments."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = app(words)
        except SystemExit as end:
            code = int(end.code or 0)
    return Done(code, out.getvalue(), err.getvalue())
