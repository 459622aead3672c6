"""The ledger: what a game has cost, exactly, and what the best fixed policy would have paid.

Section 5 of the paper.  With q_t what the learner believes, P^{q_t} and pi_t its dynamics and policy,

    R_{1:T} = R^APP + R^ON,    R^APP = sum_t f(q^{P, pi_t}; l_t) - f(q_t; l_t),
                               R^ON  = sum_t f(q_t; l_t) - min over q in Delta(M) of sum_t f(q; l_t).

Every f(q^{P, pi_t}; l_t) is an expectation over trajectories under the true P, worked out and not sampled, so regret
is exact up to the gap of the comparator (zero for the total loss).  Sums run in the order of the episodes whatever
blocks these come in, so the ledger is the same to the bit however a game was cut up.  It is written up at
:func:`marks`, twenty to a decade.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advmdp.arrays import FloatArray

__all__ = ["Ledger", "marks"]

PER_DECADE = 20


def marks(episodes: int) -> NDArray[np.int64]:
    """1, 2, ..., evenly spaced on a logarithmic scale where they become many, and the last."""
    decades = np.arange(int(np.ceil(PER_DECADE * np.log10(episodes + 1))) + 1)
    grid = np.round(10.0 ** (decades / PER_DECADE)).astype(np.int64)
    return np.unique(np.append(grid[grid < episodes], episodes))


@dataclass
class Ledger:
    """Running sums over the episodes so far, and a line for each mark that was passed."""

    total: FloatArray
    """(n, d): the sum of the losses."""
    episodes: int = 0
    paid: float = 0.0
    believed: float = 0.0
    gap: float = 0.0
    """The largest gap of a projection."""
    lines: list[dict[str, float]] = field(default_factory=list)

    def add(self, paid: FloatArray, believed: FloatArray, gap: FloatArray) -> None:
        """Enter a block of episodes, one after the other."""
        self.episodes += len(paid)
        self.paid = float(np.cumsum(np.append(self.paid, paid))[-1])
        self.believed = float(np.cumsum(np.append(self.believed, believed))[-1])
        self.gap = max(self.gap, float(gap.max()))

    def mark(self, **more: float) -> None:
        """Write up where the game stands."""
        sums = {"loss": self.paid, "believed": self.believed, "projection_gap": self.gap}
        self.lines.append({"episode": self.episodes, **sums, **more})

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Everything, for a file: Python writes and reads floats to the bit."""
        numbers = {name: getattr(self, name) for name in ("episodes", "paid", "believed", "gap", "lines")}
        return numbers, {"total": self.total}

    @classmethod
    def of(cls, numbers: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> "Ledger":
        """What :meth:`state` gave."""
        for line in numbers["lines"]:
            if not all(isinstance(value, int | float) for value in line.values()):
                raise ValueError(f"a line {line}")
        return cls(total=arrays["total"], **numbers)
