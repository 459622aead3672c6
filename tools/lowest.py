"""Print the lowest versions that pyproject.toml allows, as constraints for pip."""

import re
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"


def lowest(pyproject: str) -> list[str]:
    """One ``name==version`` for each requirement ``name>=version``, with or without ``,<version``, of all groups."""
    table = tomllib.loads(pyproject)
    groups = [table["build-system"]["requires"], table["project"]["dependencies"]]
    groups += table["project"]["optional-dependencies"].values()
    found: dict[str, str] = {}
    for one in (requirement for group in groups for requirement in group):
        if one.startswith(f"{table['project']['name']}["):
            continue
        bound = re.fullmatch(r"([\w.-]+)>=([\w.]+)(?:,<[\w.]+)?", one)
        if bound is None:
            raise SystemExit(f"no lower bound: {one}")
        name, version = bound.groups()
        if found.setdefault(name, version) != version:
            raise SystemExit(f"two lower bounds of {name}: {found[name]} and {version}")
    return [f"{name}=={version}" for name, version in sorted(found.items(), key=lambda pair: pair[0].lower())]


if __name__ == "__main__":
    print("\n".join(lowest(PYPROJECT.read_text())))
