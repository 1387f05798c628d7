cimport cython

cdef long long EXACT, MOST

@cython.trashcan(True)  # a long line is freed one place by the other
cdef class PlaceInLine:
    cdef PlaceInLine before, after
    cdef long long passed

@cython.final
cdef class Waiters:
    cdef PlaceInLine end
    cdef long long most
    cdef readonly long long overtakes, max_displacement, max_overtaken
    @cython.locals(end=PlaceInLine, last=PlaceInLine)
    cpdef int join(self, PlaceInLine place) except -1
    cpdef int enter(self, PlaceInLine place) except -1
    @cython.locals(displacement=cython.longlong, other=PlaceInLine, end=PlaceInLine)
    cdef int overtake(self, PlaceInLine place) except -1
    cpdef int drop(self, PlaceInLine place) except -1
