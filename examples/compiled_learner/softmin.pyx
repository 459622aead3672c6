# cython: language_level=3, boundscheck=False, wraparound=False
"""A user's compiled learner: pi(a|x) proportional to exp(-eta s(x, a)), with s the discounted losses of (x, a)."""

from libc.math cimport exp

from advmdp.core.kernels.types cimport Index
from advmdp.learners.kernels.episode cimport GOES_ON, Episodes, Rule, loss_of
from advmdp.model.kernels.world cimport World


cdef class SoftMin(Rule):
    cdef double[::1] chosen, scores  # over pairs (x, a)
    cdef double eta, keep

    def __init__(self, policy, scores, eta, keep):
        Rule.__init__(self, policy)
        self.chosen, self.scores, self.eta, self.keep = policy, scores, eta, keep

    cdef int learn(self, const World *world, Episodes *block, Index b) noexcept nogil:
        cdef Index x, p, i
        cdef double total
        loss = loss_of(block, b)
        for p in range(world.pairs):
            self.scores[p] *= self.keep
            for i in range(world.transition_ptr[p], world.transition_ptr[p + 1]):
                self.scores[p] += loss[i] / (world.transition_ptr[p + 1] - world.transition_ptr[p])
        for x in range(world.states - 1):
            total = 0.0
            for p in range(world.pair_ptr[x], world.pair_ptr[x + 1]):
                self.chosen[p] = exp(-self.eta * self.scores[p])
                total += self.chosen[p]
            for p in range(world.pair_ptr[x], world.pair_ptr[x + 1]):
                self.chosen[p] /= total
        return GOES_ON
