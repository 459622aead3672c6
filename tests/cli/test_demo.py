"""The demonstration, run once as a user runs it: it shows value, and the README's tables are those that it prints."""

import itertools
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import advmdp as am
from advmdp.cli.demo import LOSSES, PLAYERS
from tests.helpers import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("demo")]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What it prints, and the folder that it leaves."""
    out = tmp_path_factory.mktemp("demo") / "here"
    line = [sys.executable, "-m", "advmdp", "demo", "--out", str(out)]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert "Traceback" not in done.stderr
    return done.stdout, out


def printed_table(text: str, head: str) -> list[list[str]]:
    """The cells of the printed table whose header begins so, without the rows below its last rule."""
    _, _, rows = text.partition(f" {head} ")
    lines = itertools.takewhile(lambda line: line.startswith("│"), rows.splitlines()[2:])
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]


def readme_table(head: str) -> list[list[str]]:
    """The cells of the table of the README whose first line begins so, without marks."""
    lines = (ROOT / "README.md").read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(f"| {head}")) + 2
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines[first:])
    return [[cell.strip().replace("*", "") for cell in row.strip("|").split("|")] for row in rows]


def test_it_fits_eighty_columns_and_leaves_two_pages(demo: tuple[str, Path]) -> None:
    printed, out = demo
    for word in ("mean delay", "Paid per episode", *PLAYERS, *LOSSES, "congestion.html", "report.html"):
        assert word in printed
    assert all(len(line) <= 80 for line in printed.splitlines() if str(out) not in line)
    for page in ("congestion.html", "report.html"):
        assert (out / page).read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("head", ["routes chosen by", "losses"])
def test_the_tables_of_the_readme_are_those_that_it_prints(demo: tuple[str, Path], head: str) -> None:
    written, printed = readme_table(head), printed_table(demo[0], head)
    assert len(written) == len(printed) == 5
    for (name, *cells), (said, *found) in zip(written, printed, strict=True):
        assert name.startswith(said)
        assert cells == found


def test_routing_with_nothing_tuned_waits_far_less_than_by_the_last_delay(demo: tuple[str, Path]) -> None:
    delay = {row[0]: float(row[1].split()[0]) for row in printed_table(demo[0], "routes chosen by")}
    assert delay["SelfTuning"] < 0.2 * delay["shortest, last delay"]
    assert delay["SelfTuning"] < 1.3 * delay["equilibrium"]


def test_each_simple_rule_fails_somewhere_but_selftuning_does_not(
    demo: tuple[str, Path],
) -> None:
    paid = am.Results(demo[1]).runs.group_by("losses", "label").agg(pl.col("loss").mean())
    worst = dict.fromkeys(PLAYERS, 0.0)
    for _, rows in paid.group_by("losses"):
        loss = dict(rows.select("label", "loss").iter_rows())
        least = min(loss.values())
        for label, one in loss.items():
            worst[label] = max(worst[label], (one - least) / (loss["random"] - least))
    assert worst.pop("SelfTuning") < 0.02
    assert min(worst.values()) > 0.5
