# The C signatures of `answer.py`.

from .types cimport Floats, Index, Part, Reals, Sets, Structure, Work

cdef void forward_pass(const Structure *sk, Work *w) noexcept nogil
cdef void write_free_row(const Structure *sk, Work *w, Index pair, double factor, double shift, Floats log_q) noexcept nogil
cdef void write_free(const Structure *sk, Work *w, const Part *part, Floats log_q) noexcept nogil
cdef void write_bounded(const Sets *sets, Index begin, Index size, Reals row, double log_share, double log_a, Reals log_u,
                        Floats log_q) noexcept nogil
cdef void write_ball(const Structure *sk, const Sets *sets, Work *w, Index k, double log_share, Reals log_u,
                     Floats log_q) noexcept nogil
cdef void write_watched(const Structure *sk, const Sets *sets, Work *w, const Part *part, Floats log_q) noexcept nogil
cdef void write_absent(const Structure *sk, Work *w, const Part *part, Floats log_q) noexcept nogil
cdef void write_logs(const Structure *sk, const Sets *sets, Work *w, Index number, Floats log_q) noexcept nogil
cdef void scale_rows(const Structure *sk, Work *w, const Part *part) noexcept nogil
cdef void write_policy(const Structure *sk, Work *w, const Part *part) noexcept nogil
cdef void write_part(const Structure *sk, const Sets *sets, Work *w, Index number) noexcept nogil
cdef void write_answer(const Structure *sk, const Sets *sets, Work *w) noexcept nogil
