"""A skeleton as a small SVG for notebooks: a column of dots for each layer, and a line for each possible step."""

from html import escape

import numpy as np

from advmdp.core.arrays import FloatArray
from advmdp.model.skeleton import Skeleton

MOST_STATES, MOST_LINES, WIDEST = 60, 400, 16
"""Larger skeletons are not drawn: the picture would be unreadable."""
ACROSS, DOWN, RADIUS = 48.0, 20.0, 4.0


def layers_svg(sk: Skeleton, transition: FloatArray | None = None) -> str:
    """The picture; empty if the skeleton is too large. With probabilities, likely steps are darker."""
    joined = _lines(sk, transition)
    if sk.num_states > MOST_STATES or sk.num_steps > WIDEST or len(joined) > MOST_LINES:
        return ""
    layer = np.repeat(np.arange(sk.num_steps + 1), sk.layer_sizes)
    place = np.arange(sk.num_states) - sk.layer_ptr[layer] - (sk.layer_sizes[layer] - 1) / 2.0
    tall = DOWN * int(sk.layer_sizes.max())
    x, y = ACROSS * layer + 8.0, DOWN * place + tall / 2.0
    lines = "".join(
        f'<path d="M{x[a]:g} {y[a]:g}L{x[b]:g} {y[b]:g}" stroke="currentColor" stroke-opacity="{shade:.2f}"/>'
        for (a, b), shade in joined.items()
    )
    dots = "".join(
        f'<circle cx="{x[s]:g}" cy="{y[s]:g}" r="{RADIUS:g}" fill="#0a7bd0">'
        f"<title>{escape(sk.state_label(s))}</title></circle>"
        for s in range(sk.num_states)
    )
    wide = ACROSS * sk.num_steps + 16.0
    style = "display:block;margin-top:6px;max-width:100%"
    return f'<svg role="img" viewBox="0 0 {wide:g} {tall:g}" width="{wide:g}" style="{style}">{lines}{dots}</svg>'


def _lines(sk: Skeleton, transition: FloatArray | None) -> dict[tuple[int, int], float]:
    """The darkness of the line between two states: the largest probability over the actions."""
    state = sk.over_transitions(sk.state_of_pair)
    shades: dict[tuple[int, int], float] = {}
    for i in range(min(sk.num_transitions, 10 * MOST_LINES)):
        ends = int(state[i]), int(sk.successor[i])
        shade = 0.5 if transition is None else 0.1 + 0.7 * float(transition[i])
        shades[ends] = max(shade, shades.get(ends, 0.0))
    return shades
