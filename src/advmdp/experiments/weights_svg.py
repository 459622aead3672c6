"""SVG pictures of the weights of a mixture's experts, for reports; see :func:`advmdp.plot.weights`."""

from collections.abc import Mapping, Sequence
from html import escape
from math import log10

import numpy as np

from advmdp.core.arrays import FloatArray
from advmdp.plot.shares import OTHERS

HEIGHT, FOOT = 220, 24
"""Heights of the picture and of the numbers below it, in pixels."""
SIZE = 1000
"""The size of the inner area, which is stretched to the width of the page."""


def weights_svg(episodes: Sequence[int], layers: Mapping[str, FloatArray], title: str, setting: int) -> str:
    """A figure of stacked layers, with its legend."""
    span = log10(episodes[-1]) or 1.0
    across = [round(SIZE * log10(t) / span) for t in episodes]
    if len(across) == 1:  # one episode is no area
        across, layers = [0, SIZE], {name: np.repeat(values, 2) for name, values in layers.items()}
    base, areas, keys = np.zeros(len(across)), [], []
    for i, (name, values) in enumerate(layers.items()):
        look = "rest" if name == OTHERS else f"k{i % 8}"
        top = base + values
        areas.append(f'<path class="area {look}" d="{_outline(across, base, top)}"/>')
        keys.append(f'<li><span class="dot {look}"></span>{escape(name)}</li>')
        base = top
    inner = f'viewBox="0 0 {SIZE} {SIZE}" preserveAspectRatio="none" width="100%" height="{HEIGHT}"'
    marks = "".join(_mark(10**d, 100.0 * d / span) for d in range(int(span + 1e-9) + 1))
    said = escape(title)
    return (
        f'<figure class="weights" data-setting="{setting}"><figcaption><strong>{said}</strong></figcaption>'
        f'<svg class="shares" height="{HEIGHT + FOOT}" role="img" aria-label="Weights of {said}">'
        f'<svg {inner}>{"".join(areas)}</svg>{marks}</svg><ul class="legend">{"".join(reversed(keys))}</ul></figure>'
    )


def _outline(across: Sequence[int], low: FloatArray, high: FloatArray) -> str:
    """A path from left to right along the top, and back along the bottom; y increases downwards."""
    there = [f"{x} {SIZE * (1.0 - y):.0f}" for x, y in zip(across, high, strict=True)]
    back = [f"{x} {SIZE * (1.0 - y):.0f}" for x, y in zip(across, low, strict=True)]
    return f"M{'L'.join([*there, *reversed(back)])}Z"


def _mark(episode: int, place: float) -> str:
    """The label of an episode below the picture."""
    anchor = "start" if place < 1.0 else "end" if place > 97.0 else "middle"
    said = f"episode {episode}" if episode == 1 else f"{episode:,}"
    return f'<text x="{place:.1f}%" y="{HEIGHT + 16}" text-anchor="{anchor}">{said}</text>'
