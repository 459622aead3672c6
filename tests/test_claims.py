"""No text claims that a learner saves something because its regret is small.

Regret compares a learner with the best fixed policy on the losses that it met.  If losses react, each learner meets its
own losses, so a smaller regret is no saving.  Only a lower cost is; so texts state the cost first.
"""

import ast
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import advmdp as am
from advmdp.experiments.report import report
from tests.helpers import ROOT
from tests.helpers.stores import make_store, small_spec

SOURCES = [
    *(ROOT / "src/advmdp/experiments" / f"{name}.py" for name in ("report", "findings", "command", "flow_svg")),
    ROOT / "src/advmdp/plot/curves.py",
    ROOT / "src/advmdp/game/result.py",
]
SAVING = re.compile(
    r"\b(sav(e|es|ed|ing|ings)|cheap(er|est)?|better|beats?|wins?|won|winner|outperforms?|less|least|lower|lowest"
    r"|smaller|smallest|ahead|worse|gains?|earns?|profits?)\b",
    re.IGNORECASE,
)
REGRET = re.compile(r"\bregrets?\b", re.IGNORECASE)
HARMLESS = (
    re.compile(
        r"\bpa(y|ys|id|ying)\b.*\bbest fixed policy\b|\bbest fixed policy\b.*\bpa(y|ys|id|ying)\b"
    ),  # defines it
    re.compile(r"\b(never|not) by regret\b"),
    re.compile(r"\b(do not react|same losses)\b.*\bpaid\b"),
)


def sentences(text: str) -> list[str]:
    """Also cells of a table, and items of a list, are sentences of their own."""
    rough = re.split(r"(?<=[.!?])\s+(?=[A-Z`*\[{])|\n\s*\n|\s*\|\s*|\n\s*[-*] ", text)
    return [" ".join(one.split()) for one in rough if one.strip()]


def claims(text: str) -> list[str]:
    """The sentences that speak of a saving, or of who is ahead, and have nothing but regret to show for it."""
    found = [one for one in sentences(text) if REGRET.search(one) and SAVING.search(one)]
    return [one for one in found if not any(harmless.search(one) for harmless in HARMLESS)]


def prose(markdown: str) -> str:
    return re.sub(r"```.*?```", "", markdown, flags=re.DOTALL)


def literals(path: Path) -> list[str]:
    """All texts of a module but its docstrings; what a text leaves open is {}."""
    tree = ast.parse(path.read_text())
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            found.append("".join(str(v.value) if isinstance(v, ast.Constant) else "{}" for v in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented | parts:
            found.append(node.value)
    return found


class Page(HTMLParser):
    """The texts of a page, block by block, and the heads of its tables."""

    BLOCKS = ("p", "li", "td", "th", "h1", "h2", "h3", "caption", "figcaption", "label", "option", "summary", "div")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.blocks: list[str] = [""]
        self.heads: list[list[str]] = []
        self.skipped = self.head = False
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list) -> None:
        self.skipped = self.skipped or tag in ("script", "style")
        if tag in self.BLOCKS:
            self.blocks.append("")
        if tag == "thead":
            self.head = True
            self.heads.append([])

    def handle_endtag(self, tag: str) -> None:
        self.skipped = self.skipped and tag not in ("script", "style")
        if tag in self.BLOCKS:
            self.blocks.append("")
        self.head = self.head and tag != "thead"

    def handle_data(self, data: str) -> None:
        if not self.skipped:
            self.blocks[-1] += data
            if self.head and data.strip():
                self.heads[-1].append(data.strip())


@pytest.mark.parametrize(
    "text",
    [
        "UC-O-REPS has a regret of 27, ReplayLast one of 190: it is far better.",
        "Its regret is seven times smaller, which saves money.",
        "b has the least regret, 55.5 on average.",
        "The lower the regret, the less you pay.",
        "Regret 27 against 190, so it pays less than ReplayLast.",
        "- It wins: regret 27.",
        "| UC-O-REPS | clearly ahead in regret |",
    ],
)
def test_claims_are_found(text: str) -> None:
    assert claims(f"Something else before. {text} And after it.")


@pytest.mark.parametrize(
    "text",
    [
        "b paid the least: 55.5 on average. Its regret is 20.",
        "Its regret is -5: it paid 5 less than the 20 that the best fixed policy would have paid on the same losses.",
        "Learners are compared by what they paid, never by regret, whoever has the least.",
        "We bound your regret: your excess cost over the best fixed policy.",
        "These losses do not react: the difference in regret is what was paid less.",
    ],
)
def test_harmless_sentences_pass(text: str) -> None:
    assert claims(text) == []


def test_the_readme_claims_no_saving_from_regret() -> None:
    assert claims(prose((ROOT / "README.md").read_text())) == []


def unpaid(code: str) -> list[str]:
    """The lines of a program that show a regret and not, before it, what was paid."""
    shown = [line for line in code.splitlines() if "print(" in line and REGRET.search(line)]
    return [line for line in shown if not re.search(r"\bpaid\b.*\bregret", line)]


def test_a_program_that_shows_regrets_alone_is_found() -> None:
    assert unpaid('print(f"{name}: regret {other.regret:.1f}")')
    assert not unpaid('print(f"paid {game.total_loss:.1f}, regret {game.regret:.1f}")')


def test_the_readmes_example_shows_what_every_player_paid() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert [line for code in blocks for line in unpaid(code)] == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_printed_text_claims_a_saving_from_regret(path: Path) -> None:
    texts = literals(path)
    assert texts
    assert [found for text in texts for found in claims(text)] == []


def test_no_template_claims_a_saving_from_regret() -> None:
    for folder in ("experiments", "web"):
        for path in (ROOT / "src/advmdp" / folder / "page").iterdir():
            text = path.read_text()
            strings = (
                re.findall(r"\"[^\"\n]*\"|`[^`]*`", text) if path.suffix == ".js" else re.sub("<[^>]+>", "\n\n", text)
            )
            assert claims("\n\n".join(strings) if isinstance(strings, list) else strings) == [], path.name


def test_a_report_claims_no_saving_from_regret_and_shows_cost_first(store: Path, tmp_path: Path) -> None:
    one = make_store(tmp_path / "one", small_spec(seeds=12, horizons=[30]))
    for root in (store, one):
        page = Page(report(am.Results(root)))
        assert [found for block in page.blocks for found in claims(block)] == []
        assert sum("Regret is what a learner paid above the best fixed policy" in block for block in page.blocks) >= 2
        assert any("compare what they paid, not their regrets" in block for block in page.blocks)  # some losses react
        with_regret = [head for head in page.heads if "regret" in head]
        assert len(with_regret) >= 2
        for head in with_regret:
            assert head[1] == "paid", head
