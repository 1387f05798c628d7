cimport cython
from fairgate.core.keyspace cimport clockwise, place_of

@cython.final
cdef class Ring:
    cdef readonly long long size, version
    cdef long long shift
    cdef readonly unsigned long long[::1] places
    cdef readonly long long[::1] ids
    cdef long long[::1] index
    @cython.locals(rank=cython.longlong, part=cython.ulonglong, parts=cython.ulonglong, bits=cython.longlong)
    cpdef fill(self, places, ids)
    cpdef long long around(self, long long rank) noexcept
    cpdef unsigned long long place(self, long long rank) noexcept
    cpdef long long ident(self, long long rank) noexcept
    @cython.locals(rank=cython.longlong)
    cpdef long long rank(self, unsigned long long key) noexcept
    cpdef long long successor(self, unsigned long long key) noexcept
    cpdef bint has(self, long long ident) noexcept
