# The C signatures of `planners.py`.

from advmdp.core.kernels.types cimport Counters, Floats, Index, Ints
from advmdp.learners.kernels.episode cimport Episodes, Rule
from advmdp.model.kernels.world cimport World
from advmdp.planning.kernels.optimism cimport Plan
from advmdp.projection.kernels.memory cimport Bounds

cdef class Respond(Rule):
    cdef object record
    cdef double keeps
    cdef Counters visits
    cdef Counters seen
    cdef Floats estimate
    cdef Floats loss
    cdef Floats chosen
    cdef Floats values
    cdef Floats rows
    cdef bint pools
    cdef object slot_array
    cdef Ints slot
    cdef Index slots
    cdef Floats totals
    cdef void pool(self, const World *world) noexcept nogil
    cdef int learn(self, const World *world, Episodes *block, Index b) noexcept nogil

cdef class Iterate(Rule):
    cdef object record
    cdef Bounds bounds
    cdef Plan plan
    cdef double bonus
    cdef bint full
    cdef Counters visits
    cdef Counters counted
    cdef Floats estimate
    cdef Floats loss
    cdef Floats paid
    cdef Floats cost
    cdef Floats mean
    cdef int learn(self, const World *world, Episodes *block, Index b) noexcept nogil

cdef class Gather(Rule):
    cdef object record
    cdef bint full
    cdef Floats loss
    cdef Floats paid
    cdef Ints visits
    cdef Counters new_visits
    cdef Counters new_seen
    cdef bint see(self, const World *world, Episodes *block, Index b) noexcept nogil

cdef class Follow(Gather):
    cdef Bounds bounds
    cdef Plan plan
    cdef Floats cost
    cdef int learn(self, const World *world, Episodes *block, Index b) noexcept nogil

cdef class Wait(Rule):
    cdef object record
    cdef Floats loss
    cdef Counters phase
    cdef bint see(self, const World *world, Episodes *block, Index b) noexcept nogil

cdef void note_losses(const Episodes *block, Index b, bint full, Floats loss, Floats paid) noexcept nogil
