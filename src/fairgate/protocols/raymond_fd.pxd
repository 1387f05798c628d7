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
    cpdef void await_acks(self) except *
    cpdef void on_init(self, long long j) except *
    cpdef void accept(self, long long j) except *
    cpdef void on_ack(self, long long j) except *
    cpdef void on_crash_message(self, Crash m) except *
    cpdef void learn_crash(self, long long j) except *
    cpdef void detect(self, long long j) except *
    cpdef void tell_itself(self, long long j) except *

cdef class RaymondFDLiteral(RaymondFD):
    pass
