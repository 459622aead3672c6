# `solve` projects without Python: learners' loops cimport it, with the structs of `types.pxd`.

from .memory cimport Bounds, Layout, Workspace
from .newton cimport Forcing
from .types cimport Floats, Index, Outcome, Reals, Sets, Structure, Work

cdef struct Survey:
    double magnitude
    bint holes

cdef struct Trial:
    bint moved
    bint far
    double value

cdef struct Sizes:
    double worst
    double squares

cdef Survey survey(Reals log_w, Index size) noexcept nogil
cdef bint is_level(const Structure *sk, Reals log_w, double magnitude) noexcept nogil
cdef Trial look(const Structure *sk, const Sets *sets, Work *w) noexcept nogil
cdef Sizes sizes(const Structure *sk, const Work *w) noexcept nogil
cdef double residual(const Structure *sk, const Work *w) noexcept nogil
cdef double heavy_defect(const Structure *sk, const Work *w) noexcept nogil
cdef bint settled(const Structure *sk, const Work *w, double tolerance, int stalls) noexcept nogil
cdef bint any_tight(const Work *w) noexcept nogil
cdef Forcing forcing(double worst, double before, double tolerance, bint near, bint tight) noexcept nogil
cdef bint last_step(double before, double worst, double tolerance) noexcept nogil
cdef double slope_along(const Structure *sk, const Work *w) noexcept nogil
cdef double largest_beta(const Structure *sk, const Work *w) noexcept nogil
cdef double grain(const Structure *sk, const Work *w) noexcept nogil
cdef double rounding(const Structure *sk, const Work *w, double value) noexcept nogil
cdef void stay_near_zero(const Structure *sk, Work *w) noexcept nogil
cdef void step_by(const Structure *sk, Work *w, double length) noexcept nogil
cdef Trial line_search(const Structure *sk, const Sets *sets, Work *w, double value) noexcept nogil
cdef Trial sweep(const Structure *sk, const Sets *sets, Work *w) noexcept nogil
cdef Trial go_on(const Structure *sk, const Sets *sets, Work *w, double value) noexcept nogil
cdef void attach(const Structure *sk, Work *w, Reals log_w, Floats log_q, Floats q, Floats log_pair,
                 Floats policy) noexcept nogil
cdef Outcome search(const Structure *sk, const Sets *sets, Work *w, double tolerance, double magnitude,
                    Index limit) noexcept nogil
cdef Outcome answer(const Structure *sk, const Sets *sets, Work *w, Outcome reached, double tolerance, double magnitude,
                    bint balanced, bint far) noexcept nogil
cdef Outcome solve(const Structure *sk, const Sets *sets, Work *w, Reals log_w, Floats log_q, Floats q, Floats log_pair,
                   Floats policy, double tolerance, Index limit) noexcept nogil
cdef Outcome solve_surveyed(const Structure *sk, const Sets *sets, Work *w, Survey seen, double tolerance,
                            Index limit) noexcept nogil
