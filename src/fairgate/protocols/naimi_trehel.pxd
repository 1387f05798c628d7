cimport cython
from fairgate.core.message cimport Message
from fairgate.core.mutex cimport Mutex

cdef long long NIL, SLOT

@cython.final
cdef class Request(Message):
    cdef readonly long long r

@cython.final
cdef class Token(Message):
    cdef readonly long long fence

cdef class NaimiTrehel(Mutex):
    cdef public bint token_present
    cdef public long long parent, next, fence
    cpdef int on_request(self, Request m) except -1
    cpdef int on_token(self, Token m) except -1
    cpdef int take_token(self) except -1
    cpdef int send_token(self, long long r) except -1
