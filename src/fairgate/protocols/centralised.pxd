cimport cython
from fairgate.core.message cimport Message
from fairgate.core.mutex cimport Mutex

cdef long long NIL

@cython.final
cdef class Request(Message):
    cdef readonly long long r

@cython.final
cdef class Grant(Message):
    cdef readonly long long slot, fence

@cython.final
cdef class Release(Message):
    cdef readonly long long slot

cdef class Centralised(Mutex):
    cdef public long long root, slot
    cdef public list free, fences, queue
    @cython.locals(slot=cython.longlong)
    cpdef void release_cs(self) except *
    cpdef void on_grant(self, Grant m) except *
    cpdef void on_request(self, Request m) except *
    cpdef void on_release_message(self, Release m) except *
    cpdef void serve(self, long long r) except *
    cpdef void take_back(self, long long slot) except *
    cpdef void lend(self, long long slot, long long r) except *
