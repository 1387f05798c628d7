cimport cython

cdef struct Known:
    long long node
    long long number  # NIL: this place of the table is free
    long long slot

@cython.final
cdef class Waiting:
    cdef long long* order  # nodes; those from `front` to `back` are in order
    cdef long long front, back, room
    cdef Known* table  # open addressing, with linear probing
    cdef unsigned long long mask  # the table's size, a power of two, less one
    cdef readonly long long known
    cdef Known* find(self, long long r) noexcept
    cdef int resize(self, unsigned long long size) except -1
    cdef int make_room(self, long long room) except -1
    cpdef long long number(self, long long r) noexcept
    cpdef long long slot(self, long long r) noexcept
    cpdef bint add(self, long long r, long long n) except -1
    cpdef bint know(self, long long r, long long n, long long slot) except -1
    cpdef long long promise(self, long long r, long long slot) except -1
    cpdef long long take_first(self) noexcept
    cpdef bint remove(self, long long r) noexcept
    cpdef bint forget(self, long long r) except -1
    cpdef tuple nodes(self)
    cpdef Waiting copy(self)
    cpdef tuple key(self)
