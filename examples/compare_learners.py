"""Compare every learner of this library in four worlds, over many seeds: cost, regret, and a figure of both.

    python examples/compare_learners.py             20 seeds of 10,000 episodes: about five minutes of one core
    python examples/compare_learners.py --seeds 2 --episodes 500 --out /tmp/learners.png

A seed is a random MDP of three steps, four states a layer and three actions, and losses that are

    stochastic      independent draws around fixed means
    turning         switching once: in every state one action is good for a third of the game, then another
    alternating     switching from episode to episode between two such actions
    adaptive        higher for what the player did in the previous episode

SelfTuning has its defaults; "SelfTuning g" has the horizon and guarantee=True. The others have the theory's parameters.
If these learn slowly at such horizons, a second row, marked *, has practical parameters, the same in all worlds and
without a guarantee. Each learner gets what it needs: the dynamics or the skeleton, the whole loss or the loss along its
path. The first table shows the cost per episode, the second the regret; the least of a column is green. A negative
regret is better than every fixed policy. Adaptive losses react, so each learner has its own losses: compare costs, not
regrets. Other switching worlds: --turn 0.2, --period 100.
"""

import argparse
import sys
from io import BytesIO
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from PIL import Image
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import advmdp as am
from advmdp.scenarios.comparing import example

Sequences = dict[str, am.losses.Losses]
Curves = dict[tuple[str, str], np.ndarray]

WORLDS = ("stochastic", "turning", "alternating", "adaptive")
BLUE, SKY, GREEN, ORANGE, RED, PINK, BLACK, GREY = (
    "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00", "#CC79A7", "#000000", "#777777",
)  # fmt: skip
STYLES = {
    "whole loss": "-", "bandit": (0, (4, 1.5)), "stochastic": (0, (1, 1.2)), "baseline": (0, (5, 1.5, 1, 1.5)),
}  # fmt: skip
TITLES = {
    "whole loss": "adversarial, sees the whole loss", "bandit": "adversarial, sees its path (bandit)",
    "stochastic": "for stochastic losses", "baseline": "baseline",
}  # fmt: skip
# The group and colour of each curve; the table has more learners.
DRAWN = {
    "SelfTuning": ("whole loss", BLACK), "UCOREPS": ("whole loss", BLUE),
    "UCOREPS *": ("whole loss", SKY), "OREPS": ("whole loss", GREEN),
    "MDPE": ("whole loss", ORANGE), "LazyFPL": ("whole loss", RED), "FPOP": ("whole loss", PINK),
    "UOBREPS": ("bandit", BLUE), "OREPS bandit": ("bandit", GREEN), "OSSP": ("bandit", ORANGE),
    "MDPEXP3": ("bandit", RED), "UCRL2": ("stochastic", BLUE), "UCRL2 bandit *": ("stochastic", GREEN),
    "UCBVI *": ("stochastic", RED), "Uniform": ("baseline", GREY), "FollowLeader": ("baseline", PINK),
    "ReplayLast": ("baseline", BLACK),
}  # fmt: skip


def world(seed: int, episodes: int, turn: float = 1 / 3, period: int = 1) -> tuple[am.MDP, Sequences]:
    mdp = am.MDP.random([1, 4, 4, 1], 3, seed=seed, concentration=0.5)
    sk = mdp.skeleton
    first, two = int(turn * episodes), am.losses.Switching(sk, period=episodes, seed=seed)
    turning = np.concatenate([two.block(0, first), two.block(episodes, 2 * episodes - first)])
    losses = (
        am.losses.Stochastic(sk, seed=seed),
        am.losses.Replay(sk, turning),
        am.losses.Switching(sk, period=period, seed=seed),
        am.losses.Adaptive(sk, seed=seed, strength=0.8),
    )
    return mdp, dict(zip(WORLDS, losses, strict=True))


