"""An experiment as one HTML file that needs nothing else: no network, no server, no library.

What it says first is made from :meth:`Results.comparisons`: who has the least regret, by how much, and how sure
that is.  The curves are drawn by some 190 lines of JavaScript of our own (page/page.js) into SVG: a five-hundredth
of the size of a plotting library, and its colours follow the reader's light or dark mode.  Its content security
policy forbids every request, and every script but that one; all text that comes from a spec or a run is escaped.
"""

import json
import shlex
from collections.abc import Iterator, Sequence
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl

from advmdp.core.files import path_of, write_bytes
from advmdp.core.wording import exact, number, plural
from advmdp.experiments.findings import findings, setting_name
from advmdp.experiments.flow_svg import flow_svg, shared_flow
from advmdp.experiments.results import SETTING, Results
from advmdp.experiments.toml_text import toml_text
from advmdp.web.pages import row as row_of
from advmdp.web.pages import table as table_of
from advmdp.web.pages import whole_page

NAME = "report.html"
LEVEL = 0.95
MOST_FLOW = 3_000_000
"""Characters of pictures of flow: the rest is left out, and said to be."""
LONG = 12
"""Layers of a world above which its two pictures stand one above the other."""
MOST_FINDINGS = 6
"""Settings that the summary speaks of at once; the others unfold."""
MEASURES = (
    ("regret", "regret", "Cumulative loss minus that of the best fixed policy in hindsight."),
    ("regret_online", "R^ON", "The part of the regret that is due to not knowing the losses."),
    ("regret_approximation", "R^APP", "The part of the regret that is due to not knowing the dynamics."),
    ("epochs", "epochs", "How many epochs have begun."),
    ("radius", "radii", "The mean radius of the confidence sets, pairs counted alike; 2 is no constraint."),
)


def write_report(root: str | PathLike[str], out: str | PathLike[str] | None = None) -> Path:
    """Write the report of the experiment in the folder ``root``: into ``report.html`` there, unless said."""
    results = Results(root)
    path = results.root / NAME if out is None else path_of("out", out)
    write_bytes(path, report(results).encode())
    return path


def report(results: Results) -> str:
    """The report as text."""
    table = results.table(LEVEL)
    return whole_page(
        "advmdp.experiments.page",
        title=results.name,
        about=_about(results),
        summary=_summary(results, table),
        settings=_settings(results),
        controls=_controls(results),
        final=_final(results, table),
        pairs=_pairs(results, table),
        flows="".join(_flows(results)),
        certificates=_certificates(table),
        runs=_runs(results),
        manifest=_manifest(results),
        data=_data(results),
    )


def _about(results: Results) -> str:
    """What was run, and how much of it is there."""
    seeds = {seed for frame in (results.runs, results.missing) for seed in frame["seed"]}
    settings, done, open_ones = results.settings, len(results.runs), len(results.missing)
    said = (
        f"{plural(len(results.labels), 'learner')}, {plural(settings['world'].n_unique(), 'world')}, "
        f"{plural(settings['losses'].n_unique(), 'kind')} of losses, {plural(len(seeds), 'seed')}; "
        f"{' and '.join(f'{T:,}' for T in sorted(settings['horizon'].unique()))} episodes. "
    )
    if not open_ones:
        return said + f"All {plural(done, 'run')} finished."
    states = results.missing["state"].value_counts().sort("state").iter_rows()
    rest = ", ".join(f"{count} {STATES[state]}" for state, count in states)
    return said + f'<strong class="bad">{done} of {plural(done + open_ones, "run")} finished ({rest}).</strong>'


STATES = {"failed": "failed", "interrupted": "interrupted", "new": "not begun"}


def _summary(results: Results, table: pl.DataFrame) -> str:
    if table.is_empty():
        return "<p>No run is finished, so there is nothing to compare.</p>"
    headline, items = findings(results, table, LEVEL, lambda label: f"<b>{escape(label)}</b>")
    several = len(results.settings) > 1
    named = '<span class="where">{}</span>' if several else ""
    listed = [f"<li>{named.format(escape(where))}{text}</li>" for where, text in items]
    found = f'<ul class="findings">{"".join(listed[:MOST_FINDINGS])}</ul>'
    if rest := listed[MOST_FINDINGS:]:
        shown = f"<summary>{plural(len(rest), 'more setting')}</summary>"
        found += f'<details>{shown}<ul class="findings">{"".join(rest)}</ul></details>'
    clearly = f"Clearly: the {LEVEL:.0%} interval of the lead over every other is above 0, with 10 seeds or more. "
    note = f"{headline and clearly}Intervals are about seeds; other worlds and losses may differ by more."
    return f'{headline and f"<p>{headline}</p>"}{found}<p class="note">{note}</p>'


