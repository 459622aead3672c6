"""Recorded losses, replayed from arrays and files; ``reading.py`` reads them."""

from os import PathLike, fspath
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from advmdp.core.arrays import FloatArray
from advmdp.core.errors import InputError
from advmdp.losses.base import Losses, Policies
from advmdp.losses.reading import read_array, read_file, rescaling
from advmdp.model.skeleton import Skeleton


class Replay(Losses):
    """Recorded losses: one row an episode, from an array (memory-mapped or not) or a CSV or Parquet file.

    A row has one number for each transition in order, or one for each pair, which then holds for all its successors;
    with ``dimensions=d`` it has d side by side for each (an array may have them as a last axis).

    A file has a header line.  Where its names are those of ``Skeleton.pair_label`` or ``transition_label`` ("home/bus",
    with d losses "home/bus:0", "home/bus:1", ...) columns are found by name, else they count by their place.  A file is
    read once, when the sequence is made, and may be larger than memory (see :mod:`advmdp.losses.reading`).

    Losses must lie in [0, 1].  Raw costs c are mapped by ``rescale=(low, high)`` to (c - low) / (high - low), or by
    ``rescale="range"`` with the least and the greatest cost of the whole recording.  One affine map for all entries
    keeps every comparison between policies: regret in losses times (high - low) is regret in costs.
    """

    def __init__(
        self,
        skeleton: Skeleton,
        source: ArrayLike | str | PathLike[str],
        dimensions: int | None = None,
        rescale: tuple[float, float] | Literal["range"] | None = None,
    ) -> None:
        super().__init__(skeleton, dimensions)
        d = self.dimensions or 1
        owners = (skeleton.num_transitions, skeleton.num_pairs)
        if isinstance(source, str | PathLike):
            recording = read_file(fspath(source), self._labels())
        else:
            several = {(n,) for n in owners} if self.dimensions is None else {(n, d) for n in owners}
            recording = read_array(source, several | {(n * d,) for n in owners})
        if recording.width not in {n * d for n in owners}:
            expected = f"{owners[0] * d} (one per transition) or {owners[1] * d} (one per pair), separated by commas"
            raise InputError(recording.name, f"{recording.width} columns", expected)
        self.low, self.high = rescaling(recording, rescale)
        self.episodes = len(recording.rows)
        self._recording = recording
        self._by_pair = recording.width == owners[1] * d

    def _labels(self) -> list[list[str]]:
        """The names that the columns of a file may have, by pairs or by transitions."""
        sk = self.skeleton
        pairs = [sk.pair_label(p) for p in range(sk.num_pairs)]
        transitions = [sk.transition_label(i) for i in range(sk.num_transitions)]
        if self.dimensions is None:
            return [pairs, transitions]
        return [[f"{label}:{j}" for label in names for j in range(self.dimensions)] for names in (pairs, transitions)]

    def _block(self, first: int, stop: int, policies: Policies | None) -> FloatArray:
        losses = (self._recording.read(first, stop) - self.low) / (self.high - self.low)
        if not self._by_pair:
            return losses
        pairs = losses.reshape(stop - first, self.skeleton.num_pairs, self.dimensions or 1)
        return np.repeat(pairs, np.diff(self.skeleton.transition_ptr), axis=1)
