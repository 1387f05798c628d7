cimport cython
from fairgate.core.message cimport Message
from fairgate.core.mutex cimport Mutex

cdef long long NIL

@cython.final
cdef class Request(Message):
    cdef readonly long long ts

@cython.final
cdef class Locked(Message):
    cdef readonly long long ts, clock

@cython.final
cdef class Failed(Message):
    cdef readonly long long ts

@cython.final
cdef class Inquire(Message):
    cdef readonly long long ts

@cython.final
cdef class Relinquish(Message):
    cdef readonly long long ts

@cython.final
cdef class Release(Message):
    cdef readonly long long ts

cdef class Maekawa(Mutex):
    cdef public long long clock, ts
    cdef readonly tuple quorum
    cdef public set locked, failed, inquired
    cdef public tuple holder
    cdef public bint inquiring
    cdef public list queue
    @cython.locals(arbiter=cython.longlong)
    cpdef int request_cs(self) except -1
    @cython.locals(arbiter=cython.longlong, ts=cython.longlong)
    cpdef int release_cs(self) except -1
    cpdef int tell(self, long long dst, Message msg) except -1
    cpdef int on_locked(self, long long arbiter, Locked m) except -1
    cpdef int on_failed(self, long long arbiter, Failed m) except -1
    cpdef int on_inquire(self, long long arbiter, Inquire m) except -1
    @cython.locals(arbiter=cython.longlong)
    cpdef int give_back(self) except -1
    cpdef int on_request(self, long long src, Request m) except -1
    cpdef tuple best(self)
    @cython.locals(was_best=tuple)
    cpdef int overtake(self, long long ts, long long src) except -1
    cpdef int on_relinquish(self, long long src, Relinquish m) except -1
    cpdef int on_release_message(self, long long src, Release m) except -1
    cpdef int lock_best(self) except -1
    cpdef int lock(self, long long ts, long long src) except -1
