cimport cython

@cython.final
cdef class Slots:
    cdef int* after  # slot + 1 -> the next slot + 1; 0 is before the first and after the last; -1: not in the set
    cdef int* before
    cdef int room  # for slots below this number
    cdef readonly int count
    cdef int grow(self, long long least) except -1
    cpdef bint has(self, long long slot) noexcept
    cpdef long long first(self) except -1
    cpdef bint add(self, long long slot) except -1
    cpdef bint remove(self, long long slot) noexcept
    cpdef long long take_first(self) except -1
    cpdef long long take_last(self) except -1
    cpdef Slots copy(self)
    cpdef tuple key(self)
