"""The graph of imports between the packages of a source folder: which package imports which, and its cycles.

``python tools/import_graph.py [FOLDER]`` prints it, for ``src/advmdp`` by default. Modules that lie in no package count
as packages.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "advmdp"
Graph = dict[str, set[str]]


def imported(path: Path, source: Path = SOURCE) -> Iterator[tuple[int, str]]:
    """Line and dotted name of all that a file imports, in functions too, and of all that it names in strings."""
    if path.suffix != ".py":
        yield from cimported(path, source)
        return
    yield from imports_of(ast.walk(ast.parse(path.read_text())), path)


def imports_of(nodes: Iterator[ast.AST], path: Path) -> Iterator[tuple[int, str]]:
    """The same for some nodes of its syntax tree."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports here are absolute"
            module = (node.module or "").removeprefix("cython.cimports.")
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.removeprefix("cython.cimports.")) for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("advmdp."):
            yield node.lineno, node.value  # what is imported by its name in a string


def cimported(path: Path, source: Path = SOURCE) -> Iterator[tuple[int, str]]:
    """The same for a file in Cython's own language, which may name its neighbours by dots."""
    here = path.relative_to(source.parent).parent.parts
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if found := re.match(r"\s*(?:from\s+(\.*)(\S*)\s+c?import\b|c?import\s+(\S+))", line):
            dots, name, alone = found.groups()
            above = here[: len(here) + 1 - len(dots)] if dots else ()
            yield number, alone or ".".join([*above, *([name] if name else [])])


def graph(source: Path = SOURCE) -> Graph:
    """The packages that each package imports."""
    files = [path for path in sorted(source.rglob("*.p*")) if path.suffix in (".py", ".pxd", ".pyx")]
    owner = {path: path.relative_to(source).with_suffix("").parts[0] for path in files}
    packages = set(owner.values()) - {"__init__", "__main__"}
    found: Graph = {package: set() for package in sorted(packages)}
    for path in (path for path in files if owner[path] in packages):
        names = (name.split(".") for _, name in imported(path, source))
        found[owner[path]] |= {name[1] for name in names if name[0] == "advmdp" and len(name) > 1} & packages
        found[owner[path]].discard(owner[path])
    return found


def cycles(found: Graph) -> list[list[str]]:
    """The groups of packages that lead to each other."""
    reached = {package: set(after) for package, after in found.items()}
    for middle in found:
        for after in reached.values():
            if middle in after:
                after.update(reached[middle])
    groups = {frozenset(b for b in after if a in reached[b]) for a, after in reached.items() if a in after}
    return sorted(sorted(group) for group in groups)


def summary(found: Graph) -> str:
    """Its numbers."""
    return f"{len(found)} packages, {sum(map(len, found.values()))} edges, {len(cycles(found))} cycles"


if __name__ == "__main__":
    made = graph(Path(sys.argv[1]).resolve()) if len(sys.argv) > 1 else graph()
    for package, after in made.items():
        print(f"{package}: {', '.join(sorted(after)) or 'nothing'}")
    print(summary(made))
    for group in cycles(made):
        print("cycle:", ", ".join(group))
