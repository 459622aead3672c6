# What Python calls of `episode.py`.

from typing import Any

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray
from advmdp.losses.kernels.reaction import Reaction
from advmdp.model.kernels.world import Dynamics

EPOCH_OVER: int

class Block:
    arrays: dict[str, NDArray[Any]]
    account: FloatArray
    reaction: Reaction | None
    losses: FloatArray
    states: NDArray[np.int64]
    pairs: NDArray[np.int64]
    transitions: NDArray[np.int64]
    paid: FloatArray
    believed: FloatArray
    gap: FloatArray
    total: FloatArray
    def __init__(
        self, arrays: dict[str, NDArray[Any]], account: FloatArray, reaction: Reaction | None = None
    ) -> None: ...
    def __len__(self) -> int: ...

class Rule:
    broken: int
    def __init__(self, policy: FloatArray) -> None: ...
    def place(self, told: int, coming: int, others: int, moved: bool) -> None: ...
    def end_after(self, episodes: int) -> None: ...
    def observe(self, world: Dynamics, block: Block) -> None: ...
    def play(self, world: Dynamics, block: Block, b: int, seen: bool, episode: int) -> tuple[int, int]: ...
