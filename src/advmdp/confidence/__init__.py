"""Confidence sets for unknown dynamics: the sets, the counters behind them, and their radii."""

from advmdp.confidence.counts import Counts
from advmdp.confidence.pooling import Kinds
from advmdp.confidence.radii import (
    CHOICES,
    INSIDE_THE_PAPERS,
    Confidence,
    bernstein_set,
    chernoff_set,
    confidence_set,
    inside,
    kinds_for,
    l1_set,
    log_at_all_times,
    pointwise_set,
    weissman_set,
)
from advmdp.confidence.recent import Recent, recent_counts
from advmdp.confidence.sets import FREE, ROUNDING, Box, L1Ball, Point, RowSet, RowSets

__all__ = [
    "CHOICES",
    "FREE",
    "INSIDE_THE_PAPERS",
    "ROUNDING",
    "Box",
    "Confidence",
    "Counts",
    "Kinds",
    "L1Ball",
    "Point",
    "Recent",
    "RowSet",
    "RowSets",
    "bernstein_set",
    "chernoff_set",
    "confidence_set",
    "inside",
    "kinds_for",
    "l1_set",
    "log_at_all_times",
    "pointwise_set",
    "recent_counts",
    "weissman_set",
]
