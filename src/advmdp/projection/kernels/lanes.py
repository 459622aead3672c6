"""Four numbers at once, by hand.

For rows of five or ten entries the compiler's own vector loops take longer to set up than to run.

A range that is worked on in lanes is followed by as many as LANES - 1 entries that are worked on too. So rows are kept
with room behind them, and what stands there in the row that is added is zero.
"""

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from advmdp.projection.kernels.types import Floats, Index

LANES = 4
VECTOR = ir.VectorType(ir.DoubleType(), LANES)
FUSED = ("contract",)


def _lanes_at(context: Any, builder: Any, kind: Any, matrix: Any, row: Any, column: Any) -> Any:
    """Where the lanes of a matrix from (row, column) on are stored."""
    array = context.make_array(kind)(context, builder, matrix)
    width = cgutils.unpack_tuple(builder, array.shape)[1]  # type: ignore[no-untyped-call]
    address = builder.gep(array.data, [builder.add(builder.mul(row, width), column)])
    return builder.bitcast(address, VECTOR.as_pointer())


def _in_all_lanes(builder: Any, value: Any) -> Any:
    """One number in every lane."""
    nothing = ir.Constant(VECTOR, ir.Undefined)
    first = builder.insert_element(nothing, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


def _add_lanes(typingctx: Any, target: Any, y: Any, to: Any, factor: Any, source: Any, x: Any, at: Any) -> Any:
    """target[y, to:] += factor * source[x, at:], one number for each lane; both are matrices without gaps."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target, y, to, factor, source, x, at = arguments
        there = _lanes_at(context, builder, signature.args[0], target, y, to)
        here = builder.load(_lanes_at(context, builder, signature.args[4], source, x, at), align=8)
        change = builder.fmul(_in_all_lanes(builder, factor), here, flags=FUSED)
        builder.store(builder.fadd(builder.load(there, align=8), change, flags=FUSED), there, align=8)
        return context.get_dummy_value()

    index = types.uint64
    return types.void(target, index, index, types.float64, source, index, index), codegen


add_lanes = cast("Callable[[Floats, Index, Index, float, Floats, Index, Index], None]", intrinsic(_add_lanes))
