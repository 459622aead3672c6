"""The weights of a mixture's experts over the episodes: the layers, which reports also use, and the figure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from advmdp.core.arrays import FloatArray
from advmdp.core.errors import InputError
from advmdp.learners.base import WEIGHT
from advmdp.plot.curves import PALETTE, Results, bare_axes, one_setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 7
"""How many experts have a layer of their own; the others share one."""
OTHERS = "others"


def weights(results: Results, ax: "Axes | None" = None, *, label: str | None = None) -> "Axes":
    """Plot the weights of SelfTuning's experts over the episodes, stacked; the mean over seeds.

    Experts that never weigh much share one layer.

    Parameters
    ----------
    results
        The results of an experiment.
    ax
        The axes to draw on; new ones by default.
    label
        The learner to show, if several have weights.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    InputError
        If no learner has weights, or if it is not clear which one is meant.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> game = am.play(mdp, am.losses.Stochastic(mdp.skeleton), am.SelfTuning(mdp.skeleton), episodes=100)
    >>> axes = am.plot.weights(am.Results.of_games({"SelfTuning": [game]}))
    """
    where = one_setting(results)
    have = mixtures(results.curves)
    if label is None and len(have) == 1:
        label = have[0]
    if label not in have:
        given = "none" if label is None else f"{label!r}"
        expected = f"one of {', '.join(map(repr, have))}" if have else "a learner with weights, but none has weights"
        raise InputError("label", given, expected)
    episodes, layers = shares(results.curves.filter(label=label))
    axes = bare_axes(ax, "linear", "weight", f"{label}: {where}")
    axes.stackplot(episodes, *layers.values(), labels=list(layers), colors=[*PALETTE[: len(layers) - 1], "0.8"])
    axes.set(xscale="log", ylim=(0.0, 1.0), xlim=(episodes[0], max(episodes[-1], episodes[0] + 1)))
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize="small", reverse=True)
    return axes


def mixtures(curves: pl.DataFrame) -> list[str]:
    """The labels of the learners that have weights."""
    names = weight_columns(curves)
    if not names:
        return []
    marked = curves.filter(pl.any_horizontal(pl.col(*names).is_not_null()))
    return [str(label) for label in marked["label"].unique(maintain_order=True)]


def weight_columns(curves: pl.DataFrame) -> list[str]:
    """The columns that hold weights."""
    return [name for name in curves.columns if name.startswith(WEIGHT)]


def shares(curves: pl.DataFrame, most: int = MOST) -> tuple[list[int], dict[str, FloatArray]]:
    """The episodes, and the weight of each expert at them, averaged over the runs.

    Experts come in the order of the pool.  Those with small weights are summed into "others", which comes last.
    """
    names = weight_columns(curves)
    means = curves.group_by("episode").agg(pl.col(*names).mean().fill_null(0.0)).sort("episode")
    found = {name.removeprefix(WEIGHT): means[name].to_numpy() for name in names}
    kept = _largest(found, most)
    layers = {name: found[name] for name in found if name in kept}
    rest = [values for name, values in found.items() if name not in kept]
    layers[OTHERS] = np.sum(rest, axis=0) if rest else np.zeros(len(means))
    return means["episode"].to_list(), layers


def _largest(found: dict[str, FloatArray], most: int) -> Sequence[str]:
    """The experts with the largest weights, averaged over the marks."""
    return sorted(found, key=lambda name: -float(found[name].mean()))[:most]
