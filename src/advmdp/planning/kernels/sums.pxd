# The C signatures of `sums.py`.

from advmdp.core.kernels.types cimport Floats, Index, Reals

cdef void add_to(Floats total, double weight, Reals row, Index size) noexcept nogil
