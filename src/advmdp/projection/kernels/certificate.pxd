# The C signatures of `certificate.py`.

from .types cimport Floats, Index, Part, Reals, Sets, Structure, Tally, Work

cdef struct Layer:
    double log_s
    double gap
    double doubt
    double mass

cdef struct Certificate:
    double gap
    double doubt
    double flow
    double rows
    double apart
    double value

cdef bint can_avoid(const Structure *sk, const Sets *sets, const Work *w, Index pair) noexcept nogil
cdef bint can_reach(const Sets *sets, Index pair, Index i) noexcept nogil
cdef void mark_met(const Structure *sk, Work *w) noexcept nogil
cdef void mark_feasible(const Structure *sk, const Sets *sets, Work *w) noexcept nogil
cdef void load_pair(const Structure *sk, Work *w, Index pair, Floats log_u, Floats side) noexcept nogil
cdef void tilt_ball(Reals center, Reals log_center, Reals log_u, Index size, double log_a, double log_b, Floats t,
                    Floats tilted) noexcept nogil
cdef void tilt_box(Reals low, Reals high, Reals log_low, Reals log_high, Reals log_u, Index size, double log_s, Floats t,
                   Floats tilted) noexcept nogil
cdef bint is_tilted(const Sets *sets, const Work *w, Index pair, Index k) noexcept nogil
cdef void prepare_run(const Structure *sk, const Sets *sets, Work *w, const Part *part, Index first, Index end,
                      Index k) noexcept nogil
cdef void log_masses(Work *w, Index first, Index end) noexcept nogil
cdef double bound_row(const Sets *sets, const Work *w, Index pair, Index k, const Tally *sums, Floats more) noexcept nogil
cdef double judge_pair(const Sets *sets, Work *w, Index x, Index pair, Index k, Index count,
                       const Tally *sums) noexcept nogil
cdef Index judge_run(const Structure *sk, const Sets *sets, Work *w, const Part *part, Index first, Index end,
                     Index k) noexcept nogil
cdef void weigh_part(const Structure *sk, const Sets *sets, Work *w, Index number) noexcept nogil
cdef double divergence(double ratio) noexcept nogil
cdef Layer layer_gap(Work *w, Index first, Index end) noexcept nogil
cdef Certificate certify(const Structure *sk, const Sets *sets, Work *w) noexcept nogil
