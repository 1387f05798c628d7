cimport cython
from fairgate.core.message cimport Message
from fairgate.core.mutex cimport Mutex

cdef long long NIL

@cython.final
cdef class Request(Message):
    cdef readonly long long t, r, stamp

@cython.final
cdef class Token(Message):
    cdef readonly long long t, fence, stamp
    cdef readonly tuple queue

cdef class BV95(Mutex):
    cdef public str tree, cache
    cdef public bint token_present
    cdef public long long k, slot, fence, clock
    cdef public list parent, kept, order, hint
    cdef public tuple queue
    @cython.locals(t=cython.longlong)
    cpdef void request_cs(self) except *
    @cython.locals(waiting=tuple)
    cpdef void release_cs(self) except *
    @cython.locals(kept=tuple)
    cpdef tuple merged(self)
    cpdef void on_request(self, Request m) except *
    cpdef void keep(self, Request m) except *
    cpdef void on_token(self, Token m) except *
    cpdef void take_token(self) except *
    cpdef void send_token(self, long long r, tuple rest) except *
    cpdef void tick(self, long long stamp) except *
    @cython.locals(t=cython.longlong)
    cpdef long long pick(self) except -1
    @cython.locals(trees=list)
    cpdef long long shortest(self) except -1
    cpdef void heard(self, long long t) except *
    cpdef void touch(self, long long t) except *

cpdef tuple pairs(waiting)
