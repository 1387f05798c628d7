cimport cython
from libc.stdint cimport uint64_t

cdef struct Marks:  # a set of numbers
    uint64_t* words  # one bit per number
    int* tree  # a Fenwick tree, from index 1: counts of the bits in the words
    long long count

@cython.final
cdef class Waiters:
    cdef Marks waiting
    cdef Marks dropped
    cdef long long base  # the number of the first bit
    cdef long long words  # how many
    cdef readonly long long joined, overtakes, max_displacement, max_overtaken
    cdef void mark(self, Marks* marks, long long number, int by) noexcept
    cdef long long before(self, Marks* marks, long long number) noexcept
    cdef int make_room(self) except -1
    cdef int grow(self, Marks* marks, long long words) except -1
    cdef void shift(self, Marks* marks, long long by) noexcept
    cdef void count(self, Marks* marks) noexcept
    cpdef long long join(self) except -1
    cpdef bint enter(self, long long number) except -1
    cpdef bint drop(self, long long number) except -1
