"""Perturbations for followers of the perturbed leader: Y(x, a) ~ Exp(eta), independent for all pairs.

They are drawn from the stream of the learner's seed, a row of the stream for each draw, so that the m-th draw is the
same whenever it is asked for.  Mean 1 / eta, and the largest over n pairs is (ln n + 1) / eta or less on average.
"""

import numpy as np

from advmdp.core.arrays import FloatArray
from advmdp.core.streams import stream_key, uniforms


def perturbation(seed: int, learner: str, number: int, pairs: int, eta: float) -> FloatArray:
    """The draw with this number, over pairs."""
    drawn: FloatArray = uniforms(stream_key(seed, "learner", learner), number, 1, pairs)[0]
    return -np.log1p(-drawn) / eta
