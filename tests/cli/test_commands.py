"""The command line, run as a user runs it."""

from pathlib import Path

from advmdp.cli.demo import make_spec
from advmdp.experiments.runner import run_experiment
from tests.helpers.command_line import invoke


def test_a_report_is_written_from_the_command_line(tmp_path: Path) -> None:
    run_experiment(make_spec(20, 1), tmp_path / "out")
    done = invoke("report", str(tmp_path / "out"), "-o", str(tmp_path / "page.html"))
    assert done.exit_code == 0
    assert (tmp_path / "page.html").stat().st_size > 10_000
    assert invoke("report", str(tmp_path / "nowhere")).exit_code == 1


def test_a_folder_that_cannot_be_made_is_an_error_of_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = invoke("demo", "--out", str(tmp_path / "file"))
    assert done.exit_code == 1
    assert done.stderr.startswith(f"error: {tmp_path / 'file'}")
    assert len(done.stderr.splitlines()) == 1
