cimport cython
from fairgate.core.keyed cimport Gated, Keyed

cdef long long NIL

@cython.final
cdef class Request(Keyed):
    cdef readonly long long replica, ts, node, attempt
    cdef readonly tuple asked
    cdef readonly bint past

@cython.final
cdef class GrantReq(Gated):
    cdef readonly long long replica, ts, attempt, holder, clock
    cdef readonly bint way, vote, wanted

cdef class Gathering(Keyed):
    cdef readonly long long replica, ts, node, attempt, keeper
    cdef readonly tuple queue
    cpdef Gathering blank(self)
    @cython.locals(m=Gathering)
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
cdef class Skip(Gated):
    cdef readonly long long replica, ts, node, attempt, previous, next

@cython.final
cdef class HandOver(Keyed):
    cdef readonly long long replica
    cdef readonly tuple owner, queue

@cython.locals(m=Request)
cpdef Request new_request(long long gate, unsigned long long target, long long replica, tuple asked, bint past)

@cython.locals(m=GrantReq)
cpdef GrantReq new_grantreq(
    long long gate, long long replica, long long ts, long long attempt, long long holder, bint way, bint vote, bint wanted, long long clock
)

@cython.locals(m=Release)
cpdef Release new_release(
    long long gate, unsigned long long target, long long replica, long long ts, long long node, long long attempt
)
