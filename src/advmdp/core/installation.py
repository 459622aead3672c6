"""What is installed: versions, what is missing, what is slow, and how to fix each.

Nothing is imported to find out: versions come from the metadata of packages, and the build from the files.
"""

import multiprocessing
import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from re import match
from typing import Literal, NamedTuple

from advmdp import __version__
from advmdp.core.optional import EXTRAS
from advmdp.core.threads import cores

PACKAGE = Path(__file__).parent.parent
BASE = ("numpy", "polars", "pydantic", "rich")
USES = {
    "plot": "figures",
    "scipy": "the best policy in hindsight for criteria other than the total loss, and advmdp verify",
    "cvx": "criteria as CVXPY expressions",
    "gym": "Gymnasium environments",
    "routing": "networks, and the first part of advmdp demo",
    "ray": "experiments on a cluster",
}
"""By extra, what needs it."""
ADDING = "advmdp is installed already, so these commands only add packages; they work although advmdp is not on PyPI."
THREADED = "projection/kernels/dual"
"""A kernel that uses threads where the compiler had OpenMP."""


class Finding(NamedTuple):
    """Something about this installation, how serious it is, and how to fix it."""

    level: Literal["broken", "slow", "fine", "optional", "note"]
    what: str
    fix: str = ""


def installed(package: str) -> str | None:
    """The version of a package; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def versions() -> dict[str, str]:
    """Versions by name: of this library, of Python, of the packages, and the machine."""
    packages = {name: installed(name) or "not installed" for name in (*BASE, *sorted(EXTRAS))}
    machine = f"{platform.system()} {platform.release()}, {platform.machine()}, {cores()} cores"
    return {"advmdp": __version__, "python": platform.python_version(), "machine": machine, **packages}


def show_versions() -> None:
    """Print the versions of this library, of Python and of all packages that it uses, for reports of problems.

    ``advmdp doctor`` prints them too, with what is missing or slow.

    Examples
    --------
    >>> import advmdp as am
    >>> am.show_versions()  # doctest: +ELLIPSIS
    advmdp      ...
    python      ...
    machine     ...
    """
    for name, said in versions().items():
        print(f"{name:11} {said}")


def findings() -> Iterator[Finding]:
    """Everything that was checked: what is broken or slow, what is fine, the missing extras, and notes."""
    order = ("broken", "slow", "fine", "optional", "note")
    found = (*_python(), *_packages(), *_kernels(), *_stale(), *_threads(), *_cores(), *_extras())
    yield from sorted(found, key=lambda one: order.index(one.level))


def _python() -> Iterator[Finding]:
    yield Finding("fine", f"advmdp {__version__} with Python {platform.python_version()}, {sys.executable}")


def _packages() -> Iterator[Finding]:
    """The packages of the base, and whether they are new enough."""
    try:
        needed = [line for line in requires("advmdp") or () if ";" not in line]
    except PackageNotFoundError:
        needed = list(BASE)
    for line in needed:
        name, least = line.partition(">=")[::2]
        have = installed(name)
        if have is None:
            yield Finding("broken", f"{name} is not installed", f"pip install '{line}'")
        elif _numbers(have) < _numbers(least):
            yield Finding("broken", f"{name} {have} is older than {least}", f"pip install --upgrade '{line}'")
        else:
            yield Finding("fine", f"{name} {have}")


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in (match(r"[\d.]*", text) or [""])[0].split(".") if part)


def _kernels() -> Iterator[Finding]:
    """For which processor the kernels were compiled."""
    try:
        from advmdp.core.cpu import runs_v3
        from advmdp.core.processor import BASELINE
    except ImportError as error:
        yield Finding(
            "broken", f"the kernels cannot be loaded: {error}", "in the sources: make kernels or pip install ."
        )
        return
    asked = os.environ.get(BASELINE, "") not in ("", "0")
    two_builds = (PACKAGE / "core/kernels/v3").is_dir()
    flags = _flags()
    if two_builds and asked and runs_v3():
        yield Finding("slow", f"{BASELINE} is set: kernels run without AVX2", f"unset {BASELINE}")
    elif two_builds and not runs_v3():
        advice = "compile on this machine: pip install . in the folder of the sources"
        yield Finding("slow", "this processor has no AVX2; the kernels for any x86-64 processor run", advice)
    elif two_builds:
        yield Finding("fine", "kernels for x86-64-v3 (AVX2)")
    elif flags is not None and "-march=native" not in flags and "-mcpu=native" not in flags:
        advice = "unset ADVMDP_MARCH, then make kernels"
        yield Finding("slow", "the kernels were compiled for another processor or for any", advice)
    else:
        yield Finding("fine", "kernels compiled from source" + (" for this processor" if flags else ""))


def _flags() -> str | None:
    """The compiler's flags, where the build folder is still there."""
    notes = sorted((PACKAGE.parent.parent / "build").glob(f"temp.*{sys.implementation.cache_tag}/how.txt"))
    return notes[-1].read_text() if notes and (PACKAGE.parent.parent / "setup.py").exists() else None


