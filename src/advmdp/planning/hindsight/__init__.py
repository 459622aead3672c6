"""The comparator of the regret: the best stationary policy in hindsight, and a proof of how good it is.

Sections 2 and 3 of the paper.  The regret compares with

    min over q in Delta(M) of G_T(q),        G_T(q) = sum_{t < T} f^C(q; l_t),

for the true P, at the horizon and at shorter prefixes T_1 < T_2 < ... of the same sequence.  Each pass draws the
sequence again, block by block, so memory does not grow with T.  The passes dominate the run time.

Pairs.  In Delta(M) the rows of q are those of P, so the vector x = (q(x, a)) over pairs determines q.  The criteria of
the paper depend on a loss only through its means over successors, sum_{x'} P(x'|x, a) l(x, a, x').  The parts that are
linear in q sum to one vector.

Sums.  TEL sums to a linear form, and RISK with c = 2 to a quadratic one, <b, x> + <x, H x> / 2.  One pass computes them
for all prefixes.  Then backward induction or a quadratic program gives the minimum.

Cuts.  Any other G_T is evaluated at points y.  Each gives a cut, the linear lower bound height(y) + <slope(y), x - y>.
A convex combination of cuts is a lower bound too, and backward induction finds its minimum over Delta(M).  This minimum
is ``lower``; it is proven whatever the weights.  A linear program finds the best weights, and a point where the cuts
are least informative.  The next pass evaluates points between the best one so far and that point.

Curvature.  If f^C is a table of terms, a pass first tries Newton's step: the minimiser of the quadratic model of G_T
over Delta(M).  MM has no second derivative.  There the maximum of d losses is replaced by their mean with weights
proportional to exp(<q, l[:, i]> / mu), which gives lower bounds as well, and mu decreases as the steps become small.
"""

from advmdp.planning.hindsight.answer import Comparator
from advmdp.planning.hindsight.best_policy import comparator, comparators, total_comparator
from advmdp.planning.hindsight.sequence import Blocks, Played
from advmdp.planning.hindsight.switching import SwitchingComparator, check_switching, switching_comparator

__all__ = [
    "Blocks",
    "Comparator",
    "Played",
    "SwitchingComparator",
    "check_switching",
    "comparator",
    "comparators",
    "switching_comparator",
    "total_comparator",
]
