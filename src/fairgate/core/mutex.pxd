from fairgate.core.node cimport Node

cdef long long NIL

cdef class Mutex(Node):
    cdef public long long request
    cdef public bint requesting_cs, inside
    cpdef bint request_cs(self) except -1
    cpdef bint release_cs(self) except -1
    cpdef bint enter_cs(self, long long slot, long long fence) except -1
    cpdef bint leave_cs(self) except -1
    cpdef bint lose_cs(self, str why) except -1
    cpdef bint alone(self) except *
    cpdef bint retaken(self, long long times) except -1
