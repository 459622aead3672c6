"""Learners side by side in scenarios, over seeds: what an episode costs in the scenario's own units, and its regret.

What is paid comes first.  Next to it stand the best fixed policy of all episodes, and foresight: the best policy of
each episode by itself, by someone who knows its costs and P.  For learner i in world w, over the seeds s,

    regret(i, w) = mean over s of  scale * R_{1:T}(i, w, s) / T,   with the standard error of that mean,

so a number says what the best fixed policy of all these episodes would have saved in each; below zero is better than
every fixed policy.  A criterion other than the scenario's own is no money, and counts as it is.
"""

import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from rich.console import Console
from rich.progress import track
from rich.table import Table

from advmdp.core.arrays import FloatArray, floats, fraction
from advmdp.core.optional import optional
from advmdp.criteria import Criterion, TotalLoss
from advmdp.game.play import play
from advmdp.game.result import Game
from advmdp.learners.base import Learner
from advmdp.learners.domains import State
from advmdp.losses import Losses
from advmdp.model.by_name import ByName, loss_vector
from advmdp.model.mdp import MDP, Trajectory
from advmdp.model.occupancy import best_response
from advmdp.scenarios.base import Scenario

Learners = Callable[[Scenario, Criterion, int], Mapping[str, Learner]]
"""(scenario, criterion, episodes) -> learners that know nothing yet, by what they are called."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """What came of it, by learner and world, one number for each seed."""

    regret: dict[tuple[str, str], FloatArray]
    """Of an episode."""
    best: dict[tuple[str, str], FloatArray]
    """What an episode of the best fixed policy costs; by learner too, since losses may answer to what is played."""
    last: dict[tuple[str, str], Game]
    """The games of the last seed."""
    unit: dict[str, float]
    """What a loss of 1 is worth, by world."""
    offset: dict[str, float]
    """What an episode costs besides, by world."""
    paid: dict[tuple[str, str], FloatArray]
    """What an episode costs."""
    foresight: dict[tuple[str, str], FloatArray]
    """What an episode costs who knows its losses and P; empty where the criterion is not the total loss."""

    def behind(self, ours: str, rules: Sequence[str]) -> dict[str, float]:
        """By world, how far ``ours`` is behind the best of the rules, of the span from the worst of them to foresight.

        Below zero it is ahead.  Worlds without foresight, whose losses react, are not among them.
        """
        found = {}
        for world in dict.fromkeys(world for _, world in self.foresight):
            paid = [self.paid[name, world].mean() for name in rules]
            found[world] = float(
                (self.paid[ours, world].mean() - min(paid)) / (max(paid) - self.foresight[ours, world].mean())
            )
        return found

    def paid_table(
        self, title: str, earned: bool = False, digits: int = 3, ours: str = "", rules: Sequence[str] = ()
    ) -> Table:
        """What an episode costs, or earns: a row for each learner, the best of each world in green.

        With ``rules`` its last row says how far ``ours`` is behind the best of them.
        """
        table, sign = Table(title=title), -1.0 if earned else 1.0
        worlds = list(dict.fromkeys(world for _, world in self.paid))
        table.add_column("per episode")
        for world in worlds:
            table.add_column(world, justify="right", no_wrap=True)
        least = {world: min(v.mean() for (_, at), v in self.paid.items() if at == world) for world in worlds}
        for name in dict.fromkeys(name for name, _ in self.paid):
            cells = []
            for world in worlds:
                values = self.paid[name, world]
                text = shown(sign * values, digits)
                cells.append(f"[green]{text}[/]" if values.mean() == least[world] else text)
            table.add_row(name, *cells)
        table.add_section()
        references = {"best fixed policy": self.best, "foresight": self.foresight}
        for name, values_of in references.items():
            if values_of:
                table.add_row(name, *(self._reference(values_of, world, sign, digits) for world in worlds))
        if rules:
            behind = self.behind(ours, rules)
            table.add_row("behind the best rule", *(f"{behind[w]:.1%}" if w in behind else "-" for w in worlds))
        return table

    def _reference(self, values_of: dict[tuple[str, str], FloatArray], world: str, sign: float, digits: int) -> str:
        """From the least to the most where each learner makes losses of its own."""
        means = [sign * values.mean() for (_, at), values in values_of.items() if at == world]
        if not means:
            return "-"
        return " to ".join(dict.fromkeys(f"{end:,.{digits}f}" for end in (min(means), max(means))))

    def table(self, title: str, footer: str) -> Table:
        """A row for each learner, the least of each world in green, and what the best fixed policy pays."""
        table, worlds = Table(title=title), list(dict.fromkeys(world for _, world in self.regret))
        table.add_column("learner")
        for world in worlds:
            table.add_column(world, justify="right", no_wrap=True)
        least = {world: min(v.mean() for (_, at), v in self.regret.items() if at == world) for world in worlds}
        for name in dict.fromkeys(name for name, _ in self.regret):
            cells = []
            for world in worlds:
                values = self.regret[name, world]
                cells.append(f"[green]{shown(values)}[/]" if values.mean() == least[world] else shown(values))
            table.add_row(name, *cells)
        table.add_section()
        table.add_row(footer, *map(self._paid, worlds))
        return table

    def draw(self, path: Path) -> None:
        """What an episode has cost so far, above the regret, for the last seed; a PNG with a column for each world."""
        with optional:
            import matplotlib.pyplot as plt

        from advmdp.plot.curves import PALETTE

        size = (5.5 * len(self.unit), 6.4)
        figure, axes = plt.subplots(2, len(self.unit), figsize=size, layout="constrained", squeeze=False, sharex="col")
        for (top, bottom), (world, unit) in zip(axes.T, self.unit.items(), strict=True):
            games = [(name, game) for (name, at), game in self.last.items() if at == world]
            for (name, game), colour in zip(games, PALETTE, strict=False):
                line = game.curve.drop_nulls("regret")
                paid = unit * line["loss"] / line["episode"] + self.offset[world]
                top.plot(line["episode"], paid, color=colour, lw=1.4, label=name)
                bottom.plot(line["episode"], unit * line["regret"], color=colour, lw=1.4)
            top.set(ylabel="paid an episode, so far")
            bottom.set(xlabel="episode", ylabel="regret so far")
            top.set_title(world, fontsize="medium", loc="left")
            for ax in (top, bottom):
                ax.spines[["top", "right"]].set_visible(False)
        axes[0, 0].legend(frameon=False, fontsize="small")
        figure.savefig(path, dpi=100)
        plt.close(figure)

    def _paid(self, world: str) -> str:
        """What the best fixed policy pays."""
        return self._reference(self.best, world, 1.0, 3)


def compare(
    worlds: Mapping[str, Scenario], learners: Learners, episodes: int, seeds: Sequence[int],
    criterion: Criterion | None = None,
) -> Comparison:  # fmt: skip
    """Play all learners in all worlds with all seeds; ``criterion`` is the scenario's own unless said."""
    regret: dict[tuple[str, str], list[float]] = {}
    best: dict[tuple[str, str], list[float]] = {}
    paid: dict[tuple[str, str], list[float]] = {}
    ahead: dict[tuple[str, str], list[float]] = {}
    last: dict[tuple[str, str], Game] = {}
    unit: dict[str, float] = {}
    offset: dict[str, float] = {}
    todo = [(world, seed) for world in worlds for seed in seeds]
    for world, seed in track(todo, "playing", console=Console(stderr=True), disable=not sys.stderr.isatty()):
        scenario = worlds[world]
        losses, wanted = scenario.losses_from(seed), criterion or scenario.criterion
        own = wanted == scenario.criterion
        unit[world], offset[world] = (scenario.scale, scenario.offset) if own else (1.0, 0.0)

        def worth(loss: float, scenario: Scenario = scenario, own: bool = own) -> float:
            return (scenario.money(loss, episodes) if own else loss) / episodes

        known = None if losses.memory or wanted != TotalLoss() else worth(foresight(scenario.mdp, losses, episodes))
        for name, learner in learners(scenario, wanted, episodes).items():
            game = play(scenario.mdp, losses, learner, episodes, seed, criterion=wanted, comparator_at="end")
            regret.setdefault((name, world), []).append(unit[world] * game.regret / episodes)
            last[name, world] = game
            best.setdefault((name, world), []).append(worth(game.comparator.value))
            paid.setdefault((name, world), []).append(worth(game.total_loss))
            if known is not None:
                ahead.setdefault((name, world), []).append(known)
    return Comparison(_arrays(regret), _arrays(best), last, unit, offset, _arrays(paid), _arrays(ahead))


