"""The command line, run as a person runs it."""

import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from advmdp import __version__
from advmdp.cli import app
from advmdp.demo import accounts, world


def test_demo_prints_the_table_and_leaves_the_picture(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "advmdp", "demo", "--episodes", "40", "--out", str(tmp_path / "here")],
        capture_output=True,
        text=True,
        check=True,
    )
    for word in ("stochastic", "switching", "drifting", "adaptive", "replay", "regret", "flow.png"):
        assert word in done.stdout
    assert (tmp_path / "here" / "flow.png").read_bytes().startswith(b"\x89PNG")
    assert "Traceback" not in done.stderr


def test_the_seed_fixes_the_demo(tmp_path: Path) -> None:
    def table(seed: int) -> str:
        return CliRunner().invoke(app, ["demo", "--episodes", "5", "--seed", str(seed), "--out", str(tmp_path)]).output

    assert table(1) == table(1) != table(2)


def test_the_demo_tells_the_story_its_text_tells() -> None:
    regret = {(row.losses, row.player): row.regret for row in accounts(world(0), 400, seed=0)}
    assert len(regret) == 15
    for kind in ("stochastic", "switching every episode", "adaptive"):
        others = [r for (other, player), r in regret.items() if other == kind and player != "UC-O-REPS"]
        assert regret[kind, "UC-O-REPS"] < 0.5 * min(others)
    replay_of_yesterday = {kind.split()[0]: r for (kind, player), r in regret.items() if player == "yesterday's best"}
    assert replay_of_yesterday["drifting"] < 0
    assert replay_of_yesterday["switching"] > 1.5
    assert replay_of_yesterday["adaptive"] > 0.5
    assert all(r > 0 for (_, player), r in regret.items() if player == "at random")


def test_help_lists_the_commands_and_each_has_an_example() -> None:
    top = CliRunner().invoke(app, ["--help"])
    assert top.exit_code == 0
    for command in app.registered_commands:
        name = command.callback.__name__
        assert name in top.output
        assert f"advmdp {name} " in CliRunner().invoke(app, [name, "--help"]).output


def test_a_folder_that_cannot_be_made_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "file")])
    assert done.exit_code == 1
    assert done.stderr.startswith("error: out:")
    assert len(done.stderr.splitlines()) == 1


def test_version_and_bad_options() -> None:
    assert CliRunner().invoke(app, ["--version"]).output == f"advmdp {__version__}\n"
    assert CliRunner().invoke(app, ["demo", "--episodes", "0"]).exit_code == 2
