from fairgate.core.kbr cimport Door, Gated, Keyed, Rider, Routed
from fairgate.core.message cimport Message

cdef class Gates(Rider):
    cdef public Door overlay
    cdef public object make
    cdef readonly bint intercepts
    cdef readonly long long resources
    cdef readonly list setups
    cdef public dict gates
    cdef public set crashed
    cpdef Routed at(self, long long gate)

cdef class GateDoor(Door):
    cdef public Door overlay
