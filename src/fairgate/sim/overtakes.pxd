cimport cython

cdef long long EXACT, MOST

@cython.trashcan(True)  # freeing one place frees the next: a long line would recurse too deeply
cdef class PlaceInLine:
    cdef PlaceInLine before, after
    cdef long long passed

@cython.final
cdef class Waiters:
    cdef PlaceInLine end
    cdef long long most
    cdef readonly long long overtakes, max_displacement, max_overtaken
    @cython.locals(end=PlaceInLine, last=PlaceInLine)
    cpdef bint join(self, PlaceInLine place) except -1
    cpdef bint enter(self, PlaceInLine place) except -1
    @cython.locals(displacement=cython.longlong, other=PlaceInLine, end=PlaceInLine)
    cdef bint overtake(self, PlaceInLine place) except -1
    cpdef bint drop(self, PlaceInLine place) except -1
