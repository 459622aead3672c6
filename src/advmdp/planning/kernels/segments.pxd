# The C signatures of `segments.py`.

from advmdp.core.kernels.types cimport Counters, Floats, Index, Reals
from advmdp.model.kernels.world cimport World

cdef enum:
    WIDTH = 32  # ends that are processed at once

cdef struct Ends:
    Index first  # the ends are first, first + 1, ..., below stop
    Index stop
    Floats sums  # (pairs, WIDTH): the losses from the first episode up to each end
    Floats costs  # (states, WIDTH): the cost of the best policy after a state, from a start up to each end
    Floats row  # (WIDTH,)

cdef struct Sequences:
    Index most  # the largest number of switches
    Index episodes
    Floats best  # (most + 1, episodes + 1): D_j(t)
    Counters start  # (most + 1, episodes + 1): where its last segment begins

cdef void gather(const World *world, Reals running, Ends *ends) noexcept nogil
cdef void price(const World *world, Reals before, Ends *ends) noexcept nogil
cdef void price_pair(const World *world, Index p, double before, Ends *ends) noexcept nogil
cdef void lower(Floats least, Reals row) noexcept nogil
cdef void enter(Index s, const Ends *ends, Sequences *found) noexcept nogil
cdef void keep(double before, Index s, Reals costs, Index width, Floats best, Counters start) noexcept nogil
