"""Confidence sets made of counters: how far estimates may be from the truth.

Pbar = M / max(1, N),   epsilon(x, a) = sqrt(2 S ln(T|X||A|/delta) / max(1, N)),  S = |X_{k+1}| or fewer,
epsilon(x'|x, a) = 2 sqrt(Pbar u / max(1, N-1)) + 14 u / (3 max(1, N-1)),  u = ln(T|X||A|/delta)
"""

import numpy as np

from advmdp.confidence.counts import Counts
from advmdp.confidence.sets import Box, L1Ball
from advmdp.core.arrays import FloatArray
from advmdp.model.skeleton import Skeleton


def l1_set(sk: Skeleton, counts: Counts, log_term: FloatArray | float, scale: float, possible: bool) -> L1Ball:
    """The set of Section 4.1, radii times ``scale``; S counts the ``possible`` successors or the whole next layer."""
    over = np.diff(sk.transition_ptr) if possible else np.repeat(sk.layer_sizes[1:], np.diff(sk.layer_pair_ptr))
    radius = scale * np.sqrt(2.0 * over * log_term / np.maximum(1, counts.visits))
    return L1Ball(counts.center(sk), radius)


def bernstein_set(sk: Skeleton, counts: Counts, log_term: FloatArray | float, scale: float) -> Box:
    """Empirical Bernstein bounds on each probability on its own, their widths times ``scale``."""
    center, fewer = counts.center(sk), np.maximum(1, counts.visits - 1)
    u = sk.over_transitions(np.broadcast_to(log_term, fewer.shape) / fewer)
    width = scale * (2.0 * np.sqrt(center * u) + 14.0 / 3.0 * u)
    width = np.where(sk.over_transitions(counts.visits == 0), 1.0, width)
    return Box(np.maximum(0.0, center - width), np.minimum(1.0, center + width))
