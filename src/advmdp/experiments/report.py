"""The report of an experiment as one self-contained HTML file: no network, no server, no library.

It opens with :meth:`Results.comparisons` in words: who paid least, by how much, and how certain that is.  Regret comes
second, always with its comparator.  About 220 lines of our own JavaScript (page/page.js) draw the curves as SVG.  They
are a five-hundredth of the size of a plotting library, and the colours follow the reader's light or dark mode.  The
content security policy forbids all requests and all other scripts; all text from a spec or a run is escaped.
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
from advmdp.core.wording import apart, exact, number, plural
from advmdp.experiments.findings import BEYOND, MEANING, REACTING, findings, reacting_note, setting_name
from advmdp.experiments.flow_svg import flow_legend, flow_svg, layer_marks, shared_flow
from advmdp.experiments.reading import LOSS, SETTING
from advmdp.experiments.results import Results, in_units
from advmdp.experiments.toml_text import toml_text
from advmdp.experiments.weights_svg import weights_svg
from advmdp.plot.shares import mixtures, shares
from advmdp.web.pages import row as row_of
from advmdp.web.pages import table as table_of
from advmdp.web.pages import whole_page

NAME = "report.html"
LEVEL = 0.95
MOST_FLOW = 3_000_000
"""The most characters for pictures of flow; the report says how many it omits."""
LONG = 12
"""With more layers than this, the pictures of a world are stacked."""
MOST_PICTURES = 3
"""The most pictures of flow in a setting."""
MOST_FINDINGS = 6
"""How many settings the summary shows at once; the others can be unfolded."""
MEASURES = (
    ("above", "paid above the least", "Cost so far above that of the learner that paid least in the end."),
    ("each", "paid per episode", "The average cost of an episode so far."),
    ("regret", "regret", MEANING),
    ("regret_online", "R^ON", "The part of the regret due to not knowing the losses."),
    ("regret_approximation", "R^APP", "The part of the regret due to not knowing the dynamics."),
    ("epochs", "epochs", "How many epochs have begun."),
    ("radius", "radii", "The mean radius of the confidence sets over all pairs; 2 is no constraint."),
)


def write_report(root: str | PathLike[str], out: str | PathLike[str] | None = None) -> Path:
    """Write the report of the experiment in the folder ``root``, by default to ``report.html`` there."""
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
        weights=_weights(results),
        flows="".join(_flows(results, table)),
        certificates=_certificates(table),
        runs=_runs(results),
        manifest=_manifest(results),
        data=_data(results),
    )


def _about(results: Results) -> str:
    """What was run, and how many runs are finished."""
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
    lead = f"the {LEVEL:.0%} interval of the lead over each other learner is above 0"
    certain = f'"{BEYOND.capitalize()}" means that {lead}. '
    reacting = f"{reacting_note(table)} " if table["reacts"].any() else ""
    seeds = "Intervals cover variation between seeds; other worlds and losses may differ by more."
    note = f"{MEANING} {reacting}{headline and certain}{seeds}"
    return f'{headline and f"<p>{headline}</p>"}{found}<p class="note">{note}</p>'


def _settings(results: Results) -> str:
    """A menu to choose the setting, if there are several."""
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
<fieldset><legend>Range</legend>
<label><input type="radio" name="range" id="best" checked> the best</label>
<label><input type="radio" name="range" id="all"> all</label></fieldset>
<label data-only="regret"><input type="checkbox" id="guide" checked> √T</label>
<label data-only="regret"><input type="checkbox" id="bound"> guaranteed bound</label>
<fieldset id="learners"><legend>Learners</legend>{learners}</fieldset>"""


def _look(i: int) -> str:
    return f"k{i % 8} d{i // 8 % 4}"


