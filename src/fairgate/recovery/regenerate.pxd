cimport cython
from fairgate.core.layers cimport Down, Layer
from fairgate.core.message cimport Message

cdef long long NIL

@cython.final
cdef class Dated(Message):
    cdef readonly long long epoch
    cdef readonly Message inner

@cython.final
cdef class Answer(Message):
    cdef readonly long long view, request, slot, waited
    cdef readonly bint inside

@cython.final
cdef class Install(Message):
    cdef readonly long long view, slot, fence
    cdef readonly bint granted
    cdef readonly tuple members, node

cdef class Regenerate(Layer):
    cdef public object make
    cdef public long long epoch, view, request, asked, slot, answered
    cdef public bint inside
    cdef public tuple members, view_members
    cdef public dict answers
    cdef public list early
    cpdef bint alone(self) except *
    cpdef int retaken(self, long long times) except -1
    cpdef int ended(self, long long request) except -1
    cpdef int on_dated(self, long long src, Dated m) except -1
    cpdef int let_in(self, long long slot, long long fence) except -1

cdef class Followed(Down):
    cdef public Regenerate regenerate
