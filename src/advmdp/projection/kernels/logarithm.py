"""ln of a number, without branches and without a call, so that it runs in vector registers where `exponential` does.

    ln x = k ln 2 + ln(1 + f),   x = 2^k (1 + f),   sqrt(1/2) <= 1 + f < sqrt(2)
    ln(1 + f) = f - f^2/2 + s (f^2/2 + R(s^2)),   s = f / (2 + f)

The bits of x less those of sqrt(1/2) have k + 1022 in their exponent field, once that is added; what is left over is
the mantissa. An integer below 2^52 becomes a float64 when its bits are put below those of 2^52. The largest error is
1 ulp. Nothing is fused here: which of two products is, the compiler decides anew for each loop, and a number must not
depend on its place in one.
"""

import numpy as np

from advmdp.projection.kernels.compiled import compiled_inline
from advmdp.projection.kernels.exponential import LN2_HIGH, LN2_LOW, bits_of, float_of

HALF_ROOT = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
FIELD = 0x000FFFFFFFFFFFFF
BIAS = 1022 << 52  # so that no shifted bits are negative
TWO_52, BITS_OF_TWO_52 = 2.0**52, 0x4330000000000000
SMALLEST_NORMAL, LIFTED = 2.0**-1022, 2.0**54


@compiled_inline
def logarithm(x: float) -> float:
    """ln x for x >= 0: -inf at zero, infinite at infinity, exact to the last place for subnormal numbers too."""
    small = x < SMALLEST_NORMAL
    y = x * LIFTED if small else x
    shifted = bits_of(y) - HALF_ROOT + BIAS
    k = float_of(((shifted >> 52) & 0x7FF) + BITS_OF_TWO_52) - (TWO_52 + (1076.0 if small else 1022.0))
    f = float_of((shifted & FIELD) + HALF_ROOT) - 1.0
    s = f / (2.0 + f)
    z = s * s
    r = 0.14616576421644387
    r = r * z + 0.15331711346672997
    r = r * z + 0.18182889433757515
    r = r * z + 0.22222211130560726
    r = r * z + 0.28571428626001427
    r = r * z + 0.3999999999989945
    r = r * z + 0.666666666666667
    half = 0.5 * f * f
    value = k * LN2_HIGH + (f - (half - (s * (half + r * z) + k * LN2_LOW)))
    finite = value if x > 0.0 else -np.inf
    return finite if x < np.inf else x
