# Compiled strictly by IEEE 754: no sum is reordered, and products are fused with sums only by `fused`.

from libc.stdint cimport uint64_t

from .types cimport Floats, Index, Part, Reals, Structure, Work

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #ifdef __FMA__
    #define advmdp_fused(a, b, c) __builtin_fma(a, b, c)
    #else
    #define advmdp_fused(a, b, c) ((a) * (b) + (c))
    #endif
    static inline uint64_t advmdp_bits_of(double x) { uint64_t bits; memcpy(&bits, &x, 8); return bits; }
    static inline double advmdp_float_of(uint64_t bits) { double x; memcpy(&x, &bits, 8); return x; }
    """
    double fused "advmdp_fused"(double a, double b, double c) noexcept nogil  # a b + c
    uint64_t bits_of "advmdp_bits_of"(double x) noexcept nogil
    double float_of "advmdp_float_of"(uint64_t bits) noexcept nogil

cdef double exponential(double x) noexcept nogil
cdef double logarithm(double x) noexcept nogil
cdef void exponentiate(Floats values, Index size) noexcept nogil
cdef void exponentiate_difference(Reals a, Reals b, Index size, Floats out) noexcept nogil
cdef void take_logarithms(Floats values, Index size) noexcept nogil
cdef void exponentials_or_infinite(Reals logs, Index size, Floats out) noexcept nogil
cdef void logarithms_or_zero(Reals values, Index size, double least, Floats out) noexcept nogil
cdef void log_row(const Structure *sk, const Work *w, Index pair, Floats log_u) noexcept nogil
cdef void finish_rows(Work *w, const Part *part) noexcept nogil
cdef void weigh_states(Work *w, Index first, Index end) noexcept nogil
cdef void write_outflows(Work *w, Index first, Index end) noexcept nogil
cdef bint measure(const Structure *sk, Work *w) noexcept nogil
