# What Python calls of `planners.py`.

from typing import Any

from advmdp.learners.kernels.episode import Rule
from advmdp.planning.kernels.optimism import Plan
from advmdp.projection.kernels.memory import Bounds

class Respond(Rule):
    def __init__(self, record: Any, keeps: float, slot: Any = None) -> None: ...

class Iterate(Rule):
    def __init__(self, record: Any, bounds: Bounds, plan: Plan, bonus: float, full: bool) -> None: ...

class Gather(Rule):
    def __init__(self, record: Any, full: bool) -> None: ...

class Follow(Rule):
    def __init__(self, record: Any, plan: Plan) -> None: ...
    def within(self, bounds: Bounds) -> None: ...

class Wait(Rule):
    def __init__(self, record: Any) -> None: ...
