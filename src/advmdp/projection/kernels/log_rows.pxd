# The C signatures of `log_rows.py`.

from .types cimport Floats, Index, Reals, Row

cdef struct Shares:
    double left  # the mass that the fixed entries leave to the others
    double total
    double top

cdef struct Range:
    double lower
    double upper

cdef void sift_down(Floats values, Index root, Index end) noexcept nogil
cdef void sort_first(Floats values, Index count) noexcept nogil
cdef double top_of(Reals log_u, Index size) noexcept nogil
cdef double correction(double target, double mass) noexcept nogil
cdef Row inside_log(Reals log_u, Index size, Floats p) noexcept nogil
cdef double upper_multiplier(Reals log_u, Reals center, Index size, double half) noexcept nogil
cdef double excess_below(Reals log_u, Reals center, Index size, double log_b) noexcept nogil
cdef double lower_multiplier(Reals log_u, Reals center, Reals log_center, Index size, double half,
                             Floats breaks) noexcept nogil
cdef double solve_segment(Reals log_u, Reals center, Reals log_center, Index size, double half, double below,
                          double edge) noexcept nogil
cdef Row project_ball_log(Reals log_u, Reals center, Reals log_center, Index size, double half, Floats p,
                          Floats breaks) noexcept nogil
cdef Row project_box_log(Reals log_u, Reals low, Reals high, Reals log_low, Reals log_high, Index size, Floats p,
                         Floats place) noexcept nogil
cdef void settle_rest(Reals log_u, Reals low, Reals high, Index size, double log_s, Floats p, Floats place) noexcept nogil
cdef Range range_of_s(Reals log_u, Reals low, Reals high, Reals log_low, Reals log_high, Index size,
                      Reals place) noexcept nogil
cdef Shares share_out(Reals log_u, Reals low, Reals high, Index size, Reals place, Floats p) noexcept nogil
cdef bint fix_entries(Reals low, Reals high, Index size, Floats place, Reals p) noexcept nogil
