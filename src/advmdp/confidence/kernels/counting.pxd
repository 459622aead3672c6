# The C signatures of `counting.py`.

from advmdp.core.kernels.types cimport Counters, Floats, Index, Ints

cdef bint count_path(Ints visits, Counters new_visits, Counters new_seen, Ints pairs, Ints transitions,
                     Index steps) noexcept nogil
cdef void tally(Ints transition_ptr, Counters visits, Counters seen, Floats estimate, Ints pairs, Ints transitions,
                Index steps) noexcept nogil
