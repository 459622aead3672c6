# The C signatures of `certificate_sums.py`.

from .types cimport Floats, Index, Part, Reals, Sets, Structure, Tally, Work

cdef void sum_masses(const Structure *sk, Work *w, Index first, Index end) noexcept nogil
cdef void sum_entries(Reals log_u, Reals u, Reals known, Reals side, Reals q, Reals log_q, Index size, double log_pair,
                      Tally *sums) noexcept nogil
cdef void sum_ball(Reals log_u, Reals side, Reals t, Reals tilted, Reals center, Index size, Tally *sums) noexcept nogil
cdef void sum_box(Reals log_u, Reals side, Reals t, Reals tilted, Reals low, Reals high, Index size, double log_s,
                  Tally *sums) noexcept nogil
cdef void sum_point(Reals log_u, Reals side, Reals center, Reals log_center, Index size, Tally *sums) noexcept nogil
cdef double row_distance(Reals low, Reals high, bint is_box, Reals q, Index size, double mass) noexcept nogil
cdef void tally_run(const Structure *sk, const Sets *sets, Work *w, const Part *part, Index first, Index end,
                    Index k) noexcept nogil
