"""Compare learners that know only the skeleton on fourteen kinds of losses, in worlds of three sizes.

    python examples/every_kind_of_loss.py                             20 seeds of 2,000 episodes: minutes
    python examples/every_kind_of_loss.py --seeds 2 --episodes 500
    python examples/every_kind_of_loss.py --jobs 2 --out excess.png   also .csv (every game) and .md (the tables)

All see the whole loss.  A seed is a random MDP and a sequence of losses, the same for all learners.  No learner knows
the kind, and no parameter depends on it.  No loss reacts to what is played.  Means are uniform in [0, 1] for each pair
and change as their kind says.  Each loss has independent noise around its mean, half as wide as [0, 1] allows unless
stated:

    stochastic      fixed means; the noise is as wide as [0, 1] allows
    turning         one loss for a third of the game, then another
    alternating     two losses in turn, from episode to episode
    period P        two losses in turn, each for P episodes: 2, 10, 100 and a quarter of the game
    slow drift      smooth curves through new values every 500 episodes
    fast drift      the same, every 20 episodes
    random walk     normal steps of deviation 0.05, reflected at 0 and 1
    weekly          seven losses in turn
    heavy tails     a drift of 100 episodes, times min(1, 0.01 Z) for an episode, Z a Pareto variable of index 1.5
    leader trap     a loss and its mirror image, 1 - loss, in turn, for 10 episodes, 20, 40, 80, ...
    replay trap     0.6 a + 0.4 b or 0.6 a + 0.4 (1 - b): in nine of ten episodes not the one of the last episode

The first table shows the mean cost of each learner over the seeds.  The second shows the excess over the best learner
in percent of the possible gain: 100 (paid - best) / (Uniform - best), where the best is the least mean cost of all
learners but SelfTuning.  A negative excess beats all of these.  SelfTuning has its defaults; "SelfTuning g" has the
horizon and guarantee=True.
"""

import argparse
import csv
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import advmdp as am
from advmdp.scenarios.comparing import count, example

Setting = tuple[str, str]
Job = tuple[Setting, int, int]
Paid = dict[Setting, dict[str, np.ndarray]]
Means = dict[Setting, dict[str, float]]

SIZES = {"small": ([1, 3, 3, 1], 2), "middle": ([1, 4, 6, 4, 1], 3), "large": ([1, 5, 5, 5, 5, 1], 4)}
"""The layers, and the number of actions of each state."""
NOISE = 0.5
OURS = ("SelfTuning", "SelfTuning g")
ENDINGS = (".csv", ".md", ".png")


def periodic(sk: am.Skeleton, length: int, seed: int) -> am.losses.Losses:
    """Two losses in turn, each for ``length`` episodes."""
    return am.losses.Seasonal(sk, period=2 * length, seasons=2, seed=seed, noise=NOISE)


def recorded(sk: am.Skeleton, means: np.ndarray, rng: np.random.Generator) -> am.losses.Losses:
    """Losses with these means over pairs, a row for each episode, and the same noise as generated losses."""
    return am.losses.Replay(sk, means + NOISE * (2 * rng.random(means.shape) - 1) * np.minimum(means, 1 - means))