def _settings(results: Results) -> str:
    """Where there are several settings, the choice of the one that is shown."""
    choices = "".join(
        f'<option value="{i}">{escape(setting_name(results, row))}</option>'
        for i, row in enumerate(results.settings.rows())
    )
    label = '<label for="setting">Shown below</label>'
    bar = f'<div class="bar">{label}<select id="setting" autocomplete="off">{choices}</select></div>'
    return bar if len(results.settings) > 1 else ""


def _controls(results: Results) -> str:
    shown = "".join(f'<option value="{i}">{escape(name)}</option>' for i, (_, name, _) in enumerate(MEASURES))
    learners = "".join(
        f'<label><input type="checkbox" checked value="{i}">'
        f'<svg class="key {_look(i)}" viewBox="0 0 26 10" aria-hidden="true"><line x1="0" x2="26" y1="5" y2="5" '
        f'stroke-width="4"/></svg><span class="name">{escape(label)}</span>'
        f'<output data-learner="{i}" aria-live="off"></output></label>'
        for i, label in enumerate(results.labels)
    )
    return f"""<label>Show <select id="measure">{shown}</select></label>
<fieldset><legend>Axes</legend>
<label><input type="radio" name="scale" id="linear" checked> linear</label>
<label><input type="radio" name="scale" id="log"> logarithmic</label></fieldset>
<label><input type="checkbox" id="guide" checked> √T</label>
<label><input type="checkbox" id="bound"> guaranteed bound</label>
<fieldset id="learners"><legend>Learners</legend>{learners}</fieldset>"""


def _look(i: int) -> str:
    return f"k{i % 8} d{i // 8 % 4}"


def _final(results: Results, table: pl.DataFrame) -> str:
    head = ["learner", "seeds", "regret", "95% interval", "an episode", "loss", "best fixed", "bound", "epochs"]
    parts = []
    for i, key, rows in _by_setting(results, table):
        body = []
        for row in rows.iter_rows(named=True):
            interval = f"{number(row['low'])} to {number(row['high'])}" if row["low"] is not None else "one seed"
            cells = [row["seeds"], number(row["regret"]), interval, number(row["regret"] / row["horizon"])]
            cells += [number(row[name]) for name in ("loss", "comparator", "bound", "epochs")]
            body.append(row_of(_learner(results, row["label"]), cells))
        parts.append(table_of(head, body, setting_name(results, key), i))
    note = "Means over seeds, the least regret first. The bound is what the learner guarantees, where it does."
    return "".join(parts) + f'<p class="note">{note}</p>'


def _pairs(results: Results, table: pl.DataFrame) -> str:
    found = results.comparisons(LEVEL)
    if found.is_empty():
        return "<p>There are no two learners to compare.</p>"
    ranks = {i: {label: r for r, label in enumerate(rows["label"])} for i, _, rows in _by_setting(results, table)}
    head = ["less regret", "than", "by", "95% interval", "less on", "of"]
    parts = []
    for i, key, rows in _by_setting(results, found):
        pairs = sorted(
            map(_turned, rows.iter_rows(named=True)), key=lambda pair: (ranks[i][pair[0]], ranks[i][pair[1]])
        )
        body = [row_of(_learner(results, one), cells, _learner(results, other)) for one, other, cells in pairs]
        parts.append(table_of(head, body, setting_name(results, key), i, texts=2))
    note = "Differences of regret, seed by seed. An interval that holds 0 leaves open who is better."
    return "".join(parts) + f'<p class="note">{note}</p>'


