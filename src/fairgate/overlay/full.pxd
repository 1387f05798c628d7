cimport cython
from fairgate.core.keyspace cimport place_of
from fairgate.overlay.overlay cimport Overlay
from fairgate.overlay.ring cimport Ring

cdef long long NIL

cdef class Full(Overlay):
    cdef readonly Ring ring
    @cython.locals(owner=cython.longlong)
    cpdef long long next_hop(self, unsigned long long key) except -2

cdef class Watched(Full):
    cdef public set gone
    cpdef long long living(self, long long rank, long long step) except? -1
    @cython.locals(owner=cython.longlong)
    cpdef long long next_hop(self, unsigned long long key) except -2
