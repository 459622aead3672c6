"""Running an experiment: check the spec, play the missing runs into the store, and summarise."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from advmdp.core.arrays import whole
from advmdp.core.errors import InputError, StorageError
from advmdp.experiments.engines.local import Engine, Event, Task, processes, remembered
from advmdp.experiments.runs import Run, runs_of
from advmdp.experiments.spec import Spec
from advmdp.experiments.store import Store, place
from advmdp.game.checkpoint import SECONDS
from advmdp.game.play import play

SAMPLE = 200
"""How many episodes of each kind of run to play for an estimate."""
ROW, FLOW_ROW = 80, 40
"""Approximate bytes of a row of a curve and of a flow."""


@dataclass(frozen=True)
class Summary:
    """The outcome of all runs."""

    finished: int
    kept: int
    failed: dict[str, str]
    """The reason, by the run's folder."""
    left_over: list[str]
    unfinished: int = 0
    """Runs that failed or were not played."""

    @property
    def good(self) -> bool:
        """Whether every run has its result."""
        return self.unfinished == 0


def run_experiment(
    spec: Spec,
    out: str | Path,
    *,
    jobs: int = 1,
    resume: bool = False,
    fail_fast: bool = False,
    engine: Engine = processes,
    console: Console | None = None,
    checkpoint_seconds: float = SECONDS,
    allow_import: Sequence[str] = (),
) -> Summary:
    """Play every unfinished run of the spec into the folder ``out``.

    With ``resume`` the folder may hold earlier results: finished runs are kept, and others continue from their
    checkpoints.  A run that fails leaves a traceback in its folder, and the others continue, unless ``fail_fast``.
    Code that the spec names, such as that of an environment, must be in one of the modules of ``allow_import``.
    """
    runs, store = runs_of(spec, allow_import), Store(out)
    at_once = min(whole("jobs", jobs, 1), sum(store.state(run) != "finished" for run in runs))
    told = console or Console(stderr=True)
    with remembered() as stop_if_asked, engine(at_once) as play_all:
        with told.status("checking the spec"):
            check(spec, runs)  # while the engine starts
        stop_if_asked()
        with store.locked():
            store.begin(spec, runs, resume)
            todo = [i for i, run in enumerate(runs) if store.state(run) != "finished"]
            tasks = [Task(i, runs[i].to_json(), str(store.folder(runs[i])), checkpoint_seconds) for i in todo]
            with closing(play_all(tasks)) as events, _bars(told, runs, todo) as show:
                failed = _followed(events, runs, show, fail_fast, stop_if_asked)
            finished = sum(store.state(runs[i]) == "finished" for i in todo)
    return Summary(finished, len(runs) - len(todo), failed, store.left_over(runs), len(todo) - finished)


def _followed(
    events: Iterator[Event], runs: Sequence[Run], show: Callable[[Event], None], fail_fast: bool,
    stop_if_asked: Callable[[], None],
) -> dict[str, str]:  # fmt: skip
    """Follow the events; return the runs that failed, and why."""
    failed: dict[str, str] = {}
    for event in events:
        stop_if_asked()
        show(event)
        if event.kind == "storage":
            expected = "disk space and permission to write; finished runs are kept, and --resume continues the others"
            raise StorageError(runs[event.run].folder, event.why, expected)
        if event.kind == "failed":
            failed[runs[event.run].folder] = event.why
            if fail_fast:
                break
    return failed


def check(spec: Spec, runs: Sequence[Run]) -> None:
    """Make everything once, so that errors are raised before any run is played."""
    known: dict[str, Run] = {}
    for run in runs:
        if (other := known.setdefault(run.identity, run)) is not run:
            at = [(r.learner.shown, place(spec.worlds, r.world), place(spec.losses, r.losses)) for r in (other, run)]
            one, two = (f"{label!r} in worlds.{i} with losses.{j}" for label, i, j in at)
            raise InputError(spec.where, f"{one} and {two} are the same run", "each combination once")
    seen, longest = set(), max(spec.horizons)
    for run in known.values():
        kind = run.kind
        if kind not in seen:
            seen.add(kind)
            _try(spec, run, longest)


def _try(spec: Spec, run: Run, longest: int) -> None:
    with _at(spec, "worlds", place(spec.worlds, run.world)):
        mdp = run.make_world()
    with _at(spec, "losses", place(spec.losses, run.losses)):
        losses = run.make_losses()
    if losses.episodes is not None and longest > losses.episodes:
        file = getattr(run.losses, "file", None) or getattr(run.world, "file", None)
        whose = "the losses have" if file is None else f"{Path(file).name} has"
        most = f"at most {losses.episodes:,}, all that {whose}"
        raise InputError(f"{spec.where}, horizons", f"{longest:,}", most)
    with _at(spec, "learners", place(spec.learners, run.learner)):
        play(mdp, losses, run.make_learner(mdp), 1, criterion=run.make_criterion())


@contextmanager
def _at(spec: Spec, table: str, number: int) -> Iterator[None]:
    """Add the file and table to an error."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{spec.where}, {table}.{number}, {error.where}", error.given, error.expected) from error
    except MemoryError as error:
        raise InputError(f"{spec.where}, {table}.{number}", "too large for memory", "a smaller world") from error


@dataclass(frozen=True)
class Estimate:
    """The estimated cost of an experiment."""

    runs: int
    seconds: float
    """On one core."""
    bytes: int


def estimate(runs: Sequence[Run]) -> Estimate:
    """Estimate time and disk space from a few episodes of each kind of run."""
    speeds: dict[str, tuple[float, int]] = {}
    seconds, size = 0.0, 0
    for run in runs:
        kind = run.kind
        if kind not in speeds:
            mdp, losses, criterion = run.make_world(), run.make_losses(), run.make_criterion()
            play(mdp, losses, run.make_learner(mdp), 1, criterion=criterion)
            begun, count = time.perf_counter(), min(SAMPLE, run.horizon)
            play(mdp, losses, run.make_learner(mdp), count, criterion=criterion)
            speeds[kind] = (time.perf_counter() - begun) / count, mdp.skeleton.num_transitions
        each, transitions = speeds[kind]
        seconds += each * run.horizon
        size += 8000 + ROW * 100 + FLOW_ROW * transitions
    return Estimate(len(runs), seconds, size)


@contextmanager
def _bars(console: Console, runs: Sequence[Run], todo: Sequence[int]) -> Iterator[Callable[[Event], None]]:
    """Show a bar for each run in progress and one for all of them, if the console is a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[said]}"), TimeElapsedColumn())
    with Progress(
        *columns, TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal
    ) as bars:
        overall = bars.add_task("all runs", total=max(1, len(todo)), said=f"0 of {len(todo)}")
        shown: dict[int, TaskID] = {}
        done = 0

        def show(event: Event) -> None:
            nonlocal done
            run = runs[event.run]
            if event.run not in shown and event.kind in ("begun", "progress"):
                title = escape(f"{run.learner.shown}, seed {run.seed}")
                shown[event.run] = bars.add_task(title, total=run.horizon, said="")
            if event.kind == "progress":
                done_playing = event.episodes >= run.horizon
                said = "best fixed policy" if done_playing else f"{event.episodes:,.0f} of {run.horizon:,}"
                bars.update(shown[event.run], completed=event.episodes, said=said)
            elif event.kind != "begun":
                done += 1
                if event.run in shown:
                    bars.remove_task(shown.pop(event.run))
                bars.update(overall, completed=done, said=f"{done:,} of {len(todo):,}")

        yield show
