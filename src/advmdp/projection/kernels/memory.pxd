# The C signatures of `memory.py`.

from .types cimport Index, Sets, Structure, Work

cdef class Layout:
    cdef Structure view
    cdef readonly dict arrays
    cdef readonly Index threads

cdef class Bounds:
    cdef Sets view
    cdef readonly object sets

cdef class Workspace:
    cdef Work view
    cdef readonly Layout layout
    cdef readonly dict arrays
    cdef readonly object beta
    cdef double *floats(self, str name) except? NULL
    cdef Index count_directions(self) except -1
    cdef allocate(self)
    cdef point_at_states(self)
    cdef point_at_pairs(self)
