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
    cpdef int release_cs(self) except -1
    cpdef int on_grant(self, Grant m) except -1
    cpdef int on_request(self, Request m) except -1
    cpdef int on_release_message(self, Release m) except -1
    cpdef int serve(self, long long r) except -1
    cpdef int take_back(self, long long slot) except -1
    cpdef int lend(self, long long slot, long long r) except -1
