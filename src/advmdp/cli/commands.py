"""The command line, thin: each command reads its options and calls the library."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

from advmdp import __version__
from advmdp.core.errors import AdvMDPError, InputError

if TYPE_CHECKING:
    from advmdp.experiments.engines.local import Engine


class EngineName(StrEnum):
    """Who plays the runs of an experiment."""

    local = "local"
    ray = "ray"


class Group(StrEnum):
    """What an experiment is made of."""

    learners = "learners"
    worlds = "worlds"
    scenarios = "scenarios"
    losses = "losses"
    criteria = "criteria"


app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Learning to act when costs change arbitrarily and the dynamics are unknown.",
)


@contextmanager
def _told_plainly() -> Iterator[None]:
    """Errors of ours are for people: one line and exit code 1, no traceback."""
    try:
        yield
    except (AdvMDPError, OSError) as error:  # such as a file that may not be read
        Console(stderr=True).print(f"[red]error[/]: {escape(str(error))}", soft_wrap=True)
        raise typer.Exit(1) from None
    finally:
        gc.freeze()  # the process ends: half a second is saved if no one looks for garbage in all that was imported


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"advmdp {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options that come before the command."""


@app.command(epilog="Example:  advmdp demo --episodes 500 --seed 3 --out /tmp/look")
def demo(
    episodes: Annotated[int, typer.Option(min=1, help="How many episodes each player plays.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Fixes the world and the losses; same seed, same numbers.")] = 0,
    out: Annotated[Path, typer.Option(help="The folder for results, picture and report.")] = Path("advmdp-demo"),
) -> None:
    """UC-O-REPS among its rivals, on losses that react to the player: exact regret, a picture, and a report."""
    from advmdp.cli.demo import run

    with _told_plainly():
        if not run(out, episodes, seed, Console()):
            raise typer.Exit(1)


@app.command(epilog="Example:  advmdp verify --episodes 20000 --runs 200")
def verify(
    episodes: Annotated[int, typer.Option(min=5000, help="T of Theorems 5.1 to 5.3; the most for other learners.")] = 10
    ** 6,
    runs: Annotated[int, typer.Option(min=1, help="How many runs a probability is measured on.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Fixes losses and trajectories; same seed, same rows.")] = 0,
) -> None:
    """The paper's theorems and every learner's guarantee, each checked on live runs; exit code 1 if one fails."""
    from advmdp.verify.paper import run

    with _told_plainly():
        if not run(Console(), episodes, runs, seed):
            raise typer.Exit(1)


@app.command(
    epilog="Example:  advmdp run spec.toml -o runs/first -j 2;  to go on:  advmdp run spec.toml -o runs/first --resume"
)
def run(
    spec: Annotated[Path, typer.Argument(help="The experiment, in TOML; 'advmdp list' names what it can be made of.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for the results.")],
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="How many runs at once: 1, or all that a cluster has cores for."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Keep what is finished, go on with the rest.")] = False,
    engine: Annotated[
        EngineName, typer.Option(help="Who plays: processes of this machine, or a Ray cluster.")
    ] = EngineName.local,
    address: Annotated[str | None, typer.Option(help="Of the Ray cluster; a local one is started without it.")] = None,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="Stop at the first run that fails.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would run, how long, and how much disk.")
    ] = False,
    checkpoint_every: Annotated[float, typer.Option(min=0.0, help="Seconds between checkpoints of a run.")] = 20.0,
    allow_import: Annotated[
        list[str] | None,
        typer.Option(metavar="MODULE", help="A module whose code the spec may name; it runs with your rights."),
    ] = None,
) -> None:
    """Play an experiment: every learner in every world against all losses, for every horizon and seed."""
    with _told_plainly():
        if address is not None and engine is not EngineName.ray:
            raise InputError("--address", address, "--engine ray with it")
        if dry_run:
            from advmdp.experiments import command

            command.plan(spec, out, jobs or 1, allow_import or (), Console())
            return
        from advmdp.experiments.engines.local import remembered, unswept

        with remembered() as stop_if_asked, _opened(engine, address, jobs) as opened:
            with unswept():
                from advmdp.experiments import command

            stop_if_asked()
            good = command.play(
                spec, out, jobs=jobs or 1, resume=resume, fail_fast=fail_fast, engine=opened,
                checkpoint_seconds=checkpoint_every, allow_import=allow_import or (), console=Console(stderr=True),
            )  # fmt: skip
        if not good:
            raise typer.Exit(1)


@contextmanager
def _opened(engine: EngineName, address: str | None, jobs: int | None) -> "Iterator[Engine]":
    """The engine; processes of this machine start before all else, and import the library while this one does."""
    if engine is EngineName.local:
        from advmdp.experiments.engines.local import processes

        with processes(jobs or 1) as play_all:
            yield lambda at_once: nullcontext(play_all)
    else:
        from advmdp.experiments.engines.ray import make_engine

        yield make_engine(address, jobs)


@app.command(epilog="Example:  advmdp report runs/first -o first.html")
def report(
    folder: Annotated[Path, typer.Argument(help="The folder that 'advmdp run' filled.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The file; report.html in the folder unless said.")
    ] = None,
) -> None:
    """One self-contained HTML file: who won and how sure that is, curves, flow, certificates, how to reproduce it."""
    from advmdp.experiments.report import write_report

    with _told_plainly():
        Console().print(f"[bold]{escape(str(write_report(folder, out)))}[/]", soft_wrap=True)


@app.command("list", epilog="Example:  advmdp list learners")
def list_(
    what: Annotated[Group | None, typer.Argument(help="Of these only, with their parameters.")] = None,
) -> None:
    """What an experiment can be made of, with one line each."""
    from advmdp.experiments import command

    with _told_plainly():
        command.catalogue(what, Console())
