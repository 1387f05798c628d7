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
    cpdef void request_cs(self) except *
    @cython.locals(arbiter=cython.longlong, ts=cython.longlong)
    cpdef void release_cs(self) except *
    cpdef void tell(self, long long dst, Message msg) except *
    cpdef void on_locked(self, long long arbiter, Locked m) except *
    cpdef void on_failed(self, long long arbiter, Failed m) except *
    cpdef void on_inquire(self, long long arbiter, Inquire m) except *
    @cython.locals(arbiter=cython.longlong)
    cpdef void give_back(self) except *
    cpdef void on_request(self, long long src, Request m) except *
    cpdef tuple best(self)
    @cython.locals(was_best=tuple)
    cpdef void overtake(self, long long ts, long long src) except *
    cpdef void on_relinquish(self, long long src, Relinquish m) except *
    cpdef void on_release_message(self, long long src, Release m) except *
    cpdef void lock_best(self) except *
    cpdef void lock(self, long long ts, long long src) except *
