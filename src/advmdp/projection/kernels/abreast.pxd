# The C signatures of `abreast.py`.

from .four cimport Four, Mask
from .types cimport Floats, Index, Part, Reals, Sets, Structure, Work

cdef enum:
    MOST = 32  # entries of a row that is projected together with others

cdef struct Group:
    # Up to four watched pairs from the k-th on, with rows of equal length. The last fills the unused lanes.
    Index k
    Index count
    Index size
    Index pairs[4]
    Index begin[4]

cdef struct Balls:
    # Four rows of balls: multipliers, the masses of A and B, and the state of each row.
    Four a
    Four b
    Four mass_a
    Four mass_b
    Mask inside
    Mask known  # the entries at the centre are the same as at beta_base
    Mask hard  # left to the solvers for single rows

cdef struct Boxes:
    # Four rows of boxes: the multiplier, and sums over the free entries and over those at a bound.
    Four s
    Four free
    Four clipped
    Four count
    Mask known
    Mask hard

cdef Group group_of(const Structure *sk, const Sets *sets, const Work *w, Index k, Index end) noexcept nogil
cdef void side_by_side(Reals values, const Group *group, Floats out) noexcept nogil
cdef void at_successors(const Structure *sk, Reals values, const Group *group, Floats room, Floats out) noexcept nogil
cdef Four load_rows(const Structure *sk, const Work *w, const Group *group, Floats u, Floats room) noexcept nogil
cdef Balls settle_balls(Reals u, Reals center, Index size, Four half, Four s, Mask again, Floats p) noexcept nogil
cdef Four stay_shift(Reals p, Reals center, Reals shift, Index size) noexcept nogil
cdef void write_rows(Work *w, const Group *group, int hard, Reals p) noexcept nogil
cdef Mask were_tight(const Work *w, const Group *group) noexcept nogil
cdef void write_numbers(Work *w, const Group *group, Four a, Four b, Four mass_a, Four mass_b, Four cost,
                        int tight, int hard) noexcept nogil
cdef void project_balls(const Structure *sk, const Sets *sets, Work *w, const Group *group, Floats scratch,
                        Floats log_u, Floats breaks) noexcept nogil
cdef Boxes settle_boxes(Reals u, Reals low, Reals high, Index size, Four whole, Mask again, Reals p) noexcept nogil
cdef Four clip_rows(Reals u, Reals low, Reals high, Index size, const Boxes *found, Reals shift, Floats p,
                    Four *mass) noexcept nogil
cdef Four scale_rows(Reals u, Index size, Four s, Floats p) noexcept nogil
cdef void project_boxes(const Structure *sk, const Sets *sets, Work *w, const Group *group, Floats scratch,
                        Floats log_u, Floats breaks) noexcept nogil
cdef void project_watched(const Structure *sk, const Sets *sets, Work *w, const Part *part) noexcept nogil
