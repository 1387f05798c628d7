cimport cython

cdef long long EXACT, MOST

@cython.trashcan(True)  # a long line is freed one place by the other
cdef class Place:
    cdef Place before, after
    cdef long long passed

@cython.final
cdef class Line:
    cdef Place end
    cdef long long most
    cdef readonly long long overtakes, max_displacement, max_overtaken
    @cython.locals(end=Place, last=Place)
    cpdef void join(self, Place place) except *
    cpdef void enter(self, Place place) except *
    @cython.locals(displacement=cython.longlong, other=Place, end=Place)
    cdef int overtake(self, Place place) except -1
    cpdef void drop(self, Place place) except *
