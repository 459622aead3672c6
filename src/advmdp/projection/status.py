"""How a projection ends: one enumeration for kernels and callers, with one message each."""

from enum import IntEnum

LARGEST_LOG_WEIGHT = 1e8
"""Beyond it a float64 no longer tells weights apart that differ by a millionth."""


class Status(IntEnum):
    """What became of a projection."""

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
    Status.NO_PATH: "no path on which every row keeps to its set and to weights above zero",
    Status.STALLED: "not solved to the tolerance, or not certified",
    Status.UNFIT: f"log weights beyond {LARGEST_LOG_WEIGHT:g}, or no numbers",
    Status.UNEVEN: "log weights that have much in common within a layer, which must be taken off first",
}
