"""Write the map of the sources into CONTRIBUTING.md, from the first sentence of each file.

Run ``python tools/source_map.py`` after adding, moving or renaming a file.
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "advmdp"
PACKAGES = (
    "core", "model", "criteria", "losses", "confidence", "projection", "planning", "learners", "game", "plot", "web",
    "live", "scenarios", "integrations", "experiments", "verify", "cli",
)  # fmt: skip
"""In import order: each imports only those before it."""
BEGIN, END = "<!-- map: made by tools/source_map.py -->\n", "<!-- end of map -->\n"


OF_PAGES = (".css", ".html", ".js")
"""The files of pages, which open with a comment."""


def opening(path: Path) -> str:
    """The docstring of a Python file, or the first comment of a file of pages."""
    text = path.read_text()
    if path.suffix in OF_PAGES:
        found = re.search(r"/\*(.*?)\*/|<!-- (.*?)-->|// (.*?)$", text, re.DOTALL | re.MULTILINE)
        return "" if found is None else next(group for group in found.groups() if group is not None)
    return ast.get_docstring(ast.parse(text)) or ""


def first_sentence(path: Path) -> str:
    """The first sentence of a file, on one line."""
    text = " ".join(opening(path).split("\n\n")[0].split())
    return re.split(r"(?<=[^.]\.) +(?=[A-Z:`])", text)[0]


def source_map() -> str:
    """A heading for each package, in the order of imports, and a line for each file."""
    lines = []
    for package in PACKAGES:
        lines += [f"### `{package}/`", "", first_sentence(SOURCE / package / "__init__.py"), ""]
        for path in sorted(path for path in (SOURCE / package).rglob("*") if path.suffix in (".py", *OF_PAGES)):
            name = path.relative_to(SOURCE / package).as_posix()
            if name != "__init__.py":
                lines.append(f"- `{name.removesuffix('__init__.py')}`: {first_sentence(path)}")
        lines.append("")
    return "\n".join(lines)


def contributing() -> str:
    """CONTRIBUTING.md with an up-to-date map."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + source_map() + END + rest.partition(END)[2]


if __name__ == "__main__":
    (ROOT / "CONTRIBUTING.md").write_text(contributing())
