# What Python calls of `solver.py`.

from advmdp.core.arrays import FloatArray
from advmdp.projection.kernels.memory import Bounds, Layout, Workspace

LARGEST: float

def solve_from(
    start: FloatArray | None,
    layout: Layout,
    bounds: Bounds,
    workspace: Workspace,
    log_w: FloatArray,
    answer: FloatArray,
    tolerance: float,
    limit: int,
    largest: float = ...,
) -> tuple[int, float, float, float, float, int]: ...
