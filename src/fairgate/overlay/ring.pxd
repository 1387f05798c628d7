cimport cython
from fairgate.core.keyspace cimport place_of

@cython.final
cdef class Ring:
    cdef readonly long long size
    cdef unsigned long long[::1] places
    cdef long long[::1] ids
    cpdef unsigned long long place(self, long long rank) noexcept
    cpdef long long ident(self, long long rank) noexcept
    @cython.locals(low=cython.longlong, high=cython.longlong, middle=cython.longlong)
    cpdef long long rank(self, unsigned long long key) noexcept
    cpdef long long successor(self, unsigned long long key) noexcept
    cpdef bint has(self, long long ident) noexcept
