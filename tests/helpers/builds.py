"""Copies the package and rebuilds some extension modules, with edits or for another processor."""

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from shutil import copy2, copytree, ignore_patterns, which

import advmdp as am

ROOT = Path(__file__).parents[2]
KERNELS = "projection/kernels"
Edit = tuple[str, str, str]
"""(a file below the package, a text that occurs once, its replacement)."""

BUILD = """
import sys
import setuptools  # first: it has distutils where Python no longer does
from distutils.core import run_setup

dist = run_setup("setup.py", stop_after="init")
dist.ext_modules = [module for module in dist.ext_modules if module.name in sys.argv]
for module in dist.ext_modules:
    module.extra_compile_args += [flag for flag in sys.argv if flag.startswith("-O")]
dist.get_command_obj("build_ext").build_lib = "src"
dist.run_command("build_ext")
"""
"""Does what `setup.py build_ext --inplace` does, but only for the named modules."""


def require_tools() -> None:
    """Skip the test if the build tools are missing."""
    import pytest

    for package in ("Cython", "setuptools"):  # which stay outside this process: setuptools replaces distutils in it
        if find_spec(package) is None:
            pytest.skip(f"no {package}; to run them: pip install {package}")
    if which(os.environ.get("CC", "cc")) is None:
        pytest.skip("no C compiler; on Debian: apt-get install gcc")


def copied(folder: Path) -> Path:
    """Copy the package and `setup.py`; return the folder to add to the module path.

    Modification times are kept, so that only edited files are translated to C again.
    """
    copytree(Path(am.__file__).parent, folder / "src" / "advmdp", ignore=ignore_patterns("__pycache__"))
    copy2(ROOT / "setup.py", folder)
    return folder / "src"


def rebuild(folder: Path, modules: Iterable[str], *flags: str, **variables: str) -> None:
    """Build some extension modules of a copy, by their files below the package.

    ``flags`` such as -O1 replace those of `setup.py`; ``variables`` are environment variables.
    """
    names = ["advmdp." + file.removesuffix(".py").replace("/", ".") for file in modules]
    for file in modules:
        (folder / "src" / "advmdp" / file).touch()
    command = [sys.executable, "-W", "ignore", "-c", BUILD, *names, *flags]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def edited(folder: Path, edits: Iterable[Edit]) -> Mapping[str, str]:
    """Copy the package with these edits; return the environment for processes that use the copy."""
    source, files = copied(folder), set()
    for name, old, new in edits:
        path = source / "advmdp" / name
        text = path.read_text()
        assert text.count(old) == 1, f"{name}: {old!r} is there {text.count(old)} times"
        path.write_text(text.replace(old, new))
        files.add(name)
    if files:
        rebuild(folder, sorted(files), "-O1")  # compiles in half the time, long loops in a fraction
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(ROOT)])}
