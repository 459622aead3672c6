"""``advmdp doctor``: what is installed, what is missing, what is slow, and how to fix it."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from advmdp.core.installation import findings, versions
from advmdp.core.wording import plural

MARKS = {"fine": "[green]ok[/]", "note": "[cyan]note[/]", "slow": "[yellow]slow[/]", "broken": "[red]broken[/]"}


def examine(console: Console) -> bool:
    """Print all findings, each with its fix, and say whether nothing is broken."""
    found = list(findings())
    table = Table(box=None, show_header=False, pad_edge=False)
    for one in found:
        fix = f"\nfix: [bold]{escape(one.fix)}[/]" if one.fix else ""
        table.add_row(MARKS[one.level], f"{escape(one.what)}{fix}")
    console.print(table, highlight=False)
    counts = {level: sum(one.level == level for one in found) for level in ("broken", "slow")}
    verdict = "works" if counts["broken"] == 0 else f"has {plural(counts['broken'], 'problem')}"
    slow = f", {plural(counts['slow'], 'thing')} slow" if counts["slow"] else ""
    console.print(f"\nThis installation {verdict}{slow}. {versions()['machine']}.", highlight=False)
    return counts["broken"] == 0
