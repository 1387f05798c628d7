cimport cython

cdef long long NIL, EXACT, MOST

@cython.final
cdef class Line:
    cdef long long[::1] before
    cdef long long[::1] after
    cdef long long[::1] passed
    cdef long long[::1] tail
    cdef long long most, gates
    cdef readonly long long length, overtakes, max_displacement, max_overtaken
    @cython.locals(tail=cython.longlong)
    cpdef void join(self, long long node) except *
    cpdef void enter(self, long long node) except *
    @cython.locals(displacement=cython.longlong, other=cython.longlong)
    cdef int overtake(self, long long node) except -1
    @cython.locals(front=cython.longlong, back=cython.longlong)
    cpdef void drop(self, long long node) except *
