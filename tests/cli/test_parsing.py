"""Parsing of the command line: help, one-line errors, and completion by the shell."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from advmdp import __version__
from advmdp.cli import completion
from advmdp.cli.commands import GROUPS, SHELLS, make_parser
from advmdp.experiments import catalogue
from tests.helpers.command_line import invoke

PROGRAM = Path(sys.executable).with_name("advmdp")
COMMANDS = ("demo", "verify", "run", "report", "list", "doctor")


def test_help_lists_the_commands_and_each_has_an_example() -> None:
    top = invoke("--help")
    assert top.exit_code == 0
    assert tuple(make_parser().commands) == COMMANDS
    for name in COMMANDS:
        assert f"\n  {name} " in top.stdout
        done = invoke(name, "--help")
        assert done.exit_code == 0
        assert f"\nExample: advmdp {name} " in done.stdout


@pytest.mark.parametrize("words", [(), *((name,) for name in COMMANDS)], ids=" ".join)
def test_help_fits_a_narrow_terminal(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, invoke(*words, "--help").stdout.splitlines())) <= 80


def test_every_option_says_what_it_is_and_what_holds_without_it() -> None:
    said = " ".join(invoke("demo", "--help").stdout.split())
    assert "The number of episodes that each player plays. [default: 1000]" in said
    assert "The seed of the world and the losses. [default: 0]" in said
    assert "[default: advmdp-demo]" in said
    resumed = "Keep finished runs and continue with the others. --engine"
    assert resumed in " ".join(invoke("run", "--help").stdout.split())
    for parser in (make_parser(), *make_parser().commands.values()):
        assert all(action.help for action in parser._actions if action.metavar != "COMMAND")


def test_no_arguments_show_the_help() -> None:
    assert invoke() == (2, invoke("--help").stdout, "")


@pytest.mark.parametrize("command", [(), ("run",), ("list",)])
def test_help_has_a_short_name(command: tuple[str, ...]) -> None:
    code, shown, said = invoke(*command, "-h")
    assert (code, said) == (0, "")
    assert shown == invoke(*command, "--help").stdout
    assert shown.startswith("usage")


def test_the_version_is_shown() -> None:
    assert invoke("--version") == (0, f"advmdp {__version__}\n", "")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("rnu", "argument COMMAND: 'rnu'; expected one of demo, verify, run, report, list, doctor; did you mean run?"),
        ("cheese", "argument COMMAND: 'cheese'; expected one of demo, verify, run, report, list, doctor"),
        ("-v", "unknown option -v"),
        ("-x run", "unknown option -x"),
        ("run spec.toml -o out -x", "unknown option -x"),
        ("run spec.toml -oout -k4", "unknown option -k"),
        ("--versoin", "unknown option --versoin; did you mean --version?"),
        ("run --enigne ray", "unknown option --enigne; did you mean --engine?"),
        ("run spec.toml -o out --fail-fats=1", "unknown option --fail-fats; did you mean --fail-fast?"),
        ("run spec.toml -o out --eng ray", "unknown option --eng"),
        (
            "run spec.toml -o out --engine rya",
            "argument --engine: 'rya'; expected one of local, ray; did you mean ray?",
        ),
        ("run spec.toml", "the following arguments are required: -o/--out"),
        ("run spec.toml -o out -j 0", "argument -j/--jobs: '0'; expected a whole number, 1 or more"),
        ("run spec.toml -o out --jobs", "argument -j/--jobs: expected one argument"),
        ("run s -o out --checkpoint-every -1", "argument --checkpoint-every: '-1'; expected a number, 0 or more"),
        ("run s -o out --checkpoint-every nan", "argument --checkpoint-every: 'nan'; expected a number, 0 or more"),
        ("demo --episodes 0", "argument --episodes: '0'; expected a whole number, 1 or more"),
        ("demo --episodes many", "argument --episodes: 'many'; expected a whole number, 1 or more"),
        ("demo --seed -1", "argument --seed: '-1'; expected a whole number, 0 or more"),
        ("verify --episodes 4999", "argument --episodes: '4999'; expected a whole number, 5000 or more"),
        ("list learner", "argument GROUP: 'learner'; expected one of learners, worlds, "),
        ("report one two", "unrecognized arguments: two"),
        ("--show-completion tcsh", "argument --show-completion: 'tcsh'; expected one of bash, zsh, fish"),
    ],
)
def test_misuse_is_an_error_of_one_line(words: str, told: str) -> None:
    done = invoke(*words.split())
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {told}")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.endswith("--help)\n")


def test_options_may_come_in_any_order_and_form() -> None:
    expected = vars(make_parser().parse_args(["run", "spec.toml", "--out", "there", "--jobs", "2"]))
    for words in ("run -j2 -o there spec.toml", "run --out=there spec.toml --jobs=2", "run -othere -j 2 -- spec.toml"):
        assert vars(make_parser().parse_args(words.split())) == expected
    twice = make_parser().parse_args(["run", "s", "-o", "o", "--allow-import", "one", "--allow-import", "two"])
    assert twice.allow_import == ["one", "two"]


def test_an_address_is_for_ray(tmp_path: Path) -> None:
    done = invoke("run", "spec.toml", "-o", str(tmp_path / "out"), "--address", "head:6379")
    assert done == (1, "", "error: --address: head:6379; expected --engine ray as well\n")


def test_a_closed_pipe_ends_the_output_quietly() -> None:
    """As in ``advmdp --help | head -1``, when the reader is gone before anything is written."""
    read, write = os.pipe()
    os.close(read)
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run([PROGRAM, "--help"], env=plain, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


def test_the_groups_are_those_of_the_list() -> None:
    assert tuple(catalogue.GROUPS) == GROUPS
    assert tuple(completion.SCRIPTS) == SHELLS


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("advmdp ", list(COMMANDS)),
        ("advmdp r", ["run", "report"]),
        ("advmdp --v", ["--version"]),
        ("advmdp --show-completion ", list(SHELLS)),
        ("advmdp run --engine ", ["local", "ray"]),
        ("advmdp run --engine r", ["ray"]),
        ("advmdp run --re", ["--resume"]),
        ("advmdp run --resume --dr", ["--dry-run"]),
        ("advmdp run -o ", []),
        ("advmdp run ", []),
        ("advmdp list ", ["learners", "worlds", "scenarios", "losses", "criteria"]),
        ("advmdp", []),
    ],
)
@pytest.mark.parametrize("between", [" ", "\n"], ids=["typed", "lines"])
def test_the_shell_completes(words: str, expected: list[str], between: str) -> None:
    line = words.replace(" ", between)
    asked = {"_ADVMDP_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(words.count(" "))}
    done = subprocess.run([PROGRAM], env=os.environ | asked, capture_output=True, text=True, check=True)
    assert done.stdout.split() == expected


def test_bash_takes_the_completion_that_is_shown() -> None:
    script = invoke("--show-completion", "bash").stdout
    asked = 'COMP_WORDS=(advmdp ver); COMP_CWORD=1; _advmdp_completion "$0"; echo "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", f"{script}\n{asked}", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["verify"]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_completion_is_installed_once(shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    for start in completion.START.values():
        (tmp_path / start).write_text("alias ll='ls -l'")  # with no end of line
    first = invoke("--install-completion")
    assert invoke("--install-completion", shell) == first
    assert (first.exit_code, first.stderr) == (0, "")
    script = Path(first.stdout.removeprefix("installed ").split(";")[0])
    assert script.read_text() == completion.SCRIPTS[shell]
    for name, start in completion.START.items():
        added = f"source {script}\n" if name == shell else ""
        assert (tmp_path / start).read_text() == "alias ll='ls -l'" + ("\n" if added else "") + added


def test_an_unknown_shell_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    done = invoke("--install-completion")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "expected one of bash, zsh, fish" in done.stderr


def test_a_completion_that_cannot_be_written_is_an_error_of_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").write_text("in the way")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    done = invoke("--install-completion", "fish")
    assert (done.exit_code, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1


def test_runs_are_saved_as_often_as_games_are() -> None:
    """The command line may not import what has the number, to stay quick."""
    from advmdp.game.checkpoint import SECONDS

    said = " ".join(invoke("run", "--help").stdout.split())
    assert re.search(rf"--checkpoint-every SECONDS .*?\[default: {SECONDS:g}(\.0)?\]", said)
