cimport cython
from cpython cimport array

@cython.final
cdef class Metrics:
    cdef readonly long long warmup, counted, wait_total, wait_max
    cdef public long long entries, cancelled, lost
    cdef array.array waits
    cdef long long[::1] node_entries
    cdef long long[::1] node_max
    cpdef bint entered(self, long long node, long long wait) except -1
    cpdef bint grow(self) except -1
