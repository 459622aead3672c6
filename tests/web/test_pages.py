"""Pages, read back by the parser of the standard library, and their content security policy."""

from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

from advmdp.web.pages import row, table, whole_page

ODD = "<b>a & \"b\"</b> 'c'"


class Read(HTMLParser):
    """The elements of a page: (tag, attributes, text directly in it)."""

    VOID = ("meta", "input", "br", "link", "img")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[list] = []
        self.open: list[list] = []
        self.feed(page)
        assert self.open == [], "elements that are not closed"

    def handle_starttag(self, tag: str, attributes: list) -> None:
        self.found.append([tag, dict(attributes), ""])
        if tag not in self.VOID:
            self.open.append(self.found[-1])

    def handle_startendtag(self, tag: str, attributes: list) -> None:
        self.found.append([tag, dict(attributes), ""])

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.open[-1][2] += data

    def all(self, tag: str) -> list[tuple[dict, str]]:
        return [(attributes, text) for name, attributes, text in self.found if name == tag]


def test_text_in_a_table_is_text() -> None:
    read = Read(table(["learner", ODD], [row("a", [1, 2.5])], ODD))
    assert read.all("b") == []
    assert [text for _, text in read.all("span")] == [ODD]  # in the caption
    assert read.all("div")[0][0]["aria-label"] == ODD
    assert [text for _, text in read.all("th")] == ["learner", ODD, "a"]
    assert [text for _, text in read.all("td")] == ["1", "2.5"]


@pytest.mark.parametrize(("texts", "kinds"), [(1, ["text", None, None]), (2, ["text", "text", None])])
def test_a_table_is_read_aloud_and_scrolled_by_keyboard(texts: int, kinds: list) -> None:
    read = Read(table(["a", "b", "c"], [row("x", ["1"], second="y")], "shown", setting=3, texts=texts))
    region = read.all("div")[0][0]
    assert (region["tabindex"], region["role"], region["data-setting"]) == ("0", "region", "3")
    heads = [attributes for attributes, _ in read.all("th")]
    assert [one.get("scope") for one in heads] == ["col", "col", "col", "row"]
    assert [one.get("class") for one in heads[:3]] == kinds
    assert [(one.get("class"), text) for one, text in read.all("td")] == [("text", "y"), (None, "1")]


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A page whose sections, style and script are in a package of the test."""
    folder = tmp_path / "own_pages" / "page"
    folder.mkdir(parents=True)
    (tmp_path / "own_pages" / "__init__.py").touch()
    (folder / "page.html").write_text("<main>$content</main>")
    (folder / "page.css").write_text("main { color: red }")
    (folder / "page.js").write_text("document.title += ' ü';")
    monkeypatch.syspath_prepend(tmp_path)
    return whole_page("own_pages.page", ODD, "about", "summary", '{"a": 1}', content="<p>here</p>")


def test_a_page_has_its_parts_and_its_title_is_text(page: str) -> None:
    read = Read(page)
    assert ODD in [text for _, text in read.all("title")]
    assert read.all("b") == []
    assert [text for _, text in read.all("p") if text == "here"] == ["here"]
    assert [text for attributes, text in read.all("script") if attributes.get("id") == "data"] == ['{"a": 1}']


def test_the_policy_of_a_page_admits_its_own_script_and_style_and_nothing_else(page: str) -> None:
    read = Read(page)
    (policy,) = [one["content"] for one, _ in read.all("meta") if one.get("http-equiv") == "Content-Security-Policy"]
    rules = {words[0]: words[1:] for words in (rule.split() for rule in policy.split(";")) if words}
    assert rules["default-src"] == ["'none'"]
    (style,) = [text for _, text in read.all("style")]
    (script,) = [text for attributes, text in read.all("script") if "id" not in attributes]
    assert style.endswith("main { color: red }")
    for kind, text in (("style-src", style), ("script-src", script)):
        assert rules[kind] == [f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"]
    outside = [value for _, attributes, _ in read.found for key, value in attributes.items() if key in ("src", "href")]
    assert [one for one in outside if not one.startswith(("#", "data:"))] == []
