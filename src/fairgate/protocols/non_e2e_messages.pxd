cimport cython
from fairgate.core.kbr cimport Gated, Keyed

@cython.final
cdef class Request(Keyed):
    cdef readonly long long replica, ts, node, attempt
    cdef readonly bint past

@cython.final
cdef class GrantReq(Gated):
    cdef readonly long long replica, ts, attempt, holder, since, clock
    cdef readonly bint way, vote

cdef class Gathering(Keyed):
    cdef readonly long long replica, ts, node, attempt, keeper
    cdef readonly tuple queue
    cpdef Gathering with_queue(self, tuple queue, long long keeper)

@cython.final
cdef class Release(Gathering):
    pass

@cython.final
cdef class Yield(Gathering):
    pass

@cython.final
cdef class CleanUp(Gathering):
    pass

@cython.final
cdef class Ping(Keyed):
    cdef readonly long long replica, ts, node, attempt, n

@cython.final
cdef class Ack(Gated):
    cdef readonly long long replica, ts, attempt, n
    cdef readonly bint held

@cython.final
cdef class Taken(Gated):
    cdef readonly long long replica, ts, node, attempt

@cython.final
cdef class HandOver(Keyed):
    cdef readonly long long replica
    cdef readonly tuple owner, queue
