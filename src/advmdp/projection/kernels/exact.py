"""Exponentials and logarithms, and the passes over arrays that use them.

Both functions have no branches, so the compiler can vectorise them.

    exp(x) = 2^k exp(r),   k = round(x / ln 2),   r = x - k ln 2,   |r| <= ln(2)/2

Adding 1.5 2^52 rounds k and leaves it in the low bits of the sum. These bits, shifted into the exponent field, are
added to those of the polynomial. Below -708 the result is exactly zero (no subnormals).

    ln x = k ln 2 + ln(1 + f),   x = 2^k (1 + f),   sqrt(1/2) <= 1 + f < sqrt(2)
    ln(1 + f) = f - f^2/2 + s (f^2/2 + R(s^2)),   s = f / (2 + f)

Subtract the bits of sqrt(1/2) from those of x and add a bias of 1022: the exponent field is then k + 1022, and the rest
is the mantissa. Setting the low bits of 2^52 to an integer below 2^52 turns it into a float64. The largest error of
either function is 1 unit in the last place.

Rounding by a large constant, compensated sums, and sums with terms 1e5 times their result all break if the compiler
reorders them. So this module, like all whose results depend on the order of a sum, is compiled strictly; `setup.py`
lists them.
"""

import cython
from cython.cimports.advmdp.projection.kernels.types import LIFT, LIFT_REST, SMALLEST_MASS, UNIT, Floats
from cython.cimports.libc.math import INFINITY
from cython.cimports.libc.stdint import uint64_t, uintptr_t

ROUND = cython.declare(cython.double, 6755399441055744.0)  # 1.5 * 2**52
LOG2_E = cython.declare(cython.double, 1.4426950408889634)
LN2_HIGH = cython.declare(cython.double, 0.693147180369123816490)  # 32 bits: k * LN2_HIGH is exact
LN2_LOW = cython.declare(cython.double, 1.90821492927058770002e-10)
SMALLEST_EXPONENT = cython.declare(cython.double, -708.0)
LARGEST_EXPONENT = cython.declare(cython.double, 709.0)
HALF_ROOT = cython.declare(uint64_t, 0x3FE6A09E667F3BCD)  # the bits of sqrt(1/2)
FIELD = cython.declare(uint64_t, 0x000FFFFFFFFFFFFF)
BIAS = cython.declare(uint64_t, 0x3FE0000000000000)  # 1022 << 52, so that no shifted bits are negative
TWO_52 = cython.declare(cython.double, 4503599627370496.0)
BITS_OF_TWO_52 = cython.declare(uint64_t, 0x4330000000000000)
SMALLEST_NORMAL = cython.declare(cython.double, 2.2250738585072014e-308)
LIFTED = cython.declare(cython.double, 18014398509481984.0)  # 2**54


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _exp(x: cython.double) -> cython.double:
    """exp(x) for x <= 709; exactly zero below -708 and for -inf."""
    y = x if x > SMALLEST_EXPONENT else SMALLEST_EXPONENT
    shifted = fused(y, LOG2_E, ROUND)
    k = shifted - ROUND
    r = fused(-k, LN2_LOW, fused(-k, LN2_HIGH, y))
    s = fused(1.605904383682161e-10, r, 2.08767569878681e-09)
    s = fused(s, r, 2.505210838544172e-08)
    s = fused(s, r, 2.755731922398589e-07)
    s = fused(s, r, 2.755731922398589e-06)
    s = fused(s, r, 2.48015873015873e-05)
    s = fused(s, r, 1.984126984126984e-04)
    s = fused(s, r, 1.3888888888888889e-03)
    s = fused(s, r, 8.333333333333333e-03)
    s = fused(s, r, 4.1666666666666664e-02)
    s = fused(s, r, 1.6666666666666666e-01)
    s = fused(s, r, 0.5)
    s = fused(s * r, r, r)
    value = float_of(bits_of(1.0 + s) + (bits_of(shifted) << 52))
    return value if x > SMALLEST_EXPONENT else 0.0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _log(x: cython.double) -> cython.double:
    """ln x for x >= 0: -inf at zero, infinite at infinity; as accurate for subnormal numbers."""
    small: cython.bint = x < SMALLEST_NORMAL
    y = x * LIFTED if small else x
    shifted = bits_of(y) - HALF_ROOT + BIAS
    k = float_of(((shifted >> 52) & 0x7FF) + BITS_OF_TWO_52) - (TWO_52 + (1076.0 if small else 1022.0))
    f = float_of((shifted & FIELD) + HALF_ROOT) - 1.0
    s = f / (2.0 + f)
    z = s * s
    r = fused(0.14616576421644387, z, 0.15331711346672997)
    r = fused(r, z, 0.18182889433757515)
    r = fused(r, z, 0.22222211130560726)
    r = fused(r, z, 0.28571428626001427)
    r = fused(r, z, 0.3999999999989945)
    r = fused(r, z, 0.666666666666667)
    half = 0.5 * f * f
    value = k * LN2_HIGH + (f - (half - (s * (half + r * z) + k * LN2_LOW)))
    finite = value if x > 0.0 else -INFINITY
    return finite if x < INFINITY else x


