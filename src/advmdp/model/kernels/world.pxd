# The C signatures of `world.py`.

from advmdp.core.kernels.types cimport Index, Indices, Ints, Reals

cdef struct World:
    Index steps  # L, the layers with actions
    Index states
    Index pairs
    Index transitions
    Ints layer_ptr
    Ints pair_ptr
    Ints transition_ptr
    Ints layer_transition_ptr
    Indices successor
    Reals transition  # P; NULL if unknown

cdef class Dynamics:
    cdef World view
    cdef readonly object skeleton  # owns the arrays, as `transition` does
    cdef readonly object transition
