# The C signatures of `newton.py`.

from .types cimport Floats, Index, Part, Reals, Sets, Structure, Work

cdef struct Forcing:
    double accuracy  # the factor by which GMRES should reduce the defects
    double enough  # the factor that suffices if GMRES is slow

cdef void collect_pinned(const Structure *sk, const Sets *sets, Work *w, bint far, Reals back) noexcept nogil
cdef void prepare_inverse(const Structure *sk, Work *w) noexcept nogil
cdef void mean_after(const Structure *sk, Work *w, Index first, Index end, Reals v, Floats result) noexcept nogil
cdef void pass_on(const Structure *sk, Work *w, Index first, Index end, Reals v) noexcept nogil
cdef void pass_on_far(const Structure *sk, Work *w, Index first, Index end, Reals v) noexcept nogil
cdef void add_ball(Reals p, Reals center, Index size, Reals v, Reals back, double share, double mass_a, double mass_b,
                   Floats out) noexcept nogil
cdef void add_box(Reals p, Reals low, Reals high, Index size, Reals v, Reals back, double share, double mass,
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
cdef void sweep_states(const Structure *sk, Work *w, Index first, Index end, Reals v) noexcept nogil
cdef void multiply_layer(const Structure *sk, Work *w, Index layer, Reals v, Floats result, int stage) noexcept nogil
cdef void multiply_part(const Structure *sk, Work *w, Index number, Reals v, Floats result, int stage) noexcept nogil
cdef void tight_part(const Structure *sk, const Sets *sets, Work *w, Index number, Reals back, Reals v) noexcept nogil
cdef void multiply_near(const Structure *sk, const Sets *sets, Work *w, Reals back, Reals v,
                        Floats result) noexcept nogil
cdef void multiply(const Structure *sk, const Sets *sets, Work *w, bint far, Reals back, Reals v, Floats result,
                   bint near) noexcept nogil
cdef void rotate(Floats h, Index last, Index k) noexcept nogil
cdef void back_substitute(Floats h, Index last, Index size) noexcept nogil
cdef double gmres_cycle(const Structure *sk, const Sets *sets, Work *w, bint far, Reals back, double previous,
                        double target, double coarse, bint near) noexcept nogil
cdef bint newton_step(const Structure *sk, const Sets *sets, Work *w, bint far, Forcing asked, bint near,
                      bint direct) noexcept nogil
