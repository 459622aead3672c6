"""The ledger: the exact cost of a game, and the cost of the best fixed policy.

Section 5 of the paper.  With q_t the learner's occupancy measure, P^{q_t} and pi_t its dynamics and policy,

    R_{1:T} = R^APP + R^ON,    R^APP = sum_t f(q^{P, pi_t}; l_t) - f(q_t; l_t),
                               R^ON  = sum_t f(q_t; l_t) - min over q in Delta(M) of sum_t f(q; l_t).

Every f(q^{P, pi_t}; l_t) is an expectation over trajectories under the true P, computed and not sampled.  So regret is
exact up to the gap of the comparator (zero for the total loss).  Sums run in the order of the episodes, so the ledger
is the same to the bit however a game was divided into blocks.  It gets a line at each of the :func:`marks`, twenty per
decade.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import MOST, FloatArray, real, whole
from advmdp.core.errors import InputError

if TYPE_CHECKING:
    import polars as pl

PER_DECADE = 20
LINE = {"episode", "loss", "believed", "projection_gap"}
"""The entries of every line; a game adds its own."""


KNOWN = LINE | {"epochs", "radius", "comparator", "comparator_gap", "bound"}
"""The entries that the library itself writes into a line."""
CURVE = (
    "episode", "loss", "comparator", "regret", "regret_approximation", "regret_online", "bound", "epochs", "radius",
    "projection_gap", "comparator_gap",
)  # fmt: skip
"""The columns that every curve has."""


def marks(episodes: int) -> NDArray[np.int64]:
    """The episodes 1, 2, ... at which the ledger gets a line: spaced evenly on a logarithmic scale, and the last."""
    decades = np.arange(int(np.ceil(PER_DECADE * np.log10(episodes + 1))) + 1)
    grid = np.round(10.0 ** (decades / PER_DECADE)).astype(np.int64)
    return np.unique(np.append(grid[grid < episodes], episodes))


def curve(
    lines: Sequence[Mapping[str, float | None]],
    switching: Mapping[int, FloatArray] | None = None,
    marked: Iterable[str] = (),
) -> "pl.DataFrame":
    """The lines of a game as a frame, with regret and its two parts; missing entries are null.

    ``marked`` names the learner's own columns (:meth:`advmdp.Learner.marked`).  ``switching`` maps S to the cost of the
    best sequence with S switches at each line; the frame gets the regret against it.

    The frame is built column by column.  Polars expressions would wait for threads, which a forked process lacks.
    """
    import polars as pl

    def column(name: str) -> pl.Series:
        return pl.Series([line.get(name) for line in lines], dtype=pl.Float64)

    loss, believed, best = column("loss"), column("believed"), column("comparator")
    dynamic = {f"regret_switches_{most}": loss - pl.Series(paid) for most, paid in (switching or {}).items()}
    return pl.DataFrame(
        {
            "episode": column("episode").cast(pl.Int64), "loss": loss, "comparator": best, "regret": loss - best,
            "regret_approximation": loss - believed, "regret_online": believed - best, "bound": column("bound"),
            "epochs": column("epochs").cast(pl.Int64), "radius": column("radius"),
            "projection_gap": column("projection_gap"), "comparator_gap": column("comparator_gap"),
            **{name: column(name) for name in marked}, **dynamic,
        }
    )  # fmt: skip


@dataclass
class Ledger:
    """Running sums over the episodes so far, and a line for each mark reached."""

    total: FloatArray
    """(n, d): the sum of the losses."""
    episodes: int = 0
    paid: float = 0.0
    believed: float = 0.0
    gap: float = 0.0
    """The largest gap of a projection."""
    lines: list[dict[str, float]] = field(default_factory=list)

    def add(self, paid: FloatArray, believed: FloatArray, gap: FloatArray) -> None:
        """Enter a block of episodes in order."""
        self.episodes += len(paid)
        self.paid = float(np.cumsum(np.append(self.paid, paid))[-1])
        self.believed = float(np.cumsum(np.append(self.believed, believed))[-1])
        self.gap = max(self.gap, float(gap.max()))

    def mark(self, **more: float) -> None:
        """Add a line with the current sums."""
        sums = {"loss": self.paid, "believed": self.believed, "projection_gap": self.gap}
        self.lines.append({"episode": self.episodes, **sums, **more})

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The whole ledger, for a file; JSON keeps floats to the bit."""
        numbers = {name: getattr(self, name) for name in ("episodes", "paid", "believed", "gap", "lines")}
        return numbers, {"total": self.total}

    @classmethod
    def of(
        cls, numbers: dict[str, Any], total: FloatArray, columns: Set[str], optional: Set[str] = frozenset()
    ) -> "Ledger":
        """Restore the result of :meth:`state`, with these columns in each line; raise if no game leads to it.

        Older files may lack the ``optional`` columns.
        """
        episodes, lines = whole("episodes", numbers["episodes"], 0, MOST), numbers["lines"]
        sums = {name: _finite(f"ledger, {name}", numbers[name]) for name in ("paid", "believed", "gap")}
        if not ((total >= 0.0) & (total <= episodes)).all():
            raise InputError("total", "sums of losses out of range", f"from 0 to {episodes}, one for each episode")
        before = 0
        for line in lines:
            where = f"ledger, the line of episode {line.get('episode')}"
            if not columns - optional <= line.keys() <= columns:
                raise InputError(where, ", ".join(line), ", ".join(columns))
            for name, value in line.items():
                _finite(f"{where}, {name}", value, MOST if name == "epochs" else inf)
            before = whole(where, line["episode"], before + 1, episodes)
        return cls(total=total, episodes=episodes, lines=lines, **sums)


def _finite(where: str, value: object, most: float = inf) -> float:
    number = real(value)
    if not isfinite(number) or abs(number) > most:
        raise InputError(where, f"{value!r}", f"a finite number{'' if most == inf else f', at most {most:g}'}")
    return number
