"""The layers divided between threads.

What flows into a layer comes from the layer before it alone. A thread that owns whole layers shares no sum with any
other, every sum keeps its order, and the answer is the same to the last bit for any number of threads. A pass over
everything is written as a pass over one part; small problems are one part, and no thread is ever asked for.
"""

from typing import NamedTuple

import numpy as np

from advmdp.projection.kernels.compiled import compiled_inline
from advmdp.projection.kernels.types import Ints, Structure, Work


class Part(NamedTuple):
    """States first .. end, the states into .. into_end that they lead to, and their place among the watched pairs."""

    number: np.int64
    first: int
    end: int
    into: int
    into_end: int
    watched: int
    watched_end: int


@compiled_inline
def part_of(structure: Structure, work: Work, number: int) -> Part:
    """The part with the given number."""
    first, end = structure.parts[number], structure.parts[number + 1]
    layer_ptr, watched = structure.layer_ptr, work.watched_parts
    return Part(
        np.int64(number), layer_ptr[first], layer_ptr[end], layer_ptr[first + 1], layer_ptr[end + 1], watched[number],
        watched[number + 1],
    )  # fmt: skip


def divide(layer_transition_ptr: Ints, threads: int) -> Ints:
    """Cut the layers into one range per thread, each with about as many transitions as the others."""
    steps = len(layer_transition_ptr) - 1
    shares = layer_transition_ptr[-1] * np.arange(1, threads) / threads
    cuts = np.abs(layer_transition_ptr[:, None] - shares).argmin(axis=0)
    return np.unique(np.concatenate([[0], cuts, [steps]])).astype(np.int64)
