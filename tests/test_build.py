"""Building and installing: what is compiled, what is required, and the errors if something is missing."""

import base64
import hashlib
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest
from tools.lowest import lowest
from tools.merge_wheels import merge

from advmdp.core import processor
from advmdp.core.errors import MissingPackageError
from advmdp.core.optional import EXTRAS, optional
from tests.helpers.builds import BUILD, copied, require_tools

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=]", one)[0].lower() for one in requirements}


def test_without_a_compiler_it_says_what_to_install(tmp_path: Path) -> None:
    require_tools()
    command = [sys.executable, "setup.py", "build_ext", f"--build-lib={tmp_path}", f"--build-temp={tmp_path}"]
    kept = {name: value for name, value in os.environ.items() if name not in ("CC", "CFLAGS", "LDSHARED")}
    done = subprocess.run(
        command, cwd=ROOT, env={**kept, "PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert done.returncode
    assert "no C compiler works here" in done.stderr
    assert "apt install gcc python3-dev" in done.stderr
    assert "Traceback" not in done.stderr


def test_processes_that_translate_may_import_the_file_that_builds() -> None:
    """They do so unless they are forked, as on macOS and since Python 3.14."""
    require_tools()
    script = 'import runpy; print("BuildKernels" in runpy.run_path("setup.py", run_name="__mp_main__"))'
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_a_quiet_build_shows_errors_only(tmp_path: Path) -> None:
    require_tools()
    kernel = copied(tmp_path) / "advmdp" / "projection" / "kernels" / "sums.py"
    script = BUILD.replace(
        '"setup.py", stop_after="init"', '"setup.py", ["--quiet", "build_ext"], stop_after="commandline"'
    )
    assert script != BUILD

    def built() -> subprocess.CompletedProcess[str]:
        kernel.touch()
        command = [sys.executable, "-c", script, "advmdp.projection.kernels.sums", "-O1"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    good = built()
    assert (good.returncode, good.stdout + good.stderr) == (0, "")
    kernel.write_text(kernel.read_text() + "\ndef broken(:\n")
    bad = built()
    assert bad.returncode
    assert "Error compiling Cython file" in bad.stderr


def test_every_kernel_has_a_header() -> None:
    kernels = [path for path in ROOT.glob("src/advmdp/**/kernels/*.py") if path.name != "__init__.py"]
    assert kernels
    assert [path for path in kernels if not path.with_suffix(".pxd").exists()] == []


def test_every_package_of_kernels_looks_for_the_build_that_fits() -> None:
    for path in ROOT.glob("src/advmdp/**/kernels/__init__.py"):
        assert "__path__ = kernel_path(__path__)" in path.read_text(), path


@pytest.mark.parametrize(
    ("can", "told", "expected"), [(True, "", "v3"), (True, "1", ""), (False, "", ""), (True, "0", "v3")]
)
def test_modules_for_v3_are_taken_where_they_run(
    can: bool, told: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "v3").mkdir()
    monkeypatch.setattr(processor, "runs_v3", lambda: can)
    monkeypatch.setenv(processor.BASELINE, told)
    assert processor.kernel_path([str(tmp_path)])[0] == str(tmp_path / expected if expected else tmp_path)


def test_packages_that_are_missing_belong_to_the_extra_that_is_named() -> None:
    extras = PYPROJECT["project"]["optional-dependencies"]
    for package, extra in EXTRAS.items():
        assert package in names(extras[extra])
        assert package not in names(PYPROJECT["project"]["dependencies"])
    assert names(extras["all"]) == {"advmdp"}
    for extra in EXTRAS.values():
        assert re.search(rf"[\[,]{extra}[,\]]", extras["all"][0])


def test_only_packages_of_extras_are_called_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(MissingPackageError, match=r"networkx is not installed.*advmdp\[routing\]"), optional:
        import networkx  # noqa: F401
    with pytest.raises(ModuleNotFoundError, match="no_such_module"), optional:
        import no_such_module  # noqa: F401


def test_lowest_versions_are_those_of_the_project() -> None:
    text = """
        [build-system]
        requires = ["Cython>=3.2"]
        [project]
        name = "own"
        dependencies = ["numpy>=2.0"]
        [project.optional-dependencies]
        a = ["own[b]", "one.two>=1.5.2"]
        b = ["numpy>=2.0,<3"]
    """
    assert lowest(text) == ["Cython==3.2", "numpy==2.0", "one.two==1.5.2"]
    with pytest.raises(SystemExit, match="no lower bound: numpy"):
        lowest(text.replace("numpy>=2.0", "numpy"))


def test_two_wheels_become_one(tmp_path: Path) -> None:
    for folder, code in (("any", b"any"), ("fast", b"fast")):
        (tmp_path / folder).mkdir()
        with ZipFile(tmp_path / folder / "own.whl", "w") as wheel:
            wheel.writestr("own/kernels/x.so", code)
            wheel.writestr("own/core/cpu.so", b"cpu")
            wheel.writestr("own.dist-info/RECORD", "")
    with ZipFile(merge(tmp_path / "any" / "own.whl", tmp_path / "fast" / "own.whl", tmp_path)) as wheel:
        content = {name: wheel.read(name) for name in wheel.namelist()}
    record = content.pop("own.dist-info/RECORD").decode().splitlines()
    assert content == {"own/kernels/x.so": b"any", "own/kernels/v3/x.so": b"fast", "own/core/cpu.so": b"cpu"}
    assert record.pop() == "own.dist-info/RECORD,,"
    for line in record:
        name, digest, size = line.split(",")
        found = base64.urlsafe_b64encode(hashlib.sha256(content[name]).digest()).decode().rstrip("=")
        assert (digest, int(size)) == (f"sha256={found}", len(content[name]))
