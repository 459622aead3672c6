"""Compiled kernels on disk: made anew when their sources change or their files are damaged."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import advmdp as am
from advmdp.core.compiling import sources

SOURCE = Path(am.__file__).parent


@pytest.mark.slow
def test_compiled_code_of_other_sources_is_not_used(tmp_path: Path) -> None:
    """A kernel is compiled anew when a kernel that it calls has changed, though its own file has not."""
    copy = tmp_path / "advmdp"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "inner.py").write_text(
        "from advmdp.core.compiling import compiled\n@compiled\ndef f(x):\n    return x + 1\n"
    )
    outer = IMPORT + "from advmdp.inner import f\n@compiled\ndef g(x):\n    return f(x)\n"
    (copy / "outer.py").write_text(outer)

    def said() -> str:
        code = "from advmdp.outer import g; print(g(1), sum(g.stats.cache_hits.values()))"
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert [said(), said()] == ["2 0", "2 1"]
    (copy / "inner.py").write_text((copy / "inner.py").read_text().replace("x + 1", "x + 5"))
    assert said() == "6 0"


def small_package(folder: Path, **modules: str) -> Path:
    """As much of the package as compiles, with these modules."""
    package = folder / "advmdp"
    (package / "core").mkdir(parents=True)
    for name in ("compiling.py", "errors.py"):
        shutil.copy(SOURCE / "core" / name, package / "core")
    for part in (package, package / "core"):
        (part / "__init__.py").touch()
    for name, text in modules.items():
        (package / f"{name}.py").write_text(text)
    return package


def printed(folder: Path, code: str) -> str:
    """By a process that has the package of the folder; one that crashes fails the test."""
    line = [sys.executable, "-X", "faulthandler", "-c", code]
    several = {**os.environ, "NUMBA_NUM_THREADS": "2", "PYTHONPATH": ""}
    done = subprocess.run(line, cwd=folder, env=several, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


IMPORT = "from advmdp.core.compiling import compiled\n"
HITS = "print(f({}), sum(f.stats.cache_hits.values()))"
KERNEL = IMPORT + "from advmdp.constants import C\n@compiled\ndef f(x):\n    return x + C\n"


@pytest.mark.slow
def test_a_constant_from_a_file_without_kernels_counts(tmp_path: Path) -> None:
    package = small_package(tmp_path, constants="C = 1\n", kernel=KERNEL)
    code = f"from advmdp.kernel import f; {HITS.format(1)}"
    assert [printed(tmp_path, code), printed(tmp_path, code)] == ["2 0", "2 1"]
    (package / "constants.py").write_text("C = 5\n")
    assert printed(tmp_path, code) == "6 0"
    assert len(list(package.rglob("*.nb*"))) == 1  # what was compiled from other sources is gone
    (package / "constants.py").write_text("C = 1\n")
    assert [printed(tmp_path, code), printed(tmp_path, code)] == ["2 0", "2 1"]


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["cut short", "flipped", "empty", "of another type"])
def test_damaged_files_of_compiled_code_are_made_again(tmp_path: Path, damage: str) -> None:
    package = small_package(tmp_path, constants="C = 1\n", kernel=KERNEL)
    code = f"from advmdp.kernel import f; {HITS.format(1)}; {HITS.format(0.5)}"
    assert [printed(tmp_path, code), printed(tmp_path, code)] == ["2 0\n1.5 0", "2 1\n1.5 2"]
    files = sorted(package.rglob("*.nbc"))
    assert len(files) == 2  # one a type
    contents = [path.read_bytes() for path in files]
    for path, content, other in zip(files, contents, reversed(contents), strict=True):
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        path.write_bytes({"cut short": content[:middle], "flipped": flipped, "empty": b""}.get(damage, other))
    assert [printed(tmp_path, code), printed(tmp_path, code)] == ["2 0\n1.5 0", "2 1\n1.5 2"]


LOOPS = """
from numba import njit, prange
from advmdp.core.compiling import compiled, kept_on_disk

@kept_on_disk
@njit(parallel=True)
def inner(x):
    for i in prange(len(x)):
        x[i] += i

@compiled
def outer(x):
    inner(x)
    return x.sum()

@compiled
def f(x):
    return outer(x)
"""


@pytest.mark.slow
def test_kernels_compiled_against_a_parallel_loop_from_the_disk_do_not_crash(tmp_path: Path) -> None:
    """One process for each kernel, from the inside out, is how a crash came about; at last all are read."""
    small_package(tmp_path, loops=LOOPS)
    code = "import numpy as np; from advmdp.loops import f, inner, outer; x = np.zeros(4); {}; print(x.sum(), {})"
    for kernel in ("inner", "outer", "f"):
        hits = f"sum({kernel}.stats.cache_hits.values())"
        said = [printed(tmp_path, code.format(f"{kernel}(x)", hits)) for _ in range(5)]
        assert [line.split()[0] for line in said] == ["6.0"] * 5
        assert said[-1] == "6.0 1"


@pytest.mark.slow
def test_a_folder_that_is_full_costs_time_and_nothing_else(tmp_path: Path) -> None:
    small_package(tmp_path, constants="C = 1\n", kernel=KERNEL)
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)); "
    ignored = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    code = f"from advmdp.kernel import f; {HITS.format(1)}"
    assert printed(tmp_path, full + ignored + code) == "2 0"
    assert [printed(tmp_path, code), printed(tmp_path, code)] == ["2 0", "2 1"]


def test_compiled_kernels_are_forgotten_when_what_they_are_made_of_changes(tmp_path: Path) -> None:
    hashes = set()
    for changed in (None, "lanes.py", "types.py", "direct.py"):
        copy = tmp_path / f"{changed}"
        shutil.copytree(Path(am.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
        if changed:
            with (copy / "projection" / changed).open("a") as file:
                file.write("# another\n")
        hashes.add(sources(copy))
    assert len(hashes) == 4
