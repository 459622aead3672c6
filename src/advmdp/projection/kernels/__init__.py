"""The kernels of the projection, from the inside out.

``exponential.py``, ``logarithm.py``, ``lanes.py`` (several numbers at once), ``rows.py`` with ``ball.py`` and
``box.py`` (one pair), ``weights.py`` and ``dual.py`` (all pairs at one beta), ``newton.py`` and ``direct.py`` (the step
in beta), ``far.py`` (masses beyond the float64), ``answer.py`` (a feasible q from the rows), ``certificate.py`` (how
far it may be from the optimum), ``solver.py`` (the loop).
"""