def learners(mdp: am.MDP, T: int, seed: int) -> dict[str, am.Learner]:
    """All applicable learners; those that know P get the MDP, the others the skeleton."""
    sk = mdp.skeleton
    L, X, A = sk.num_steps, sk.num_states, sk.num_actions
    step = float(np.sqrt(L * np.log(A) / (T * X * A)))  # without alpha and its exploration
    return {
        "SelfTuning": am.SelfTuning(sk),
        "SelfTuning g": am.SelfTuning(sk, T, guarantee=True),
        "UCOREPS": am.UCOREPS(sk, T),
        "UCOREPS *": am.UCOREPS(sk, T, eta=5 * am.bounds.eta(sk, T), confidence_scale=0.2),
        "OREPS": am.OREPS(mdp, T),
        "MDPE": am.MDPE(mdp, T),
        "LazyFPL": am.LazyFPL(mdp, seed=seed),
        "LazyFPL *": am.LazyFPL(mdp, scale=0.1, seed=seed),
        "FPOP": am.FPOP(sk, T, seed=seed),
        "UOBREPS": am.UOBREPS(sk, T),
        "UOBREPS *": am.UOBREPS(sk, T, confidence_scale=0.1),
        "OREPS bandit": am.OREPS(mdp, T, feedback="bandit"),
        "OSSP": am.OSSP(mdp, T),
        "OSSP *": am.OSSP(mdp, T, eta=step),
        "MDPEXP3": am.MDPEXP3(mdp, T),
        "MDPEXP3 *": am.MDPEXP3(mdp, T, eta=step, gamma=0.05),
        "UCRL2": am.UCRL2(sk),
        "REGAL": am.REGAL(sk, span=1.0),
        "UCRL2 bandit": am.UCRL2(sk, feedback="bandit"),
        "UCRL2 bandit *": am.UCRL2(sk, feedback="bandit", confidence_scale=0.1),
        "UCBVI": am.UCBVI(sk, T),
        "UCBVI *": am.UCBVI(sk, T, confidence_scale=0.003),
        "Uniform": am.Uniform(sk),
        "FollowLeader": am.FollowLeader(sk),
        "ReplayLast": am.ReplayLast(sk),
    }


def curves(
    episodes: int, seeds: int, console: Console, turn: float = 1 / 3, period: int = 1
) -> tuple[np.ndarray, Curves, Curves]:
    """The marked episodes, then costs per episode and regrets by (learner, world), with a row for each seed."""
    paid: dict[tuple[str, str], list[np.ndarray]] = {}
    regret: dict[tuple[str, str], list[np.ndarray]] = {}
    count = len(learners(world(0, episodes)[0], episodes, 0))
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("playing", total=seeds * len(WORLDS) * count)
        for seed in range(seeds):
            mdp, sequences = world(seed, episodes, turn, period)
            for name, losses in sequences.items():
                for who, learner in learners(mdp, episodes, seed).items():
                    game = am.play(mdp, losses, learner, episodes, seed)
                    marks = game.curve["episode"].to_numpy()
                    paid.setdefault((who, name), []).append(game.curve["loss"].to_numpy() / marks)
                    regret.setdefault((who, name), []).append(game.curve["regret"].to_numpy())
                    bar.advance(task)
    return marks, *({key: np.array(rows) for key, rows in found.items()} for found in (paid, regret))


def table(what: str, digits: int, found: Curves, seeds: int, episodes: int) -> Table:
    """Means and their standard errors at the end."""
    shown = Table(title=f"{what} over {seeds} seeds of {episodes:,} episodes: mean and standard error")
    shown.add_column("learner", no_wrap=True)
    least = {name: min(found[who, name][:, -1].mean() for who, _ in found) for name in WORLDS}
    for name in WORLDS:
        shown.add_column(name, justify="right", no_wrap=True)
    for who in dict.fromkeys(who for who, _ in found):
        cells = []
        for name in WORLDS:
            last = found[who, name][:, -1]
            text = f"{last.mean():,.{digits}f} ± {last.std(ddof=1) / np.sqrt(seeds):,.{digits}f}"
            alike = what != "Regret" or name != "adaptive"  # regrets about different losses are not compared
            cells.append(f"[green]{text}[/]" if alike and last.mean() == least[name] else text)
        shown.add_row(who, *cells)
    return shown


def figure(marks: np.ndarray, paid: Curves, regret: Curves, turn: float, out: Path) -> None:
    """Draw costs and regrets: means with standard errors, each curve with its name at its end."""
    spines = {"axes.spines.top": False, "axes.spines.right": False}
    plt.rcParams.update({"font.size": 9, "axes.titlesize": 10, **spines})
    drawn, axes = plt.subplots(len(WORLDS), 2, figsize=(10, 15), layout="constrained")
    for row, name in zip(axes, WORLDS, strict=True):
        for ax, found in zip(row, (paid, regret), strict=True):
            ends = {}
            for who, (group, colour) in DRAWN.items():
                rows = found[who, name]
                mean, error = rows.mean(axis=0), rows.std(axis=0) / np.sqrt(len(rows))
                ax.plot(marks, mean, color=colour, ls=STYLES[group], lw=1.4)
                ax.fill_between(marks, mean - error, mean + error, color=colour, alpha=0.15, lw=0)
                ends[who] = float(mean[-1])
            ax.set(
                title=f"{name} losses: {'mean cost per episode so far' if found is paid else 'regret'}",
                xlabel="episodes",
            )
            episodes_axis(ax, name, int(marks[-1]), turn)
            if found is regret:
                regret_axis(ax, name, int(marks[-1]))
            label_ends(ax, ends)
    keys = [Line2D([], [], color="0.3", ls=style, lw=1.4, label=TITLES[group]) for group, style in STYLES.items()]
    drawn.legend(handles=keys, loc="outside upper center", ncols=4, frameon=False, handlelength=3.2)
    picture = BytesIO()
    drawn.savefig(picture, dpi=130)
    plt.close(drawn)
    # Sixty-four colours take a third of the space and look the same.
    Image.open(picture).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(out, optimize=True)


