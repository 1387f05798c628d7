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

cdef class Followed(Down):
    cdef public Regenerate regenerate
