"""The site builds without a warning, its links work, it fetches nothing, and its notebooks run."""

import re
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.helpers import ROOT
from tests.helpers.browser import all_of, contrast, in_browser, show, started

pytest.importorskip("sphinx", reason="no Sphinx; to run them: pip install 'advmdp[docs]'")
pytest.importorskip("myst_parser", reason="no MyST parser; to run them: pip install 'advmdp[docs]'")

from tools.site.math_svg import svg
from tools.site.notebooks import cells_of, ipynb_of, markdown_of, run
from tools.site.public_names import FENCE, groups

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.nb.py"))


class Page(HTMLParser):
    """The links of a page, what it loads, and the places in it that links can lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag in ("link", "script", "img", "iframe") and given.get("rel") != "canonical":
            self.loads += [given[name] for name in ("href", "src") if name in given]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-c", "docs", "-d", str(out / "trees")]
    done = subprocess.run([*command, ".", str(out / "html")], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out / "html"


@pytest.mark.slow
def test_the_site_builds_links_lead_somewhere_and_nothing_is_fetched(site: Path) -> None:
    pages = {path: Page(path.read_text()) for path in site.rglob("*.html")}
    assert len(pages) > 40
    for path, page in pages.items():
        for target in page.loads:
            file = path.parent / unquote(target.split("?")[0])
            assert target.startswith(("data:", "#")) or file.exists(), (path, target)
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            name, _, place = link.partition("#")
            goal = (path.parent / unquote(name)).resolve() if name else path
            assert goal.exists(), (path, link)
            assert not place or goal not in pages or unquote(place) in pages[goal].places, (path, link)
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(\s*['\"]?(https?:)?//", style.read_text()), style


@pytest.mark.slow
def test_every_page_of_the_repository_and_every_public_name_is_on_the_site(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        assert (site / page.relative_to(ROOT)).with_suffix(".html").exists(), page
    for group, names in groups().items():
        text = (site / "docs" / "api" / f"{group}.html").read_text()
        for name in names:
            assert f'id="advmdp.{name}"' in text, name
    assert "SelfTuning" in (site / "searchindex.js").read_text()


def test_every_group_of_names_has_a_page() -> None:
    shown = [name for page in (ROOT / "docs" / "api").glob("*.md") for name in FENCE.findall(page.read_text())]
    assert sorted(shown) == sorted(groups())


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cells = run(path.read_text(), path.name)
    assert cells[0].markdown
    assert cells[0].source.startswith("# ")
    assert any(cell.figures for cell in cells)
    assert '"nbformat": 4' in ipynb_of(cells)


def test_notebooks_show_what_cells_print_return_and_draw() -> None:
    text = "# %% [markdown]\n# # Title\n#\n# Text\n# %%\nx = 3\nprint('<b>')\nx + 1\n# %%\nx + 2;\n"
    cells = run(text, "example")
    assert [cell.shown for cell in cells] == ["", "4", "5"]
    assert cells[1].printed == "<b>\n"
    page = markdown_of(cells, "example")
    assert page.startswith("# Title\n\nText\n")
    assert "&lt;b&gt;" in page
    with pytest.raises(ZeroDivisionError):
        run("# %%\n1 / 0\n", "broken")
    with pytest.raises(ValueError, match="begins with"):
        cells_of("x = 1\n")


def test_formulas_become_pictures_that_fit_the_text() -> None:
    drawn = svg(r"\sum_{t=1}^T \langle q_t, \ell_t \rangle \le O(L|X|\sqrt{|A|T})", False)
    assert drawn.startswith("<svg")
    assert "currentColor" in drawn
    assert "<symbol" not in drawn  # identifiers would clash on one page
    assert svg("x", True) != svg("y", True)


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.name)
def test_displayed_formulas_fit_the_column_and_repository_browsers_leave_them_alone(path: Path) -> None:
    """A column has 46 em.

    Browsers of repositories take ``}_x`` for emphasis, but not ``}_ x``, and ``\\,`` for a comma.
    """
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
    for display, inline in re.findall(r"\$\$(.+?)\$\$|\$([^$\n]+)\$", text):
        assert not re.search(r"[^\w\s]_\S|\\[^A-Za-z]|\*", display or inline), display or inline
        if display:
            drawn = re.search(r' width="([\d.]+)em"', svg(display, False))
            assert drawn, display
            assert float(drawn.group(1)) < 44, display


@in_browser
@pytest.mark.slow
def test_pages_fit_phone_and_laptop_and_search_works_from_the_disk(site: Path, tmp_path: Path) -> None:
    with started(tmp_path / "profile") as browser:
        for width in (390, 1366):
            for name in ("index", "learners", "api/learners", "notebooks/theorem", "howto/choose", "selftuning"):
                show(browser, site / "docs" / f"{name}.html", width)
                assert browser.execute_script("return document.documentElement.scrollWidth") <= width, (name, width)
        browser.get(f"{(site / 'search.html').as_uri()}?q=SelfTuning")
        found = until(browser, "#search-results li a")
        assert any("selftuning" in one.get_attribute("href") for one in found)
        errors = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
        assert errors == []


COLOURS = """
const found = {}, page = getComputedStyle(document.body);
for (const part of document.querySelectorAll("article p, article td, .highlight span[class]")) {
    if (!part.textContent.trim()) continue;
    let behind = part;
    while (behind && getComputedStyle(behind).backgroundColor.startsWith("rgba")) behind = behind.parentElement;
    const under = behind ? getComputedStyle(behind).backgroundColor : "rgb(255, 255, 255)";
    found[getComputedStyle(part).color + " on " + under] = part.textContent;
}
return found;
"""


@in_browser
@pytest.mark.slow
def test_text_and_code_are_readable_and_figures_fit_light_and_dark_pages(site: Path, tmp_path: Path) -> None:
    with started(tmp_path / "profile") as browser:
        for scheme, paper in (("light", "255, 255, 255"), ("dark", "19, 20, 22")):
            media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
            for name in ("learners", "regret", "experiments"):
                show(browser, site / "docs" / f"{name}.html", 1366)
                colours = browser.execute_script(COLOURS)
                assert any(paper in pair for pair in colours), (scheme, name, colours)
                for pair, text in colours.items():
                    assert contrast(*pair.split(" on ")) >= 4.5, (scheme, name, pair, text)
                for figure in all_of(browser, "article img"):
                    assert figure.value_of_css_property("filter").startswith("invert") == (scheme == "dark"), name


def until(browser: Any, selector: str, seconds: float = 20.0) -> list[Any]:
    """What is on the page as soon as it is there."""
    end = time.monotonic() + seconds
    while not (found := all_of(browser, selector)) and time.monotonic() < end:
        time.sleep(0.1)
    return found
