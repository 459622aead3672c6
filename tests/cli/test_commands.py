"""The command line, run as a person runs it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import advmdp as am
from advmdp import __version__
from advmdp.cli.commands import app
from advmdp.cli.demo import make_spec
from advmdp.experiments.runner import run_experiment


@pytest.mark.slow
def test_demo_prints_the_table_and_leaves_a_picture_and_a_report(tmp_path: Path) -> None:
    out = tmp_path / "here"
    line = [sys.executable, "-m", "advmdp", "demo", "--episodes", "40", "--out", str(out)]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    for word in ("UC-O-REPS", "O-REPS (knows P)", "UOB-REPS", "yesterday's best", "regret", "flow.png", "report.html"):
        assert word in done.stdout
    assert (out / "flow.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "report.html").read_text().startswith("<!doctype html>")
    assert "Traceback" not in done.stderr
    assert subprocess.run(line, capture_output=True, text=True, check=True).stdout == done.stdout


def test_the_demo_tells_the_story_its_text_tells(tmp_path: Path) -> None:
    run_experiment(make_spec(1000, 0), tmp_path / "out")
    regret = dict(am.Results(tmp_path / "out").table().select("label", "regret").iter_rows())
    assert min(regret, key=regret.get) in ("UC-O-REPS", "O-REPS (knows P)")
    for punished in ("best so far", "yesterday's best", "UCRL2", "FPOP"):
        assert regret[punished] > 3 * regret["UC-O-REPS"]


def test_a_report_is_written_from_the_command_line(tmp_path: Path) -> None:
    run_experiment(make_spec(20, 1), tmp_path / "out")
    done = CliRunner().invoke(app, ["report", str(tmp_path / "out"), "-o", str(tmp_path / "page.html")])
    assert done.exit_code == 0
    assert (tmp_path / "page.html").stat().st_size > 10_000
    assert CliRunner().invoke(app, ["report", str(tmp_path / "nowhere")]).exit_code == 1


def test_help_lists_the_commands_and_each_has_an_example() -> None:
    top = CliRunner().invoke(app, ["--help"])
    assert top.exit_code == 0
    for command in app.registered_commands:
        name = command.name or command.callback.__name__
        assert name in top.output
        assert f"advmdp {name} " in CliRunner().invoke(app, [name, "--help"]).output


def test_a_folder_that_cannot_be_made_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "file")])
    assert done.exit_code == 1
    assert done.stderr.startswith(f"error: {tmp_path / 'file'}")
    assert len(done.stderr.splitlines()) == 1


def test_version_and_bad_options() -> None:
    assert CliRunner().invoke(app, ["--version"]).output == f"advmdp {__version__}\n"
    assert CliRunner().invoke(app, ["demo", "--episodes", "0"]).exit_code == 2


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("advmdp r", ["run", "report"]),
        ("advmdp run --engine ", ["local", "ray"]),
        ("advmdp list ", ["learners", "worlds", "scenarios", "losses", "criteria"]),
    ],
)
def test_the_shell_completes(words: str, expected: list[str]) -> None:
    asked = {"_ADVMDP_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    program = Path(sys.executable).with_name("advmdp")
    done = subprocess.run([program], env=os.environ | asked, capture_output=True, text=True, check=True)
    assert done.stdout.split() == expected


def test_bash_takes_the_completion_that_is_shown() -> None:
    program = Path(sys.executable).with_name("advmdp")
    script = subprocess.run([program, "--show-completion", "bash"], capture_output=True, text=True, check=True).stdout
    asked = 'COMP_WORDS=(advmdp ver); COMP_CWORD=1; _advmdp_completion "$0"; echo "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", f"{script}\n{asked}", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["verify"]


def test_an_address_is_for_ray(tmp_path):
    result = CliRunner().invoke(app, ["run", "spec.toml", "-o", str(tmp_path / "out"), "--address", "head:6379"])
    assert result.exit_code == 1
    assert "--address: head:6379; expected --engine ray with it" in result.stderr