def _final(results: Results, table: pl.DataFrame) -> str:
    head = ["learner", "paid", "95% interval", "per episode", "regret", "95% interval", "best fixed", "bound", "seeds"]
    parts = []
    for i, key, rows in _by_setting(results, table):
        paid, each = apart(rows["paid"].to_list()), apart((rows["paid"] / rows["horizon"]).to_list())
        body = []
        for row, total, one in zip(rows.iter_rows(named=True), paid, each, strict=True):
            cells = [total, _interval(row["paid_low"], row["paid_high"]), one]
            cells += [number(row["regret"]), _interval(row["low"], row["high"])]
            cells += [number(row["comparator"]), number(row["bound"]), row["seeds"]]
            body.append(row_of(_learner(results, row["label"]), cells))
        parts.append(table_of(head, body, f"{setting_name(results, key)}{_unit(rows)}", i))
    note = (
        f'Means over seeds, the least paid first. {MEANING} "Best fixed" is what that policy would have paid. '
        '"Bound" is the guarantee on the regret, if the learner has one.'
    )
    if (table["paid"] < 0.0).any():
        note += " A negative cost is a profit."
    return "".join(parts) + f'<p class="note">{note}</p>'


def _interval(low: float | None, high: float | None) -> str:
    return "one seed" if low is None else f"{number(low)} to {number(high)}"


def _unit(rows: pl.DataFrame) -> str:
    """The unit of the amounts in a table, unless they are plain losses."""
    return "" if rows["unit"][0] == LOSS else f"; amounts in {rows['unit'][0]}"


def _pairs(results: Results, table: pl.DataFrame) -> str:
    found = results.comparisons(LEVEL)
    if found.is_empty():
        return "<p>There are no two learners to compare.</p>"
    ranks = {i: {label: r for r, label in enumerate(rows["label"])} for i, _, rows in _by_setting(results, table)}
    head = ["paid less", "than", "by", "95% interval", "less on", "of"]
    parts = []
    for i, key, rows in _by_setting(results, found):
        pairs = sorted(
            map(_turned, rows.iter_rows(named=True)), key=lambda pair: (ranks[i][pair[0]], ranks[i][pair[1]])
        )
        body = [row_of(_learner(results, one), cells, _learner(results, other)) for one, other, cells in pairs]
        unit = _unit(results.runs.join(rows.select(SETTING).head(1), on=SETTING))
        parts.append(table_of(head, body, f"{setting_name(results, key)}{unit}", i, texts=2))
    note = "Differences in what was paid, paired by seed. If an interval contains 0, either may pay less."
    return "".join(parts) + f'<p class="note">{note}</p>'


def _turned(row: dict[str, Any]) -> tuple[str, str, list[object]]:
    """Who paid less, than whom, and by how much."""
    one, other, sign, won = row["label"], row["other"], -1.0, row["won"]
    if row["difference"] > 0.0:
        one, other, sign, won = other, one, 1.0, 1.0 - won
    interval = "one seed"
    if row["low"] is not None:
        interval = " to ".join(number(end) for end in sorted((sign * row["low"], sign * row["high"])))
    return one, other, [number(abs(row["difference"])), interval, f"{won:.0%}", plural(row["seeds"], "seed")]


def _weights(results: Results) -> str:
    """The weights of the experts of each mixture in every setting; nothing if there is no mixture."""
    figures = []
    for i, key, rows in _by_setting(results, results.curves):
        for label in mixtures(rows):
            own = rows.filter(label=label)
            title = f"{label}: {setting_name(results, key)}, mean over {plural(own['seed'].n_unique(), 'seed')}"
            figures.append(weights_svg(*shares(own), title, i))
    if not figures:
        return ""
    note = (
        "The height of a layer is the weight of an expert in the mixture. Episodes are on a logarithmic axis. Experts "
        'with small weights are summed as others. The number after "x" is the pace of an expert: the larger it is, the '
        "more strongly the expert prefers what its losses make cheap."
    )
    head = '<h2 id="h-weights">Which experts the mixture follows</h2>'
    body = "".join(figures)
    return f'<section aria-labelledby="h-weights">{head}{body}<p class="note">{note}</p></section>'


