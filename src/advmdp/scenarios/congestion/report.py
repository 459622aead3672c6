"""Reports a congestion game as one self-contained HTML file: which method is best, which flaps, and a map to replay.

It shares the style and the content security policy of the reports of experiments: no requests, and no script except
page/page.js.  All names are escaped.  The page holds the load of each link in each episode, in hundredths (at most
12.95) as two base-36 digits; a hundred links over a thousand episodes take 200 kB per method.
"""

import json
from collections.abc import Callable
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from advmdp.core.arrays import FloatArray
from advmdp.core.files import path_of, write_bytes
from advmdp.core.optional import optional
from advmdp.core.wording import number
from advmdp.scenarios.congestion.playing import Course
from advmdp.scenarios.network.topology import Topology
from advmdp.web.pages import row as row_of
from advmdp.web.pages import table as table_of
from advmdp.web.pages import whole_page

MOST = 2_000_000
"""The most characters of loads in a page; later episodes are omitted, and a note says so."""
FLAPS = 0.05
"""A method flaps if it changes at least this share of routes in an episode."""
DIGITS = np.array(list("0123456789abcdefghijklmnopqrstuvwxyz"))
STEPS = ("below 50%", "50 to 75%", "75 to 90%", "90 to 100%", "100 to 150%", "150% and more")
COLUMNS = {
    "delay": "mean delay",
    "delay_all": "all episodes",
    "p99": "99th perc.",
    "peak": "peak load",
    "changed": "routes changed",
    "gap": "gap",
    "average_gap": "mean flow's gap",
}
MEANING = {
    "delay": "The mean delay from source to destination over the second half of the episodes, in {unit}; a packet that "
    "runs out of hops counts as {scale:.0f}.",
    "delay_all": "The same over all episodes, including the learning phase.",
    "p99": "The 99th percentile of delays, estimated from one packet of each pair of nodes in each episode of the "
    "second half, weighted by demand.",
    "peak": "The load of the busiest link, in percent of its capacity; the mean over the second half.",
    "changed": "The share of the traffic that takes another route than in the previous episode; the mean over the "
    "second half.",
    "gap": "The share of the delay that pairs of nodes would save if each alone took its best routes at the delays of "
    "the episode: 0 in an equilibrium. The mean over the second half.",
    "average_gap": "The gap of the average routing: the mean of the routes of all episodes. No single episode used it.",
}
SHARES = ("peak", "changed", "gap", "average_gap")


def write_congestion_report(course: Course, path: str | PathLike[str]) -> Path:
    """Write the results of a congestion game as one HTML file, with maps to replay.

    Parameters
    ----------
    course
        The results.
    path
        The file to write.

    Returns
    -------
    pathlib.Path
        The file.

    Examples
    --------
    >>> import networkx as nx
    >>> from advmdp.scenarios.congestion import congestion_game
    >>> from advmdp.scenarios.congestion.report import write_congestion_report
    >>> from advmdp.scenarios.congestion.routers import DelayRouting
    >>> ring = nx.cycle_graph(["a", "b", "c", "d"])
    >>> ring.graph["demands"] = {"a": {"c": 5.0}}
    >>> game = congestion_game(ring)
    >>> write_congestion_report(game.play({"last delay": DelayRouting(game)}, episodes=10), "report.html").name
    'report.html'
    """
    out = path_of("path", path)
    write_bytes(out, congestion_report(course).encode())
    return out


