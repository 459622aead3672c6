"""``advmdp doctor``: what is installed, what is missing, what is slow, and how to fix it."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from advmdp.core.installation import ADDING, findings, versions
from advmdp.core.wording import plural

MARKS = {
    "broken": "[red]broken[/]",
    "slow": "[yellow]slow[/]",
    "fine": "[green]ok[/]",
    "optional": "[cyan]optional[/]",
    "note": "[cyan]note[/]",
}
FIXES = {"optional": "to add", "note": "if so"}
"""What a fix is called; else "fix"."""


def examine(console: Console) -> bool:
    """Print the verdict and all findings, each with its fix, and say whether nothing is broken."""
    found = list(findings())
    counts = {level: sum(one.level == level for one in found) for level in MARKS}
    verdict = "works" if counts["broken"] == 0 else f"has {plural(counts['broken'], 'problem')}"
    slow = f", {plural(counts['slow'], 'thing')} slow" if counts["slow"] else ""
    console.print(f"This installation {verdict}{slow}. {versions()['machine']}.\n", highlight=False)
    table = Table(box=None, show_header=False, pad_edge=False)
    for one in found:
        fix = f"\n{FIXES.get(one.level, 'fix')}: [bold]{escape(one.fix)}[/]" if one.fix else ""
        table.add_row(MARKS[one.level], f"{escape(one.what)}{fix}")
    console.print(table, highlight=False)
    if counts["optional"]:
        console.print(f"\n{ADDING}", highlight=False)
    return counts["broken"] == 0
