"""The first part of the demonstration: all demands route at once on a real network; it needs the extra ``routing``."""

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from advmdp.learners.self_tuning import SelfTuning
from advmdp.scenarios.congestion import CongestionGame, Course, Router, congestion_game
from advmdp.scenarios.congestion.assignment import assignment
from advmdp.scenarios.congestion.report import write_congestion_report
from advmdp.scenarios.congestion.routers import SMOOTHING, DelayRouting, Fixed, Learners, shortest_by_hops

__all__ = ["congestion", "routes_table", "write_congestion_report"]

NETWORK, LOAD, SLACK, DEFLECTION, ROUNDS = "sndlib/nobel-germany", 0.75, 3, 0.02, 100


def congestion(seed: int, console: Console) -> Course:
    """Play some rounds of the congestion game, with a progress bar."""
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("routing", total=1.0)
        game = congestion_game(NETWORK, LOAD, SLACK, deflection=DEFLECTION)
        return game.play(routers(game), ROUNDS, seed, lambda done: bar.update(task, completed=done))


def routers(game: CongestionGame) -> dict[str, Router]:
    """The routing methods, and the equilibrium as a reference."""
    equilibrium = assignment(game, "equilibrium", 1e-3)
    return {
        "SelfTuning": Learners(game, SelfTuning, pooled=True),
        "shortest, last delay": DelayRouting(game),
        "shortest, smoothed delay": DelayRouting(game, SMOOTHING),
        "shortest, hops": shortest_by_hops(game),
        "equilibrium": Fixed(equilibrium.policy, equilibrium.gap),
    }


def routes_table(course: Course) -> Table:
    """Mean delay, peak load and route changes of each method."""
    game = course.game
    title = f"{game.topology.name}: {len(game.commodities)} demands, {course.episodes} rounds, the last half of them"
    table = Table(title=title)
    table.add_column("routes chosen by", no_wrap=True)
    for column in ("mean delay", "peak load", "routes changed"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in course.table().iter_rows(named=True):
        shares = (f"{row[key]:.0%}" for key in ("peak", "changed"))
        table.add_row(row["method"], f"{row['delay']:.1f} ms", *shares)
    return table
