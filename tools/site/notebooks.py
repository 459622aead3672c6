"""Runs notebooks while the site is built, and makes pages of their cells and outputs.

The files ``docs/notebooks/*.nb.py`` have the percent format, which VS Code, PyCharm and Jupyter (with jupytext) open:

    # %% [markdown]      the lines below, without their "# ", are Markdown
    # %%                 the lines below are code

A code cell shows its printed text, the value of its last line, and its figures. Each page offers its notebook as an
``.ipynb`` file. The tests run all notebooks too.
"""

import ast
import io
import json
import re
from base64 import b64encode
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

FOLDER = "docs/notebooks/"
MARK = re.compile(r"^# %%(.*)\n", re.MULTILINE)


@dataclass
class Cell:
    """A cell and, after it has run, its outputs."""

    source: str
    markdown: bool
    printed: str = ""
    html: str | None = None
    shown: str = ""
    figures: list[tuple[str, bytes]] = field(default_factory=list)


def cells_of(text: str) -> list[Cell]:
    """The cells of a file in percent format."""
    head, *parts = MARK.split(text)
    if head.strip():
        raise ValueError(f"a notebook begins with '# %%', not with {head.splitlines()[0]!r}")
    cells = []
    for kind, body in zip(parts[::2], parts[1::2], strict=True):
        markdown = "[markdown]" in kind
        source = re.sub(r"^# ?", "", body, flags=re.MULTILINE) if markdown else body
        cells.append(Cell(source.strip(), markdown))
    return cells


def run(text: str, name: str) -> list[Cell]:
    """Run the cells of a file in order, in one namespace."""
    import matplotlib

    matplotlib.use("Agg")
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = cells_of(text)
    for number, cell in enumerate(cells):
        if not cell.markdown:
            _run_cell(cell, names, f"{name}, cell {number}")
    return cells


def _run_cell(cell: Cell, names: dict[str, Any], where: str) -> None:
    from matplotlib import pyplot

    tree = ast.parse(cell.source, where)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(tree, where, "exec"), names)
        value = eval(compile(ast.Expression(last.value), where, "eval"), names) if last else None
    cell.printed = printed.getvalue()
    drawn = pyplot.get_fignums()
    if value is not None and not drawn:
        cell.shown = repr(value)
        cell.html = value._repr_html_() if hasattr(value, "_repr_html_") else None
    for number in drawn:
        figure = pyplot.figure(number)
        image = io.BytesIO()
        figure.savefig(image, format="png", dpi=150, bbox_inches="tight", metadata={"Software": None})
        titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
        cell.figures.append((figure.get_suptitle() or ", ".join(titles) or "figure", image.getvalue()))
    pyplot.close("all")


def markdown_of(cells: list[Cell], name: str) -> str:
    """A page of Markdown with code and outputs."""
    download = f'<p class="download"><a href="{name}.ipynb" download>Download this page as a Jupyter notebook</a></p>'
    parts = [cells[0].source, _raw(download)] if cells[0].markdown else [_raw(download)]
    for cell in cells[1:] if cells[0].markdown else cells:
        parts += [cell.source] if cell.markdown else [f"```python\n{cell.source}\n```", *map(_raw, _outputs(cell))]
    return "\n\n".join(parts) + "\n"


def _outputs(cell: Cell) -> Iterator[str]:
    if cell.printed:
        yield f'<pre class="output">{escape(cell.printed.rstrip())}</pre>'
    if cell.html is not None:
        yield f'<div class="output">{cell.html}</div>'
    elif cell.shown:
        yield f'<pre class="output">{escape(cell.shown)}</pre>'
    for title, image in cell.figures:
        yield f'<img class="output" alt="{escape(title)}" src="data:image/png;base64,{b64encode(image).decode()}">'


def _raw(html: str) -> str:
    return f"````{{raw}} html\n{html}\n````"


def ipynb_of(cells: list[Cell]) -> str:
    """The notebook as Jupyter stores it, version 4.5."""
    written = []
    for number, cell in enumerate(cells):
        about = {"id": f"cell-{number}", "metadata": {}, "source": cell.source.splitlines(keepends=True)}
        if cell.markdown:
            written.append({"cell_type": "markdown", **about})
        else:
            outputs = list(_jupyter_outputs(cell))
            written.append({"cell_type": "code", "execution_count": None, "outputs": outputs, **about})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book = {"cells": written, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(book, indent=1) + "\n"


def _jupyter_outputs(cell: Cell) -> Iterator[dict[str, Any]]:
    if cell.printed:
        yield {"output_type": "stream", "name": "stdout", "text": cell.printed.splitlines(keepends=True)}
    if cell.shown:
        data = {"text/plain": cell.shown} | ({} if cell.html is None else {"text/html": cell.html})
        yield {"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data}
    for title, image in cell.figures:
        data = {"image/png": b64encode(image).decode(), "text/plain": title}
        yield {"output_type": "display_data", "metadata": {}, "data": data}


def expand(app: Any, page: str, source: list[str]) -> None:
    """Run the notebook of a page, and insert its outputs."""
    if page.startswith(FOLDER):
        cells = run(source[0], page)
        source[0] = markdown_of(cells, Path(page).name)
        app.env.metadata[page]["ipynb"] = ipynb_of(cells)


def write_notebooks(app: Any, error: Exception | None) -> None:
    """Write the ``.ipynb`` files next to the pages."""
    for page in sorted(app.env.found_docs) if error is None else ():
        if page.startswith(FOLDER):
            Path(app.outdir, f"{page}.ipynb").write_text(app.env.metadata[page]["ipynb"])


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", expand)
    app.connect("build-finished", write_notebooks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
