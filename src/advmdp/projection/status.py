"""The statuses of a projection: one enumeration for kernels and callers, with one message each."""

from enum import IntEnum

LARGEST_LOG_WEIGHT = 1e8
"""Beyond it, a float64 cannot distinguish weights that differ by a millionth."""


class Status(IntEnum):
    """How a projection ended."""

    SOLVED = 0
    NO_PATH = 1
    STALLED = 2
    UNFIT = 3
    UNEVEN = 4

    @property
    def message(self) -> str:
        """The status in words."""
        return MESSAGES[self]


MESSAGES = {
    Status.SOLVED: "solved and certified",
    Status.NO_PATH: "infeasible: no path whose rows lie in their sets and have positive weights",
    Status.STALLED: "not solved to the tolerance, or not certified",
    Status.UNFIT: f"log weights beyond {LARGEST_LOG_WEIGHT:g}, or NaN",
    Status.UNEVEN: "log weights with a large common offset within a layer; subtract it first",
}
