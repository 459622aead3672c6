"""Compare routing methods on a real network in which every sender affects the others.

    python examples/congestion.py                              SNDlib's nobel-germany: half a minute
    python examples/congestion.py --load 0.3                   a network with room, where learning does not pay
    python examples/congestion.py --topology sndlib/abilene    another network of SNDlib
    python examples/congestion.py --topology sndlib/geant --pairs 100
    python examples/congestion.py --topology sndlib/polska --seeds 20    means and standard errors, no page
    python examples/congestion.py --net Sioux_net.tntp --trips Sioux_trips.tntp --flow Sioux_flow.tntp
    python examples/congestion.py --demands matrices.csv                 traffic that changes: time,from,to,amount

Every pair of nodes with a demand chooses its own routes, and links slow down under load.  The example prints a table
and writes a page that replays the network, episode by episode.  For a road network in TNTP it also compares its
equilibrium with the published one.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import advmdp as am
from advmdp.scenarios.comparing import count, example, paper, shown
from advmdp.scenarios.congestion import CongestionGame, Course, congestion_game, demands_from_file
from advmdp.scenarios.congestion.assignment import assignment
from advmdp.scenarios.congestion.report import COLUMNS, SHARES, sentences, write_congestion_report
from advmdp.scenarios.congestion.routers import RADII, STEP, standard_routers
from advmdp.scenarios.congestion.tntp import Roads, read_tntp
from advmdp.scenarios.network.topology import topology_from


def played(game: CongestionGame, episodes: int, seed: int, step: float = STEP, radii: float = RADII) -> Course:
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("playing", total=1.0)
        routers = standard_routers(game, episodes, step=step, radii=radii)
        return game.play(routers, episodes, seed, lambda done: bar.update(task, completed=done))


def table(course: Course) -> Table:
    game = course.game
    title = f"{game.topology.name}: {len(game.commodities)} demands, load {game.load}, {course.episodes} episodes"
    shown = Table(title=f"{title}, seed {course.seed}")
    shown.add_column("method", no_wrap=True)
    for name in COLUMNS.values():
        shown.add_column(name, justify="right")
    for row in course.table().iter_rows(named=True):
        cells = [f"{row[key]:.1%}" if key in SHARES else f"{row[key]:,.2f}" for key in COLUMNS]
        if row["method"] == next(iter(course.references), None):
            shown.add_section()
        shown.add_row(row["method"], *cells)
    return shown


def over_seeds(game: CongestionGame, episodes: int, seeds: int) -> Table:
    """Tabulate mean delays and standard errors over seeds: a row for each method and reference."""
    found: dict[str, list[tuple[float, float]]] = {}
    for seed in range(1, seeds + 1):
        # References do not depend on the seed, so once is enough.
        routers = standard_routers(game, episodes, references=None if seed == 1 else {})
        for row in game.play(routers, episodes, seed).table().iter_rows(named=True):
            found.setdefault(row["method"], []).append((row["delay_all"], row["delay"]))
    shown_as = Table(title=f"{game.topology.name}, load {game.load}: delay in {game.unit}, {seeds} seeds")
    for column in ("method", "all episodes", "second half"):
        shown_as.add_column(column, justify="left" if column == "method" else "right")
    for name, values in found.items():
        shown_as.add_row(name, *(shown(column, 2) for column in zip(*values, strict=True)))
    means = {
        name: [sum(column) / len(column) for column in zip(*values, strict=True)] for name, values in found.items()
    }
    rules = [means[name] for name in found if name.startswith("shortest")]
    behind = [
        (ours - min(rule)) / (max(rule) - best)
        for ours, best, rule in zip(means["SelfTuning"], means["optimum"], zip(*rules, strict=True), strict=True)
    ]
    shown_as.add_section()
    shown_as.add_row("SelfTuning behind the best rule", *(f"{share:.1%}" for share in behind))
    return shown_as


def equilibrium(roads: Roads, game: CongestionGame) -> str:
    """Describe the computed equilibrium and its distance from the flows in the file."""
    found = assignment(game, "equilibrium", gap=1e-5)
    flow = game.flow(found.q)
    text = (
        f"Equilibrium: potential {game.delays.potential(flow):,.2f}, gap {found.gap:.1e}, in {found.iterations} steps."
    )
    if roads.flow is None:
        return text
    most = np.abs(flow - roads.flow).max() / roads.flow.max()
    published = game.delays.potential(roads.flow)
    apart = f"volumes differ by at most {most:.2%} of the largest"
    return f"{text}\nThe file's flows: potential {published:,.2f}; {apart}."


def made(told: argparse.Namespace) -> tuple[CongestionGame, str]:
    """The game, and a text about its equilibrium."""
    if told.net is not None:
        roads = read_tntp(told.net, told.trips, told.flow)
        game = roads.game(told.slack, told.pairs)
        return game, equilibrium(roads, game)
    net = topology_from(told.topology)
    demands = None if told.demands is None else demands_from_file(told.demands, net)
    return congestion_game(net, told.load, told.slack, told.pairs, told.deflection, demands=demands), ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topology", default="sndlib/nobel-germany", help="a name in topohub with demands")
    parser.add_argument("--pairs", type=int, help="keep only this many demands, the largest ones")
    parser.add_argument("--load", type=float, default=0.75, help="peak utilisation of the best possible routing")
    parser.add_argument("--slack", type=int, default=3, help="hops that a packet may take beyond the fewest")
    parser.add_argument("--deflection", type=float, default=0.02, help="mean probability that a link deflects a packet")
    parser.add_argument("--episodes", type=count, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=count, default=1, help="more than one: means over the seeds 1, 2, ..., no page")
    parser.add_argument("--net", help="your own road network in TNTP, instead of a topology")
    parser.add_argument("--trips", help="its trips")
    parser.add_argument("--flow", help="its published flows, to compare with")
    parser.add_argument("--demands", help="a CSV or Parquet file of demands that change; each time is an episode")
    parser.add_argument("--step", type=float, default=STEP, help="for UC-O-REPS, a multiple of the theory's eta")
    parser.add_argument("--radii", type=float, default=RADII, help="for UC-O-REPS, a multiple of the theory's radii")
    parser.add_argument("--out", type=Path, default=Path("congestion.html"), help="the page")
    parser.add_argument("--parquet", type=Path, help="a file for the numbers of every method and episode")
    told = parser.parse_args()
    try:
        game, besides = made(told)
        console = paper()
        if besides:
            console.print(besides, soft_wrap=True)
        if told.seeds > 1:
            console.print(over_seeds(game, told.episodes, told.seeds))
            return
        course = played(game, told.episodes, told.seed, told.step, told.radii)
        page = write_congestion_report(course, told.out)
        if told.parquet is not None:
            told.parquet.resolve().parent.mkdir(parents=True, exist_ok=True)
            course.frame.write_parquet(told.parquet)
    except (am.AdvMDPError, OSError) as error:
        parser.error(str(error))
    console.print(table(course))
    for text in sentences(course):
        console.print(text)
    console.print(f"The network, episode by episode: {page}", soft_wrap=True)


if __name__ == "__main__":
    example(main)
