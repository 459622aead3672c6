"""Parts of HTML pages that need nothing else: tables that scroll, and how a content security policy knows a text."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from html import escape

__all__ = ["policy_hash", "row", "table"]


def policy_hash(text: str) -> str:
    """By which a content security policy admits a style or a script, and no other."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def row(first: str, cells: Iterable[object], second: str = "") -> str:
    """A row of a table, in HTML: its head, perhaps a second text, and numbers."""
    more = f'<td class="text">{second}</td>' if second else ""
    rest = "".join(f"<td>{cell}</td>" for cell in cells)
    return f'<tr><th scope="row" class="text">{first}</th>{more}{rest}</tr>'


def table(
    head: Sequence[str], body: Sequence[str], caption: str, setting: int | None = None, texts: int = 1
) -> str:  # fmt: skip
    """A table that scrolls where it is too wide, by keyboard too; the first columns are text."""
    cells = "".join(
        f'<th scope="col"{" class=text" if i < texts else ""}>{escape(name)}</th>' for i, name in enumerate(head)
    )
    only = "" if setting is None else f' data-setting="{setting}"'
    shown = escape(caption)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{shown}"{only}><table>'
        f"<caption>{shown}</caption><thead><tr>{cells}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )
