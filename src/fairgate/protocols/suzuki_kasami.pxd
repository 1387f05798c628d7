cimport cython
from fairgate.core.message cimport Message
from fairgate.core.mutex cimport Mutex

cdef long long NIL, SLOT

@cython.final
cdef class Request(Message):
    cdef readonly long long j, n

@cython.final
cdef class Token(Message):
    cdef readonly long long fence
    cdef readonly tuple Q, LN

cdef class SuzukiKasami(Mutex):
    cdef public bint token_present
    cdef public long long fence
    cdef public dict RN, LN
    cdef public tuple Q
    @cython.locals(ask=Request, j=cython.longlong)
    cpdef int request_cs(self) except -1
    cpdef tuple newcomers(self)
    cpdef int on_request(self, Request m) except -1
    cpdef int on_token(self, Token m) except -1
    cpdef int take_token(self) except -1
    cpdef int send_token(self, long long j, tuple rest) except -1
