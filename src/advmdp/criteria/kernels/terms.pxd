# The C signatures of `terms.py`.

from advmdp.core.kernels.types cimport Floats, Index, Ints, Reals

cdef enum:  # the kinds of terms with code of their own, numbered as in advmdp.criteria.built_in
    RISK = 2
    RISK_LEMMA = 3

cdef struct Terms:
    Reals rows  # (count, 4)
    Index count
    Index steps

cdef double power(double v, double c) noexcept nogil
cdef double slope(double v, double c) noexcept nogil
cdef double dot(Reals a, Reals b, Index size) noexcept nogil
cdef double layer_sums(Ints ptr, Index steps, Reals q, Reals loss, Index d, Index j, Floats z) noexcept nogil
cdef double add_moment(double share, double c, Reals q, Reals loss, Index size, Floats z) noexcept nogil
cdef double evaluate_terms(const Terms *terms, Ints ptr, Reals q, Reals loss, Index d, Floats z) noexcept nogil
cdef bint same_terms(const Terms *a, const Terms *b) noexcept nogil
cdef Terms terms_of(table, Index steps)
