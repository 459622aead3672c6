"""Curves of an experiment over its episodes, with bands over seeds, and the current radii of a learner."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np
import polars as pl

from advmdp.core.arrays import expect
from advmdp.core.errors import InputError
from advmdp.core.optional import optional
from advmdp.core.wording import number
from advmdp.learners.base import Learner

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Scale = Literal["linear", "log"]
PALETTE = ("#0060b0", "#c04a00", "#00785a", "#a8458a", "#7a6200", "#0f7f99", "#b3263a", "#55565a")
"""Colours that most colour-blind people can tell apart, with a contrast of at least 4.5 to 1 on white."""
DASHES = ("-", "--", ":", "-.")
"""One more style for every eight learners."""
BEST = 3
"""How many of the best learners a zoomed picture must tell apart."""
AHEAD = 12.0
"""The third best is left out if it is this many times as far from the best as the second, which would hide the gap
between those two."""


@runtime_checkable
class Results(Protocol):
    """The curves of an experiment to draw; :class:`advmdp.Results` implements this protocol."""

    every_label: list[str]

    @property
    def settings(self) -> pl.DataFrame: ...

    @property
    def labels(self) -> list[str]: ...

    @property
    def curves(self) -> pl.DataFrame: ...

    def only(self, **chosen: Any) -> "Results": ...

    def paid(
        self, level: float = 0.95, resamples: int = 2000, seed: int = 0, *, each: bool = False
    ) -> pl.DataFrame: ...

    def above(self, level: float = 0.95, resamples: int = 2000, seed: int = 0) -> pl.DataFrame: ...

    def regret(self, level: float = 0.95, resamples: int = 2000, seed: int = 0, of: str = "regret") -> pl.DataFrame: ...


def paid(
    results: Results,
    ax: "Axes | None" = None,
    *,
    each: bool = False,
    zoom: bool = True,
    level: float = 0.95,
) -> "Axes":
    """Plot what each learner paid, in the units of the problem, with bands over seeds.

    By default curves show what was paid above the learner that paid least in the end, seed by seed: a falling curve is
    catching up.

    Parameters
    ----------
    results
        The results of an experiment.
    ax
        The axes to draw on; new ones by default.
    each
        Whether to plot the average cost of an episode so far instead.
    zoom
        Whether the axis ends above the best two or three learners; the legend then says what the others paid.
    level
        The level of the bands.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> game = am.play(mdp, am.losses.Stochastic(mdp.skeleton), am.Uniform(mdp.skeleton), episodes=100)
    >>> axes = am.plot.paid(am.Results.of_games({"at random": [game]}))
    """
    axes = bare_axes(ax, "linear", "", one_setting(results))
    lines = results.paid(level, each=True) if each else results.above(level)
    ends = {label: line["mean"][-1] for (label,), line in lines.group_by("label", maintain_order=True)}
    few = nearest(ends)
    for label, colour, dash in _styles(results):
        off = "" if label in few or not zoom else f" (+{number(ends.get(label))} at the end)"
        _curve(axes, lines.filter(label=label), colour, dash, f"{_said(label)}{off if not each else ''}")
    if ends:
        unit = results.curves["unit"][0]
        least = f"{unit}, paid above {_said(lines['best'][0])}" if not each else f"{unit} paid per episode so far"
        axes.set_ylabel(least)
    if zoom and ends:
        axes.set_ylim(*zoomed(lines, few))
    _finish(axes, "linear")
    return axes


def nearest(ends: Mapping[str, float]) -> list[str]:
    """The learners that ended lowest, which a picture must tell apart: three, or two if they are far ahead."""
    best = sorted(ends, key=lambda label: ends[label])[:BEST]
    if len(best) == BEST and 0.0 < AHEAD * (ends[best[1]] - ends[best[0]]) < ends[best[2]] - ends[best[0]]:
        return best[:2]
    return best


def zoomed(lines: pl.DataFrame, labels: Sequence[str]) -> tuple[float, float]:
    """The range of an axis that shows these learners, with a margin.

    The first quarter of the episodes does not count: early means over episodes are far from their final values.
    """
    last = lines["episode"].max()
    part = lines.filter(pl.col("label").is_in(labels), pl.col("episode") * 4 >= last)
    ends = pl.concat([part["mean"], part["low"].drop_nulls(), part["high"].drop_nulls()])
    low, high = (float(end) for end in np.quantile(ends.to_numpy(), [0.0, 1.0]))
    room = 0.08 * (high - low) or 1.0
    return low - room, high + room


def regret(
    results: Results,
    ax: "Axes | None" = None,
    *,
    scale: Scale = "linear",
    level: float = 0.95,
    slope: bool = True,
    bound: bool | None = None,
) -> "Axes":
    """Plot the mean regret of each learner, with bands over seeds.

    Regret is what a learner paid above the best fixed policy on the losses that it met. If the losses react, each
    learner met other losses: compare learners by :func:`paid` then.

    Parameters
    ----------
    results
        The results of an experiment.
    ax
        The axes to draw on; new ones by default.
    scale
        "linear" or "log".
    level
        The level of the bands.
    slope
        Whether to add a guide that grows like sqrt(T).
    bound
        Whether to add the learners' bounds; by default on logarithmic axes only.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> game = am.play(mdp, am.losses.Stochastic(mdp.skeleton), am.Uniform(mdp.skeleton), episodes=100)
    >>> axes = am.plot.regret(am.Results.of_games({"at random": [game]}))
    """
    axes = bare_axes(ax, scale, "regret", one_setting(results))
    lines = results.regret(level)
    for label, colour, dash in _styles(results):
        _curve(axes, lines.filter(label=label), colour, dash, _said(label))
    if slope and not lines.is_empty():
        _slope(axes, lines)
    if bound or (bound is None and scale == "log"):
        _bounds(axes, results)
    _finish(axes, scale)
    return axes


def parts(results: Results, ax: "Axes | None" = None, *, scale: Scale = "linear", level: float = 0.95) -> "Axes":
    """Plot the two parts of the regret: R^APP dashed, for unknown dynamics, and R^ON solid, for unknown losses.

    Parameters
    ----------
    results
        The results of an experiment.
    ax
        The axes to draw on; new ones by default.
    scale
        "linear" or "log".
    level
        The level of the bands.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> learner = am.UCOREPS(mdp.skeleton, horizon=100)
    >>> game = am.play(mdp, am.losses.Stochastic(mdp.skeleton), learner, episodes=100)
    >>> axes = am.plot.parts(am.Results.of_games({"UC-O-REPS": [game]}))
    """
    axes = bare_axes(ax, scale, "part of the regret", one_setting(results))
    for name, column, dash in (("$R^{ON}$", "regret_online", "-"), ("$R^{APP}$", "regret_approximation", "--")):
        lines = results.regret(level, of=column)
        for label, colour, _ in _styles(results):
            _curve(axes, lines.filter(label=label), colour, dash, f"{_said(label)}, {name}")
    _finish(axes, scale)
    return axes


def epochs(results: Results, ax: "Axes | None" = None, *, level: float = 0.95) -> "Axes":
    """Plot the number of epochs over the episodes; learners without epochs are left out.

    Parameters
    ----------
    results
        The results of an experiment.
    ax
        The axes to draw on; new ones by default.
    level
        The level of the bands.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> learner = am.UCOREPS(mdp.skeleton, horizon=100)
    >>> game = am.play(mdp, am.losses.Stochastic(mdp.skeleton), learner, episodes=100)
    >>> axes = am.plot.epochs(am.Results.of_games({"UC-O-REPS": [game]}))
    """
    axes = bare_axes(ax, "linear", "epochs begun", one_setting(results))
    axes.set_xscale("log")
    lines = results.regret(level, of="epochs")
    for label, colour, dash in _styles(results):
        line = lines.filter(label=label)
        if not line.is_empty() and line["mean"][-1] > 1.0:
            _curve(axes, line, colour, dash, _said(label))
    _finish(axes, "linear")
    return axes


def radii(results: Results, ax: "Axes | None" = None, *, level: float = 0.95) -> "Axes":
    """Plot the mean radius of the confidence sets over the episodes; learners without sets are left out.

    All pairs count equally. From 2 on, the grey line, a radius means no constraint.

    Parameters
    ----------
    results
        The results of an experiment.
    ax
        The axes to draw on; new ones by default.
    level
        The level of the bands.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> learner = am.UCOREPS(mdp.skeleton, horizon=100)
    >>> game = am.play(mdp, am.losses.Stochastic(mdp.skeleton), learner, episodes=100)
    >>> axes = am.plot.radii(am.Results.of_games({"UC-O-REPS": [game]}))
    """
    axes = bare_axes(ax, "linear", "mean radius", one_setting(results))
    axes.set_xscale("log")
    axes.axhline(2.0, color="0.7", lw=1, zorder=1)
    for label, colour, dash in _styles(results):
        part = results.only(label=label)
        if part.curves["radius"].null_count() == 0:
            _curve(axes, part.regret(level, of="radius"), colour, dash, _said(label))
    axes.set_ylim(0.0, None)
    _finish(axes, "linear")
    return axes


def pair_radii(learner: Learner, ax: "Axes | None" = None) -> "Axes":
    """Plot the radius of the confidence set of each pair, layer by layer, for a learner as it is now.

    For a box it is half the sum of the widths. From 2 on, the grey line, a radius means no constraint.

    Parameters
    ----------
    learner
        A learner with confidence sets.
    ax
        The axes to draw on; new ones by default.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    InputError
        If the learner has no confidence sets.

    Examples
    --------
    >>> import advmdp as am
    >>> axes = am.plot.pair_radii(am.UCOREPS(am.Skeleton.dense([1, 3, 1], actions=2), horizon=100))
    """
    expect(Learner, learner, "learner")  # type: ignore[type-abstract]
    row_set, sk = learner.row_set, learner.skeleton
    if row_set is None:
        raise InputError("learner", f"{type(learner).__name__}, which has no confidence sets", "a learner like UCOREPS")
    axes = bare_axes(ax, "linear", "radius", f"after {learner.episode:,} episodes")
    layer = np.repeat(np.arange(sk.num_steps), np.diff(sk.layer_pair_ptr))
    place = np.arange(sk.num_pairs) - sk.layer_pair_ptr[layer]
    across = layer + 0.8 * ((place + 0.5) / np.diff(sk.layer_pair_ptr)[layer] - 0.5)
    axes.axhline(2.0, color="0.7", lw=1, zorder=1)
    axes.plot(across, row_set.radii(sk), ".", color=PALETTE[0], ms=5)
    axes.set(xlabel="layer of the pair", xticks=range(sk.num_steps), ylim=(0.0, None))
    return axes


def one_setting(results: Results) -> str:
    """The only setting in words; raises if there are several."""
    settings = expect(Results, results, "results").settings  # type: ignore[type-abstract]
    if len(settings) != 1:
        some = "; ".join(f"world={w!r}, losses={x!r}, horizon={T}" for w, x, T in settings.head(3).iter_rows())
        hint = f"one setting: results.only(world=..., losses=..., horizon=...), such as {some}"
        raise InputError("results", f"{len(settings)} settings", hint)
    world, losses, horizon = settings.row(0)
    return f"{world}{'' if losses == 'own' else f' world, {losses} losses'}, {horizon:,} episodes"


def bare_axes(ax: "Axes | None", scale: Scale, what: str, title: str) -> "Axes":
    """Empty axes with labels and a title."""
    with optional:
        import matplotlib.pyplot as plt

    if scale not in ("linear", "log"):
        raise InputError("scale", f"{scale!r}", "'linear' or 'log'")
    axes = plt.subplots(figsize=(6, 3.8), layout="constrained")[1] if ax is None else ax
    axes.set(xlabel="episode", ylabel=what)
    axes.set_title(title, fontsize="medium", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    if scale == "log":
        axes.set(xscale="log", yscale="log")
    return axes


def _styles(results: Results) -> list[tuple[str, str, str]]:
    """Label, colour and dash of each learner, independent of which learners are shown."""
    every = {label: i for i, label in enumerate(results.every_label)}
    count = len(PALETTE)
    return [(a, PALETTE[every[a] % count], DASHES[every[a] // count % len(DASHES)]) for a in results.labels]


def _said(label: str) -> str:
    """Escape a label: matplotlib reads mathematics between dollars, and hides labels that begin with an underscore."""
    plain = label.replace("$", r"\$")
    return f" {plain}" if plain.startswith("_") else plain


def _curve(axes: "Axes", line: pl.DataFrame, colour: str, dash: str, label: str) -> None:
    if line.is_empty():
        return
    axes.plot(line["episode"], line["mean"], dash, color=colour, lw=1.5, label=label)
    if line["low"].null_count() == 0:
        axes.fill_between(line["episode"], line["low"], line["high"], color=colour, alpha=0.18, lw=0)


def _slope(axes: "Axes", lines: pl.DataFrame) -> None:
    """Draw c sqrt(T), which ends where the lowest curve above 0 does; ending at the worst would tell nothing."""
    last = lines["episode"].max()
    lowest = lines.filter(pl.col("episode") == last, pl.col("mean") > 0.0)["mean"].min()
    if isinstance(lowest, float):
        t = lines["episode"].unique().sort().to_numpy()
        axes.plot(
            t,
            lowest * np.sqrt(t / t[-1]),
            color="0.55",
            lw=1,
            ls=(0, (4, 3)),
            zorder=1,
            label=r"$\propto\sqrt{T}$",
        )


def _bounds(axes: "Axes", results: Results) -> None:
    for label, colour, _ in _styles(results):
        line = results.curves.filter(label=label).drop_nulls("bound").group_by("episode").agg(pl.col("bound").max())
        line = line.sort("episode")
        if not line.is_empty():
            style = "v" if len(line) == 1 else ":"
            said = f"bound of {_said(label)}"
            axes.plot(line["episode"], line["bound"], style, color=colour, mfc="none", lw=1, label=said)


def _finish(axes: "Axes", scale: Scale) -> None:
    """Add the legend, and cut logarithmic axes at the bottom, where regret near 0 would take most of the space."""
    if scale == "log":
        heights = [np.asarray(line.get_ydata(), float) for line in axes.get_lines()]
        curves = np.concatenate([line[line > 0.0] for line in heights if len(line) > 1] or [np.empty(0)])
        if curves.size:
            axes.set_ylim(max(curves.min(), curves.max() * 1e-5) / 1.5, 2.0 * max(line.max() for line in heights))
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize="small")
