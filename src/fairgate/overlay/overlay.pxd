from fairgate.core.kbr cimport Door, Keyed, Rider
from fairgate.core.layers cimport Layer
from fairgate.core.message cimport Message

cdef long long NIL

cdef class Upkeep(Message):
    pass

cdef class Overlay(Layer):
    cdef public list local
    cdef public Rider rider
    cpdef long long next_hop(self, unsigned long long key) except -2
    cpdef tuple neighbours(self, long long count)
    cpdef void on_upkeep(self, long long src, Upkeep msg) except *
    cpdef void take(self, long long src, Message msg) except *
    cpdef void arrive(self, long long src, Keyed msg) except *

cdef class OverlayDoor(Door):
    cdef public Overlay overlay