def turning(sk: am.Skeleton, T: int, rng: np.random.Generator) -> am.losses.Losses:
    return recorded(sk, rng.random((2, sk.num_pairs))[(np.arange(T) >= T // 3).astype(int)], rng)


def random_walk(sk: am.Skeleton, T: int, rng: np.random.Generator) -> am.losses.Losses:
    walk = rng.random(sk.num_pairs) + rng.normal(0.0, 0.05, (T, sk.num_pairs)).cumsum(axis=0)
    return recorded(sk, np.abs((walk + 1.0) % 2.0 - 1.0), rng)


def heavy_tails(sk: am.Skeleton, T: int, rng: np.random.Generator) -> am.losses.Losses:
    drift = am.losses.Drifting(sk, period=100, seed=int(rng.integers(2**31))).block(0, T)[:, sk.transition_ptr[:-1]]
    pareto = (1.0 - rng.random((T, 1))) ** (-1 / 1.5)
    return recorded(sk, drift * np.minimum(1.0, 0.01 * pareto), rng)


def leader_trap(sk: am.Skeleton, T: int, rng: np.random.Generator) -> am.losses.Losses:
    loss, phase = rng.random(sk.num_pairs), np.log2(np.arange(T) / 10 + 1).astype(int)  # it ends at 10 (2^k - 1)
    return recorded(sk, np.where(phase[:, None] % 2 == 0, loss, 1 - loss), rng)


def replay_trap(sk: am.Skeleton, T: int, rng: np.random.Generator) -> am.losses.Losses:
    a, b = rng.random((2, sk.num_pairs))
    side = (rng.random((T, 1)) < 0.9).cumsum(axis=0) % 2
    return recorded(sk, 0.6 * a + 0.4 * np.where(side == 0, b, 1 - b), rng)


def kinds(sk: am.Skeleton, T: int, seed: int) -> dict[str, Callable[[], am.losses.Losses]]:
    """Functions that make the losses of each kind."""
    rng = np.random.default_rng(seed)
    return {
        "stochastic": lambda: am.losses.Stochastic(sk, seed=seed),
        "turning": lambda: turning(sk, T, rng),
        "alternating": lambda: periodic(sk, 1, seed),
        "period 2": lambda: periodic(sk, 2, seed),
        "period 10": lambda: periodic(sk, 10, seed),
        "period 100": lambda: periodic(sk, 100, seed),
        "period T/4": lambda: periodic(sk, max(1, T // 4), seed),
        "slow drift": lambda: am.losses.Drifting(sk, period=500, seed=seed, noise=NOISE),
        "fast drift": lambda: am.losses.Drifting(sk, period=20, seed=seed, noise=NOISE),
        "random walk": lambda: random_walk(sk, T, rng),
        "weekly": lambda: am.losses.Seasonal(sk, period=7, seed=seed, noise=NOISE),
        "heavy tails": lambda: heavy_tails(sk, T, rng),
        "leader trap": lambda: leader_trap(sk, T, rng),
        "replay trap": lambda: replay_trap(sk, T, rng),
    }


def learners(sk: am.Skeleton, T: int, seed: int) -> dict[str, am.Learner]:
    """All learners that know only the skeleton and see the whole loss; * marks practical parameters."""
    eta, tight = am.bounds.eta(sk, T), {"successors": "possible", "confidence_scale": 0.2}
    return {
        "SelfTuning": am.SelfTuning(sk),
        "SelfTuning g": am.SelfTuning(sk, T, guarantee=True),
        "UCOREPS": am.UCOREPS(sk, T),
        "UCOREPS *": am.UCOREPS(sk, T, eta=5 * eta, **tight),
        "UCOREPS share": am.UCOREPS(sk, T, eta=20 * eta, share=1e-3, **tight),
        "FPOP": am.FPOP(sk, T, seed=seed),
        "UCRL2": am.UCRL2(sk),
        "UCBVI *": am.UCBVI(sk, T, confidence_scale=0.003),
        "FollowLeader": am.FollowLeader(sk),
        "ReplayLast": am.ReplayLast(sk),
        "Uniform": am.Uniform(sk),
    }


def play(job: Job) -> tuple[Setting, int, dict[str, float]]:
    """The cost of every learner in one world."""
    (size, kind), seed, T = job
    layers, actions = SIZES[size]
    mdp = am.MDP.random(layers, actions, seed=seed, concentration=0.5)
    losses = kinds(mdp.skeleton, T, seed)[kind]()
    players = learners(mdp.skeleton, T, seed)
    return job[0], seed, {name: am.play(mdp, losses, one, T, seed).total_loss for name, one in players.items()}


def results(jobs: list[Job], processes: int) -> Iterator[tuple[Setting, int, dict[str, float]]]:
    if processes == 1:
        yield from map(play, jobs)
        return
    with get_context("spawn").Pool(processes, signal.signal, (signal.SIGINT, signal.SIG_IGN)) as pool:
        yield from pool.imap_unordered(play, jobs)


def suite(episodes: int, seeds: int, processes: int, console: Console) -> Paid:
    """Costs by setting and learner, one for each seed."""
    sk = am.Skeleton.dense([1, 1], 1)
    settings = [(size, kind) for size in SIZES for kind in kinds(sk, 1, 0)]
    names = list(learners(sk, 1, 0))
    paid = {setting: {name: np.empty(seeds) for name in names} for setting in settings}
    jobs = [(setting, seed, episodes) for setting in reversed(settings) for seed in range(seeds)]  # the large first
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("playing", total=len(jobs))
        for setting, seed, found in results(jobs, processes):
            for name, loss in found.items():
                paid[setting][name][seed] = loss
            bar.advance(task)
    return paid


def means(paid: Paid) -> Means:
    """The means over the seeds."""
    return {setting: {name: float(values.mean()) for name, values in row.items()} for setting, row in paid.items()}


def excesses(paid: Paid) -> Means:
    """100 (paid - best) / (Uniform - best), with the best of all but SelfTuning; 0 if that is Uniform."""
    found = {}
    for setting, row in means(paid).items():
        best = min(value for name, value in row.items() if name not in OURS)
        span = (row["Uniform"] - best) or np.inf
        found[setting] = {name: 100 * (value - best) / span for name, value in row.items()}
    return found


def paid_rows(paid: Paid) -> Iterator[list[str]]:
    """The cost of each learner, and the learner with the least."""
    found = means(paid)
    yield ["world", "losses", *next(iter(found.values())), "the least"]
    for (size, kind), row in found.items():
        digits = 1 if row["Uniform"] < 1000 else 0
        yield [size, kind, *(f"{value:,.{digits}f}" for value in row.values()), min(row, key=row.__getitem__)]


def excess_rows(excess: Means) -> Iterator[list[str]]:
    """The excess of each learner in each setting, then its worst."""
    names = list(next(iter(excess.values())))
    yield ["world", "losses", *names]
    for (size, kind), row in excess.items():
        yield [size, kind, *(f"{value:z.1f}" for value in row.values())]
    yield ["all", "the worst", *(f"{max(row[name] for row in excess.values()):z.1f}" for name in names)]


def verdicts(paid: Paid, excess: Means) -> Iterator[str]:
    """For each learner its worst setting, and in how many it pays least (the two SelfTuning's do not compete)."""
    for name in next(iter(excess.values())):
        size, kind = max(excess, key=lambda setting: excess[setting][name])
        same = OURS if name in OURS else (name,)
        least = [row[name] < min(paid for who, paid in row.items() if who not in same) for row in means(paid).values()]
        worst = f"at most {excess[size, kind][name]:z.1f}% above the best other ({size}, {kind})"
        yield f"{name}: {worst}; less than all others in {sum(least)} of {len(least)}"


def table(title: str, rows: Iterable[list[str]]) -> Table:
    head, *body = rows
    shown = Table(title=title)
    for name in head:
        words = name in ("world", "losses", "the least")
        shown.add_column(name, justify="left" if words else "right", no_wrap=True)
    for k, row in enumerate(body):
        shown.add_row(*row, end_section=k + 1 < len(body) and body[k + 1][0] != row[0])
    return shown


def markdown(rows: Iterable[list[str]]) -> str:
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, "|---" * (head.count("|") - 1) + "|", *body]) + "\n"


def write(paid: Paid, excess: Means, out: Path) -> None:
    """Write every game (.csv), the tables (.md), or a picture of the second table (.png)."""
    if out.suffix == ".md":
        out.write_text(markdown(paid_rows(paid)) + "\n" + markdown(excess_rows(excess)))
    elif out.suffix == ".png":
        figure(excess, out)
    else:
        with out.open("w", newline="") as file:
            lines = csv.writer(file)
            lines.writerow(["world", "losses", "learner", "seed", "paid"])
            for setting, row in paid.items():
                for name, values in row.items():
                    lines.writerows([*setting, name, seed, float(one)] for seed, one in enumerate(values))


def figure(excess: Means, out: Path) -> None:
    """Draw a cell for each learner and setting: darker is further above the best."""
    import matplotlib.pyplot as plt
    from matplotlib.colors import SymLogNorm

    names = list(next(iter(excess.values())))
    values = np.array([[row[name] for row in excess.values()] for name in names])
    drawn, ax = plt.subplots(figsize=(13, 0.42 * len(names) + 2.4), layout="constrained")
    norm = SymLogNorm(linthresh=1.0, vmin=-100.0, vmax=100.0)
    image = ax.imshow(values, cmap="RdBu_r", norm=norm, aspect="auto")
    ax.set_yticks(range(len(names)), names)
    ax.set_xticks(range(len(excess)), [f"{size}, {kind}" for size, kind in excess], rotation=60, ha="right", fontsize=7)
    drawn.colorbar(image, label="above the best, % of the possible gain", ticks=[-100, -10, -1, 0, 1, 10, 100])
    drawn.savefig(out, dpi=110)
    plt.close(drawn)


def target(text: str) -> Path:
    """Parse the path of an output file, so that a bad path fails before anything is played."""
    path = Path(text)
    if path.suffix not in ENDINGS or path.is_dir() or not path.resolve().parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r}; expected {', '.join(ENDINGS)} in an existing folder")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=count, default=20)
    parser.add_argument("--episodes", type=count, default=2000)
    parser.add_argument("--jobs", type=count, default=os.cpu_count() or 1, help="processes at once")
    parser.add_argument("--out", type=target, action="append", default=[], help="a file: .csv, .md or .png")
    arguments = parser.parse_args()
    console = Console() if sys.stdout.isatty() else Console(width=170)
    paid = suite(arguments.episodes, arguments.seeds, arguments.jobs, console)
    excess = excesses(paid)
    played = f"{arguments.seeds} seeds of {arguments.episodes:,} episodes"
    console.print(table(f"Paid, the mean over {played}", paid_rows(paid)))
    console.print(table(f"Above the best other learner, % of (Uniform - best), over {played}", excess_rows(excess)))
    for line in verdicts(paid, excess):
        console.print(line, highlight=False)
    for out in arguments.out:
        write(paid, excess, out)
        console.print(f"written: {out}", highlight=False)


if __name__ == "__main__":
    example(main)
