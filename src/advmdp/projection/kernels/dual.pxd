# The C signatures of `dual.py`.

from .types cimport Floats, Index, Part, Reals, Sets, Structure, Work

cdef double spread_pairs(const Structure *sk, Work *w, Index x) noexcept nogil
cdef double spread_edges(const Structure *sk, Work *w, Index x) noexcept nogil
cdef void spread_free(const Structure *sk, Work *w, const Part *part) noexcept nogil
cdef void spread_watched(const Structure *sk, Work *w, const Part *part) noexcept nogil
cdef double largest(Reals values, Index begin, Index end) noexcept nogil
cdef void normalise(const Structure *sk, Work *w, const Part *part) noexcept nogil
cdef void scale_flow(const Structure *sk, Work *w, const Part *part) noexcept nogil
cdef void push_flow(const Structure *sk, Work *w, const Part *part) noexcept nogil
cdef Index end_of_block(const Structure *sk, Index first, Index end) noexcept nogil
cdef void spread_part(const Structure *sk, const Sets *sets, Work *w, const Part *part) noexcept nogil
cdef void evaluate_part(const Structure *sk, const Sets *sets, Work *w, Index number) noexcept nogil
cdef double evaluate(const Structure *sk, const Sets *sets, Work *w) noexcept nogil
cdef void move(const Structure *sk, const Sets *sets, Work *w) noexcept nogil
