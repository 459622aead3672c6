# Four numbers side by side in a vector register, and what can be done to all four at once.
#
# To Cython a `Four` is a double, so that + - * / and unary minus are written as usual; the C compiler knows better.
# Anything else goes through the functions below: a literal is `each(0.5)`, a condition is a `Mask`.

from .types cimport Floats, Reals

cdef extern from *:
    """
    #include <stdint.h>
    typedef double advmdp_four __attribute__((vector_size(32), aligned(8), may_alias));
    typedef int64_t advmdp_mask __attribute__((vector_size(32)));
    #define ADVMDP_LANES static inline __attribute__((always_inline))
    ADVMDP_LANES advmdp_four advmdp_each(double x) { return (advmdp_four){x, x, x, x}; }
    ADVMDP_LANES advmdp_four advmdp_from(const double *a, const double *b, const double *c, const double *d) {
        return (advmdp_four){*a, *b, *c, *d};
    }
    ADVMDP_LANES advmdp_four advmdp_load(const double *from) { return *(const advmdp_four *)from; }
    ADVMDP_LANES void advmdp_store(double *to, advmdp_four x) { *(advmdp_four *)to = x; }
    ADVMDP_LANES advmdp_mask advmdp_above(advmdp_four a, advmdp_four b) { return (advmdp_mask)(a > b); }
    ADVMDP_LANES advmdp_mask advmdp_at_least(advmdp_four a, advmdp_four b) { return (advmdp_mask)(a >= b); }
    ADVMDP_LANES advmdp_mask advmdp_equal(advmdp_four a, advmdp_four b) { return (advmdp_mask)(a == b); }
    ADVMDP_LANES advmdp_mask advmdp_both(advmdp_mask a, advmdp_mask b) { return a & b; }
    ADVMDP_LANES advmdp_mask advmdp_either(advmdp_mask a, advmdp_mask b) { return a | b; }
    ADVMDP_LANES advmdp_mask advmdp_except(advmdp_mask a, advmdp_mask b) { return a & ~b; }
    ADVMDP_LANES advmdp_mask advmdp_mask_of(int a, int b, int c, int d) { return (advmdp_mask){-a, -b, -c, -d}; }
    ADVMDP_LANES advmdp_mask advmdp_not(advmdp_mask a) { return ~a; }
    ADVMDP_LANES double advmdp_at_lane(advmdp_four a, Py_ssize_t lane) { return a[lane]; }
    ADVMDP_LANES advmdp_four advmdp_keep(advmdp_mask m, advmdp_four a) { return (advmdp_four)(m & (advmdp_mask)a); }
    ADVMDP_LANES advmdp_four advmdp_drop(advmdp_mask m, advmdp_four a) { return (advmdp_four)(~m & (advmdp_mask)a); }
    ADVMDP_LANES advmdp_four advmdp_where(advmdp_mask m, advmdp_four a, advmdp_four b) {
        return (advmdp_four)((m & (advmdp_mask)a) | (~m & (advmdp_mask)b));
    }
    #ifdef __AVX__
    typedef double advmdp_vector __attribute__((vector_size(32)));
    ADVMDP_LANES advmdp_four advmdp_larger(advmdp_four a, advmdp_four b) { return __builtin_ia32_maxpd256(a, b); }
    ADVMDP_LANES advmdp_four advmdp_smaller(advmdp_four a, advmdp_four b) { return __builtin_ia32_minpd256(a, b); }
    ADVMDP_LANES int advmdp_bits(advmdp_mask a) { return __builtin_ia32_movmskpd256((advmdp_vector)a); }
    #else
    ADVMDP_LANES advmdp_four advmdp_larger(advmdp_four a, advmdp_four b) { return advmdp_where(a > b, a, b); }
    ADVMDP_LANES advmdp_four advmdp_smaller(advmdp_four a, advmdp_four b) { return advmdp_where(a < b, a, b); }
    ADVMDP_LANES int advmdp_bits(advmdp_mask a) {
        return (int)((a[0] & 1) | (a[1] & 2) | (a[2] & 4) | (a[3] & 8));
    }
    #endif
    """
    ctypedef double Four "advmdp_four"
    ctypedef long Mask "advmdp_mask"
    Four each "advmdp_each"(double x) noexcept nogil
    Four four_from "advmdp_from"(Reals a, Reals b, Reals c, Reals d) noexcept nogil
    Four load "advmdp_load"(Reals source) noexcept nogil
    void store "advmdp_store"(Floats target, Four x) noexcept nogil
    Mask above "advmdp_above"(Four a, Four b) noexcept nogil
    Mask at_least "advmdp_at_least"(Four a, Four b) noexcept nogil
    Mask equal "advmdp_equal"(Four a, Four b) noexcept nogil
    Mask both "advmdp_both"(Mask a, Mask b) noexcept nogil
    Mask either "advmdp_either"(Mask a, Mask b) noexcept nogil
    Mask but_not "advmdp_except"(Mask a, Mask b) noexcept nogil
    Mask mask_of "advmdp_mask_of"(bint a, bint b, bint c, bint d) noexcept nogil
    Mask no "advmdp_not"(Mask a) noexcept nogil
    int lanes_of "advmdp_bits"(Mask a) noexcept nogil  # as bits, the first lane's the lowest
    double at_lane "advmdp_at_lane"(Four a, Py_ssize_t lane) noexcept nogil
    Four keep "advmdp_keep"(Mask m, Four a) noexcept nogil  # 0 elsewhere
    Four drop "advmdp_drop"(Mask m, Four a) noexcept nogil  # 0 there
    Four where "advmdp_where"(Mask m, Four a, Four b) noexcept nogil
    Four larger "advmdp_larger"(Four a, Four b) noexcept nogil
    Four smaller "advmdp_smaller"(Four a, Four b) noexcept nogil
