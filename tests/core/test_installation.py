"""The description of the installation is true, and each problem is found and comes with a fix."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

import advmdp as am
from advmdp.core import installation
from advmdp.core.installation import Finding, findings, installed, show_versions, versions
from advmdp.core.optional import EXTRAS


def test_versions_are_those_of_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    import numpy as np

    said = versions()
    assert said["advmdp"] == am.__version__
    assert said["python"] == platform.python_version()
    assert said["numpy"] == np.__version__
    assert set(EXTRAS) <= set(said)
    show_versions()
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines == {name: " ".join(text.split()) for name, text in said.items()}


def test_every_extra_says_what_it_is_for_and_everything_wrong_has_a_fix() -> None:
    assert set(installation.USES) == set(EXTRAS.values())
    for one in findings():
        assert one.what
        assert (one.level == "fine") == (one.fix == "")


def test_a_missing_extra_is_optional_and_comes_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(installation, "installed", lambda name: None if name == "networkx" else installed(name))
    (note,) = [one for one in findings() if "networkx" in one.what]
    assert note.level == "optional"
    assert "is not installed (optional): networkx, for networks" in note.what
    assert note.fix == "pip install 'advmdp[routing]'"


@pytest.mark.parametrize(("have", "level"), [(None, "broken"), ("2.1.9", "broken"), ("2.2", "fine"), ("10.0", "fine")])
def test_base_packages_must_be_installed_and_recent_enough(
    have: str | None, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "requires", lambda name: ["numpy>=2.2", "ray>=2.40; extra == 'ray'"])
    monkeypatch.setattr(installation, "installed", lambda name: have)
    (found,) = installation._packages()
    assert found.level == level
    assert ("numpy>=2.2" in found.fix) == (level == "broken")


def source_tree(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A library of one kernel that runs from its sources."""
    kernels = folder / "src" / "advmdp" / "kernels"
    kernels.mkdir(parents=True)
    (folder / "setup.py").touch()
    for name in ("sums.py", "sums.pxd", f"sums.{installation.sys.implementation.cache_tag}.so"):
        (kernels / name).touch()
        os.utime(kernels / name, (1000, 1000))
    monkeypatch.setattr(installation, "PACKAGE", kernels.parent)
    return kernels


def test_kernels_older_than_their_sources_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = source_tree(tmp_path, monkeypatch)
    assert [one.level for one in installation._stale()] == ["fine"]
    os.utime(kernels / "sums.pxd", (2000, 2000))
    (found,) = installation._stale()
    assert found.level == "broken"
    assert "kernels/sums.py" in found.what
    assert "make kernels" in found.fix
    (tmp_path / "setup.py").unlink()  # installed from a wheel
    assert list(installation._stale()) == []


@pytest.mark.parametrize(("flags", "level"), [("-march=native", "fine"), ("-march=x86-64-v2", "slow")])
def test_kernels_for_another_processor_are_slow(
    flags: str, level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source_tree(tmp_path, monkeypatch)
    build = tmp_path / "build" / f"temp.linux-{installation.sys.implementation.cache_tag}"
    build.mkdir(parents=True)
    (build / "how.txt").write_text(f"advmdp.kernels.sums ['{flags}']")
    assert [one.level for one in installation._kernels()] == [level]


@pytest.mark.parametrize(
    ("has_v3", "baseline", "level"), [(True, "", "fine"), (True, "1", "slow"), (False, "", "slow")]
)
def test_a_wheel_runs_the_kernels_that_fit_the_processor(
    has_v3: bool, baseline: str, level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "core" / "kernels" / "v3").mkdir(parents=True)
    monkeypatch.setattr(installation, "PACKAGE", tmp_path)
    monkeypatch.setattr("advmdp.core.cpu.runs_v3", lambda: has_v3)
    monkeypatch.setenv("ADVMDP_BASELINE", baseline)
    assert [one.level for one in installation._kernels()] == [level]


@pytest.mark.parametrize(("content", "level"), [(b"..GOMP_parallel..", "fine"), (b"....", "slow")])
def test_kernels_without_openmp_are_slow(
    content: bytes, level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = (tmp_path / installation.THREADED).with_suffix(".abi.so")
    module.parent.mkdir(parents=True)
    module.write_bytes(content)
    monkeypatch.setattr(installation, "PACKAGE", tmp_path)
    assert next(installation._threads()).level == level


def test_one_core_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "cores", lambda: 1)
    assert [one.level for one in installation._cores()] == ["slow"]


def test_what_is_broken_comes_first_and_notes_come_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "_cores", lambda: iter([Finding("broken", "no cores", "add one")]))
    monkeypatch.setattr(installation, "installed", lambda name: None if name == "ray" else installed(name))
    monkeypatch.setattr(installation, "_forks_by_default", lambda: True)
    found = list(findings())
    assert found[0].what == "no cores"
    assert "extra 'ray'" in found[-2].what
    assert "only if your program starts processes itself" in found[-1].what


def test_pip_adds_an_extra_to_what_is_installed_without_an_index() -> None:
    """advmdp is not on PyPI, yet the command of a missing extra works: pip looks at what is installed first."""
    pytest.importorskip("pip", reason="no pip; to run it: python -m ensurepip")
    pytest.importorskip("matplotlib", reason="no matplotlib; to run it: pip install matplotlib")
    if installed("advmdp") is None:
        pytest.skip("advmdp runs from its sources without being installed; to run it: pip install .")
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "advmdp[plot]"]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert "Would install" not in said.stdout
