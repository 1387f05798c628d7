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
    cpdef void request_cs(self) except *
    cpdef void await_replies(self) except *
    @cython.locals(j=cython.longlong)
    cpdef void release_cs(self) except *
    cpdef void on_request(self, long long j, Request m) except *
    cpdef bint goes_first(self, long long j, long long sequence_number) except -1
    cpdef void on_reply(self, Reply m) except *
