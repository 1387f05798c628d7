cimport cython
from fairgate.core.message cimport Message
from fairgate.protocols.raymond cimport Raymond, Reply, Request

@cython.final
cdef class Init(Message):
    pass

@cython.final
cdef class Ack(Message):
    pass

@cython.final
cdef class Crash(Message):
    cdef readonly long long j

cdef class RaymondFD(Raymond):
    cdef public set T, S, unacked, init_waits, trusted, crashed
    cdef public bint ready
    cpdef int await_acks(self) except -1
    cpdef int on_init(self, long long j) except -1
    cpdef int accept(self, long long j) except -1
    cpdef int on_ack(self, long long j) except -1
    cpdef int on_crash_message(self, Crash m) except -1
    cpdef int learn_crash(self, long long j) except -1
    cpdef int detect(self, long long j) except -1
    cpdef int tell_itself(self, long long j) except -1

cdef class RaymondFDLiteral(RaymondFD):
    pass
