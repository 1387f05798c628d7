from fairgate.core.node cimport Node

cdef long long NIL

cdef class Mutex(Node):
    cdef public long long request
    cdef public bint requesting_cs, inside
    cpdef int request_cs(self) except -1
    cpdef int release_cs(self) except -1
    cpdef int enter_cs(self, long long slot, long long fence) except -1
    cpdef int leave_cs(self) except -1
    cpdef int lose_cs(self, str why) except -1
    cpdef bint alone(self) except *
    cpdef int retaken(self, long long times) except -1
