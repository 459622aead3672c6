"""Performance criteria, which say what a learner minimises: functions f^C(q; l) that are convex in q.

Sections 2 and 3 of the paper.  With v_k the expected loss of step k, the sum of q times l over layer k,

    TEL   (Example 2.1)   sum_k v_k = <q, l>                                     F = 1
    MM    (Example 2.2)   max_i <q, l[:, i]>,  l in [0, 1]^d                     F = 1
    RISK  (Example 2.3)   alpha (sum_k v_k)^c + (1 - alpha) sum_k v_k^c          F = alpha c L^(c-1) + (1 - alpha) c
          (by Lemma 3.2)  alpha <q, l>^c + (1 - alpha) <q, l^c>                  F = alpha c L^(c-1) + (1 - alpha)

and by Lemma 3.2 every g({<q, h_j(l)>}_j) with g convex.  The algorithms and their bounds use three things: the value, a
subgradient z of f^C(.; l) at q, and F, a bound on the entries of |z| for losses in [0, 1].  Sums and non-negative
multiples of criteria are criteria.

The criteria of the examples and their sums are plain data: a table of terms.  The kernel :func:`evaluate_terms`
evaluates it both in compiled loops and when called from Python, so both give the same bits.  In the table, TEL and MM
are RISK with alpha = c = 1.
"""

from advmdp.criteria.built_in import (
    KINDS,
    RISK,
    RISK_LEMMA,
    TOTAL,
    WORST,
    Criterion,
    Risk,
    TotalLoss,
    WeightedSum,
    WorstCase,
    criterion_from,
    table_of,
)
from advmdp.criteria.custom import Composite, CvxpyCriterion, FunctionCriterion
from advmdp.criteria.kernels.terms import evaluate as evaluate_terms

__all__ = [
    "KINDS",
    "RISK",
    "RISK_LEMMA",
    "TOTAL",
    "WORST",
    "Composite",
    "Criterion",
    "CvxpyCriterion",
    "FunctionCriterion",
    "Risk",
    "TotalLoss",
    "WeightedSum",
    "WorstCase",
    "criterion_from",
    "evaluate_terms",
    "table_of",
]
