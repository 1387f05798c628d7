cimport cython
from fairgate.core.kbr cimport Door, Rider
from fairgate.core.keyed cimport Keyed
from fairgate.core.layers cimport Layer
from fairgate.core.message cimport Message
from fairgate.overlay.messages cimport Found, Lookup, Upkeep

cdef long long NIL

cdef class Overlay(Layer):
    cdef public list local
    cdef public Rider rider
    cdef readonly bint asks
    cpdef long long next_hop(self, unsigned long long key) except -2
    cpdef tuple neighbours(self, long long count)
    cpdef bint serves(self, unsigned long long key) except -1
    cpdef tuple names_for(self, Lookup m)
    cpdef bint lookup(self, unsigned long long key) except -1
    cpdef bint on_upkeep(self, long long src, Upkeep msg) except -1
    @cython.locals(next_hop=cython.longlong)
    cpdef bint on_lookup(self, long long src, Lookup m) except -1
    cpdef bint on_found(self, long long src, Found m) except -1
    cpdef bint later(self, Message msg) except -1
    @cython.locals(waiting=list)
    cpdef bint finish_step(self) except -1
    cpdef bint take(self, long long src, Message msg) except -1
    @cython.locals(next_hop=cython.longlong, onward=Keyed)
    cpdef bint arrive(self, long long src, Keyed msg) except -1

cdef class OverlayDoor(Door):
    cdef public Overlay overlay
