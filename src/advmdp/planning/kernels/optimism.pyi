# What Python calls of `optimism.py`.

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray
from advmdp.model.kernels.world import Dynamics
from advmdp.projection.kernels.memory import Bounds

class Plan:
    policy: FloatArray
    values: FloatArray
    def __init__(self, policy: FloatArray, values: FloatArray, whole: NDArray[np.bool_], widest: int) -> None: ...

def plan_optimistically(
    world: Dynamics, bounds: Bounds, loss: FloatArray, cost: FloatArray, floor: float, span: float, plan: Plan
) -> None: ...
def appraise_policy(world: Dynamics, bounds: Bounds, loss: FloatArray, plan: Plan, pairs: FloatArray) -> None: ...
def visit(world: Dynamics, bounds: Bounds, of: NDArray[np.int64], group: int, last: int, plan: Plan) -> float: ...
def reach(world: Dynamics, bounds: Bounds, k: int, x: int, plan: Plan) -> float: ...
