# A compiled learner is a Rule: it has a policy; `see` and `learn` define what it does after an episode.

from advmdp.core.kernels.types cimport Counters, Floats, Index, Ints, Reals
from advmdp.criteria.kernels.terms cimport Terms
from advmdp.losses.kernels.reaction cimport Answer
from advmdp.model.kernels.world cimport Dynamics, World

cdef enum:  # why a rule stops, beside the statuses of a projection, which are above zero
    GOES_ON = 0
    NEW_EPOCH = -1
    BROKEN = -2  # at the pair `rule.broken`, a value is not finite

cdef struct Episodes:
    # Consecutive episodes: their losses, paths and costs.
    Index count
    Index steps
    Index transitions
    Index dimensions
    bint given  # whether the trajectories are given rather than drawn
    bint late  # whether the loss is late: the path has been counted, and other losses may have arrived since
    Reals losses  # (count, transitions, dimensions)
    Reals uniforms  # (count, 2 steps), for the trajectories
    Counters states  # (count, steps + 1)
    Counters pairs  # (count, steps)
    Counters taken  # (count, steps): the transitions
    Floats paid  # f(q^{P, pi_t}; l_t)
    Floats believed  # f(q_t; l_t) for the learner's own q_t
    Floats gap  # of the projection after the episode
    Floats total  # (transitions, dimensions): the running sum of the losses
    Floats q  # scratch: q^{P, pi_t}
    Floats mass  # scratch, over states
    Floats z  # scratch, over transitions
    Floats seen  # scratch: the losses along a path
    Terms account  # of the criterion that costs are measured by
    const Answer *answer  # of an adversary that reacts; NULL for losses known in advance

cdef class Block:
    cdef Episodes view
    cdef readonly dict arrays  # own the memory behind the pointers
    cdef readonly object account
    cdef readonly object reaction

cdef class Rule:
    cdef const double[::1] policy  # for the next episode
    cdef Index episode  # the number of episodes learned from before the block
    cdef Index told  # the number of the block's first episode
    cdef Index coming  # the number of the episode that begins after it
    cdef Index others  # the number of other open episodes
    cdef Index left  # episodes until the epoch ends at the latest; below zero, no limit
    cdef bint moved  # whether the set has changed since q_t was computed
    cdef readonly Index broken
    cdef bint see(self, const World *world, Episodes *block, Index b) noexcept nogil
    cdef int learn(self, const World *world, Episodes *block, Index b) noexcept nogil

cdef void enter(const World *world, Episodes *block, Index b, Reals policy) noexcept nogil
cdef Reals reveal(const Episodes *block, Index b) noexcept nogil
cdef void estimate(const World *world, Ints pairs, Reals seen, Reals chance, Floats out) noexcept nogil


cdef inline Reals loss_of(const Episodes *block, Index b) noexcept nogil:
    # The whole loss of episode b, (transitions, dimensions).
    return block.losses + b * block.transitions * block.dimensions


cdef inline Ints pairs_of(const Episodes *block, Index b) noexcept nogil:
    return block.pairs + b * block.steps


cdef inline Ints states_of(const Episodes *block, Index b) noexcept nogil:
    return block.states + b * (block.steps + 1)


cdef inline Ints taken_of(const Episodes *block, Index b) noexcept nogil:
    return block.taken + b * block.steps