def _turned(row: dict[str, Any]) -> tuple[str, str, list[object]]:
    """Who has less regret, than whom, and by how much."""
    one, other, sign, won = row["label"], row["other"], -1.0, row["won"]
    if row["difference"] > 0.0:
        one, other, sign, won = other, one, 1.0, 1.0 - won
    interval = "one seed"
    if row["low"] is not None:
        interval = " to ".join(number(end) for end in sorted((sign * row["low"], sign * row["high"])))
    return one, other, [number(abs(row["difference"])), interval, f"{won:.0%}", plural(row["seeds"], "seed")]


def _flows(results: Results) -> Iterator[str]:
    """The first seed of every learner in every setting, as far as there is room."""
    room, left = MOST_FLOW, 0
    for i, _, rows in _by_setting(results, results.runs):
        for row in rows.unique("label", keep="first", maintain_order=True).iter_rows(named=True):
            frame = results.flow(row["folder"])
            layers = results.manifest(row["folder"])["world"]["layers"]
            text = "" if frame is None else _flow(row, frame, layers, _look(results.labels.index(row["label"])), i)
            if not text or len(text) > room:
                left += 1
                continue
            room -= len(text)
            yield text
    if left:
        yield f'<p class="note">{plural(left, "picture")} left out: too large to be one.</p>'
    yield '<p class="note">A bar is a state, as tall as it is likely to be visited; a band is flow between two. '
    yield "Flow below 0.1% is left out. The learned policy is the last one, the best one fixed in hindsight.</p>"


def _flow(row: dict[str, Any], frame: pl.DataFrame, layers: Sequence[int], look: str, setting: int) -> str:
    learned, best = (frame[name].to_numpy() for name in ("q_learned", "q_best"))
    ends = frame["state"].to_numpy(), frame["successor"].to_numpy()
    agree = shared_flow(learned, best, len(layers) - 1)
    title = f"{escape(row['label'])}, seed {row['seed']}"
    pictures = [
        f"<div><p>{name}</p>{flow_svg(layers, *ends, q, style, f'{name}: {title}')}</div>"
        for name, q, style in (("learned", learned, look), ("best in hindsight", best, "best"))
    ]
    caption = f"<figcaption><strong>{title}</strong>: {agree:.0%} of the flow goes the same way.</figcaption>"
    kind = "pair long" if len(layers) > LONG else "pair"  # a picture of many steps wants the whole width
    return f'<figure class="{kind}" data-setting="{setting}">{caption}{"".join(pictures)}</figure>'


def _certificates(table: pl.DataFrame) -> str:
    """How exactly what had to be solved was solved."""
    if table.is_empty():
        return "<p>No run is finished.</p>"
    projection, comparator = table["projection_gap"].max(), table["comparator_gap"].max()
    worst = table.group_by("label", maintain_order=True).agg(pl.max("projection_gap", "comparator_gap"))
    body = [row_of(escape(label), [exact(a), exact(b)]) for label, a, b in worst.iter_rows()]
    text = (
        f"Every projection that a learner made was solved, with a proof that no other point is closer by more than "
        f"{exact(projection)}. The best fixed policy, which regret is measured against, is "
        + (
            "exact."
            if comparator == 0.0
            else f"proven to pay at most a fraction {exact(comparator)} more than the least."
        )
    )
    head = ["learner", "largest gap of a projection", "largest gap of the comparator"]
    return f"<p>{text}</p>" + table_of(head, body, "The worst over all settings, seeds and episodes")


def _runs(results: Results) -> str:
    """Every run of the spec, what is missing first."""
    numbers = ["regret", "loss", "comparator", "regret_online", "regret_approximation", "bound", "epochs"]
    names = ["regret", "loss", "best fixed", "R^ON", "R^APP", "bound", "epochs"]
    gaps = ["projection_gap", "comparator_gap"]
    head = ["learner", "world", "losses", "episodes", "seed", *names, "projection gap", "comparator gap", "run"]
    body = []
    for row in results.missing.iter_rows(named=True):
        why = f"{STATES[row['state']]}{': ' if row['why'] else ''}{escape(row['why'])}"
        body.append(f'<tr>{_which(row)}<td class="why" colspan="{len(names) + 2}">{why}</td>{_id(row)}</tr>')
    for row in results.runs.iter_rows(named=True):
        cells = [number(row[name]) for name in numbers] + [exact(row[name]) for name in gaps]
        body.append(f"<tr>{_which(row)}{''.join(f'<td>{cell}</td>' for cell in cells)}{_id(row)}</tr>")
    return table_of(head, body, f"{plural(len(body), 'run')}; a run is told by the hash at its end", texts=3)


