"""exp of an array, without branches, so that the compiler runs four entries at once.

    exp(x) = 2^k exp(r),   k = round(x / ln 2),   r = x - k ln 2,   |r| <= ln(2)/2

k is rounded by adding 1.5 2^52, which leaves k in the low bits of the sum; shifted into the exponent field these bits
are added to the polynomial's. Below -708 the result is exactly zero (no subnormals). The largest error is 1 ulp.
"""

from collections.abc import Callable
from typing import Any, cast

from numba import types
from numba.extending import intrinsic

from advmdp.projection.kernels.compiled import compiled_fused

ROUND = 6755399441055744.0  # 1.5 * 2**52
LOG2_E = 1.4426950408889634
LN2_HIGH = 0.693147180369123816490  # 32 bits: k * LN2_HIGH is exact
LN2_LOW = 1.90821492927058770002e-10
SMALLEST = -708.0


def _bits_of(typingctx: Any, x: Any) -> Any:
    """The 64 bits of a float64 as an int64."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.int64))

    return types.int64(types.float64), codegen


def _float_of(typingctx: Any, bits: Any) -> Any:
    """The float64 that has these 64 bits."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.int64), codegen


bits_of = cast("Callable[[float], int]", intrinsic(_bits_of))
float_of = cast("Callable[[int], float]", intrinsic(_float_of))


@compiled_fused
def exponential(x: float) -> float:
    """exp(x) for x <= 709; exactly zero below -708 and for -inf."""
    y = x if x > SMALLEST else SMALLEST
    shifted = y * LOG2_E + ROUND
    k = shifted - ROUND
    r = (y - k * LN2_HIGH) - k * LN2_LOW
    s = 1.605904383682161e-10
    s = s * r + 2.08767569878681e-09
    s = s * r + 2.505210838544172e-08
    s = s * r + 2.755731922398589e-07
    s = s * r + 2.755731922398589e-06
    s = s * r + 2.48015873015873e-05
    s = s * r + 1.984126984126984e-04
    s = s * r + 1.3888888888888889e-03
    s = s * r + 8.333333333333333e-03
    s = s * r + 4.1666666666666664e-02
    s = s * r + 1.6666666666666666e-01
    s = s * r + 0.5
    s = s * r * r + r
    value = float_of(bits_of(1.0 + s) + (bits_of(shifted) << 52))
    return value if x > SMALLEST else 0.0
