"""Loss sequences: the losses l_1, l_2, ... in [0, 1] that the adversary chooses (Section 2 of the paper).

A sequence is a pure function: ``at(t)`` depends on the seed and t alone, and for :class:`Adaptive` also on the policies
played before t.  So any episode can be drawn again, in any order, one at a time or in blocks, with the same bytes.  A
generated sequence of any length takes no memory.  Episodes are counted from 0: ``at(t)`` is the paper's l_{t+1}.  A
loss is a vector over transitions, (n,), or with ``dimensions=d`` a matrix (n, d) of d losses at once.
"""

from advmdp.losses.adaptive import Adaptive
from advmdp.losses.base import LOSS, Losses, Policies, Units
from advmdp.losses.generated import Drifting, FromFunction, Seasonal, Stochastic, Switching, drift
from advmdp.losses.kernels.reaction import Reaction
from advmdp.losses.recorded import Replay

__all__ = [
    "LOSS",
    "Adaptive",
    "Drifting",
    "FromFunction",
    "Losses",
    "Policies",
    "Reaction",
    "Replay",
    "Seasonal",
    "Stochastic",
    "Switching",
    "Units",
    "drift",
]
