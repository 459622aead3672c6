# C types that all kernels share, and functions that return a pointer to the numbers of an array.

from libc.stdint cimport int32_t, int64_t

ctypedef Py_ssize_t Index
ctypedef double *Floats
ctypedef const double *Reals
ctypedef int64_t *Counters
ctypedef const int64_t *Ints
ctypedef const int32_t *Indices


cdef inline Floats floats_of(double[::1] values) noexcept:
    return &values[0] if values.shape[0] else NULL


cdef inline Reals reals_of(const double[::1] values) noexcept:
    return &values[0] if values.shape[0] else NULL


cdef inline Counters counters_of(int64_t[::1] values) noexcept:
    return &values[0] if values.shape[0] else NULL


cdef inline Ints ints_of(const int64_t[::1] values) noexcept:
    return &values[0] if values.shape[0] else NULL


cdef inline Indices indices_of(const int32_t[::1] values) noexcept:
    return &values[0] if values.shape[0] else NULL
