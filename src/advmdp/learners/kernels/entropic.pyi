# What Python calls of `entropic.py`.

from typing import Any

from advmdp.core.arrays import FloatArray
from advmdp.learners.kernels.episode import Rule
from advmdp.model.kernels.world import Dynamics

class Hedge(Rule):
    def __init__(self, experts: Any, eta: float) -> None: ...

class Explorer(Rule):
    def __init__(self, experts: Any, eta: float, gamma: float) -> None: ...

class Visitor(Rule):
    def __init__(self, experts: Any, eta: float, gamma: float, explored: FloatArray) -> None: ...
    def refresh(self, world: Dynamics) -> None: ...
