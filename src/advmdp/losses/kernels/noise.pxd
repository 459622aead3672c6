# The C signatures of `noise.py`.

from libc.stdint cimport uint64_t

from advmdp.core.kernels.philox cimport Stream, to_uniform
from advmdp.core.kernels.types cimport Floats, Index, Reals

cdef void add_noise_to_row(const Stream *stream, Index row, Reals means, double noise, Index width,
                           Floats out) noexcept nogil


cdef inline double noisy(double mean, double noise, uint64_t word) noexcept nogil:
    return mean + noise * (2.0 * to_uniform(word) - 1.0) * (mean if mean < 1.0 - mean else 1.0 - mean)
