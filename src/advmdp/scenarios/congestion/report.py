"""A congestion game as one HTML file that needs nothing else: who is best, who flaps, and the network to step through.

It has the style of the reports of experiments and their content security policy: no request, and no script but the one
in page/page.js.  All names are escaped.  The load of every link in every episode is in the page, as two
digits to base 36 of hundredths (at most 12.95), so that a hundred links over a thousand episodes take 200 kB a method.
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
from advmdp.scenarios.congestion.game import Course
from advmdp.scenarios.network.topology import Topology
from advmdp.web.pages import row as row_of
from advmdp.web.pages import table as table_of
from advmdp.web.pages import whole_page

MOST = 2_000_000
"""Characters of loads in a page: later episodes are left out, and said to be."""
FLAPS = 0.05
"""From this share of routes changed in an episode on we speak of flapping."""
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
    "delay": "From source to destination, in {unit}: the mean of all packets over the second half of the episodes; a "
    "packet that runs out of hops counts as {scale:.0f}.",
    "delay_all": "The same over all episodes, so with what it takes to learn.",
    "p99": "What 99% of the traffic does not exceed, estimated from one packet of each pair of nodes in "
    "each episode of the second half, weighted by demand.",
    "peak": "What is asked of the busiest link, in percent of its capacity; the mean over the second half.",
    "changed": "The share of the traffic that goes another way than in the episode before; the mean over the second "
    "half.",
    "gap": "The share of the delay that could be saved if each pair of nodes alone took its best way at the delays of "
    "the episode: 0 in an equilibrium. The mean over the second half.",
    "average_gap": "The same for the flow averaged over all episodes, which nobody ever sent.",
}
SHARES = ("peak", "changed", "gap", "average_gap")


def write_congestion_report(course: Course, path: str | PathLike[str]) -> Path:
    """Write the page."""
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
    """Who is best, who flaps, and how far that is from what is possible: from the numbers, whatever they are.

    ``mark`` writes the name of a method.
    """
    rows = {row["method"]: row for row in course.table().iter_rows(named=True)}
    methods = [row for name, row in rows.items() if name not in course.references]
    if not methods:
        return ["There are references, and no method to compare."]
    best, *others = sorted(methods, key=lambda row: row["delay"])
    unit = course.game.unit
    first = f"{mark(best['method'])} has the least mean delay in the second half: {number(best['delay'])} {unit}"
    if others:
        first += f", before {mark(others[0]['method'])} with {number(others[0]['delay'])} {unit}"
    against = []
    for name, gap in course.references.items():
        more = best["delay"] / rows[name]["delay"] - 1.0
        than = f"{abs(more):.1%} {'above' if more >= 0.0 else 'below'}"
        # The programs know no limit of a queue; where it binds, what they prove is of other delays.
        full = rows[name]["full"] > 0.0
        sure = "not certified, for queues are full" if full else f"certified within {gap:.2%}"
        against.append(f"{than} the {mark(name)} ({number(rows[name]['delay'])} {unit}, {sure})")
    found = [f"{first}. That is {' and '.join(against)}." if against else f"{first}."]
    return [*found, _flapping(max(methods, key=lambda row: row["changed"]), best, mark, unit)]


def _flapping(wild: dict[str, Any], best: dict[str, Any], mark: Callable[[str], str], unit: str) -> str:
    if wild["changed"] < FLAPS:
        return f"Nobody flaps: no method changes more than {wild['changed']:.1%} of the routes in an episode."
    text = f"{mark(wild['method'])} flaps the most: {wild['changed']:.0%} of the traffic goes another way in each "
    text += f"episode, with a mean delay of {number(wild['delay'])} {unit} and a peak load of {wild['peak']:.0%}."
    return text if wild is best else f"{text} {mark(best['method'])} changes {best['changed']:.1%}."


def _looks(course: Course) -> list[str]:
    """The classes of a method's colour and dashes; references are grey."""
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
    limit = "" if game.load is None else f" The best routing there is would load its busiest link to {game.load:.0%}."
    return (
        f"{len(game.commodities):,} pairs of nodes with a demand, {len(game.topology.nodes)} nodes, "
        f"{len(game.topology.links)} directed links, {course.episodes:,} episodes, seed {course.seed}. Every pair "
        f"chooses its routes for itself, and links get slower as others use them.{limit}{_changing(course)}"
    )


def _changing(course: Course) -> str:
    """What is said of demands that change."""
    if course.game.matrices is None:
        return ""
    sums = course.game.matrices.sum(axis=1) / course.game.demand
    return (
        f" Demands change: {len(sums):,} traffic matrices in a cycle, from {sums.min():.0%} to {sums.max():.0%} of "
        "their mean. Delays are of the demands of each episode, and so are the references."
    )


def _table(course: Course) -> str:
    body = []
    for look, row in zip(_looks(course), course.table().iter_rows(named=True), strict=True):
        name = row["method"]
        cells = [f"{row[key]:.1%}" if key in SHARES else number(row[key]) for key in COLUMNS]
        line = row_of(f'<span class="dot {look}"></span>{escape(name)}', cells)
        body.append(line.replace("<tr>", '<tr class="reference">', 1) if name in course.references else line)
    note = "Shaded: references that nobody could choose without knowing all demands and links."
    shown = table_of(["method", *COLUMNS.values()], body, f"Delays in {course.game.unit}")
    return f'{shown}<p class="note">{note if course.references else ""}</p>'


def _meaning(course: Course) -> str:
    entries = [
        (name, MEANING[key].format(scale=course.game.scale, unit=course.game.unit)) for key, name in COLUMNS.items()
    ]
    full = float(course.table()["full"].max())  # type: ignore[arg-type]
    text = f"How often the limit of a link's queue was met, by the method that met it most: {full:.2%} of the time."
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
    """What is drawn; < is written so that no text can end the script."""
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
    """The sum of the demands of each episode, of their mean; None where they do not change."""
    if course.game.matrices is None:
        return None
    return [float(f"{course.game.demands(t).sum() / course.game.demand:.4g}") for t in range(shown)]


def _packed(use: FloatArray) -> str:
    whole = np.minimum(np.rint(100.0 * use), 36 * 36 - 1).astype(np.int64).ravel()
    return "".join(DIGITS[np.stack([whole // 36, whole % 36], axis=1)].ravel())


def _points(topology: Topology) -> tuple[list[list[float]], float]:
    """Places of nodes in a box 1,000 wide, and its height; a degree of longitude is shorter than one of latitude."""
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
    # Nobody wants to scroll along one map: a long and narrow one is squeezed, a flat one stretched.
    width, tall = (float(span) or 1.0 for span in at.max(axis=0))
    height = 1000.0 * min(1.2, max(0.5, tall / width))
    return np.round(at / [width, tall] * [1000.0, height], 1).tolist(), height
