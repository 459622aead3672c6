"""The KL projection of weights onto the occupancy measures of a confidence set (Theorem 4.2, as corrected).

    q = argmin D(q || w)   over q with layer sums 1, conserved flow, and every row q(x, a, .) / q(x, a) in C(x, a)

``projector.py`` is the entry point, ``kernels/`` the solver.  ``verification.py`` checks an answer in plain NumPy, and
``reference.py`` is the whole projection in plain NumPy.  ``printed_dual.py`` has the paper's version, for comparison.
"""
