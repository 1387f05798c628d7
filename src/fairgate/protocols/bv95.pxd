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
    cpdef int request_cs(self) except -1
    @cython.locals(waiting=tuple)
    cpdef int release_cs(self) except -1
    @cython.locals(kept=tuple)
    cpdef tuple merged(self)
    cpdef int on_request(self, Request m) except -1
    cpdef int keep(self, Request m) except -1
    cpdef int on_token(self, Token m) except -1
    cpdef int take_token(self) except -1
    cpdef int send_token(self, long long r, tuple rest) except -1
    cpdef int tick(self, long long stamp) except -1
    @cython.locals(t=cython.longlong)
    cpdef long long pick(self) except -1
    @cython.locals(trees=list)
    cpdef long long shortest(self) except -1
    cpdef int heard(self, long long t) except -1
    cpdef int touch(self, long long t) except -1

cpdef tuple pairs(waiting)