def _flows(results: Results, table: pl.DataFrame) -> Iterator[str]:
    """For every setting, the two learners that paid least and the best fixed policy, as far as space allows."""
    room, left = MOST_FLOW, 0
    for i, _, rows in _by_setting(results, results.runs):
        ranked = table.join(rows.select(SETTING).unique(), on=SETTING, maintain_order="left")["label"].to_list()
        text = _flow(results, rows, ranked[: MOST_PICTURES - 1], i)
        if not text or len(text) > room:
            left += 1
            continue
        room -= len(text)
        yield text
    if left:
        yield f'<p class="note">The pictures of {plural(left, "setting")} are omitted: too large.</p>'
    yield flow_legend()


def _flow(results: Results, rows: pl.DataFrame, labels: Sequence[str], setting: int) -> str:
    """The last policies of these learners, and the best fixed one on the losses of the first; "" without data."""
    pictures: list[str] = []
    caption = ""
    for label in labels:
        run = rows.filter(label=label).row(0, named=True)
        frame, layers = results.flow(run["folder"]), results.manifest(run["folder"])["world"]["layers"]
        if frame is None:
            return ""
        learned, best = (frame[name].to_numpy() for name in ("q_learned", "q_best"))
        agree = shared_flow(learned, best, len(layers) - 1)
        name = escape(f"{label}: last policy, seed {run['seed']}")
        shown = [(name, learned, _look(results.labels.index(label)))]
        if not pictures:
            losses = f"the losses that {label} provoked" if run["reacts"] else "the same losses"
            shown.append((escape(f"best fixed policy on {losses}"), best, "best"))
            caption = f"{agree:.0%} of the flow of {escape(label)} agrees with the best fixed policy."
        ends = frame["state"].to_numpy(), frame["successor"].to_numpy()
        for said, q, style in shown:
            svg = flow_svg(layers, *ends, q, style, said)
            pictures.append(f"<div><p>{said}</p>{svg}{layer_marks(layers)}</div>")
    kind = "pair long" if len(layers) > LONG else "pair"  # a picture of many steps needs the whole width
    body = "".join(pictures)
    return f'<figure class="{kind}" data-setting="{setting}">{body}<figcaption>{caption}</figcaption></figure>'


def _certificates(table: pl.DataFrame) -> str:
    """The accuracy of all projections and comparators."""
    if table.is_empty():
        return "<p>No run is finished.</p>"
    projection, comparator = table["projection_gap"].max(), table["comparator_gap"].max()
    worst = table.group_by("label", maintain_order=True).agg(pl.max("projection_gap", "comparator_gap"))
    body = [row_of(escape(label), [exact(a), exact(b)]) for label, a, b in worst.iter_rows()]
    text = (
        f"Every projection was solved and is proven optimal to within {exact(projection)}. The best fixed policy, the "
        "comparator of regret, is "
        + (
            "exact."
            if comparator == 0.0
            else f"proven to pay at most a fraction {exact(comparator)} more than the optimum."
        )
    )
    head = ["learner", "largest gap of a projection", "largest gap of the comparator"]
    return f"<p>{text}</p>" + table_of(head, body, "The worst over all settings, seeds and episodes")


def _runs(results: Results) -> str:
    """Every run of the spec, unfinished ones first."""
    numbers = ["regret", "comparator", "bound", "epochs"]
    names = ["paid", "regret", "best fixed", "bound", "epochs"]
    head = ["learner", *names, "world", "losses", "episodes", "seed", "run"]
    body = []
    for row in results.missing.iter_rows(named=True):
        why = f"{STATES[row['state']]}{': ' if row['why'] else ''}{escape(row['why'])}"
        body.append(_run(row, f'<td class="why" colspan="{len(names)}">{why}</td>'))
    for row in in_units(results.runs).iter_rows(named=True):
        unit = "" if row["unit"] == LOSS else f" {escape(row['unit'])}"
        cells = [f"{number(row['paid'])}{unit}", *(number(row[name]) for name in numbers)]
        body.append(_run(row, "".join(f"<td>{cell}</td>" for cell in cells)))
    return table_of(head, body, f"{plural(len(body), 'run')}, each identified by the hash at its end")


