"""Everybody routes at once: a real network with its demands, and who flaps.

    python examples/congestion.py                              SNDlib's nobel-germany: half a minute
    python examples/congestion.py --load 0.3                   a network with room, where it does not pay
    python examples/congestion.py --topology sndlib/abilene    another network of SNDlib
    python examples/congestion.py --topology sndlib/geant --pairs 100

Every pair of nodes with a demand chooses its routes for itself, and links get slower as others use them.  Prints a
table and writes a page in which the network can be stepped through, episode by episode.
"""

import argparse
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import advmdp as am
from advmdp.scenarios.comparing import count, example, paper
from advmdp.scenarios.congestion import CongestionGame, Course, congestion_game
from advmdp.scenarios.congestion.report import COLUMNS, SHARES, sentences, write_congestion_report
from advmdp.scenarios.congestion.routers import RADII, STEP, standard_routers


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topology", default="sndlib/nobel-germany", help="a name in topohub with demands")
    parser.add_argument("--pairs", type=int, help="only the largest so many demands")
    parser.add_argument("--load", type=float, default=0.75, help="peak utilisation of the best routing there is")
    parser.add_argument("--slack", type=int, default=2, help="hops that a packet may take beyond the fewest")
    parser.add_argument("--deflection", type=float, default=0.02, help="how often links deflect, which nobody is told")
    parser.add_argument("--episodes", type=count, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--step", type=float, default=STEP, help="of UC-O-REPS, times the theory's eta")
    parser.add_argument("--radii", type=float, default=RADII, help="of UC-O-REPS, times the theory's")
    parser.add_argument("--out", type=Path, default=Path("congestion.html"), help="the page")
    parser.add_argument("--parquet", type=Path, help="where to save the numbers of every method and episode")
    told = parser.parse_args()
    try:
        game = congestion_game(told.topology, told.load, told.slack, told.pairs, told.deflection)
        course = played(game, told.episodes, told.seed, told.step, told.radii)
        page = write_congestion_report(course, told.out)
        if told.parquet is not None:
            told.parquet.resolve().parent.mkdir(parents=True, exist_ok=True)
            course.frame.write_parquet(told.parquet)
    except (am.AdvMDPError, OSError) as error:
        parser.error(str(error))
    console = paper()
    console.print(table(course))
    for text in sentences(course):
        console.print(text)
    console.print(f"The network, episode by episode: {page}", soft_wrap=True)


if __name__ == "__main__":
    example(main)
