"""Runs scripts that fork, in processes of their own: threads of other libraries may stop a test's process in a fork."""

import os
import signal
import subprocess
import sys

from tests.helpers import ROOT


def run_with_children(code: str, *arguments: str, seconds: float = 120.0) -> str:
    """What a script prints; one that hangs is ended with its children, and fails the test.

    Since 3.12, Python warns that a child of a process with threads may hang, which is what such a script tests.
    """
    command = [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", code, *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, process_group=0
    ) as script:
        try:
            return script.communicate(timeout=seconds)[0].strip()
        finally:
            if script.poll() is None:
                os.killpg(script.pid, signal.SIGKILL)
