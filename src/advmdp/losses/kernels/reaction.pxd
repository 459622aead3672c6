# The C signatures of `reaction.py`.

from advmdp.core.kernels.philox cimport Stream
from advmdp.core.kernels.types cimport Floats, Index, Ints, Reals

cdef struct Answer:
    Reals base
    Reals before
    Floats policies
    Floats losses
    Stream stream  # the noise, starting at the block
    double strength
    double noise
    Index kept  # rows of `before`
    Index played  # episodes before the block, at most `memory`
    Index memory
    Index pairs
    Index transitions
    Index dimensions

cdef class Reaction:
    cdef Answer view
    cdef readonly object base
    cdef readonly object before
    cdef readonly object policies
    cdef readonly object losses

cdef double preference(const Answer *answer, Index b, Index past, Index p) noexcept nogil
cdef void react(const Answer *answer, Index b, Reals policy, Ints transition_ptr) noexcept nogil
