"""Compares learners in scenarios, over several seeds: cost and regret per episode, in the scenario's units.

Tables show the cost first.  Two references follow: the best fixed policy of all episodes, and foresight, which knows P
and the costs of each episode in advance and plays the best policy of that episode.  For learner i in world w, over the
seeds s,

    regret(i, w) = mean over s of  scale * R_{1:T}(i, w, s) / T,   with the standard error of that mean.

This is the saving per episode of the best fixed policy.  If it is negative, the learner beats every fixed policy.
Under a criterion other than the scenario's own, losses are not converted to money.
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
"""(scenario, criterion, episodes) -> new learners by name."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """The results by (learner, world), one number per seed."""

    regret: dict[tuple[str, str], FloatArray]
    """Regret per episode."""
    best: dict[tuple[str, str], FloatArray]
    """Cost per episode of the best fixed policy; it depends on the learner if losses react to what is played."""
    last: dict[tuple[str, str], Game]
    """The games of the last seed."""
    unit: dict[str, float]
    """The cost of one unit of loss, by world."""
    offset: dict[str, float]
    """The cost to add for each episode, by world."""
    paid: dict[tuple[str, str], FloatArray]
    """Cost per episode."""
    foresight: dict[tuple[str, str], FloatArray]
    """Cost per episode with foresight; empty unless the criterion is the total loss."""

    def behind(self, ours: str, rules: Sequence[str]) -> dict[str, float]:
        """How far ``ours`` is behind the best rule, by world, as a share of the span from the worst rule to foresight.

        A negative number is a lead.  Worlds whose losses react have no foresight and are left out.
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
        """Tabulate the cost (or, if ``earned``, the earnings) per episode: a row per learner, the best in green.

        With ``rules``, the last row says how far ``ours`` is behind the best rule.
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
        """A mean, or the range of means if the losses differ between learners."""
        means = [sign * values.mean() for (_, at), values in values_of.items() if at == world]
        if not means:
            return "-"
        return " to ".join(dict.fromkeys(f"{end:,.{digits}f}" for end in (min(means), max(means))))

    def table(self, title: str, footer: str) -> Table:
        """Tabulate the regret: a row per learner, the least in green, then the cost of the best fixed policy.

        If losses react, none is green: the regrets are about the losses that each learner provoked.
        """
        table, worlds = Table(title=title), list(dict.fromkeys(world for _, world in self.regret))
        table.add_column("learner")
        for world in worlds:
            table.add_column(world, justify="right", no_wrap=True)
        reacts = {world for (_, world), game in self.last.items() if game.reacts}
        least = {world: min(v.mean() for (_, at), v in self.regret.items() if at == world) for world in worlds}
        for name in dict.fromkeys(name for name, _ in self.regret):
            cells = []
            for world in worlds:
                values = self.regret[name, world]
                best = values.mean() == least[world] and world not in reacts
                cells.append(f"[green]{shown(values)}[/]" if best else shown(values))
            table.add_row(name, *cells)
        table.add_section()
        table.add_row(footer, *map(self._paid, worlds))
        return table

    def draw(self, path: Path) -> None:
        """Draw the mean cost so far, and below it the regret, for the last seed: a PNG with a column per world."""
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
            top.set(ylabel="mean cost per episode so far")
            bottom.set(xlabel="episode", ylabel="regret so far")
            top.set_title(world, fontsize="medium", loc="left")
            for ax in (top, bottom):
                ax.spines[["top", "right"]].set_visible(False)
        axes[0, 0].legend(frameon=False, fontsize="small")
        figure.savefig(path, dpi=100)
        plt.close(figure)

    def _paid(self, world: str) -> str:
        """The cost of the best fixed policy."""
        return self._reference(self.best, world, 1.0, 3)


def compare(
    worlds: Mapping[str, Scenario], learners: Learners, episodes: int, seeds: Sequence[int],
    criterion: Criterion | None = None,
) -> Comparison:  # fmt: skip
    """Play all learners in all worlds with all seeds; ``criterion`` defaults to the scenario's own."""
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
    """The total loss of playing the best policy of each episode, for losses that do not react."""
    return sum(best_response(mdp, losses.at(t))[1] for t in range(episodes))


def _arrays(found: dict[tuple[str, str], list[float]]) -> dict[tuple[str, str], FloatArray]:
    return {key: np.array(values) for key, values in found.items()}


def shown(values: ArrayLike, digits: int = 3) -> str:
    """Mean and standard error, with ``digits`` decimals; a single seed has no error."""
    found = floats(values, "values")
    mean = f"{found.mean():z,.{digits}f}"
    return mean if len(found) == 1 else f"{mean} ± {found.std(ddof=1) / np.sqrt(len(found)):,.{digits}f}"


def example(main: Callable[[], None]) -> None:
    """Run an example; on Ctrl-C, print one line and exit with the code that shells expect."""
    try:
        main()
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        raise SystemExit(130) from None


def count(text: str) -> int:
    """Parse a number of episodes or seeds."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r}; expected 1 or more")
    return int(text)


def part(text: str) -> float:
    """Parse a number from 0 to 1."""
    try:
        return fraction("", float(text))
    except ValueError:
        raise ArgumentTypeError(f"{text!r}; expected a number from 0 to 1") from None


def picture(text: str) -> Path:
    """Parse the path of a picture, so that a bad path fails before anything is played."""
    path = Path(text)
    if path.suffix != ".png" or path.is_dir() or not path.resolve().parent.is_dir():
        raise ArgumentTypeError(f"{text!r}; expected a .png file in an existing folder")
    return path


def paper() -> Console:
    """A console for tables: as wide as the terminal, or 120 columns without one."""
    return Console() if sys.stdout.isatty() else Console(width=120)


class OnTheMean(Learner):
    """Lets a learner for scalar losses play vector losses: it sees their mean."""

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
