# The C signatures of `entropic.py`.

from advmdp.core.kernels.types cimport Floats, Index, Reals
from advmdp.learners.kernels.episode cimport Episodes, Rule
from advmdp.model.kernels.world cimport World

cdef class Weights(Rule):
    cdef object experts
    cdef Reals transition  # P
    cdef Floats scores  # S
    cdef Floats weights  # over the actions of each state, summing to one
    cdef Floats chosen  # the policy
    cdef Floats loss  # l_t or its estimate
    cdef Floats measure  # q_t over pairs
    cdef Floats pair_values  # Q_t
    cdef Floats values  # V_t
    cdef Floats mass
    cdef Floats q
    cdef Floats chance
    cdef double eta

cdef class Hedge(Weights):
    cdef int learn(self, const World *world, Episodes *block, Index b) noexcept nogil

cdef class Explorer(Weights):
    cdef double gamma
    cdef int learn(self, const World *world, Episodes *block, Index b) noexcept nogil

cdef class Visitor(Weights):
    cdef double gamma
    cdef object owner
    cdef Reals explored
    cdef int learn(self, const World *world, Episodes *block, Index b) noexcept nogil

cdef int advance(Weights self, const World *world, Reals policy) noexcept nogil
cdef void soften(Reals scores, Index first, Index last, double eta, Floats weights) noexcept nogil
cdef void mix(Visitor self, const World *world) noexcept nogil