def _stale() -> Iterator[Finding]:
    """Sources that changed after their kernels were compiled: only where the library runs from its sources."""
    if not (PACKAGE.parent.parent / "setup.py").exists():
        return
    sources = [path for path in PACKAGE.rglob("kernels/*.py") if path.with_suffix(".pxd").exists()]
    late = [path for path in sources if not _is_built(path)]
    if late:
        names = ", ".join(sorted(path.relative_to(PACKAGE).as_posix() for path in late)[:3])
        what = f"{len(late)} of {len(sources)} kernels are missing or older than their sources: {names}"
        yield Finding("broken", what, "make kernels, or pip install . in the folder of the sources")
    else:
        yield Finding("fine", f"all {len(sources)} kernels are up to date with their sources")


def _is_built(path: Path) -> bool:
    when = max(path.stat().st_mtime, path.with_suffix(".pxd").stat().st_mtime)
    tag = sys.implementation.cache_tag
    built = [one for one in path.parent.glob(f"{path.stem}.*") if one.suffix in (".so", ".pyd") and tag in one.name]
    return bool(built) and max(one.stat().st_mtime for one in built) >= when


def _threads() -> Iterator[Finding]:
    """Whether kernels can use several threads, and whether forks get in their way."""
    folder, name = (PACKAGE / THREADED).parent, Path(THREADED).name
    modules = [one for one in folder.glob(f"{name}.*") if one.suffix in (".so", ".pyd")]
    threaded = any(mark in one.read_bytes() for one in modules[:1] for mark in (b"GOMP_", b"__kmpc_", b"vcomp"))
    if modules and not threaded:
        advice = "install a compiler with OpenMP (on macOS: brew install libomp gcc), then compile again"
        yield Finding("slow", "the kernels were compiled without OpenMP: threads=2 uses one thread", advice)
    elif modules:
        yield Finding("fine", "kernels can use threads (OpenMP)")
    if multiprocessing.get_start_method(allow_none=True) == "fork" or _forks_by_default():
        what = "a process started by fork cannot use threads: matters only if your program starts processes itself"
        advice = "in programs with threads=2 or more, start them by multiprocessing.get_context('spawn')"
        yield Finding("note", what, advice)


def _forks_by_default() -> bool:
    return multiprocessing.get_all_start_methods()[0] == "fork"


def _cores() -> Iterator[Finding]:
    if cores() == 1:
        yield Finding("slow", "one core: advmdp run -j 2 and threads=2 do not help", "allow this process more cores")
    else:
        yield Finding("fine", f"{cores()} cores: advmdp run -j {cores()} uses all of them")


def _extras() -> Iterator[Finding]:
    """Extras that are not installed; nothing is wrong without them."""
    for extra, use in USES.items():
        packages = [name for name, brings in EXTRAS.items() if brings == extra]
        missing = [name for name in packages if installed(name) is None]
        if missing:
            advice = f"pip install 'advmdp[{extra}]'"
            what = f"the extra '{extra}' is not installed (optional): {', '.join(missing)}, for {use}"
            yield Finding("optional", what, advice)
        else:
            yield Finding("fine", f"the extra '{extra}' is installed: for {use}")
