"""Importance weighting: an estimate of the whole loss from the losses along one path.

    l^(x, a) = l(x, a, x') / d(x, a)   if the path went through (x, a),   else 0

With d = q_t(x, a), the probability of the visit, E[l^(x, a)] = sum_{x'} P(x'|x, a) l(x, a, x'): the estimate is
unbiased for what a pair costs, and so <q, l^> is for <q, l> of every q of the same dynamics.  A larger d makes it
smaller: then it is biased downwards, and varies less.
"""

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray
from advmdp.core.compiling import compiled


@compiled
def estimate(
    transition_ptr: NDArray[np.int64],
    pairs: NDArray[np.int64],
    seen: FloatArray,
    chance: FloatArray,
    out: FloatArray,
) -> None:
    """l^ over transitions, where ``chance[k]`` is d of the pair at step k; the transitions of a pair have the same."""
    out[:] = 0.0
    for k in range(len(pairs)):
        for i in range(transition_ptr[pairs[k]], transition_ptr[pairs[k] + 1]):
            out[i] = seen[k] / chance[k]
