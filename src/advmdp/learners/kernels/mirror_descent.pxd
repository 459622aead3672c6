# The C signatures of `mirror_descent.py`.

from advmdp.core.kernels.types cimport Counters, Floats, Index, Ints, Reals
from advmdp.criteria.kernels.terms cimport Terms
from advmdp.learners.kernels.episode cimport Episodes, Rule
from advmdp.model.kernels.world cimport World
from advmdp.planning.kernels.optimism cimport Plan
from advmdp.projection.kernels.memory cimport Bounds, Workspace
from advmdp.projection.kernels.types cimport Outcome, Work

cdef enum:  # the source of z_t
    SUBGRADIENT = 0  # the whole loss
    IMPORTANCE = 1  # the path's losses over q_t(x, a)
    UPPER = 2  # the same over u_t(x, a) + gamma
    GROUPED = 3  # the losses of the groups seen, over U_t(g) + gamma

cdef class Descent(Rule):
    cdef readonly tuple owners
    cdef Plan plan
    cdef Workspace workspace
    cdef Work *work  # the memory of its projections; in a mixture that of the thread
    cdef Bounds bounds
    cdef object criterion
    cdef Terms terms
    cdef Floats log_q
    cdef Floats q
    cdef Floats log_pairs
    cdef Floats chosen  # the policy
    cdef Ints visits  # N_i
    cdef Counters new_visits  # n_i
    cdef Counters new_seen  # m_i
    cdef Floats log_w
    cdef Floats z
    cdef Floats chance  # the divisors of the losses along a path
    cdef Floats delays  # D, G and the step over the first step; see advmdp.learners.open_episodes
    cdef Ints group_of  # for each transition
    cdef Ints group_ptr
    cdef Ints members  # the transitions of each group
    cdef Ints last_step  # of each group
    cdef Ints certain  # whether no path avoids a group
    cdef Reals log_start
    cdef double eta
    cdef double horizon  # 0 if unknown
    cdef double share
    cdef double gamma
    cdef double tolerance
    cdef Index limit
    cdef int source
    cdef bint anytime
    cdef bint counting
    cdef bint see(self, const World *world, Episodes *block, Index b) noexcept nogil
    cdef int learn(self, const World *world, Episodes *block, Index b) noexcept nogil

cdef Outcome advance(Descent self, const World *world, Index t) noexcept nogil
cdef Outcome settle(Descent self, const World *world) noexcept nogil
cdef Outcome begin(Descent self, const World *world) noexcept nogil
cdef Outcome project(Descent self, const World *world) noexcept nogil
cdef void weigh_path(Descent self, const World *world, const Episodes *block, Index b) noexcept nogil
cdef void weigh_groups(Descent self, const World *world, const Episodes *block, Index b) noexcept nogil
cdef void weigh(Descent self, Index size, Index t) noexcept nogil
cdef double log_add(double a, double b) noexcept nogil
