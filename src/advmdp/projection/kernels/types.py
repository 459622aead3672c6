"""The arrays that the kernels pass around, each group under one name."""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Indices: TypeAlias = NDArray[np.int32]
Index: TypeAlias = int | np.uint64
Flags: TypeAlias = NDArray[np.int8]
Row: TypeAlias = tuple[bool, float, float, float, float, float]

# Arrays of one length share one matrix, a row each: every array that a kernel takes costs time at each call.
# Rows of Structure.states and of Structure.pairs
PAIR_PTR, EDGE_PTR, FIRST_OF_STATE, BASE_OF = range(4)
FIRST_OF_PAIR, STATE_OF = range(2)
# Rows of Workspace.states
BETA, BETA_BASE = 0, 1
GROWTH = 2  # exp(beta - beta_base)
SCALE = 3
TOP = 4  # the scale of the flow out of x before it is normalised
LOG_TOTAL = 5  # ln sum_a exp(-kappa(x,a)), relative to TOP + 500 ln 2
LOG_OUT, OUTFLOW, INFLOW = 6, 7, 8
BEFORE = 9  # beta at the start of a line search
DEFECT = 10  # ln outflow - ln inflow
STEP = 11
PRODUCT = 12
PULL = 13  # what the sum of all that comes to x' is multiplied by
PUSH = 14  # and what v(x) is multiplied by on its way there
PINNED = 15  # the part of the inflow that does not answer to beta
# In the rows of the last two, which only Newton's step needs, at other times:
LOG_IN = 14
LIFT_OF = 15  # ln of rebuilt over dual mass
# In a row that Newton's step does not need:
SWEPT = 4  # M^-1 v
NUMBERS_OF_STATES = 16
# Rows of Workspace.pairs
OFFSET = 0
LOG_MASS = 1  # -kappa
LOG_A, LOG_B, MASS_A, MASS_B = 2, 3, 4, 5  # the logarithms relative to the offset
# Rows of Workspace.marks and of Workspace.scratch
STATUS, TIGHT = range(2)
U, LOG_U, THERE, VECTORS = range(4)


class Structure(NamedTuple):
    """A skeleton, and the edges (x,x') that its transitions (x,a,x') share between actions.

    Where all actions of a state have the same successors in the same order, the j-th transition of every pair lies on
    the j-th edge of the state, and BASE_OF says where in `base` the sums over actions stand. In other states every
    transition is an edge of its own, and BASE_OF is -1. Either way the j-th edge leads where the j-th transition does.
    FIRST_OF_STATE is the first successor of x if its successors are consecutive states, else -1, and
    FIRST_OF_PAIR says the same of a pair: consecutive entries need no gather and run in vector registers.
    """

    layer_ptr: Ints
    states: Ints  # PAIR_PTR, EDGE_PTR, FIRST_OF_STATE, BASE_OF
    transition_ptr: Ints
    pairs: Indices  # FIRST_OF_PAIR, STATE_OF
    successor: Indices
    parts: Ints  # the layer with which the part of each thread begins, and the number of layers that are left
    connected: bool  # whether every state has a predecessor


class Workspace(NamedTuple):
    """The memory that a skeleton needs for its projections, besides the arrays of the answer."""

    weight: Floats  # exp(log w + beta_base(x') - offset(x,a)), at most 2^500
    base: Floats  # per shared edge: sum over free pairs of their weights, relative to exp(scale(x))
    pairs: Floats  # OFFSET .. MASS_B
    marks: Flags  # per pair: STATUS, TIGHT
    watched: Indices  # the watched pairs of alive states, in order; their number stands at the end
    watched_parts: Ints  # where in `watched` the pairs of each part begin
    forbidden: Flags  # per part: whether some entry is
    states: Floats  # BETA .. PINNED
    log_z: Floats  # ln Z_k per layer
    alive: Flags
    scratch: Floats  # for each part: U .. VECTORS + 2, each as long as the longest row, and LANES
    band: Floats  # the matrix, where layers are narrow; else empty
    basis: Floats  # the directions of GMRES, in the place of the band
    hessenberg: Floats


class Work(NamedTuple):
    """A workspace during one projection, which also uses the arrays of the answer until the answer is written."""

    row: Floats  # p, for watched pairs; this is q
    flow: Floats  # per edge: probability of x' after x, times 2^500; this is the start of log q
    share: Floats  # q(x,a) times 2^500, one for each entry of `watched`; this is the policy
    weight: Floats
    base: Floats
    pairs: Floats
    marks: Flags
    watched: Indices
    watched_parts: Ints
    forbidden: Flags
    states: Floats
    log_z: Floats
    alive: Flags
    scratch: Floats
    band: Floats
    basis: Floats
    hessenberg: Floats
    plain: bool  # whether every path is feasible: nothing is forbidden, and no set forces an entry to zero
