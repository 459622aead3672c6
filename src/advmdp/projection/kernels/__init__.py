"""The kernels of the projection, from the inside out.

``exact.py`` (exponential, logarithm), ``sums.py``, ``rows.py`` with ``log_rows.py`` (one pair), ``weights.py`` and
``dual.py`` (all pairs at one beta), ``newton.py`` and ``direct.py`` (the step in beta), ``far.py`` (masses outside the
range of float64), ``answer.py`` (a feasible q from the rows), ``certificate.py`` with ``certificate_sums.py`` (a bound
on the distance from the optimum), ``solver.py`` (the loop), ``memory.py`` (the owners of the arrays).

:mod:`advmdp.projection.reference` does the same in plain NumPy, to be read first: ``ball_rows`` and ``box_rows``
(``rows.py``), ``evaluate`` (``weights.py``, ``dual.py``), ``hessian`` (``newton.py``), ``minimise`` (``solver.py``),
``push_forward`` (``answer.py``).

Each is an extension module in Cython's pure Python mode. The ``.pxd`` file of the same name is its header, with the C
types of all functions. ``types.pxd`` has the shared structs.
"""

from advmdp.core.processor import kernel_path

__path__ = kernel_path(__path__)
