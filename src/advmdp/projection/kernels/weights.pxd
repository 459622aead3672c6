# The C signatures of `weights.py`.

from .types cimport Floats, Index, Part, Reals, Sets, Structure, Work

cdef double largest_of(Reals values, Index size) noexcept nogil
cdef void shift_row(const Structure *sk, Work *w, Index pair) noexcept nogil
cdef void shift_state(const Structure *sk, Work *w, Index x) noexcept nogil
cdef bint possible(const Structure *sk, const Sets *sets, const Work *w, Index pair) noexcept nogil
cdef int classify(const Structure *sk, const Sets *sets, Work *w, Index pair, bint forbidden) noexcept nogil
cdef bint classify_state(const Structure *sk, const Sets *sets, Work *w, Index x, bint forbidden) noexcept nogil
cdef Index end_of_run(const Structure *sk, Index first, Index end) noexcept nogil
cdef bint fill_pairs(const Structure *sk, const Sets *sets, Work *w, const Part *part, bint forbidden) noexcept nogil
cdef void sum_free(const Structure *sk, Work *w, const Part *part) noexcept nogil
cdef void mark_reachable(const Structure *sk, const Sets *sets, Work *w) noexcept nogil
cdef void fill_part(const Structure *sk, const Sets *sets, Work *w, Index number, bint forbidden) noexcept nogil
cdef bint any_forbidden(const Structure *sk, const Work *w) noexcept nogil
cdef bint fill_all(const Structure *sk, const Sets *sets, Work *w) noexcept nogil
cdef void list_watched(const Structure *sk, Work *w) noexcept nogil
cdef bint fill_weights(const Structure *sk, const Sets *sets, Work *w, bint first_time) noexcept nogil
