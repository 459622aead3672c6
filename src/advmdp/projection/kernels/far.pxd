# The C signatures of `far.py`.

from .types cimport Floats, Index, Reals, Sets, Structure, Work

cdef bint ensure_back(const Structure *sk, Work *w) noexcept nogil
cdef void add_log_inflow(const Structure *sk, Work *w, Index layer, Reals log_q) noexcept nogil
cdef void write_dual(const Structure *sk, const Sets *sets, Work *w, Floats log_q) noexcept nogil
cdef void measure_far(const Structure *sk, const Sets *sets, Work *w) noexcept nogil
cdef void forward_pass_far(const Structure *sk, const Sets *sets, Work *w) noexcept nogil