def congestion_report(course: Course) -> str:
    """The page as text."""
    names = list(course.use)
    shown = min(course.episodes, MOST // (2 * len(names) * len(course.game.topology.links)))
    cut = f"Shown are the first {shown:,} of {course.episodes:,} episodes." if shown < course.episodes else ""
    return whole_page(
        "advmdp.scenarios.congestion.page",
        title=f"Routing {course.game.topology.name}",
        unit=escape(course.game.unit),
        about=escape(_about(course)),
        summary="".join(f"<p>{text}</p>" for text in sentences(course, lambda name: f"<b>{escape(name)}</b>")),
        table=_table(course),
        methods="".join(f'<option value="{i}">{escape(name)}</option>' for i, name in enumerate(names)),
        boxes="".join(_box(i, name, look) for i, (name, look) in enumerate(zip(names, _looks(course), strict=True))),
        scale="".join(_key(i, text) for i, text in enumerate(STEPS)),
        cut=cut,
        meaning=_meaning(course),
        data=_data(course, shown),
    )


def sentences(course: Course, mark: Callable[[str], str] = "'{}'".format) -> list[str]:
    """Say which method is best, which flaps most, and how far the best is from the references.

    ``mark`` formats the name of a method.
    """
    rows = {row["method"]: row for row in course.table().iter_rows(named=True)}
    methods = [row for name, row in rows.items() if name not in course.references]
    if not methods:
        return ["There are only references, and no method to compare."]
    best, *others = sorted(methods, key=lambda row: row["delay"])
    unit = course.game.unit
    first = f"{mark(best['method'])} has the least mean delay in the second half: {number(best['delay'])} {unit}"
    if others:
        first += f"; {mark(others[0]['method'])} follows with {number(others[0]['delay'])} {unit}"
    against = []
    for name, gap in course.references.items():
        more = best["delay"] / rows[name]["delay"] - 1.0
        than = f"{abs(more):.1%} {'above' if more >= 0.0 else 'below'}"
        # The references ignore the limit of a queue, so their certificates fail if it is active.
        full = rows[name]["full"] > 0.0
        sure = "not certified, since queues are full" if full else f"certified within {gap:.2%}"
        against.append(f"{than} the {mark(name)} ({number(rows[name]['delay'])} {unit}, {sure})")
    found = [f"{first}. {mark(best['method'])} is {' and '.join(against)}." if against else f"{first}."]
    return [*found, _flapping(max(methods, key=lambda row: row["changed"]), best, mark, unit)]


def _flapping(wild: dict[str, Any], best: dict[str, Any], mark: Callable[[str], str], unit: str) -> str:
    if wild["changed"] < FLAPS:
        return f"No method flaps: none changes more than {wild['changed']:.1%} of the routes in an episode."
    text = f"{mark(wild['method'])} flaps the most: {wild['changed']:.0%} of the traffic changes its route in each "
    text += f"episode, with a mean delay of {number(wild['delay'])} {unit} and a peak load of {wild['peak']:.0%}."
    return text if wild is best else f"{text} {mark(best['method'])} changes {best['changed']:.1%}."


def _looks(course: Course) -> list[str]:
    """The CSS classes for the colour and dashes of each method; references are grey."""
    methods, looks = 0, []
    for name in course.use:
        if name in course.references:
            looks.append(f"k7 d{list(course.references).index(name) % 4}")
        else:
            looks.append(f"k{methods % 7} d{methods // 7 % 4}")
            methods += 1
    return looks


def _about(course: Course) -> str:
    game = course.game
    limit = "" if game.load is None else f" The best possible routing would load its busiest link to {game.load:.0%}."
    return (
        f"{len(game.commodities):,} pairs of nodes with a demand, {len(game.topology.nodes)} nodes, "
        f"{len(game.topology.links)} directed links, {course.episodes:,} episodes, seed {course.seed}. Each pair "
        f"chooses its own routes, and links slow down under load.{limit}{_changing(course)}"
    )


def _changing(course: Course) -> str:
    """A sentence about changing demands."""
    if course.game.matrices is None:
        return ""
    sums = course.game.matrices.sum(axis=1) / course.game.demand
    return (
        f" Demands change: {len(sums):,} traffic matrices in a cycle, from {sums.min():.0%} to {sums.max():.0%} of "
        "their mean. Delays and references use the demands of each episode."
    )


def _table(course: Course) -> str:
    body = []
    for look, row in zip(_looks(course), course.table().iter_rows(named=True), strict=True):
        name = row["method"]
        cells = [f"{row[key]:.1%}" if key in SHARES else number(row[key]) for key in COLUMNS]
        line = row_of(f'<span class="dot {look}"></span>{escape(name)}', cells)
        body.append(line.replace("<tr>", '<tr class="reference">', 1) if name in course.references else line)
    note = "Shaded: references, which need to know all demands and links."
    shown = table_of(["method", *COLUMNS.values()], body, f"Delays in {course.game.unit}")
    return f'{shown}<p class="note">{note if course.references else ""}</p>'


def _meaning(course: Course) -> str:
    entries = [
        (name, MEANING[key].format(scale=course.game.scale, unit=course.game.unit)) for key, name in COLUMNS.items()
    ]
    full = float(course.table()["full"].max())  # type: ignore[arg-type]
    text = f"The share of full queues, over all links and episodes, for the method with the largest share: {full:.2%}."
    entries.append(("full queues", text))
    return f"<dl>{''.join(f'<dt>{escape(name)}</dt><dd>{escape(about)}</dd>' for name, about in entries)}</dl>"


def _box(i: int, name: str, look: str) -> str:
    line = '<line x1="0" x2="26" y1="5" y2="5" stroke-width="4"/>'
    return (
        f'<label><input type="checkbox" checked value="{i}">'
        f'<svg class="key {look}" viewBox="0 0 26 10" aria-hidden="true">{line}</svg>'
        f'<span class="name">{escape(name)}</span><output data-learner="{i}" aria-live="off"></output></label>'
    )


def _key(i: int, text: str) -> str:
    line = f'<line class="u{i}" x1="2" x2="34" y1="8" y2="8" stroke-width="{2 + 2 * i}"/>'
    return f'<li><svg viewBox="0 0 36 16" aria-hidden="true">{line}</svg>{text}</li>'


def _data(course: Course, shown: int) -> str:
    """The data to draw, as JSON; < is escaped so that no text can end the script."""
    names, methods = list(course.use), []
    looks = dict(zip(names, _looks(course), strict=True))
    for name, use in course.use.items():
        part = course.frame.filter(pl.col("method") == name).head(shown)
        still = bool((use == use[0]).all())
        columns = {key: [float(f"{v:.4g}") for v in part[key]] for key in ("delay", "peak", "changed", "gap")}
        methods.append(
            {"name": name, "look": looks[name], "still": still, "use": _packed(use[: 1 if still else shown])} | columns
        )
    rows = {
        row["method"]: row for row in course.table().iter_rows(named=True) if row["method"] not in course.references
    }
    wild = max(rows or names, key=lambda name: rows[name]["changed"] if rows else 0.0)
    best = min((name for name in rows if name != wild), key=lambda name: rows[name]["delay"], default=wild)
    points, height = _points(course.game.topology)
    about = {
        "episodes": shown,
        "start": max(1, shown // 2),
        "shown": [names.index(best), names.index(wild)],
        "height": height,
        "nodes": [[name, *point] for name, point in zip(course.game.topology.nodes, points, strict=True)],
        "links": course.game.topology.links.tolist(),
        "unit": course.game.unit,
        "demand": _demand(course, shown),
        "methods": methods,
    }
    return json.dumps(about, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _demand(course: Course, shown: int) -> list[float] | None:
    """The total demand of each episode relative to its mean; None if demands do not change."""
    if course.game.matrices is None:
        return None
    return [float(f"{course.game.demands(t).sum() / course.game.demand:.4g}") for t in range(shown)]


def _packed(use: FloatArray) -> str:
    whole = np.minimum(np.rint(100.0 * use), 36 * 36 - 1).astype(np.int64).ravel()
    return "".join(DIGITS[np.stack([whole // 36, whole % 36], axis=1)].ravel())


def _points(topology: Topology) -> tuple[list[list[float]], float]:
    """Positions of nodes in a box of width 1,000, and its height; degrees of longitude are scaled to true length."""
    if topology.positions is None:
        with optional:
            import networkx as nx

        at = np.array(list(nx.spring_layout(topology.graph, seed=0).values()))
    else:
        at = topology.positions.copy()
        if np.abs(at[:, 1]).max() < 80.0 and np.abs(at[:, 0]).max() <= 180.0:
            at[:, 0] *= np.cos(np.radians(at[:, 1].mean()))
    at[:, 1] *= -1.0
    at -= at.min(axis=0)
    # A map should fit a screen, so squeeze tall ones and stretch flat ones.
    width, tall = (float(span) or 1.0 for span in at.max(axis=0))
    height = 1000.0 * min(1.2, max(0.5, tall / width))
    return np.round(at / [width, tall] * [1000.0, height], 1).tolist(), height
