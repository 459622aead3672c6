# The C signatures of `mixture.py`.

from advmdp.core.kernels.types cimport Counters, Floats, Index, Ints, Reals
from advmdp.criteria.kernels.terms cimport Terms
from advmdp.learners.kernels.episode cimport Episodes, Rule
from advmdp.learners.kernels.mirror_descent cimport Descent
from advmdp.model.kernels.world cimport World
from advmdp.projection.kernels.memory cimport Bounds, Layout
from advmdp.projection.kernels.types cimport Work

cdef enum:  # what an expert responds to, as advmdp.learners.pool numbers it
    DESCENT = 0
    CUMULATIVE = 1
    DISCOUNTED = 2
    LAST = 3
    MEAN = 4
    AGO = 5
    RULE = 6
    HINT = 7
    FOUND = 8

cdef enum:  # how UC-O-REPS computes its next measure
    AFRESH = 0
    ONE_STEP = 1  # a step from the current measure
    NEW_SET = 2  # no step, only a projection onto the new set
    STAY = 3

cdef class Mixture(Rule):
    cdef readonly tuple owners
    cdef Descent descent
    cdef Layout layout
    cdef Bounds bounds
    cdef object owner_of_center
    cdef object criterion
    cdef Terms terms
    cdef Work **works  # one for each thread
    cdef Index threads
    cdef Index count  # of experts
    cdef Ints table  # (count, 3)
    cdef Reals paces
    cdef Reals log_start
    cdef Reals center
    cdef Reals rules  # policies of the user
    cdef Floats q  # the mixture
    cdef Floats chosen  # its policy
    cdef Floats measures  # (count, transitions)
    cdef Floats policies  # (count, pairs)
    cdef Floats betas  # (count, states): the projections' warm starts
    cdef Floats sums  # the sum of the losses, the smoothed losses, the last loss, the forecast, the prediction by lag
    cdef Floats means  # a row for each phase of each period
    cdef Floats ago
    cdef Floats believed  # the believed losses of the experts, with the minimum of each layer subtracted
    cdef Floats weights
    cdef Floats account  # sums of the mixability gaps, the mixture's believed losses, the squared spans
    cdef Floats spans
    cdef Floats past  # (lags, transitions): the last losses
    cdef Floats errors  # (2, lags + 1): the prediction errors of each lag, and their number
    cdef Counters numbers  # (lags,): the episodes of the last losses
    cdef Index lags
    cdef double span  # of the last loss seen
    cdef Counters awake
    cdef Floats losses  # scratch, over experts
    cdef Floats gaps
    cdef Floats z
    cdef Floats reduced
    cdef Floats mass  # scratch, over states, for each thread
    cdef Floats scratch  # for each thread: log w, log q, ln q(x, a)
    cdef Index stride
    cdef Index next  # the number of the coming episode
    cdef Index num_spans
    cdef Ints visits
    cdef Counters new_visits
    cdef Counters new_seen
    cdef double scale
    cdef double tolerance
    cdef Index limit
    cdef bint see(self, const World *world, Episodes *block, Index b) noexcept nogil
    cdef int learn(self, const World *world, Episodes *block, Index b) noexcept nogil

cdef double reduce_layers(const World *world, Reals z, Floats out) noexcept nogil
cdef void charge(Mixture self, const World *world) noexcept nogil
cdef double learning_rate(Mixture self) noexcept nogil
cdef void weigh_experts(Mixture self) noexcept nogil
cdef void remember(Mixture self, const World *world, Index t, Index told) noexcept nogil
cdef double squared_distance(Reals a, Reals b, Index size) noexcept nogil
cdef void compare_lags(Mixture self, Index n, Index t) noexcept nogil
cdef void predict(Mixture self, Index n, Index t) noexcept nogil
cdef double median_span(Mixture self, Index t) noexcept nogil
cdef Floats signal_of(Mixture self, Index e, Index n) noexcept nogil
cdef double step_of(Mixture self, Index e, Index t) noexcept nogil
cdef void weigh_signal(Mixture self, const World *world, Reals signal, double eta, Floats log_w) noexcept nogil
cdef int project_first(Mixture self, const World *world, Index t, int how, Index thread) noexcept nogil
cdef int project_expert(Mixture self, const World *world, Index e, Index t, Index thread) noexcept nogil
cdef int project_if_due(Mixture self, const World *world, Index e, Index t, int how, Index thread) noexcept nogil
cdef int project_all(Mixture self, const World *world, Index t, int how) noexcept nogil
cdef double largest_gap(Mixture self) noexcept nogil
cdef void mix(Mixture self, const World *world) noexcept nogil


cdef inline Floats row(Floats rows, Index number, Index width) noexcept nogil:
    return rows + number * width


cdef inline Reals row_of(Reals rows, Index number, Index width) noexcept nogil:
    return rows + number * width
