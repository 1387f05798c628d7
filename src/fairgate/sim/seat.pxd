cimport cython
from fairgate.core.properties cimport Occupancy
from fairgate.sim.line cimport Line, Place

cdef long long NIL

@cython.final
cdef class Seat(Place):
    cdef readonly long long number, me
    cdef public long long state, request, asked, slot
    cdef readonly Line line
    cdef readonly Occupancy occupancy
