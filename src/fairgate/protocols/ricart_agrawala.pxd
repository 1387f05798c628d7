cimport cython
from fairgate.core.message cimport Message
from fairgate.core.mutex cimport Mutex

cdef long long NIL

@cython.final
cdef class Request(Message):
    cdef readonly long long sequence_number

@cython.final
cdef class Reply(Message):
    pass

cdef class RicartAgrawala(Mutex):
    cdef readonly tuple others
    cdef public long long our_sequence_number, highest_sequence_number, outstanding_reply_count
    cdef public set reply_deferred
    @cython.locals(j=cython.longlong)
    cpdef int request_cs(self) except -1
    cpdef int await_replies(self) except -1
    @cython.locals(j=cython.longlong)
    cpdef int release_cs(self) except -1
    cpdef int on_request(self, long long j, Request m) except -1
    cpdef bint goes_first(self, long long j, long long sequence_number) except -1
    cpdef int on_reply(self, Reply m) except -1
