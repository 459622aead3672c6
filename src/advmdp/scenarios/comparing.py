"""Learners side by side in scenarios, over seeds: what the regret of an episode is in the scenario's own units.

For learner i in world w, over the seeds s,

    regret(i, w) = mean over s of  scale * R_{1:T}(i, w, s) / T,   with the standard error of that mean,

so a number says what the best fixed policy of all these episodes would have saved in each; below zero is better than
every fixed policy.  A criterion other than the scenario's own is no money, and counts as it is.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

from advmdp.arrays import FloatArray, floats
from advmdp.criteria import Criterion
from advmdp.learners.base import Learner
from advmdp.mdp import Trajectory
from advmdp.playing import Game, play
from advmdp.scenarios.base import Scenario

__all__ = ["Comparison", "OnTheMean", "compare", "shown"]

Learners = Callable[[Scenario, Criterion, int], Mapping[str, Learner]]
"""(scenario, criterion, episodes) -> learners that know nothing yet, by what they are called."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """What came of it, by learner and world, one number for each seed."""

    regret: dict[tuple[str, str], FloatArray]
    """Of an episode."""
    best: dict[str, FloatArray]
    """What an episode of the best fixed policy costs, by world."""
    last: dict[tuple[str, str], Game]
    """The games of the last seed."""

    def table(self, title: str, footer: str) -> Table:
        """A row for each learner, the least of each world in green, and what the best fixed policy pays."""
        table = Table(title=title)
        table.add_column("learner")
        for world in self.best:
            table.add_column(world, justify="right")
        least = {world: min(v.mean() for (_, at), v in self.regret.items() if at == world) for world in self.best}
        for name in dict.fromkeys(name for name, _ in self.regret):
            cells = []
            for world in self.best:
                values = self.regret[name, world]
                cells.append(f"[green]{shown(values)}[/]" if values.mean() == least[world] else shown(values))
            table.add_row(name, *cells)
        table.add_section()
        table.add_row(footer, *(f"{values.mean():,.3f}" for values in self.best.values()))
        return table


def compare(
    worlds: Mapping[str, Scenario], learners: Learners, episodes: int, seeds: Sequence[int],
    criterion: Criterion | None = None,
) -> Comparison:  # fmt: skip
    """Play all learners in all worlds with all seeds; ``criterion`` is the scenario's own unless said."""
    regret: dict[tuple[str, str], list[float]] = {}
    best: dict[str, list[float]] = {}
    last: dict[tuple[str, str], Game] = {}
    todo = [(world, seed) for world in worlds for seed in seeds]
    for world, seed in track(todo, "playing", console=Console(stderr=True), disable=not sys.stderr.isatty()):
        scenario = worlds[world]
        losses, wanted = scenario.losses_from(seed), criterion or scenario.criterion
        own = wanted == scenario.criterion
        for name, learner in learners(scenario, wanted, episodes).items():
            game = play(scenario.mdp, losses, learner, episodes, seed, criterion=wanted, comparator_at="end")
            regret.setdefault((name, world), []).append((scenario.scale if own else 1.0) * game.regret / episodes)
            last[name, world] = game
        value = game.comparator.value
        best.setdefault(world, []).append((scenario.money(value, episodes) if own else value) / episodes)
    arrays = {key: np.array(values) for key, values in regret.items()}
    return Comparison(arrays, {world: np.array(values) for world, values in best.items()}, last)


def shown(values: ArrayLike) -> str:
    """Mean and standard error, to three digits; a single seed has no error."""
    found = floats(values, "values")
    mean = f"{found.mean():,.3f}"
    return mean if len(found) == 1 else f"{mean} ± {found.std(ddof=1) / np.sqrt(len(found)):,.3f}"


class OnTheMean(Learner):
    """A learner for one loss, shown the mean of several."""

    optimises = "any"

    def __init__(self, inner: Learner, criterion: Criterion) -> None:
        super().__init__(inner.skeleton, criterion)
        self.inner = inner

    @property
    def policy(self) -> FloatArray:
        return self.inner.policy

    def update(self, trajectory: Trajectory, loss: ArrayLike) -> None:
        self.inner.update(trajectory, floats(loss, "loss").mean(axis=1))
        self.episode += 1

    @property
    def parameters(self) -> dict[str, Any]:
        return {"inner": self.inner.description()}

    def state(self) -> dict[str, NDArray[Any]]:
        return self.inner.state()

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        self.inner.restore(state)
