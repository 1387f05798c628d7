cimport cython

@cython.final
cdef class Stream:
    cdef object rng
    cdef double block[256]
    cdef int used
    cdef int refill(self) except -1
    cpdef double unit(self) except -1.0
    cpdef long long below(self, long long n) except -1
    cpdef long long exponential(self, double mean) except -1