def foresight(mdp: MDP, losses: Losses, episodes: int) -> float:
    """What the best policy of each episode pays in all of them, for losses that do not react."""
    return sum(best_response(mdp, losses.at(t))[1] for t in range(episodes))


def _arrays(found: dict[tuple[str, str], list[float]]) -> dict[tuple[str, str], FloatArray]:
    return {key: np.array(values) for key, values in found.items()}


def shown(values: ArrayLike, digits: int = 3) -> str:
    """Mean and standard error, to so many decimals; a single seed has no error."""
    found = floats(values, "values")
    mean = f"{found.mean():z,.{digits}f}"
    return mean if len(found) == 1 else f"{mean} ± {found.std(ddof=1) / np.sqrt(len(found)):,.{digits}f}"


def example(main: Callable[[], None]) -> None:
    """Run what an example does; Ctrl-C ends it with one line and the exit code that shells know."""
    try:
        main()
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        raise SystemExit(130) from None


def count(text: str) -> int:
    """A number of episodes or seeds on a command line."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r}; expected 1 or more")
    return int(text)


def part(text: str) -> float:
    """A number from 0 to 1 on a command line."""
    try:
        return fraction("", float(text))
    except ValueError:
        raise ArgumentTypeError(f"{text!r}; expected a number from 0 to 1") from None


def picture(text: str) -> Path:
    """A file for a picture on a command line, told apart before anything is played."""
    path = Path(text)
    if path.suffix != ".png" or path.is_dir() or not path.resolve().parent.is_dir():
        raise ArgumentTypeError(f"{text!r}; expected a .png file in a folder that is there")
    return path


def paper() -> Console:
    """Where a table goes: as wide as the terminal, and wide enough where there is none."""
    return Console() if sys.stdout.isatty() else Console(width=120)


class OnTheMean(Learner):
    """A learner for one loss, shown the mean of several."""

    optimises = "any"

    def __init__(self, inner: Learner, criterion: Criterion) -> None:
        super().__init__(inner.skeleton, criterion)
        self.inner = inner

    @property
    def policy(self) -> FloatArray:
        return self.inner.policy

    def update(self, trajectory: Trajectory, loss: ByName) -> None:
        self.inner.update(trajectory, loss_vector(self.skeleton, loss).mean(axis=1))
        self.episode += 1

    @property
    def parameters(self) -> dict[str, Any]:
        return {"inner": self.inner.description()}

    def state(self) -> State:
        return self.inner.state()

    def restore(self, state: State) -> None:
        self.inner.restore(state)
