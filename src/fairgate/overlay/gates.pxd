cimport cython
from fairgate.core.kbr cimport Door, Gated, Keyed, Rider, Routed
from fairgate.core.message cimport Message

cdef class Gates(Rider):
    cdef public Door overlay
    cdef public object make, passes
    cdef readonly bint intercepts
    cdef readonly long long resources
    cdef readonly list setups, prefixes
    cdef public list gates
    cdef public set crashed
    @cython.locals(gated=Gated)
    cpdef void on_message(self, long long src, Message msg) except *
    @cython.locals(node=Routed)
    cpdef Routed at(self, long long gate)
    cpdef list made(self)

cdef class GateDoor(Door):
    cdef public Door overlay

@cython.locals(door=GateDoor)
cdef GateDoor new_gate_door(Gates gates, str prefix)
