# The C signatures of `direct.py`.

from .types cimport Floats, Index, Reals, Sets, Structure, Work

cdef extern from *:
    """
    typedef double advmdp_lanes __attribute__((vector_size(32), aligned(8), may_alias));
    static inline void advmdp_add_lanes(double *target, double factor, const double *source) {
        *(advmdp_lanes *)target += factor * *(const advmdp_lanes *)source;
    }
    """
    void add_lanes "advmdp_add_lanes"(Floats target, double factor, Reals source) noexcept nogil

cdef void add_edges(const Structure *sk, Work *w, bint far) noexcept nogil
cdef void three_vectors(Reals p, Reals low, Reals high, bint is_box, Index size, double keep_a, double keep_b,
                        Floats vectors, Index stride) noexcept nogil
cdef void choose_vectors(Reals p, Reals low, Reals high, bint is_box, Index size, Index stride,
                         Index *chosen) noexcept nogil
cdef void add_tight(const Structure *sk, const Sets *sets, Work *w, bint far, Reals back) noexcept nogil
cdef void add_row(const Structure *sk, Work *w, Index pair, double share, Reals back, Index shift, Reals vectors,
                  const Index *chosen) noexcept nogil
cdef void subtract_pivot(Floats target, Reals pivot, double inverse, Index size) noexcept nogil
cdef bint factorise(const Structure *sk, Work *w) noexcept nogil
cdef double along_row(Reals band, Reals values, Index size) noexcept nogil
cdef void substitute(const Structure *sk, Work *w) noexcept nogil
cdef bint direct_step(const Structure *sk, const Sets *sets, Work *w, bint far, Reals back) noexcept nogil
