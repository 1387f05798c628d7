cimport cython
from fairgate.core.message cimport Message
from fairgate.core.mutex cimport Mutex

cdef long long NIL
cdef long long NOT_REQUESTING
cdef long long REQUESTING
cdef long long CS

@cython.final
cdef class Request(Message):
    cdef readonly long long last

@cython.final
cdef class Reply(Message):
    cdef readonly long long x

cdef class Raymond(Mutex):
    cdef public tuple others
    cdef public long long k, n, state, H, last, perm_count
    cdef public dict reply_count, defer_count
    cpdef int request_cs(self) except -1
    cpdef int await_permissions(self) except -1
    cpdef int release_cs(self) except -1
    cpdef int on_request(self, long long j, Request m) except -1
    cpdef bint goes_first(self, long long j, long long last) except -1
    cpdef int on_reply(self, long long j, Reply m) except -1
    cpdef bint permitted_by(self, long long j) except -1
