from .types cimport Floats, Index, Part, Reals, Row, Sets, Split, Structure, Work

cdef double load_row(const Structure *sk, const Work *w, Index pair, Index begin, Index size, Floats u) noexcept nogil
cdef Row inside(Reals u, Index size, double s, Floats p) noexcept nogil
cdef Split split(Reals u, Reals center, Index size, double a, double b, Floats p) noexcept nogil
cdef Split known_sums(Reals u, Reals center, Reals p, Index size) noexcept nogil
cdef Row settle_ball(Reals u, Reals center, Index size, double half, double s, bint guessed, Floats p) noexcept nogil
cdef double centre_cost(Reals p, Reals center, Reals log_center, Reals log_u, Index size) noexcept nogil
cdef Row project_ball(const Structure *sk, const Sets *sets, const Work *w, Index pair, double s, Floats u, Floats log_u,
                      Floats breaks) noexcept nogil
cdef Row finish_box(Reals u, Reals log_u, Reals low, Reals high, Reals log_low, Reals log_high, Index size, double s,
                    Floats p) noexcept nogil
cdef double settle_box(Reals u, Reals low, Reals high, Index size, double whole) noexcept nogil
cdef Row project_box(const Structure *sk, const Sets *sets, const Work *w, Index pair, double s, Floats u, Floats log_u,
                     Floats breaks) noexcept nogil
cdef Row project_point(const Structure *sk, const Sets *sets, const Work *w, Index pair, Floats log_u) noexcept nogil
cdef void project_watched(const Structure *sk, const Sets *sets, Work *w, const Part *part) noexcept nogil
