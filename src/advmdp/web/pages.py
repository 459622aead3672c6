"""Self-contained HTML pages, whose content security policy allows only their own script, and HTML tables."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template

FITTING = 15
"""The most rows that the box of a table shows without scrolling."""


def whole_page(folder: str, title: str, about: str, summary: str, data: str, first: str = "", **parts: str) -> str:
    """A page that loads nothing else; its sections, script and extra style come from the package's ``folder``.

    ``first`` comes before the summary, and ``parts`` fill in the sections.
    ``title`` is text, ``data`` is JSON for the script, and the others are HTML.
    """
    shared = files("advmdp.web") / "page"
    package, _, name = folder.rpartition(".")
    own = files(package) / name
    style = (shared / "page.css").read_text("utf-8")
    style += (own / "page.css").read_text("utf-8") if (own / "page.css").is_file() else ""
    script = (own / "page.js").read_text("utf-8") if (own / "page.js").is_file() else ""
    return Template((shared / "frame.html").read_text("utf-8")).substitute(
        title=escape(title), about=about, summary=summary, data=data, first=first, style=style, style_hash=_hash(style),
        script=script, script_hash=_hash(script),
        body=Template((own / "page.html").read_text("utf-8")).substitute(parts),
    )  # fmt: skip


def _hash(text: str) -> str:
    """The hash by which a content security policy allows a style or a script."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def row(first: str, cells: Iterable[object], second: str = "") -> str:
    """A row of a table in HTML: its heading, an optional second text, and numbers."""
    more = f'<td class="text">{second}</td>' if second else ""
    rest = "".join(f"<td>{cell}</td>" for cell in cells)
    return f'<tr><th scope="row" class="text">{first}</th>{more}{rest}</tr>'


def table(
    head: Sequence[str], body: Sequence[str], caption: str, setting: int | None = None, texts: int = 1
) -> str:  # fmt: skip
    """A table that scrolls if it is too wide, also by keyboard; the first columns are text."""
    cells = "".join(
        f'<th scope="col"{" class=text" if i < texts else ""}>{escape(name)}</th>' for i, name in enumerate(head)
    )
    only = "" if setting is None else f' data-setting="{setting}"'
    shown = escape(caption + (f" (scroll for all {len(body):,})" if len(body) > FITTING else ""))
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{shown}"{only}><table>'
        f"<caption><span>{shown}</span></caption><thead><tr>{cells}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )
