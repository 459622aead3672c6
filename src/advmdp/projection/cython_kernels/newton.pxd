from .types cimport Floats, Index, Part, Reals, Sets, Structure, Work

cdef struct Means:
    double all
    double a
    double b

cdef void collect_pinned(const Structure *sk, const Sets *sets, Work *w, bint far, Reals back) noexcept nogil
cdef void mean_after(const Structure *sk, Work *w, Index first, Index end, Reals v, Floats result) noexcept nogil
cdef void pass_on(const Structure *sk, Work *w, Index first, Index end, Reals v) noexcept nogil
cdef void pass_on_far(const Structure *sk, Work *w, Index first, Index end, Reals v) noexcept nogil
cdef Means class_means(Reals p, Reals low, Reals high, bint is_box, Index size, Reals v, double mass_a,
                       double mass_b) noexcept nogil
cdef void class_terms(Reals p, Reals low, Reals high, bint is_box, Index size, Reals back, double share, Means means,
                      Floats out) noexcept nogil
cdef void add_tight_rows(const Structure *sk, const Sets *sets, Work *w, const Part *part, bint far, Reals back,
                         Reals v) noexcept nogil
cdef void couple_part(const Structure *sk, const Sets *sets, Work *w, Index number, bint far, Reals back, Reals v,
                      Floats result, int parity) noexcept nogil
cdef void couple(const Structure *sk, const Sets *sets, Work *w, bint far, Reals back, Reals v, Floats result,
                 int parity) noexcept nogil
cdef void eliminate(const Structure *sk, const Sets *sets, Work *w, bint far, Reals back, Reals v, Floats result,
                    bint near) noexcept nogil
cdef void centre(const Structure *sk, const Work *w, Floats values, bint near) noexcept nogil
cdef void multiply(const Structure *sk, const Sets *sets, Work *w, bint far, Reals back, Reals v, Floats result,
                   bint near) noexcept nogil
cdef void rotate(Floats h, Index last, Index k) noexcept nogil
cdef void back_substitute(Floats h, Index last, Index size) noexcept nogil
cdef double gmres_cycle(const Structure *sk, const Sets *sets, Work *w, bint far, Reals back, double target,
                        bint near) noexcept nogil
cdef bint newton_step(const Structure *sk, const Sets *sets, Work *w, bint far, double accuracy, bint near,
                      bint direct) noexcept nogil
