"""An occupancy measure drawn as flow through the layers: the geometry, which reports also use, and the figure."""

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.core.arrays import FloatArray, exact_floats, expect
from advmdp.core.errors import InputError
from advmdp.core.optional import optional
from advmdp.model.occupancy import flow_residuals
from advmdp.model.skeleton import Skeleton

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Integers = NDArray[np.signedinteger]

BAR = 0.08
GAP = 0.25
FAINTEST = 1e-3


def flow(sk: Skeleton, q: ArrayLike, loss: ArrayLike | None = None, ax: "Axes | None" = None) -> "Axes":
    """Plot an occupancy measure as flow through the layers.

    A bar is a state, as tall as its probability. A band is the flow from one state to another, summed over actions.
    Bands below 0.001 are left out.

    Parameters
    ----------
    sk
        The skeleton.
    q
        An occupancy measure, over transitions.
    loss
        A loss over transitions that colours the bands, from 0 (blue) to 1 (red).
    ax
        The axes to draw on; new ones by default.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    InputError
        If shapes do not fit.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> axes = am.plot.flow(mdp.skeleton, am.occupancy(mdp, am.uniform_policy(mdp.skeleton)))
    """
    with optional:
        import matplotlib.pyplot as plt
        from matplotlib import colormaps
        from matplotlib.patches import Rectangle
        from matplotlib.ticker import MaxNLocator

    if expect(Skeleton, sk, "skeleton").num_transitions > 200_000:
        raise InputError("skeleton", f"{sk.num_transitions} transitions", "at most 200,000, for a readable picture")
    measure = exact_floats(q, "q", (sk.num_transitions,))
    if (miss := flow_residuals(sk, measure).largest) > 1e-6:
        raise InputError("q", f"flow that violates equations (1) and (2) by {miss:.3g}", "an occupancy measure")
    losses = None if loss is None else exact_floats(loss, "loss", (sk.num_transitions,))
    if losses is not None and not ((losses >= 0.0) & (losses <= 1.0)).all():
        raise InputError(
            "loss", f"numbers from {losses.min()} to {losses.max()}", "numbers from 0 to 1, for the colours"
        )
    axes = plt.subplots(figsize=(8, 3.5), layout="constrained")[1] if ax is None else ax
    bottom, height = bars(sk.layer_ptr, sk.successor, measure)
    layer = np.repeat(np.arange(sk.num_steps + 1), sk.layer_sizes)
    # Names are written only if there is room: about 100 letters fit side by side.
    named = sk.state_names is not None and max(map(len, sk.state_names)) * (sk.num_steps + 1) <= 100
    for x in map(int, np.flatnonzero(height >= FAINTEST)):
        axes.add_patch(Rectangle((layer[x] - BAR / 2, bottom[x]), BAR, height[x], color="0.25", zorder=3, lw=0))
        if named:
            axes.text(layer[x], bottom[x] + height[x] + 0.012, sk.state_label(x), ha="center", va="bottom", fontsize=7)
    colours = colormaps["coolwarm"]
    leaving, entering = bottom.copy(), bottom.copy()
    source = np.repeat(sk.state_of_pair, np.diff(sk.transition_ptr))
    for x, y, mass, mean in bands(source, sk.successor, measure, losses):
        colour = "0.6" if losses is None else colours(mean)
        _band(axes, (layer[x] + BAR / 2, leaving[x]), (layer[y] - BAR / 2, entering[y]), mass, colour)
        leaving[x] += mass
        entering[y] += mass
    axes.set(xlim=(-0.2, sk.num_steps + 0.2), ylim=(-0.03, 1 + GAP + 0.03), yticks=[], xlabel="layer")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=21, integer=True))
    axes.spines[["left", "top", "right"]].set_visible(False)
    return axes


def bars(layer_ptr: Integers, successor: Integers, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The lower edge and the height of each state's bar; the bars of a layer share a gap of fixed total."""
    height = np.bincount(successor, q, layer_ptr[-1]).astype(np.float64)
    height[0] = 1.0
    bottom = np.empty(layer_ptr[-1])
    for first, last in pairwise(layer_ptr):
        count = last - first
        between = GAP / max(1, count - 1)
        rest = GAP / 2 if count == 1 else 0.0
        below = np.concatenate([[0.0], np.cumsum(height[first : last - 1])])
        bottom[first:last] = rest + below + between * np.arange(count)
    return bottom, height


def bands(
    source: Integers, successor: Integers, q: FloatArray, losses: FloatArray | None = None
) -> list[tuple[int, int, float, float]]:
    """(from, to, mass, mean loss) for each pair of states with flow between them, in order of both."""
    ends, which = np.unique(np.stack([source, successor]), axis=1, return_inverse=True)
    mass = np.bincount(which, q)
    cost = np.bincount(which, q if losses is None else q * losses)
    seen = mass >= FAINTEST
    return [
        (int(x), int(y), float(m), float(c / m))
        for (x, y), m, c in zip(ends.T[seen], mass[seen], cost[seen], strict=True)
    ]


def _band(axes: "Axes", start: tuple[float, float], end: tuple[float, float], width: float, colour: object) -> None:
    """A ribbon from one bar to the next, level at both ends."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    (x0, y0), (x1, y1) = start, end
    middle = (x0 + x1) / 2
    corners = [(x0, y0), (middle, y0), (middle, y1), (x1, y1)]
    back = [(x1, y1 + width), (middle, y1 + width), (middle, y0 + width), (x0, y0 + width)]
    codes = [Path.MOVETO, *[Path.CURVE4] * 3, Path.LINETO, *[Path.CURVE4] * 3, Path.CLOSEPOLY]
    patch = PathPatch(Path([*corners, *back, corners[0]], codes), lw=0, alpha=0.75, zorder=2)
    patch.set_facecolor(colour)  # type: ignore[arg-type]
    axes.add_patch(patch)
