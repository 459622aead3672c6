# The C signatures of `optimism.py`.

from libc.stdint cimport int8_t

from advmdp.core.kernels.types cimport Counters, Floats, Index, Ints, Reals
from advmdp.model.kernels.world cimport World
from advmdp.projection.kernels.types cimport Sets

cdef struct Planning:
    Floats policy
    Floats values
    Floats keys  # scratch, over the transitions of a pair
    Counters heap  # scratch, the same
    Counters order  # scratch, the same: a layer's states from the least value to the largest
    const int8_t *whole
    Index widest

cdef class Plan:
    cdef Planning view
    cdef readonly object policy
    cdef readonly object values
    cdef readonly tuple scratch

cdef void induct(const World *world, const Sets *sets, Reals loss, Reals cost, double floor, double span,
                 Planning *plan) noexcept nogil
cdef void appraise(const World *world, const Sets *sets, Reals loss, Planning *plan, Floats pairs) noexcept nogil
cdef double largest_reach(const World *world, const Sets *sets, Index k, Index x, Planning *plan) noexcept nogil
cdef double largest_visit(const World *world, const Sets *sets, Ints of, Index group, Index last,
                          Planning *plan) noexcept nogil
cdef void sort_layer(Reals values, Index width, Planning *plan) noexcept nogil
cdef double fill_layer(const World *world, const Sets *sets, Index p, Reals values, Index width,
                       const Planning *plan) noexcept nogil
cdef double reach_row(const World *world, const Sets *sets, Index p, Planning *plan) noexcept nogil
cdef double least_mean(const World *world, const Sets *sets, Index p, Planning *plan) noexcept nogil
cdef double fill(const Sets *sets, Index first, Index width, double room, Planning *plan) noexcept nogil
cdef double drain(const Sets *sets, Index first, Index width, Index best, double move, Planning *plan) noexcept nogil
cdef void heapify(Reals keys, Counters heap, Index count, double sign) noexcept nogil
cdef void sift(Reals keys, Counters heap, Index j, Index count, double sign) noexcept nogil
