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
    """Recorded losses: a CSV or Parquet file, or an array, with a row for each episode.

    A row has one number for each transition, or one for each pair. With ``dimensions=d`` it has d numbers side by
    side for each. A file has a header. If its names are those of ``Skeleton.pair_label`` or
    ``Skeleton.transition_label``, such as ``home/bus``, or ``home/bus:0`` and ``home/bus:1`` for several losses,
    columns are found by name; otherwise by position. A file is read once and may be larger than memory.

    Parameters
    ----------
    skeleton
        The skeleton.
    source
        The array or the file.
    dimensions
        The number d of losses at once; one by default.
    rescale
        How to map costs c to losses in [0, 1]: (low, high) gives (c - low) / (high - low); "range" uses the smallest
        and the largest cost of the recording. Comparisons between policies stay the same. By default the numbers are
        losses.

    Raises
    ------
    InputError
        If the file cannot be read, if columns are missing, or if a loss is outside [0, 1].

    Examples
    --------
    >>> import advmdp as am
    >>> sk = am.Skeleton.dense([1, 1], actions=2)
    >>> losses = am.losses.Replay(sk, [[10.0, 20.0], [30.0, 20.0]], rescale=(10.0, 30.0))
    >>> losses.episodes, losses.at(1).tolist()
    (2, [1.0, 0.5])
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