def _run(row: dict[str, Any], cells: str) -> str:
    """The table row of a run: learner, result, setting and identity."""
    texts = "".join(f"<td>{escape(row[name])}</td>" for name in ("world", "losses"))
    head = f'<th scope="row" class="text">{escape(row["label"])}</th>'
    name = f"<td><code>{escape(row['folder'].rpartition('-')[2])}</code></td>"
    return f"<tr>{head}{cells}{texts}<td>{row['horizon']:,}</td><td>{row['seed']}</td>{name}</tr>"


def _manifest(results: Results) -> str:
    """Everything needed to reproduce the same bytes."""
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
        f'<p class="note">The same spec and versions give the same bytes with any number of processes.</p>'
    )


def _pre(text: str, name: str) -> str:
    return f'<pre tabindex="0" role="region" aria-label="{name}">{escape(text)}</pre>'


def _machine(manifest: dict[str, Any]) -> str:
    versions = {"advmdp": manifest["run"]["advmdp"], **manifest["versions"]}
    lines = [f"{name} {version}" for name, version in versions.items()]
    return "\n".join([*lines, f"on {manifest['machine']['system']} ({manifest['machine']['processor']})"])


def _data(results: Results) -> str:
    """The data of the curves as JSON; < is escaped, so that no text can end the script element."""
    places = {key: i for i, key in enumerate(results.settings.rows())}
    lines: dict[tuple[int, int], dict[str, Any]] = {}
    for column, bands in _bands(results):
        for (label, *key), part in bands.group_by(["label", *SETTING], maintain_order=True):
            place = places[tuple(key)], results.labels.index(str(label))
            line = lines.setdefault(place, {"setting": place[0], "learner": place[1], "bound": []})
            line |= {"t": part["episode"].to_list()} | ({} if column == "above" else {"seeds": part["seeds"][0]})
            if part["mean"].null_count() == 0:  # learners without confidence sets have no radii
                line[column] = [_rounded(part[name]) for name in ("mean", "low", "high")]
    given = in_units(results.curves).drop_nulls("bound").group_by(["label", *SETTING, "episode"], maintain_order=True)
    for label, *key, t, bound in given.agg(pl.max("bound")).iter_rows():
        lines[places[tuple(key)], results.labels.index(label)]["bound"].append([t, bound])
    measures = [{"key": key, "name": name, "about": about} for key, name, about in MEASURES]
    units = {places[key]: part["unit"][0] for key, part in results.runs.group_by(SETTING, maintain_order=True)}
    reacts = {places[key]: part["reacts"].any() for key, part in results.runs.group_by(SETTING, maintain_order=True)}
    about: dict[str, Any] = {
        "level": f"{LEVEL:.0%}",
        "measures": measures,
        "lines": list(lines.values()),
        "reacting": REACTING,
    }
    about |= {"units": ["" if units.get(i, LOSS) == LOSS else units[i] for i in places.values()]}
    about |= {"reacts": [bool(reacts.get(i)) for i in places.values()]}
    return json.dumps(about, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _bands(results: Results) -> Iterator[tuple[str, pl.DataFrame]]:
    """The curves by name, each with mean and interval; "paid" is for the legend."""
    yield "paid", results.paid(LEVEL)
    yield "each", results.paid(LEVEL, each=True)
    yield "above", results.above(LEVEL)
    for column, _, _ in MEASURES[2:]:
        yield column, results.regret(LEVEL, of=column)


def _rounded(values: pl.Series) -> list[float | None]:
    """To five digits, more than a screen shows."""
    return [None if value is None else float(f"{value:.5g}") for value in values]


def _by_setting(results: Results, frame: pl.DataFrame) -> Iterator[tuple[int, tuple[Any, ...], pl.DataFrame]]:
    """The number of each setting, the setting, and its rows; settings without rows are skipped."""
    parts = frame.partition_by(SETTING, as_dict=True, maintain_order=True) if len(frame) else {}
    for i, key in enumerate(results.settings.rows()):
        if key in parts:
            yield i, key, parts[key]


def _learner(results: Results, label: str) -> str:
    return f'<span class="dot {_look(results.labels.index(label))}"></span>&#8288;{escape(label)}'
