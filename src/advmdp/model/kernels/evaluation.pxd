# The C signatures of `evaluation.py`.

from advmdp.core.kernels.types cimport Counters, Floats, Index, Reals
from advmdp.model.kernels.world cimport World

cdef struct Broken:
    # Where a policy is not a distribution, or a value is not finite; -1 for neither.
    Index state
    Index pair

cdef double row_total(Reals weights, Index first, Index last) noexcept nogil
cdef Index first_broken(const World *world, Reals policy) noexcept nogil
cdef Index push_forward(const World *world, Reals transition, Reals policy, Floats mass, Floats q) noexcept nogil
cdef Broken evaluate(const World *world, Reals transition, Reals loss, Reals policy, Floats state_values,
                     Floats pair_values) noexcept nogil
cdef Index improve(const World *world, Reals transition, Reals loss, Floats policy, Floats values) noexcept nogil
cdef double expected_value(const World *world, Reals transition, Reals loss, Reals values, Index p) noexcept nogil
cdef Index pick(Reals weights, Index first, Index last, double u) noexcept nogil
cdef Index sample_path(const World *world, Reals policy, Reals uniform, Counters states, Counters pairs,
                       Counters transitions) noexcept nogil
