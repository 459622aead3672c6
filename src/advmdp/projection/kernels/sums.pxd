# Compiled so that sums may be reordered into vector registers; the order is fixed in the binary.

from .types cimport Floats, Index, Reals, Work

cdef double sum_of(Reals values, Index size) noexcept nogil
cdef double dot(Reals a, Reals b, Index size) noexcept nogil
cdef double distance(Reals weight, Reals center, Index size) noexcept nogil
cdef void add_multiple(Floats target, double factor, Reals source, Index size) noexcept nogil
cdef double orthogonalise(Floats basis, Index size, Index k, Floats h, Index width) noexcept nogil
