cimport cython

cdef long long NIL

@cython.final
cdef class Occupancy:
    cdef readonly long long k, inside, max_inside, gate, gates
    cdef readonly bint slots
    cdef long long[::1] holder
    cdef long long[::1] last_fence
    @cython.locals(inside=cython.longlong, other=cython.longlong, before=cython.longlong)
    cpdef str enter(self, long long who, long long slot, long long fence)
    cpdef bint leave(self, long long who, long long slot) except -1
