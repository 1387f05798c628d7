cimport cython
from fairgate.core.kbr cimport Door, Rider, Routed
from fairgate.core.keyed cimport Gated, Keyed
from fairgate.core.message cimport Message

cdef class GateDoor(Door)

cdef class Gates(Rider):
    cdef public object make, passes
    cdef readonly bint intercepts, stamped, zoned
    cdef readonly long long resources, acting, ahead
    cdef readonly GateDoor door
    cdef readonly list setups
    cdef public list gates
    cdef public set crashed
    @cython.locals(gated=Gated)
    cpdef bint on_message(self, long long src, Message msg) except -1
    @cython.locals(node=Routed)
    cpdef Routed at(self, long long gate)
    @cython.locals(node=Routed)
    cpdef Routed open(self, long long gate)
    cpdef list made(self)

cdef class GateDoor(Door):
    cdef public Gates gates
    cdef public Door overlay
    cdef readonly list prefixes