def regret_axis(ax: Axes, name: str, episodes: int) -> None:
    """Logarithmic, so that powers of T are straight lines; symmetric around zero if regret may be negative."""
    if name == "stochastic":
        ax.set(yscale="log", ylim=(1, 4 * episodes))
    else:
        ax.set_yscale("symlog", linthresh=100, linscale=0.7)
        ax.set_ylim(-2 * episodes, 4 * episodes)
        ax.axhline(0, color="0.8", lw=0.8, zorder=0)


def episodes_axis(ax: Axes, name: str, episodes: int, turn: float) -> None:
    """Logarithmic, except for the turning losses, to show the turn."""
    if name == "turning":
        ax.set_xlim(0, episodes)
        ax.axvline(turn * episodes, color="0.8", lw=0.8, zorder=0)
        ax.xaxis.set_major_locator(MaxNLocator(5))
        ax.xaxis.set_major_formatter("{x:,.0f}")
    else:
        ax.set(xscale="log", xlim=(min(10, episodes / 2), episodes))


def label_ends(ax: Axes, ends: dict[str, float]) -> None:
    """Put names at the right edge, in the order of the curves' ends, without overlaps."""
    to_axes = ax.transData + ax.transAxes.inverted()
    names = sorted(ends, key=ends.__getitem__)
    low, high = ax.get_ylim()
    heights = [to_axes.transform((ax.get_xlim()[1], np.clip(ends[who], low, high)))[1] for who in names]
    for who, there, place in zip(names, heights, apart(np.array(heights), 0.047), strict=True):
        group, colour = DRAWN[who]
        way = {"color": colour, "transform": ax.transAxes, "clip_on": False}
        ax.add_line(Line2D([1.0, 1.04], [there, place], lw=0.6, **way))
        ax.add_line(Line2D([1.04, 1.11], [place, place], lw=1.4, ls=STYLES[group], **way))
        ax.text(1.125, place, who, color=colour, va="center", fontsize=8, transform=ax.transAxes)


def apart(wanted: np.ndarray, gap: float) -> np.ndarray:
    """The places in [0, 1] closest to ``wanted``, which ascends, at least ``gap`` apart: isotonic regression."""
    steps = gap * np.arange(len(wanted))
    blocks: list[tuple[float, int]] = []
    for one in wanted - steps:
        mean, size = float(one), 1
        while blocks and blocks[-1][0] > mean:
            before, count = blocks.pop()
            mean, size = (before * count + mean * size) / (count + size), count + size
        blocks.append((mean, size))
    return np.clip(np.concatenate([np.full(size, mean) for mean, size in blocks]), 0.0, 1.0 - steps[-1]) + steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--out", type=Path, help="a PNG file for the figure; the default is no figure")
    parser.add_argument(
        "--turn", type=float, default=1 / 3, help="when the turning losses turn, a fraction of the game"
    )
    parser.add_argument("--period", type=int, default=1, help="episodes between switches of the alternating losses")
    arguments = parser.parse_args()
    if arguments.seeds < 2 or arguments.episodes < 100 or not 0.0 < arguments.turn < 1.0 or arguments.period < 1:
        parser.error("at least 2 seeds, 100 episodes, a period of 1, and a turn between 0 and 1")
    if arguments.out is not None and not arguments.out.parent.is_dir():
        parser.error(f"--out: the folder {arguments.out.parent} does not exist")
    console = Console() if sys.stdout.isatty() else Console(width=120)
    marks, paid, regret = curves(arguments.episodes, arguments.seeds, console, arguments.turn, arguments.period)
    console.print(table("Cost per episode", 3, paid, arguments.seeds, arguments.episodes))
    console.print(table("Regret", 0, regret, arguments.seeds, arguments.episodes))
    if arguments.out is not None:
        figure(marks, paid, regret, arguments.turn, arguments.out)
        console.print(f"figure: {arguments.out}")


if __name__ == "__main__":
    example(main)
