# The C signatures of `rows.py`.

from .types cimport Clip, Floats, Index, Reals, Row, Sets, Split, Structure, Work

cdef double load_row(const Structure *sk, const Work *w, Index pair, Index begin, Index size, Floats u) noexcept nogil
cdef Split split(Reals u, Reals center, Index size, double a, double b, Floats p) noexcept nogil
cdef Split known_sums(Reals u, Reals center, Reals p, Index size) noexcept nogil
cdef bint settle_ball(Reals u, Reals center, Index size, double half, double s, double a, double b, Floats p,
                      Row *row) noexcept nogil
cdef bint settle_again(Reals u, Reals center, Index size, double half, double s, Floats p, Row *row) noexcept nogil
cdef double centre_cost(Reals p, Reals center, Reals log_center, Reals log_u, Index size) noexcept nogil
cdef double centre_shift(Reals p, Reals center, Reals shift, Index size) noexcept nogil
cdef Reals shifts_of(const Structure *sk, const Work *w, Index pair, Index begin, Index size,
                     Floats room) noexcept nogil
cdef void project_ball(const Structure *sk, const Sets *sets, Work *w, Index k, double s, Floats u, Floats log_u,
                       Floats breaks, Row *row) noexcept nogil
cdef bint settle_box(Reals u, Reals low, Reals high, Index size, double whole, double start, Clip *found) noexcept nogil
cdef bint settle_box_again(Reals u, Reals low, Reals high, Index size, double whole, Reals p,
                           Clip *found) noexcept nogil
cdef void clip_row(Reals u, Reals low, Reals high, Index size, double s, Floats p) noexcept nogil
cdef void clip_cost(Reals p, Reals log_u, Reals low, Reals high, Reals log_low, Reals log_high, Index size,
                    Row *row) noexcept nogil
cdef double clip_shift(Reals p, Reals low, Reals high, Reals shift, Index size, Row *row) noexcept nogil
cdef double scale_row(Reals u, Index size, double s, Floats p) noexcept nogil
cdef void project_box(const Structure *sk, const Sets *sets, Work *w, Index k, double s, Floats u, Floats log_u,
                      Floats breaks, Row *row) noexcept nogil
cdef void project_point(const Structure *sk, const Sets *sets, const Work *w, Index pair, Floats log_u,
                        Row *row) noexcept nogil
cdef void write_row(Work *w, Index k, const Row *row) noexcept nogil
cdef void project_alone(const Structure *sk, const Sets *sets, Work *w, Index k, Floats u, Floats log_u,
                        Floats breaks) noexcept nogil