def exponential(x):
    """exp(x), for other modules."""
    return _exp(x)


def logarithm(x):
    """ln x, for other modules."""
    return _log(x)


def exponentiate(values, size):
    """values = exp(values)."""
    for i in range(size):
        values[i] = _exp(values[i])


def exponentiate_difference(a, b, size, out):
    """out = exp(a - b)."""
    for i in range(size):
        out[i] = _exp(a[i] - b[i])


def take_logarithms(values, size):
    """values = ln(values)."""
    for i in range(size):
        values[i] = _log(values[i])


def exponentials_or_infinite(logs, size, out):
    """out = exp(logs), infinite on overflow."""
    for i in range(size):
        value = _exp(logs[i] if logs[i] < LARGEST_EXPONENT else 0.0)
        out[i] = value if logs[i] < LARGEST_EXPONENT else INFINITY


def logarithms_or_zero(values, size, least, out):
    """out = ln(values), 0 for values up to `least`."""
    for i in range(size):
        out[i] = _log(values[i] if values[i] > least else 1.0)


def log_row(sk, w, pair, log_u):
    """ln u - offset of a row, in the order of the weights: log w + beta first, then the offset.

    Each may be 1e5 when the result is 1, so another order would give an error of 1e-11.
    """
    begin = sk.transition_ptr[pair]
    size = sk.transition_ptr[pair + 1] - begin
    first = sk.first_of_pair[pair]
    offset = w.offset[pair]
    log_w = w.log_w + begin
    if first >= 0:
        beta = w.beta + first
        for j in range(size):
            log_u[j] = log_w[j] + beta[j] - offset
    else:
        successor = sk.successor + begin
        for j in range(size):
            log_u[j] = log_w[j] + w.beta[successor[j]] - offset


def finish_rows(w, part):
    """Compute the missing logarithms of a and b of all rows of a part, and from them -kappa.

    The memory of -kappa holds the cost of the entries at a bound until then.
    """
    log_a, log_b, ready, log_mass = w.log_a, w.log_b, w.ready, w.log_mass
    for k in range(part.watched, part.watched_end):
        a = _log(log_a[k])
        b = _log(log_b[k])
        log_a[k] = log_a[k] if ready[k] else a
        log_b[k] = log_b[k] if ready[k] else b
    for k in range(part.watched, part.watched_end):
        kappa = log_mass[k] + w.mass_a[k] * log_a[k] + w.mass_b[k] * log_b[k]
        log_mass[k] = w.offset[w.watched[k]] - kappa


def weigh_states(w, first, end):
    """Compute ln outflow of every state, up to ln Z; store the factor that scales its flow in `product`."""
    for x in range(first, end):
        total = UNIT * w.outflow[x]
        log = _log(total)
        w.log_total[x] = log
        w.log_out[x] = log + LIFT_REST + (w.top[x] + LIFT - w.beta[x]) if w.alive[x] else -INFINITY
        w.product[x] = 1.0 / total if w.alive[x] else 0.0


def write_outflows(w, first, end):
    """outflow = exp(log_out), times 2^500."""
    for x in range(first, end):
        w.outflow[x] = _exp(w.log_out[x] + LIFT)


def measure(sk, w):
    """defect(x) = ln outflow(x) - ln inflow(x). False if some mass is out of range."""
    inflow, outflow, alive = w.inflow, w.outflow, w.alive
    beyond = 0
    for x in range(1, sk.states - 1):
        w.defect[x] = _log(outflow[x] / inflow[x] if alive[x] else 1.0)
    for x in range(1, sk.states - 1):
        within: cython.bint = (inflow[x] >= SMALLEST_MASS) & (outflow[x] >= SMALLEST_MASS)
        beyond += 0 if within | (alive[x] == 0) else 1
    return beyond == 0


# For tests. They take the address of an array, since a memory view would double the build time of this file.


def exponentials(values):
    """Replace the values of an array of float64 by their exponentials."""
    place: uintptr_t = values.ctypes.data
    exponentiate(cython.cast(Floats, place), len(values))


def logarithms(values):
    """Replace the values of an array of float64 by their logarithms."""
    place: uintptr_t = values.ctypes.data
    take_logarithms(cython.cast(Floats, place), len(values))
