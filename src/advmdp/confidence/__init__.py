"""Confidence sets for unknown dynamics: the sets, the counters they come from, and their radii."""

from advmdp.confidence.counts import Counts, count_path, tally
from advmdp.confidence.radii import bernstein_set, l1_set
from advmdp.confidence.sets import FREE, ROUNDING, Box, L1Ball, Point, RowSet, RowSets

__all__ = [
    "FREE",
    "ROUNDING",
    "Box",
    "Counts",
    "L1Ball",
    "Point",
    "RowSet",
    "RowSets",
    "bernstein_set",
    "count_path",
    "l1_set",
    "tally",
]
