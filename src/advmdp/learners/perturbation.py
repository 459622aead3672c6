"""Perturbations for following the perturbed leader: Y(x, a) ~ Exp(eta), independent for all pairs.

Each draw reads its own row of the stream of the learner's seed, so the m-th draw does not depend on the others.  The
mean is 1 / eta, and the expected maximum over n pairs is at most (ln n + 1) / eta.
"""

import numpy as np

from advmdp.core.arrays import FloatArray
from advmdp.core.streams import stream_key, uniforms


def perturbation(seed: int, learner: str, number: int, pairs: int, eta: float) -> FloatArray:
    """The draw with the given number, over pairs."""
    drawn: FloatArray = uniforms(stream_key(seed, "learner", learner), number, 1, pairs)[0]
    return -np.log1p(-drawn) / eta
