"""The KL projection of weights onto the occupancy measures of a confidence set (Theorem 4.2, as corrected).

    q = argmin D(q || w)   over q with layer sums 1, conserved flow, and every row q(x, a, .) / q(x, a) in C(x, a)

``projector.py`` is the way in, ``kernels/`` solves it.  Plain NumPy, as a check: ``verification.py`` (an answer),
``reference.py`` (the whole projection).  ``printed_dual.py`` is what the paper prints instead, for comparison only.
"""
