"""Lines over the episodes, as SVG for a page: no script, and the colours of the page."""

from collections.abc import Mapping
from html import escape

import numpy as np

from advmdp.core.arrays import FloatArray
from advmdp.core.wording import number

HEIGHT, FOOT = 260, 26
"""Heights of the picture and of the numbers below it, in pixels."""
SIZE = 1000
"""The size of the inner area, which is stretched to the width of the page; text and strokes keep their size."""
MOST = 400
"""Points of a line."""


def lines_svg(lines: Mapping[str, FloatArray], title: str, unit: str) -> str:
    """A figure of lines with its legend; each has a value for every episode, and the first is drawn on top."""
    ends = [float(end) for values in lines.values() for end in (values.min(), values.max())]
    low, high = min(ends), max(ends)
    if high == low:
        low, high = low - 0.5, high + 0.5
    count = max(len(values) for values in lines.values())
    paths = [_path(values, count, low, high, f"k{i % 8}") for i, values in enumerate(lines.values())]
    keys = "".join(f'<li><span class="dot k{i % 8}"></span>{escape(name)}</li>' for i, name in enumerate(lines))
    marks = "".join(_mark(value, low, high) for value in np.linspace(low, high, 4))
    said = escape(title)
    inner = f'viewBox="0 0 {SIZE} {SIZE}" preserveAspectRatio="none" width="100%" height="{HEIGHT}"'
    return (
        f'<figure class="lines"><figcaption><strong>{said}</strong> ({escape(unit)})</figcaption>'
        f'<svg height="{HEIGHT + FOOT}" role="img" aria-label="{said}">{marks}'
        f"<svg {inner}>{''.join(reversed(paths))}</svg>"
        f'<text x="0" y="{HEIGHT + 18}">episode 1</text>'
        f'<text x="100%" y="{HEIGHT + 18}" text-anchor="end">{count:,}</text></svg>'
        f'<ul class="legend">{keys}</ul></figure>'
    )


def _path(values: FloatArray, count: int, low: float, high: float, look: str) -> str:
    chosen = np.unique(np.linspace(0, len(values) - 1, MOST).astype(int))
    across = SIZE * chosen / max(1, count - 1)
    up = _height(values[chosen], low, high) * SIZE / HEIGHT
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across, up, strict=True))
    return f'<polyline class="line {look}" points="{points}"/>'


def _mark(value: float, low: float, high: float) -> str:
    """A line across with its number, which stands left of the picture."""
    y = float(_height(np.array(value), low, high))
    line = f'<line class="grid" x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>'
    return f'{line}<text x="-8" y="{y + 4:.1f}" text-anchor="end">{number(value)}</text>'


def _height(values: FloatArray, low: float, high: float) -> FloatArray:
    """Pixels from the top, with room for half a stroke."""
    return HEIGHT - 6 - (HEIGHT - 12) * (values - low) / (high - low)
