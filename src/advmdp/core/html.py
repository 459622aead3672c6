"""Small pieces of HTML for notebooks: a card with a table, and a curve. All text is escaped, nothing is fetched.

Colours are those of the page, so that cards fit light and dark notebooks.
"""

from collections.abc import Iterable, Mapping
from html import escape

CARD = "display:inline-block;border:1px solid rgba(128,128,128,.4);border-radius:6px;padding:8px 12px;line-height:1.4"
NAME = "padding:1px 16px 1px 0;text-align:left;opacity:.7;border:0;background:none"
VALUE = "padding:1px 0;text-align:left;border:0;background:none"
WIDTH, HEIGHT = 220.0, 48.0


def card(title: str, rows: Mapping[str, object], picture: str = "") -> str:
    """A title, a row for each entry, and below them a picture, which must be HTML already."""
    cells = "".join(
        f'<tr style="background:none"><td style="{NAME}">{escape(name)}</td>'
        f'<td style="{VALUE}">{escape(str(value))}</td></tr>'
        for name, value in rows.items()
    )
    table = f'<table style="border-collapse:collapse;margin:4px 0 0">{cells}</table>'
    return f'<div style="{CARD}"><b>{escape(title)}</b>{table}{picture}</div>'


def curve(xs: Iterable[float], ys: Iterable[float], label: str) -> str:
    """A line through the points, in a frame of fixed size that includes zero, a dashed line; below it, the label."""
    points = [(x, y) for x, y in zip(xs, ys, strict=True) if y is not None]
    if len(points) < 2:
        return ""
    left, right = points[0][0], points[-1][0]
    low, high = min(0.0, *(y for _, y in points)), max(0.0, *(y for _, y in points))
    across, up = WIDTH / ((right - left) or 1.0), HEIGHT / ((high - low) or 1.0)
    path = " ".join(f"{across * (x - left):.1f},{HEIGHT - up * (y - low):.1f}" for x, y in points)
    zero = HEIGHT + up * low
    size = f'viewBox="-2 -2 {WIDTH + 4:g} {HEIGHT + 4:g}" width="{WIDTH:g}"'
    return (
        f'<figure style="margin:6px 0 0"><svg aria-hidden="true" {size} style="display:block">'
        f'<path d="M0 {zero:.1f}H{WIDTH:g}" stroke="currentColor" stroke-opacity=".4" stroke-dasharray="3 3"/>'
        f'<polyline points="{path}" fill="none" stroke="#0a7bd0" stroke-width="2"/></svg>'
        f'<figcaption style="font-size:85%;opacity:.7">{escape(label)}</figcaption></figure>'
    )
