"""The commands of the command line: each reads its options and calls the library.

To keep ``--help`` fast, a command imports what it needs only when it runs.
"""

import argparse
import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from advmdp import __version__
from advmdp.cli.parsing import Parser, at_least
from advmdp.core.errors import AdvMDPError, InputError

if TYPE_CHECKING:
    from advmdp.experiments.engines.local import Engine

ENGINES = ("local", "ray")
"""Where the runs of an experiment can be played."""
GROUPS = ("learners", "worlds", "scenarios", "losses", "criteria")
"""The parts of an experiment."""
SHELLS = ("bash", "zsh", "fish")


def app(words: Sequence[str] | None = None) -> int:
    """Run the command line, by default that of this process; return the exit code.

    Help and usage errors raise ``SystemExit``.
    """
    try:
        try:
            return _run(sys.argv[1:] if words is None else list(words))
        finally:
            if words is None:  # the process ends
                gc.freeze()  # skipping the last garbage collection saves half a second
            sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader has stopped, as in: advmdp list | head -1
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise Python flushes again and complains
        return 1
    except (AdvMDPError, OSError) as error:  # our errors, or an unreadable file: one line, no traceback
        from rich.console import Console
        from rich.markup import escape

        Console(stderr=True).print(f"[red]error[/]: {escape(str(error))}", soft_wrap=True)
        return 1


def _run(words: list[str]) -> int:
    parser = make_parser()
    if "_ADVMDP_COMPLETE" in os.environ:
        from advmdp.cli import completion

        completion.answer(parser, os.environ)
        return 0
    if not words:
        parser.print_help()
        return 2
    options = vars(parser.parse_args(words))
    return 0 if options.pop("command")(**options) else 1


def make_parser() -> Parser:
    """The parser of the whole command line."""
    parser = Parser(
        prog="advmdp",
        usage="advmdp [OPTIONS] COMMAND ...",
        description="Learn to act when costs keep changing and you do not know how the world responds.",
        epilog="Run advmdp COMMAND --help for the options of a command and an example.",
    )
    parser.add_argument("--version", action="version", version=f"advmdp {__version__}", help="Show the version.")
    for option, what in (
        ("--install-completion", "Install tab completion for bash, zsh or fish."),
        ("--show-completion", "Print the completion script."),
    ):
        parser.add_argument(
            option, action=_Completion, nargs="?", choices=SHELLS, metavar="SHELL", help=what, default=argparse.SUPPRESS
        )
    for add in (_add_demo, _add_verify, _add_run, _add_report, _add_list, _add_doctor):
        add(parser)
    return parser


