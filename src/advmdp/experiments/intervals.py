"""Bootstrap intervals of means over seeds.

The interval of a mean over n seeds is a percentile bootstrap: draw n seeds with replacement, take the mean, and repeat
``resamples`` times; the interval contains a fraction ``level`` of these means.
"""

import numpy as np

from advmdp.core.arrays import FloatArray, whole
from advmdp.core.errors import InputError


class Draws:
    """Bootstrap resamples of seeds, the same for all data with equally many seeds."""

    def __init__(self, level: float, resamples: int, seed: int) -> None:
        if not 0.0 < level < 1.0:
            raise InputError("level", f"{level!r}", "a number between 0 and 1")
        self._tails = ((1.0 - level) / 2.0, (1.0 + level) / 2.0)
        self._resamples, self._seed = whole("resamples", resamples, 1), whole("seed", seed, 0)
        self._weights: dict[int, FloatArray] = {}

    def interval(self, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean, lower and upper end over the first axis, the seeds."""
        n = len(values)
        mean = values.mean(axis=0)
        if n == 1:
            return mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan)
        if n not in self._weights:
            # How often each seed is drawn: this makes the means of all resamples one matrix product.
            rng = np.random.default_rng(self._seed)
            self._weights[n] = rng.multinomial(n, np.full(n, 1.0 / n), self._resamples) / n
        low, high = np.quantile(self._weights[n] @ values, self._tails, axis=0)
        return mean, low, high
