from fairgate.core.node cimport Node

cdef long long NIL

cdef class Mutex(Node):
    cdef public long long request
    cdef public bint requesting_cs, inside
    cpdef void request_cs(self) except *
    cpdef void release_cs(self) except *
    cpdef void enter_cs(self, long long slot, long long fence) except *
    cpdef void leave_cs(self) except *
    cpdef void lose_cs(self, str why) except *
    cpdef bint alone(self) except *
    cpdef void retaken(self, long long times) except *
