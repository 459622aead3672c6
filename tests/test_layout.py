"""The direction of imports: each package imports only packages before it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.source_map import PACKAGES, first_sentence

import advmdp as am

SOURCE = Path(am.__file__).parent
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path.parent != SOURCE)
HEADERS = sorted(SOURCE.rglob("*.pxd"))


def loaded(tree: ast.Module) -> Iterator[ast.AST]:
    """What runs when a module is loaded: in conditions and classes too, but not in functions nor for type checkers."""
    left: list[ast.AST] = [*tree.body]
    while left:
        node = left.pop()
        checked = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        if not checked and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield node
            left += ast.iter_child_nodes(node)


def imported(path: Path, lazily: bool = True) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything of this library that a file imports, in functions and strings too."""
    if path.suffix == ".pxd":
        yield from cimported(path)
        return
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree) if lazily else loaded(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports here are absolute"
            module = (node.module or "").removeprefix("cython.cimports.")
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("advmdp."):
            yield node.lineno, node.value  # what is imported by its name in a string


def cimported(path: Path) -> Iterator[tuple[int, str]]:
    """The same for the header of a kernel, which may name its neighbours by a dot."""
    here = ".".join(path.relative_to(SOURCE.parent).parent.parts)
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if found := re.match(r"from (\S+) cimport ", line):
            name = found[1]
            yield number, f"{here}{name}" if name.startswith(".") else name


def test_the_names_in_headers_are_read():
    header = SOURCE / "learners" / "kernels" / "mirror_descent.pxd"
    assert "advmdp.planning.kernels.optimism" in dict(map(reversed, cimported(header)))


def test_every_package_has_its_place():
    found = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert found == set(PACKAGES)
    loose = {path.name for path in SOURCE.glob("*.py")}
    assert loose == {"__init__.py", "__main__.py"}


@pytest.mark.parametrize("path", [*MODULES, *HEADERS], ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_imports_point_to_packages_below(path: Path):
    own = PACKAGES.index(path.relative_to(SOURCE).parts[0])
    wrong = []
    for line, name in imported(path):
        parts = name.split(".")
        if parts[0] != "advmdp" or parts[1:2] == ["__version__"]:
            continue
        if len(parts) < 2 or parts[1] not in PACKAGES or PACKAGES.index(parts[1]) > own:
            wrong.append(f"line {line}: {name}")
    assert wrong == []


def test_no_modules_import_each_other():
    """While they are loaded; a function may import from its own package what imports its module."""
    known = {}
    for path in MODULES:
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        known[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path

    def target(name: str) -> str:
        while name not in known and "." in name:
            name = name.rpartition(".")[0]
        return name

    left = {}
    for name, path in known.items():
        needs = {target(one) for _, one in imported(path, lazily=False)} & known.keys()
        left[name] = {one for one in needs if one != name and not name.startswith(f"{one}.")}
    while done := [name for name, needs in left.items() if not needs & left.keys()]:
        for name in done:
            del left[name]
    assert sorted(left) == []


def test_every_file_says_what_belongs_in_it():
    for path in SOURCE.rglob("*.py"):
        assert first_sentence(path).endswith("."), f"{path}: {first_sentence(path)}"
    begins = {".js": "// ", ".css": "/* ", ".html": "<!-- "}
    for path in (one for one in SOURCE.rglob("*.*") if one.suffix in begins):
        first = path.read_text().removeprefix("<!doctype html>\n").partition("\n")[0]  # which a page must begin with
        assert re.match(re.escape(begins[path.suffix]) + r"[A-Z].*\.", first), f"{path}: {first}"


def test_only_core_looks_for_files_beside_its_own() -> None:
    """Others would reach into packages above them unseen."""
    for path in MODULES:
        names = {node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)}
        assert "__file__" not in names or path.relative_to(SOURCE).parts[0] == "core", path


def test_every_package_has_a_folder_of_tests_and_every_folder_a_package():
    """Above the folders are the tests of what spans packages; ``helpers`` is what the tests share."""
    tests = Path(__file__).parent
    folders = {path.name for path in tests.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders - {"helpers"} == set(PACKAGES)
    for name in PACKAGES:
        assert list((tests / name).glob("test_*.py")), f"tests/{name} has no tests"
    loose = {path.name for path in tests.glob("*.py")} - {"__init__.py", "conftest.py"}
    spanning = (
        "build", "claims", "docs", "docstrings", "errata", "examples", "layout", "package", "site", "summary", "wheel"
    )  # fmt: skip
    assert loose == {f"test_{name}.py" for name in spanning}