def _which(row: dict[str, Any]) -> str:
    texts = "".join(f'<td class="text">{escape(row[name])}</td>' for name in ("world", "losses"))
    head = f'<th scope="row" class="text">{escape(row["label"])}</th>'
    return f"{head}{texts}<td>{row['horizon']:,}</td><td>{row['seed']}</td>"


def _id(row: dict[str, Any]) -> str:
    return f"<td><code>{escape(row['folder'].rpartition('-')[2])}</code></td>"


def _manifest(results: Results) -> str:
    """All that is needed to get the same bytes again."""
    spec = toml_text(results.spec)
    manifests = [results.manifest(name) for name in results.runs["folder"].unique(maintain_order=True)]
    seen = list(dict.fromkeys(_machine(manifest) for manifest in manifests))
    command = f"advmdp run spec.toml --out {shlex.quote(results.root.name or 'out')}"
    save = f'<a download="spec.toml" href="data:application/toml;charset=utf-8,{quote(spec)}">save it</a>'
    versions = "\n\n".join(seen) or "no run is finished"
    return (
        f"<p>With the spec below in <code>spec.toml</code> ({save}):</p><pre>{escape(command)}</pre>"
        f"<h3>Spec</h3>{_pre(spec, 'Spec')}"
        f"<h3>Versions and machine</h3>{_pre(versions, 'Versions and machine')}"
        f'<p class="note">The same spec and versions give the same bytes, on any number of processes.</p>'
    )


def _pre(text: str, name: str) -> str:
    return f'<pre tabindex="0" role="region" aria-label="{name}">{escape(text)}</pre>'


def _machine(manifest: dict[str, Any]) -> str:
    versions = {"advmdp": manifest["run"]["advmdp"], **manifest["versions"]}
    lines = [f"{name} {version}" for name, version in versions.items()]
    return "\n".join([*lines, f"on {manifest['machine']['system']} ({manifest['machine']['processor']})"])


def _data(results: Results) -> str:
    """What the curves are drawn from; < is written so that no text can end the script."""
    places = {key: i for i, key in enumerate(results.settings.rows())}
    lines: dict[tuple[int, int], dict[str, Any]] = {}
    for column, _, _ in MEASURES:
        bands = results.regret(LEVEL, of=column)
        for (label, *key), part in bands.group_by(["label", *SETTING], maintain_order=True):
            place = places[tuple(key)], results.labels.index(str(label))
            line = lines.setdefault(place, {"setting": place[0], "learner": place[1], "bound": []})
            line |= {"t": part["episode"].to_list(), "seeds": part["seeds"][0]}
            if part["mean"].null_count() == 0:  # learners without confidence sets have no radii
                line[column] = [_rounded(part[name]) for name in ("mean", "low", "high")]
    given = results.curves.drop_nulls("bound").group_by(["label", *SETTING, "episode"], maintain_order=True)
    for label, *key, t, bound in given.agg(pl.max("bound")).iter_rows():
        lines[places[tuple(key)], results.labels.index(label)]["bound"].append([t, bound])
    measures = [{"key": key, "name": name, "about": about} for key, name, about in MEASURES]
    about = {"level": f"{LEVEL:.0%}", "measures": measures, "lines": list(lines.values())}
    return json.dumps(about, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _rounded(values: pl.Series) -> list[float | None]:
    """To five digits, more than a screen shows."""
    return [None if value is None else float(f"{value:.5g}") for value in values]


def _by_setting(results: Results, frame: pl.DataFrame) -> Iterator[tuple[int, tuple[Any, ...], pl.DataFrame]]:
    """The number of each setting, the setting, and its rows, where there are some."""
    parts = frame.partition_by(SETTING, as_dict=True, maintain_order=True) if len(frame) else {}
    for i, key in enumerate(results.settings.rows()):
        if key in parts:
            yield i, key, parts[key]


def _learner(results: Results, label: str) -> str:
    return f'<span class="dot {_look(results.labels.index(label))}"></span>{escape(label)}'
