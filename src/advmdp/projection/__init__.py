"""The KL projection of weights onto the occupancy measures of a confidence set (Theorem 4.2, as corrected).

    q = argmin D(q || w)   over q with layer sums 1, conserved flow, and every row q(x, a, .) / q(x, a) in C(x, a)

``projector.py`` is the way in.  The kernels, from the inside out: ``exponential.py``, ``logarithm.py``, ``lanes.py``
(several numbers at once), ``rows.py`` with ``ball.py`` and ``box.py`` (one pair), ``weights.py`` and ``dual.py`` (all
pairs at one beta), ``newton.py`` and ``direct.py`` (the step in beta), ``far.py`` (masses beyond the float64),
``answer.py`` (a feasible q from the rows), ``certificate.py`` (how far it may be from the optimum), ``solver.py`` (the
loop).  Plain NumPy, as a check: ``verification.py`` (an answer), ``reference.py`` (the whole projection).
``printed_dual.py`` is what the paper prints instead, for comparison only.
"""