class _Completion(argparse.Action):
    """Install or print the completion script for the given shell, by default the user's, and exit."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        from advmdp.cli import completion

        shell = values or completion.shell_of_user()
        if not shell:
            raise argparse.ArgumentError(self, f"unknown shell; expected one of {', '.join(SHELLS)}")
        print(completion.SCRIPTS[shell] if option == "--show-completion" else completion.install(shell))
        parser.exit()


def _add_demo(parser: Parser) -> None:
    command = parser.add_command("demo", demo, "[OPTIONS]", "advmdp demo --episodes 500 --seed 3 --out /tmp/look")
    add = command.add_argument
    add(
        "--episodes", type=at_least(1), default=1000, metavar="N", help="The number of episodes that each player plays."
    )
    add(
        "--seed",
        type=at_least(0),
        default=0,
        metavar="N",
        help="The seed of the world and the losses.",
    )
    add("--out", default="advmdp-demo", metavar="FOLDER", help="The folder for results and pages.")


def demo(episodes: int, seed: int, out: str) -> bool:
    """Compare learners on a real network and on losses of every kind; print tables and write a report."""
    from pathlib import Path

    from rich.console import Console

    from advmdp.cli.demo import run

    return run(Path(out), episodes, seed, Console())


def _add_verify(parser: Parser) -> None:
    command = parser.add_command("verify", verify, "[OPTIONS]", "advmdp verify --episodes 20000 --runs 200")
    add = command.add_argument
    most = "The number of episodes for Theorems 5.1 to 5.3; a maximum for other learners."
    add("--episodes", type=at_least(5000), default=10**6, metavar="N", help=most)
    add(
        "--runs", type=at_least(1), default=1000, metavar="N", help="The number of runs to estimate a probability from."
    )
    add("--seed", type=at_least(0), default=0, metavar="N", help="Fixes losses and trajectories; same seed, same rows.")


def verify(episodes: int, runs: int, seed: int) -> bool:
    """Check the paper's theorems and every learner's guarantee on live runs; exit with 1 if one fails."""
    from rich.console import Console

    from advmdp.verify.paper import run

    return run(Console(), episodes, runs, seed)


def _add_run(parser: Parser) -> None:
    usage = "SPEC --out FOLDER [OPTIONS]"
    example = "advmdp run spec.toml -o runs/first -j 2\nTo continue: advmdp run spec.toml -o runs/first --resume"
    add = parser.add_command("run", run, usage, example).add_argument
    add("spec", metavar="SPEC", help="The experiment, a TOML file; 'advmdp list' shows what it can contain.")
    add("-o", "--out", required=True, metavar="FOLDER", help="The folder for the results.")
    add(
        "-j", "--jobs", type=at_least(1), metavar="N",
        help="The number of runs at once; 1 by default, on a cluster one for each core.",
    )  # fmt: skip
    add("--resume", action="store_true", help="Keep finished runs and continue with the others.")
    add(
        "--engine", choices=ENGINES, default="local", metavar="ENGINE",
        help="Where to run: processes on this machine (local), or a Ray cluster (ray).",
    )  # fmt: skip
    add("--address", help="The address of the Ray cluster; without it a local one is started.")
    add("--fail-fast", action="store_true", help="Stop when the first run fails.")
    add("--dry-run", action="store_true", help="Print what would run, with estimates of time and disk space.")
    add(
        "--checkpoint-every", type=at_least(0, float), default=20.0, metavar="SECONDS",
        help="Seconds between checkpoints of a run.",
    )  # fmt: skip
    add(
        "--allow-import", action="append", default=[], metavar="MODULE",
        help="Allow the spec to use code from this module, which runs with your rights. May be repeated.",
    )  # fmt: skip


def run(
    spec: str, out: str, jobs: int | None, resume: bool, engine: str, address: str | None, fail_fast: bool,
    dry_run: bool, checkpoint_every: float, allow_import: list[str],
) -> bool:  # fmt: skip
    """Run an experiment: every learner in every world, for all losses, horizons and seeds."""
    from pathlib import Path

    from rich.console import Console

    if address is not None and engine != "ray":
        raise InputError("--address", address, "--engine ray as well")
    if dry_run:
        from advmdp.experiments import command

        command.plan(Path(spec), Path(out), jobs or 1, allow_import, Console())
        return True
    from advmdp.experiments.engines.local import remembered, unswept

    with remembered() as stop_if_asked, _opened(engine, address, jobs) as opened:
        with unswept():
            from advmdp.experiments import command

        stop_if_asked()
        return command.play(
            Path(spec), Path(out), jobs=jobs or 1, resume=resume, fail_fast=fail_fast, engine=opened,
            checkpoint_seconds=checkpoint_every, allow_import=allow_import, console=Console(stderr=True),
        )  # fmt: skip


@contextmanager
def _opened(engine: str, address: str | None, jobs: int | None) -> "Iterator[Engine]":
    """Open the engine; local processes start first, so that they import the library while this process does."""
    if engine == "local":
        from advmdp.experiments.engines.local import processes

        with processes(jobs or 1) as play_all:
            yield lambda at_once: nullcontext(play_all)
    else:
        from advmdp.experiments.engines.ray import make_engine

        yield make_engine(address, jobs)


def _add_report(parser: Parser) -> None:
    command = parser.add_command("report", report, "FOLDER [OPTIONS]", "advmdp report runs/first -o first.html")
    command.add_argument("folder", metavar="FOLDER", help="The folder that 'advmdp run' wrote.")
    command.add_argument("-o", "--out", metavar="FILE", help="The file to write; report.html in the folder by default.")


def report(folder: str, out: str | None) -> bool:
    """Write the report of an experiment: one HTML file with the ranking, curves, and how to reproduce them."""
    from pathlib import Path

    from rich.console import Console
    from rich.markup import escape

    from advmdp.experiments.report import write_report

    written = write_report(Path(folder), None if out is None else Path(out))
    Console().print(f"[bold]{escape(str(written))}[/]", soft_wrap=True)
    return True


def _add_list(parser: Parser) -> None:
    command = parser.add_command("list", list_, "[GROUP]", "advmdp list learners")
    what = f"Show one group with its parameters: {', '.join(GROUPS)}."
    command.add_argument("what", nargs="?", choices=GROUPS, metavar="GROUP", help=what)


def list_(what: str | None) -> bool:
    """List learners, worlds, scenarios, losses and criteria, with one line each."""
    from rich.console import Console

    from advmdp.experiments import catalogue

    catalogue.show(what, Console())
    return True


def _add_doctor(parser: Parser) -> None:
    parser.add_command("doctor", doctor, "", "advmdp doctor && advmdp demo")


def doctor() -> bool:
    """Check this installation: what is missing, what is slow, and how to fix it; exit with 1 if it is broken."""
    from rich.console import Console

    from advmdp.cli.doctor import examine

    return examine(Console())
