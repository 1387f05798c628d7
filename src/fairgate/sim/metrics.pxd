cimport cython
from cpython cimport array

cdef struct Kept:
    long long entries
    long long longest  # wait; -1: none since the warm-up

@cython.final
cdef class Metrics:
    cdef readonly long long warmup, counted, wait_total, wait_max
    cdef public long long entries, cancelled, lost
    cdef array.array waits
    cdef Kept* kept  # by node
    cdef long long nodes
    cpdef bint entered(self, long long node, long long wait) except -1
    cpdef bint grow(self) except -1
