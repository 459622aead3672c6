# What Python calls of `world.py`.

from advmdp.core.arrays import FloatArray
from advmdp.model.skeleton import Skeleton

class Dynamics:
    skeleton: Skeleton
    transition: FloatArray | None
    def __init__(self, skeleton: Skeleton, transition: FloatArray | None = None) -> None: ...
