"""SVG pictures of an occupancy measure as flow through the layers, for reports; see :func:`advmdp.plot.flow`."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray
from advmdp.plot.flows import GAP, bands, bars

WIDTH, HEIGHT, EDGE, BAR = 1000, 380, 20, 8
STEP = 90
"""The least width of a step: pictures with many steps are wider."""
MOST_MARKS = 12
"""With more layers than this, only the first and the last are numbered."""


def flow_svg(
    layers: Sequence[int],
    state: NDArray[np.int64],
    successor: NDArray[np.int64],
    q: FloatArray,
    style: str,
    title: str,
) -> str:
    """The picture, with ``style`` as its class and ``title``, already escaped, as its label."""
    ptr = np.concatenate([[0], np.cumsum(layers)])
    bottom, height = bars(ptr, successor, q)
    layer = np.repeat(np.arange(len(layers)), layers)
    width = max(WIDTH, STEP * (len(layers) - 1))
    left = EDGE + np.round((width - 2 * EDGE - BAR) * layer / (len(layers) - 1)).astype(int)
    scale = (HEIGHT - 2 * EDGE) / (1.0 + GAP)
    leaving, entering, ribbons = bottom.copy(), bottom.copy(), []
    for x, y, mass, _ in bands(state, successor, q):
        a, b = EDGE + scale * leaving[x], EDGE + scale * entering[y]
        ribbons.append(_ribbon(left[x] + BAR, a, left[y], b, scale * mass))
        leaving[x] += mass
        entering[y] += mass
    drawn = "".join(
        f"M{left[x]} {EDGE + scale * bottom[x]:.0f}h{BAR}v{max(1.0, scale * height[x]):.0f}h-{BAR}z"
        for x in range(len(layer))
        if height[x] > 0.0
    )
    return (
        f'<svg class="flow {style}" viewBox="0 0 {width} {HEIGHT}" role="img" aria-label="{title}">'
        f'<g class="bands">{"".join(ribbons)}</g><path class="states" d="{drawn}"/></svg>'
    )


def _ribbon(x0: int, y0: float, x1: int, y1: float, width: float) -> str:
    middle = (x0 + x1) // 2
    there = f"M{x0} {y0:.0f}C{middle} {y0:.0f} {middle} {y1:.0f} {x1} {y1:.0f}"
    up, down = y0 + width, y1 + width
    return f'<path d="{there}V{down:.1f}C{middle} {down:.1f} {middle} {up:.1f} {x0} {up:.1f}z"/>'


def shared_flow(one: FloatArray, other: FloatArray, steps: int) -> float:
    """The fraction of the flow, over all steps, that uses the same transitions."""
    return float(np.minimum(one, other).sum()) / steps


def layer_marks(layers: Sequence[int]) -> str:
    """The numbers of the layers below a picture; only the first and last if there are many."""
    shown = range(len(layers)) if len(layers) <= MOST_MARKS else (0, len(layers) - 1)
    marks = "".join(f"<span>{'layer ' if k == 0 else ''}{k}</span>" for k in shown)
    return f'<div class="layers" aria-hidden="true">{marks}</div>'


def flow_legend() -> str:
    """The legend of such a picture."""
    bar = '<svg class="flow" viewBox="0 0 40 20" aria-hidden="true"><path class="states" d="M16 1h8v18h-8z"/></svg>'
    band = _ribbon(0, 3, 40, 7, 10)
    ours, theirs = (
        f'<svg class="flow {style}" viewBox="0 0 40 20" aria-hidden="true"><g class="bands">{band}</g></svg>'
        for style in ("k0", "best")
    )
    return (
        f'<ul class="legend"><li>{bar} a state; its height is the probability of a visit</li>'
        f"<li>{ours} the flow between two states under a learner, in its colour</li>"
        f"<li>{theirs} the same under the best fixed policy</li>"
        "<li>Flow below 0.1% is omitted.</li></ul>"
    )
