"""The command line, run as a user runs it."""

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

import advmdp as am
from advmdp.cli.demo import LOSSES, PLAYERS, make_spec
from advmdp.cli.demo_routing import congestion
from advmdp.experiments.runner import run_experiment
from tests.helpers.command_line import invoke


@pytest.mark.slow
def test_the_demo_prints_two_tables_and_leaves_two_pages(tmp_path: Path) -> None:
    out = tmp_path / "here"
    line = [sys.executable, "-m", "advmdp", "demo", "--episodes", "40", "--out", str(out)]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    for word in ("mean delay", "Paid per episode", *PLAYERS, *LOSSES, "congestion.html", "report.html"):
        assert word in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines() if str(out) not in line)
    for page in ("congestion.html", "report.html"):
        assert (out / page).read_text().startswith("<!doctype html>")
    assert "Traceback" not in done.stderr
    assert subprocess.run(line, capture_output=True, text=True, check=True).stdout == done.stdout


def test_the_demo_tells_the_story_its_text_tells(tmp_path: Path) -> None:
    """Each simple rule pays far more than the least somewhere, SelfTuning nowhere."""
    run_experiment(make_spec(1000, 0), tmp_path / "out")
    paid = am.Results(tmp_path / "out").runs.group_by("losses", "label").agg(pl.col("loss").mean())
    worst = dict.fromkeys(PLAYERS, 0.0)
    for _, rows in paid.group_by("losses"):
        loss = dict(rows.select("label", "loss").iter_rows())
        least = min(loss.values())
        for label, one in loss.items():
            worst[label] = max(worst[label], (one - least) / (loss["random"] - least))
    assert worst.pop("SelfTuning") < 0.02
    assert min(worst.values()) > 0.5


def test_routing_with_nothing_tuned_waits_far_less_than_by_the_last_delay() -> None:
    delay = dict(congestion(1, Console(quiet=True)).table().select("method", "delay").iter_rows())
    assert delay["SelfTuning"] < 0.2 * delay["shortest, last delay"]
    assert delay["SelfTuning"] < 1.3 * delay["equilibrium"]


def test_a_report_is_written_from_the_command_line(tmp_path: Path) -> None:
    run_experiment(make_spec(20, 1), tmp_path / "out")
    done = invoke("report", str(tmp_path / "out"), "-o", str(tmp_path / "page.html"))
    assert done.exit_code == 0
    assert (tmp_path / "page.html").stat().st_size > 10_000
    assert invoke("report", str(tmp_path / "nowhere")).exit_code == 1


def test_a_folder_that_cannot_be_made_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = invoke("demo", "--out", str(tmp_path / "file"))
    assert done.exit_code == 1
    assert done.stderr.startswith(f"error: {tmp_path / 'file'}")
    assert len(done.stderr.splitlines()) == 1
