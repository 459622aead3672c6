"""The direction of imports: each package imports only packages before it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.import_graph import cimported, cycles, graph, imported, imports_of, summary
from tools.source_map import PACKAGES, first_sentence

import advmdp as am
from tests.helpers import ROOT

SOURCE = Path(am.__file__).parent
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path.parent != SOURCE)
HEADERS = sorted([*SOURCE.rglob("*.pxd"), *SOURCE.rglob("*.pyx")])


def loaded(tree: ast.Module) -> Iterator[ast.AST]:
    """What runs when a module is loaded: in conditions and classes too, but not in functions nor for type checkers."""
    left: list[ast.AST] = [*tree.body]
    while left:
        node = left.pop()
        checked = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        if not checked and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield node
            left += ast.iter_child_nodes(node)


def test_the_names_in_headers_are_read():
    header = SOURCE / "learners" / "kernels" / "mirror_descent.pxd"
    assert "advmdp.planning.kernels.optimism" in dict(map(reversed, cimported(header)))


@pytest.mark.parametrize(
    ("name", "line", "expected"),
    [
        ("a.py", "from advmdp.cli.demo import x", ["advmdp.cli.demo.x"]),
        ("a.py", "def f():\n    import advmdp.cli.demo", ["advmdp.cli.demo"]),
        ("a.py", "load('advmdp.cli.demo')", ["advmdp.cli.demo"]),
        ("a.py", "load(f'advmdp.{x}')", ["advmdp."]),
        ("a.py", "from cython.cimports.advmdp.cli.demo import x", ["advmdp.cli.demo.x"]),
        ("a.pxd", "from advmdp.cli.demo cimport x", ["advmdp.cli.demo"]),
        ("a.pxd", "cimport advmdp.cli.demo", ["advmdp.cli.demo"]),
        ("a.pxd", "from .demo cimport x", ["advmdp.core.kernels.demo"]),
        ("a.pxd", "from ...cli.demo cimport x", ["advmdp.cli.demo"]),
        ("a.pxd", "from .. cimport x", ["advmdp.core"]),
        ("a.pyx", "import advmdp.cli.demo", ["advmdp.cli.demo"]),
    ],
)
def test_every_way_to_import_is_read(tmp_path: Path, name: str, line: str, expected: list[str]):
    path = tmp_path / "advmdp" / "core" / "kernels" / name
    path.parent.mkdir(parents=True)
    path.write_text(line)
    assert [found for _, found in imported(path, tmp_path / "advmdp")] == expected


def test_cycles_are_found():
    chain = {"a": {"b"}, "b": {"c"}, "c": set(), "d": {"a", "c"}}
    assert cycles(chain) == []
    assert cycles(chain | {"c": {"a"}}) == [["a", "b", "c"]]
    assert summary(chain | {"c": {"b"}}) == "4 packages, 5 edges, 1 cycles"


def test_the_picture_of_the_packages_has_them_in_their_order():
    text = (ROOT / "docs" / "architecture.md").read_text()
    picture = text[text.index("    core -> ") : text.index("Five things about this order")]
    assert tuple(re.findall(r"[a-z]+", picture)) == PACKAGES


def test_the_import_graph_is_as_documented():
    assert cycles(graph(SOURCE)) == []
    assert f"| today | {summary(graph(SOURCE))} |" in (ROOT / "docs" / "architecture.md").read_text()


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
        loading = imports_of(loaded(ast.parse(path.read_text())), path)
        needs = {target(one) for _, one in loading} & known.keys()
        left[name] = {one for one in needs if one != name and not name.startswith(f"{one}.")}
    while done := [name for name, needs in left.items() if not needs & left.keys()]:
        for name in done:
            del left[name]
    assert sorted(left) == []


def test_every_file_says_what_belongs_in_it():
    others = (path for folder in ("benchmarks", "examples", "tests", "tools") for path in (ROOT / folder).rglob("*.py"))
    for path in [*SOURCE.rglob("*.py"), *others]:
        assert first_sentence(path).endswith((".", "?")), f"{path}: {first_sentence(path)}"
    begins = {".js": "// ", ".css": "/* ", ".html": "<!-- ", ".pxd": "# ", ".pyi": "# ", ".pyx": '"""'}
    for path in (one for one in SOURCE.rglob("*.*") if one.suffix in begins):
        first = path.read_text().removeprefix("<!doctype html>\n").partition("\n")[0]  # which a page must begin with
        assert re.match(re.escape(begins[path.suffix]) + r"[A-Z`].*\.", first), f"{path}: {first}"


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
