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
    cpdef void on_request(self, Request m) except *
    cpdef void on_token(self, Token m) except *
    cpdef void take_token(self) except *
    cpdef void send_token(self, long long r) except *
