r"""Draws formulas as SVG while the site is built, so that browsers need no script and fetch nothing.

Sphinx calls one visitor for inline formulas and one for displayed formulas. An SVG takes the colour of the
surrounding text, so that it fits light and dark pages, and has its LaTeX source for screen readers.
"""

from functools import cache
from html import escape
from typing import Any
from warnings import catch_warnings, simplefilter
from xml.etree import ElementTree

from docutils import nodes
from sphinx.util import logging

with catch_warnings():
    simplefilter("ignore", DeprecationWarning)  # it loads its font through a deprecated function
    import ziamath

POINTS = 16.0
"""The font size of the drawing; lengths are then converted to em, so that formulas scale with the text."""


@cache
def svg(latex: str, inline: bool) -> str:
    """A formula as an SVG element, aligned with the baseline of the text."""
    ziamath.config.svg2 = False  # paths, not symbols: the identifiers of symbols would clash on one page
    drawn = ziamath.Latex(latex, size=POINTS, color="currentColor", inline=inline)
    element = drawn.svgxml()
    width, height = (float(element.attrib[side]) / POINTS for side in ("width", "height"))
    _, top, *_ = map(float, element.attrib["viewBox"].split())
    below = height - (-top) / POINTS
    element.attrib.update(width=f"{width:.3f}em", height=f"{height:.3f}em", role="img")
    element.attrib["aria-label"] = latex
    element.attrib["style"] = f"vertical-align: {-below:.3f}em"
    return ElementTree.tostring(element, encoding="unicode")


def _in_line(visitor: Any, node: nodes.math) -> None:
    visitor.body.append(f'<span class="math">{_drawn(node, True)}</span>')
    raise nodes.SkipNode


def _on_its_own(visitor: Any, node: nodes.math_block) -> None:
    visitor.body.append(f'<div class="math">{_drawn(node, False)}</div>')
    raise nodes.SkipNode


def _drawn(node: nodes.Element, inline: bool) -> str:
    latex = node.astext()
    try:
        return svg(latex, inline)
    except Exception as error:
        logging.getLogger(__name__).warning("cannot draw the formula %s: %s", latex, error, location=node)
        return f"<code>{escape(latex)}</code>"


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_html_math_renderer("svg", inline_renderers=(_in_line, None), block_renderers=(_on_its_own, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
