"""The report in a real browser: what it draws, what its switches do, that it fits, and that it needs no network."""

import json
import re
import shutil
import tomllib
from collections.abc import Iterator
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest

import advmdp as am
from advmdp.core.errors import InputError
from advmdp.experiments.findings import findings
from advmdp.experiments.report import report, write_report
from advmdp.experiments.runs import runs_of
from advmdp.experiments.spec import checked_spec
from advmdp.experiments.toml_text import toml_text
from advmdp.game.ledger import marks
from advmdp.plot.shares import shares
from advmdp.scenarios import make_scenario
from advmdp.web import pages
from tests.helpers.browser import TEXTS, all_of, contrast, in_browser, luminance, show, started
from tests.helpers.damage import unsealed
from tests.helpers.stores import HTML, WHY, Played, make_store, small_spec

WIDTHS = (390, 1366)


@pytest.fixture(scope="session")
def page(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(store, tmp_path_factory.mktemp("page") / "page.html")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with started(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def opened(browser: Any, page: Path) -> Any:
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    show(browser, page, 1366)
    return browser


def choose(browser: Any, measure: str) -> None:
    from selenium.webdriver.support.ui import Select

    Select(browser.find_element("id", "measure")).select_by_visible_text(measure)


def shape(browser: Any, learner: int) -> str:
    d: str = browser.find_element("css selector", f'.curve[data-learner="{learner}"]').get_attribute("d")
    return d


@in_browser
def test_it_loads_without_errors_or_network_requests(opened: Any, page: Path) -> None:
    opened.get("about:blank")
    opened.get_log("performance")  # what the browser did for itself
    show(opened, page, 1366)
    assert opened.get_log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in opened.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert page.as_uri() in asked
    assert all(url.startswith(("file:", "data:")) for url in asked), asked
    assert opened.execute_script("return performance.getEntriesByType('resource').length") == 0


@in_browser
def test_curves_are_drawn_where_the_numbers_are(opened: Any, store: Path) -> None:
    assert len(all_of(opened, ".curve")) == len(all_of(opened, ".band")) == 3
    part = am.Results(store).only(losses="switching", horizon=40).above()
    ends = [part.filter(label=label, episode=40)["mean"][0] for label in ("UCOREPS", "narrow", HTML)]
    drawn = [float(shape(opened, i).split()[-1]) for i in range(3)]
    # On a linear axis heights and numbers are one line.
    slope = (drawn[2] - drawn[0]) / (ends[2] - ends[0])
    assert min(ends) == 0.0  # the least is where the others are measured from
    assert slope < 0
    assert drawn[1] == pytest.approx(drawn[0] + slope * (ends[1] - ends[0]), abs=0.3)


@in_browser
def test_a_learner_is_switched_off_and_on_by_keyboard(opened: Any) -> None:
    boxes = all_of(opened, "#learners input")
    opened.execute_script("arguments[0].focus()", boxes[1])
    boxes[1].send_keys(" ")
    assert [one.get_attribute("data-learner") for one in all_of(opened, ".curve")] == ["0", "2"]
    for box in (boxes[0], boxes[2]):
        box.send_keys(" ")
    assert all_of(opened, ".curve") == []
    assert "No selected learner" in opened.find_element("id", "caption").text
    boxes[1].send_keys(" ")
    assert [one.get_attribute("data-learner") for one in all_of(opened, ".curve")] == ["1"]
    assert opened.get_log("browser") == []


@in_browser
def test_logarithmic_axes(opened: Any) -> None:
    choose(opened, "regret")
    before, ticks = shape(opened, 2), [one.text for one in all_of(opened, "#chart text")]
    opened.find_element("id", "log").click()
    assert shape(opened, 2) != before
    assert [one.text for one in all_of(opened, "#chart text")] != ticks
    points = re.findall(r"[-\d.]+ [-\d.]+", opened.find_element("css selector", ".guide").get_attribute("d"))
    (x0, y0), (x1, y1), (x2, y2) = (map(float, points[i].split()) for i in (20, 40, 60))
    assert (y1 - y0) / (x1 - x0) == pytest.approx((y2 - y1) / (x2 - x1), rel=0.05)  # sqrt(T) is a line
    opened.find_element("id", "linear").click()
    assert shape(opened, 2) == before
    assert opened.get_log("browser") == []


@in_browser
def test_settings_measures_and_bounds_can_be_chosen(opened: Any) -> None:
    from selenium.webdriver.support.ui import Select

    assert Select(opened.find_element("id", "measure")).first_selected_option.text == "paid above the least"
    assert not opened.find_element("id", "bound").is_displayed()  # which is one of regret
    choose(opened, "regret")
    before = shape(opened, 0)
    assert len(all_of(opened, ".pair:not([hidden])")) == 1
    for value in ("3", "2"):
        Select(opened.find_element("id", "setting")).select_by_value(value)
        assert shape(opened, 0) != before
        assert len(all_of(opened, ".pair:not([hidden]) .flow")) == 3
    regret = shape(opened, 0)
    choose(opened, "R^ON")
    assert shape(opened, 0) != regret
    choose(opened, "regret")
    assert all_of(opened, ".bound") == []
    opened.find_element("id", "bound").click()
    assert len(all_of(opened, ".bound")) == 1
    assert opened.get_log("browser") == []


@in_browser
def test_values_are_read_off_by_slider(opened: Any, store: Path) -> None:
    slider = opened.find_element("id", "at")
    part = am.Results(store).only(losses="switching", horizon=40)
    paid, above = part.paid().filter(label="narrow")["mean"], part.above().filter(label="narrow")["mean"]
    assert opened.find_element("id", "episode").text == "40"
    for place in (-1, -2):
        shown = opened.find_element("css selector", '#learners output[data-learner="1"]').text
        numbers = re.fullmatch(r"([\d.]+) \(([+−])([\d.]+)\)", shown)
        assert numbers, shown
        assert float(numbers[1]) == pytest.approx(paid[place], rel=0.01), place
        assert float(numbers[3]) == pytest.approx(abs(above[place]), rel=0.01), place
        assert (numbers[2] == "−") == (above[place] < 0)
        slider.send_keys("\ue012")  # the arrow to the left


@in_browser
@pytest.mark.parametrize("width", WIDTHS)
def test_the_steps_of_a_long_world_are_distinguishable(browser: Any, tmp_path: Path, width: int) -> None:
    world = {"kind": "random", "layers": [1, *[3] * 24, 1], "actions": 2}
    one = {"worlds": [world], "losses": [{"kind": "stochastic"}], "learners": [{"name": "Uniform"}], "horizons": [5]}
    store = make_store(tmp_path / "out", small_spec(1, **one))
    show(browser, write_report(store), width)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    wide = "return [...document.querySelectorAll('.pair .flow')].map(e => e.getBoundingClientRect().width / 25)"
    assert min(browser.execute_script(wide)) > 30.0


@in_browser
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_the_screen(browser: Any, page: Path, width: int) -> None:
    show(browser, page, width)
    assert browser.execute_script("return window.innerWidth") == width
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    over = browser.execute_script(
        "return [...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll, pre, svg')"
        " && e.getBoundingClientRect().right > innerWidth + 0.5).map(e => e.outerHTML.slice(0, 80))"
    )
    assert over == []
    choose(browser, "regret")
    browser.find_element("id", "log").click()
    browser.find_element("id", "bound").click()
    cut = browser.execute_script(
        "const box = document.getElementById('chart').getBoundingClientRect();"
        "return [...document.querySelectorAll('#chart text')].map(e => [e.textContent, e.getBoundingClientRect()])"
        ".filter(([_, r]) => r.left < box.left || r.right > box.right || r.bottom > box.bottom).map(([t]) => t)"
    )
    assert cut == []
    small = "return Math.min(...[...document.querySelectorAll('p, li, td, th, label, text')]"
    assert browser.execute_script(small + ".map(e => parseFloat(getComputedStyle(e).fontSize)))") >= 12


STROKES = """
return [...document.querySelectorAll('.curve')].map((e) => [getComputedStyle(e).stroke,
  getComputedStyle(document.body).backgroundColor]);
"""


@in_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_in_light_and_dark(opened: Any, page: Path, scheme: str) -> None:
    feature = {"name": "prefers-color-scheme", "value": scheme}
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    show(opened, page, 1366)
    paper = opened.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (luminance(paper) < 0.05) == (scheme == "dark")
    texts = opened.execute_script(TEXTS)
    assert len(texts) > 100
    for what, ink, behind in texts:
        assert contrast(ink, behind) >= 4.5, what
    for stroke, behind in opened.execute_script(STROKES):
        assert contrast(stroke, behind) >= 3.0


@in_browser
def test_text_of_the_spec_and_of_errors_is_text(opened: Any) -> None:
    names = [one.text for one in all_of(opened, "#learners .name")]
    assert names == ["UCOREPS", "narrow", HTML]
    assert opened.title == opened.find_element("tag name", "h1").text == "small & <i>sweet</i>"
    assert WHY in opened.find_element("css selector", "td.why").text
    assert len(all_of(opened, "script")) == 2
    assert all_of(opened, "h1 i") == all_of(opened, "td b") == []


@in_browser
def test_every_control_has_a_label_and_headings_are_nested(opened: Any) -> None:
    for one in all_of(opened, "input, select, [tabindex], svg[role=img]"):
        assert not one.is_displayed() or one.accessible_name.strip(), one.get_attribute("outerHTML")[:80]
    levels = [int(one.tag_name[1]) for one in all_of(opened, "h1, h2, h3")]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_every_run_is_in_it_and_the_failed_one_says_why(store: Path) -> None:
    text = report(am.Results(store))
    for frame in (am.Results(store).runs, am.Results(store).missing):
        for folder in frame["folder"]:
            assert folder.rpartition("-")[2] in text
    assert "47 of 48 runs finished (1 failed)" in text
    assert "&lt;b&gt;no&lt;/b&gt; &amp; never" in text
    assert HTML not in text


def test_the_spec_in_it_gives_the_same_runs(store: Path) -> None:
    again = checked_spec(tomllib.loads(toml_text(am.Results(store).spec)), "spec", Path())
    assert [run.identity for run in runs_of(again)] == [run.identity for run in runs_of(small_spec())]
    odd = {"name": 'a "b" \\ \x7f ü\n', "x": 1e-20, "many": [True, 2], "part": {"k é": {"z": [1.5]}, "gone": None}}
    assert tomllib.loads(toml_text(odd)) == {**odd, "part": {"k é": {"z": [1.5]}}}


def test_the_same_store_gives_the_same_report(store: Path, tmp_path: Path) -> None:
    one, two = write_report(store, tmp_path / "a.html"), write_report(store, tmp_path / "b.html")
    assert one.read_bytes() == two.read_bytes()
    assert len(one.read_bytes()) < 500_000


def test_the_report_goes_into_the_store_unless_said(tmp_path: Path) -> None:
    root = make_store(tmp_path / "one", small_spec(seeds=1, horizons=[10]))
    assert write_report(root) == root / "report.html"
    text = (root / "report.html").read_text()
    assert "One seed cannot show" in text
    with pytest.raises(InputError, match="no such folder"):
        write_report(tmp_path / "none")


def test_a_report_without_finished_runs_says_so(store: Path, tmp_path: Path) -> None:
    shutil.copy(store / "experiment.json", tmp_path)
    assert "No run is finished" in write_report(tmp_path).read_text()


def sentences(root: Path, paid: dict[str, list[float]]) -> tuple[str, str]:
    """The findings of a store in which these amounts were paid."""
    results = am.Results(root)
    values = [paid[row["label"]][row["seed"]] for row in results.runs.iter_rows(named=True)]
    results.runs = results.runs.with_columns(paid=pl.Series(values, dtype=pl.Float64))
    headline, items = findings(results, results.table(), 0.95)
    return headline, items[0][1]


def test_sentences_say_what_the_numbers_do(tmp_path: Path) -> None:
    losses = [{"kind": "stochastic"}]
    learners = [{"name": "Uniform", "label": "a"}, {"name": "ReplayLast", "label": "b"}]
    spec = small_spec(seeds=12, horizons=[2], losses=losses, learners=learners)
    root = make_store(tmp_path / "twelve", spec)
    level = [float(i) for i in range(12)]
    _, text = sentences(root, {"a": [100 + x for x in level], "b": [50 + x for x in level]})
    assert text.startswith("b paid the least: 55.5 on average over 12 seeds (95% interval")
    assert "That is 50 (47.4%) less than a, the next (interval 50 to 50), and less on 12 of 12 seeds." in text
    assert "Its lead over every other learner is larger than the variation between seeds. Its regret" in text
    swapped = [x + (1 if i % 2 else -1) for i, x in enumerate(level)]
    _, text = sentences(root, {"a": level, "b": [x + 0.01 for x in swapped]})
    assert "12 seeds are too few to tell it from b." in text


def test_the_headline_says_once_how_sure_all_leads_are(tmp_path: Path) -> None:
    losses = [{"kind": "stochastic"}, {"kind": "switching", "period": 1}]
    learners = [{"name": "Uniform", "label": "a"}, {"name": "ReplayLast", "label": "b"}]
    root = make_store(tmp_path / "s", small_spec(seeds=3, horizons=[2], losses=losses, learners=learners))
    headline, text = sentences(root, {"a": [100.0, 101.0, 102.0], "b": [50.0, 51.5, 52.0]})
    sure = "All leads are larger than the variation between seeds, but 3 seeds are too few to be sure."
    assert headline == f"b paid least on all 2 kinds of losses. {sure}"
    assert "seeds are" not in text
    assert "variation" not in text
    headline, text = sentences(root, {"a": [50.0, 61.0, 52.0], "b": [51.0, 51.5, 62.0]})
    assert headline.endswith("No lead over all other learners is larger than the variation between seeds.")
    assert "3 seeds are too few to tell it from" in text


def test_many_settings_can_be_unfolded(tmp_path: Path) -> None:
    losses = [{"kind": "stochastic", "noise": noise / 10} for noise in range(8)]
    text = report(am.Results(make_store(tmp_path / "many", small_spec(seeds=1, horizons=[2], losses=losses))))
    assert "<summary>2 more settings</summary>" in text
    assert "stochastic (noise 0.7) losses, 2 episodes" in text


def test_only_seeds_finished_by_all_learners_are_compared() -> None:
    hard = [10.0, 20.0, 1000.0, 2000.0]
    games = {"a": [Played(s, hard[s] + 5) for s in (0, 1)], "b": [Played(s, hard[s]) for s in range(4)]}
    results = am.Results.of_games(games)
    _, ((_, text),) = findings(results, results.table(), 0.95)
    assert text.startswith("b paid the least: 15 on average over 2 seeds")
    assert "That is 5 (25.0%) less than a" in text
    assert text.endswith("This counts only the 2 seeds that all learners have finished.")


@in_browser
def test_a_long_label_wraps(browser: Any, tmp_path: Path) -> None:
    learners = [{"name": "Uniform", "label": "W" * 120}, {"name": "ReplayLast"}]
    page = write_report(make_store(tmp_path / "long", small_spec(seeds=2, horizons=[2], learners=learners)))
    for width in (1366, 390):
        show(browser, page, width)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        wide = "return [...document.querySelectorAll('ul.findings li')].every((e) => e.scrollWidth <= e.clientWidth)"
        assert browser.execute_script(wide)


def test_an_imprecise_best_policy_is_mentioned(tmp_path: Path) -> None:
    def text(gap: float) -> str:
        results = am.Results.of_games({"a": [Played(s, 10.0) for s in (0, 1)], "b": [Played(s, 20.0) for s in (0, 1)]})
        table = results.table().with_columns(comparator=pl.lit(1000.0), comparator_gap=pl.lit(gap))
        _, ((_, said),) = findings(results, table, 0.95)
        return said

    assert "is only proven to within 2, so regrets may be larger by that much." in text(2e-3)
    assert "proven" not in text(1e-4)


MIXED = [
    {"name": "SelfTuning"},
    {"name": "ReplayLast"},
    {"name": "UCOREPS"},
    {"name": "FollowLeader"},
    {"name": "Uniform"},
]


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Switching losses, against which some learners pay many times as much as others."""
    losses = [{"kind": "switching", "period": 50}]
    spec = small_spec(seeds=3, horizons=[400], losses=losses, learners=MIXED)
    return make_store(tmp_path_factory.mktemp("mixed") / "out", spec)


@in_browser
def test_the_scale_separates_the_best_whatever_the_worst_pays(browser: Any, mixed: Path) -> None:
    show(browser, write_report(mixed), 1366)
    results = am.Results(mixed)
    order = [results.labels.index(label) for label in results.table()["label"]]
    box = browser.execute_script(
        "const r = document.querySelector('#inside rect'); return [+r.getAttribute('y'), +r.getAttribute('height')]"
    )
    ends = [float(shape(browser, i).split()[-1]) for i in order]
    assert abs(ends[0] - ends[1]) > 0.05 * box[1]
    assert all(box[0] <= end <= box[0] + box[1] for end in ends[:2])
    assert ends[-1] < box[0]
    caption = browser.find_element("id", "caption").text
    assert "Outside the picture at the end" in caption
    assert results.labels[order[-1]] in caption
    browser.find_element("id", "all").click()
    assert all(box[0] <= float(shape(browser, i).split()[-1]) <= box[0] + box[1] for i in order)
    assert "Outside the picture" not in browser.find_element("id", "caption").text


@in_browser
def test_the_guide_ends_at_the_best_learner(browser: Any, mixed: Path) -> None:
    show(browser, write_report(mixed), 1366)
    choose(browser, "regret")
    browser.find_element("id", "all").click()
    regret = am.Results(mixed).table()["regret"].to_list()
    assert max(regret) > 3 * min(one for one in regret if one > 0)
    labels = am.Results(mixed).table().filter(pl.col("regret") > 0).sort("regret")["label"]
    end = browser.find_element("css selector", ".guide").get_attribute("d").split()[-1]
    assert float(end) == pytest.approx(
        float(shape(browser, am.Results(mixed).labels.index(labels[0])).split()[-1]), abs=0.2
    )


@in_browser
@pytest.mark.parametrize("width", WIDTHS)
def test_the_weights_of_a_mixture_are_drawn_with_their_names(browser: Any, mixed: Path, width: int) -> None:
    show(browser, write_report(mixed), width)
    assert browser.get_log("browser") == []
    figures = all_of(browser, "figure.weights")
    assert len(figures) == 1
    names = [one.text for one in all_of(browser, "figure.weights .legend li")]
    areas = all_of(browser, "figure.weights .area")
    assert len(names) == len(areas) == 8
    assert names[0] == "others"
    size = browser.execute_script(
        "const r = arguments[0].getBoundingClientRect(); return [r.width, r.height]", areas[0]
    )
    assert size[0] == pytest.approx(browser.find_element("css selector", ".shares").rect["width"], abs=2)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    cut = (
        "const box = document.querySelector('.shares').getBoundingClientRect();"
        "return [...document.querySelectorAll('.shares text')].every((e) => { const r = e.getBoundingClientRect();"
        "return r.left >= box.left - 1 && r.right <= box.right + 1; })"
    )
    assert browser.execute_script(cut)


def test_the_weights_that_are_drawn_are_the_means(mixed: Path) -> None:
    curves = am.Results(mixed).curves.filter(label="SelfTuning")
    episodes, layers = shares(curves)
    assert episodes == marks(400).tolist()
    np.testing.assert_allclose(sum(layers.values()), 1.0)
    for name in list(layers)[:-1]:
        values = curves[f"weight_{name}"].to_numpy().reshape(3, -1)
        np.testing.assert_allclose(layers[name], values.mean(axis=0))
    text = report(am.Results(mixed))
    assert "Which experts the mixture follows" in text
    assert 'The number after "x" is the pace' in text
    assert "SelfTuning: switching losses, 400 episodes, mean over 3 seeds" in text


def test_without_a_mixture_there_are_no_weights(store: Path) -> None:
    assert "Which experts the mixture follows" not in report(am.Results(store))


@in_browser
@pytest.mark.parametrize("width", WIDTHS)
def test_three_flows_are_labelled_and_have_a_legend(browser: Any, mixed: Path, width: int) -> None:
    show(browser, write_report(mixed), width)
    assert len(all_of(browser, ".pair .flow")) == 3
    names = [one.text for one in all_of(browser, ".pair p")]
    best, second = am.Results(mixed).table()["label"][:2]
    assert names == [
        f"{best}: last policy, seed 0",
        "best fixed policy on the same losses",
        f"{second}: last policy, seed 0",
    ]
    assert [one.text for one in all_of(browser, ".pair .layers")] == ["layer 0\n1\n2\n3"] * 3
    legend = " ".join(one.text for one in all_of(browser, "#h-flow ~ .legend li"))
    for word in ("a state", "flow between two states", "best fixed policy"):
        assert word in legend


@in_browser
@pytest.mark.parametrize("width", WIDTHS)
def test_tables_scroll_but_their_first_column_stays(browser: Any, mixed: Path, width: int) -> None:
    show(browser, write_report(mixed), width)
    for box in all_of(browser, ".scroll"):
        if not box.is_displayed():
            continue
        inner = browser.execute_script("arguments[0].scrollLeft = 1e4; return arguments[0].scrollWidth", box)
        left, first = browser.execute_script(
            "return [arguments[0].getBoundingClientRect().left,"
            " arguments[0].querySelector('tbody th').getBoundingClientRect().left]", box,
        )  # fmt: skip
        assert first == pytest.approx(left, abs=2)
        assert width < 600 or inner <= box.rect["width"]  # on a laptop everything fits


@in_browser
def test_a_shadow_shows_on_a_phone_that_a_table_scrolls(browser: Any, mixed: Path) -> None:
    from matplotlib.image import imread

    def edge(box: Any) -> float:
        """The brightness of the right edge, between the head and the last row."""
        image = imread(BytesIO(box.screenshot_as_png))[:, :, :3]
        return float(np.median(image[90:-20, -5].mean(axis=1)))

    show(browser, write_report(mixed), 390)
    (box,) = all_of(browser, "#h-runs ~ .scroll")
    before = edge(box)
    browser.execute_script("arguments[0].scrollLeft = 1e4", box)
    assert before < edge(box) - 0.05


def test_a_long_table_says_how_many_rows_it_has() -> None:
    rows = [pages.row(str(i), [i]) for i in range(75)]
    assert "<span>All runs (scroll for all 75)</span>" in pages.table(["run", "number"], rows, "All runs")
    assert "scroll for all" not in pages.table(["run", "number"], rows[:15], "All runs")


def test_a_scenario_is_reported_in_its_units(tmp_path: Path) -> None:
    """What was paid is the scenario's money, worked out from the losses; and so is regret."""
    world = {"kind": "scenario", "name": "battery", "hours": 4}
    one = {"worlds": [world], "losses": [{"kind": "own"}], "learners": [{"name": "ReplayLast"}, {"name": "Uniform"}]}
    results = am.Results(make_store(tmp_path / "battery", small_spec(2, **one, horizons=[30])))
    scenario = make_scenario("battery", hours=4)
    for row in results.runs.iter_rows(named=True):
        assert row["paid"] == pytest.approx(scenario.money(row["loss"], 30))
        assert row["unit"] == "money"
    table, plain = results.table(), results.runs.group_by("label").agg(pl.col("regret", "comparator").mean())
    for label, regret, best in plain.iter_rows():
        row = table.filter(label=label).row(0, named=True)
        assert row["regret"] == pytest.approx(scenario.scale * regret)
        assert row["comparator"] == pytest.approx(scenario.money(best, 30))
        assert row["paid"] - row["comparator"] == pytest.approx(row["regret"])
    text = report(results)
    end, _, pairs = text.partition(">Pairwise comparisons<")
    assert "amounts in money" in end
    assert "amounts in money" in pairs
    assert re.search(r"paid the least: -?[\d.]+ money on average", text)
    others = am.Results(make_store(tmp_path / "other", small_spec(1, **one | {"losses": [{"kind": "stochastic"}]})))
    assert others.runs["unit"].unique().to_list() == ["loss"]  # whose losses are nobody's money


def test_stores_without_units_can_be_read(mixed: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    shutil.copytree(mixed, old)
    for path in old.glob("runs/*/manifest.json"):
        unsealed(path)
        about = json.loads(path.read_text())
        about = {key: value for key, value in about.items() if key != "reacts"}
        result = {name: value for name, value in about["result"].items() if not name.startswith("weight_")}
        path.write_text(json.dumps(about | {"result": result}))
        curve = path.with_name("curve.parquet")  # nor were there weights
        pl.read_parquet(curve).drop(cs.starts_with("weight_")).write_parquet(curve)
    now, then = am.Results(mixed), am.Results(old)
    assert then.table().equals(now.table())
    assert "Which experts the mixture follows" not in report(then)
