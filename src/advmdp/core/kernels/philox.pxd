# The C signatures of `philox.py`.

from libc.stdint cimport uint64_t

from .types cimport Floats, Index

cdef extern from *:
    """
    #include <stdint.h>
    #if defined(_MSC_VER)
    #include <intrin.h>
    #define advmdp_upper_half(a, b) __umulh(a, b)
    #else
    static inline uint64_t advmdp_upper_half(uint64_t a, uint64_t b) {
        return (uint64_t)(((unsigned __int128)a * b) >> 64);
    }
    #endif
    """
    uint64_t upper_half "advmdp_upper_half"(uint64_t a, uint64_t b) noexcept nogil  # of the 128 bits of a product

cdef enum:
    WORDS = 4  # of one count

cdef struct Words:
    uint64_t[4] word

cdef struct Stream:
    uint64_t[2] key
    uint64_t[2] start

cdef Words philox(const Stream *stream, uint64_t count) noexcept nogil
cdef void fill_row(const Stream *stream, Index row, Index width, Floats out) noexcept nogil
cdef Stream stream_at(const uint64_t[::1] key, const uint64_t[::1] start)


cdef inline double to_uniform(uint64_t word) noexcept nogil:
    # The upper 53 bits of a word as a number in [0, 1).
    return <double>(word >> 11) * 1.1102230246251565e-16


cdef inline Index counts_of(Index width) noexcept nogil:
    # How many counts a row takes.
    return (width + WORDS - 1) // WORDS
