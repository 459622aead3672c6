# What Python calls of `mixture.py`.

from typing import Any

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray
from advmdp.learners.kernels.episode import Rule
from advmdp.learners.kernels.mirror_descent import Descent
from advmdp.model.kernels.world import Dynamics
from advmdp.projection.kernels.memory import Bounds, Workspace

class Mixture(Rule):
    def __init__(
        self,
        pool: Any,
        table: NDArray[np.int64],
        paces: FloatArray,
        log_start: FloatArray,
        scale: float,
        descent: Descent | None,
        workspaces: list[Workspace],
        tolerance: float,
        limit: int,
    ) -> None: ...
    def within(self, bounds: Bounds, center: FloatArray, first: Bounds) -> None: ...
    def use_one_thread(self) -> None: ...
    def optimise(self, terms: FloatArray, steps: int) -> None: ...
    def begin(self, world: Dynamics) -> int: ...
    def project_again(self, world: Dynamics, episode: int, moved: bool) -> tuple[int, float]: ...
    def take_hint(self, world: Dynamics, loss: FloatArray, episode: int) -> int: ...
    def take_rules(self, world: Dynamics) -> int: ...
