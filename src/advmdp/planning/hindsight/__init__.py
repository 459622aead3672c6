"""The comparator of the regret: the best stationary policy in hindsight, and a proof of how good it is.

Sections 2 and 3 of the paper.  The regret compares with

    min over q in Delta(M) of G_T(q),        G_T(q) = sum_{t < T} f^C(q; l_t),

for the true P; here at the horizon and at shorter prefixes T_1 < T_2 < ... of the same sequence.  The sequence is drawn
anew, block by block, on each pass over it: memory does not grow with T, and passes are what takes time.

Pairs.  In Delta(M) the rows of q are those of P, so all is said in x = (q(x, a)), a vector over pairs.  The criteria of
the paper see a loss through its means over successors, sum_{x'} P(x'|x, a) l(x, a, x'), and what of them is linear in q
adds up to one vector.

Sums.  TEL adds up to a linear form, RISK with c = 2 to a quadratic one, <b, x> + <x, H x> / 2.  One pass gathers them
for all prefixes; what is left is backward induction, or a quadratic program.

Cuts.  Every other G_T is looked at in points y, each of which gives a line below it, height(y) + <slope(y), x - y>.  A
convex combination of such lines is one too, and backward induction finds its least value over Delta(M).  That is
``lower``, proven for any weights; a linear program finds the best weights, and also a point that the lines know little
of, towards which the next pass looks from the best point known.

Curvature.  Where f^C is a table of terms, a pass first looks where Newton's method points: at the least point of the
quadratic model of G_T over Delta(M).  MM has no second derivative.  There the worst of d losses is replaced by their
mean with weights proportional to exp(<q, l[:, i]> / mu), which gives lines below as well, and mu descends as the steps
become small.
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
