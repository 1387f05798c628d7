cimport cython
from libc.stdint cimport uint32_t

@cython.final
cdef class Stream:
    cdef uint32_t words[624]
    cdef int used  # words drawn since the last refill
    cdef void refill(self) noexcept
    cdef uint32_t word(self) noexcept
    cpdef double unit(self) except -1.0
    cpdef long long below(self, long long n) except -1
    cpdef long long exponential(self, double mean) except -1
