# What Python calls of `mirror_descent.py`.

from typing import Any

from advmdp.core.arrays import FloatArray
from advmdp.learners.kernels.episode import Rule
from advmdp.model.kernels.world import Dynamics
from advmdp.planning.kernels.optimism import Plan
from advmdp.projection.kernels.memory import Bounds, Workspace

class Descent(Rule):
    def __init__(
        self, belief: Any, steps: Any, plan: Plan, workspace: Workspace, tolerance: float, limit: int
    ) -> None: ...
    def within(self, bounds: Bounds) -> None: ...
    def project_again(self, world: Dynamics) -> tuple[int, float]: ...
    def optimise(self, terms: FloatArray, steps: int) -> None: ...
