cimport cython
from fairgate.core.keyed cimport Gated, Keyed

@cython.final
cdef class Request(Keyed):
    cdef readonly long long replica, node, stamp, round, ended, known

@cython.final
cdef class Yield(Keyed):
    cdef readonly long long replica, node, stamp, round, known

@cython.final
cdef class Response(Gated):
    cdef readonly long long replica, stamp, round, owner, owner_stamp, generation
    cdef readonly bint vote

@cython.final
cdef class Enqueue(Gated):
    cdef readonly long long replica, generation, via
    cdef readonly tuple requests

@cython.final
cdef class IAmWinner(Keyed):
    cdef readonly long long replica, node, stamp, generation, lineage, round

@cython.final
cdef class Release(Keyed):
    cdef readonly long long replica, node, stamp, generation, lineage, heir, heir_stamp

@cython.final
cdef class Token(Gated):
    cdef readonly long long generation, lineage
    cdef readonly tuple requests

@cython.final
cdef class Recall(Gated):
    cdef readonly long long replica, stamp, round
    cdef readonly bint won

@cython.final
cdef class SentBack(Gated):
    cdef readonly long long replica, stamp, generation

@cython.final
cdef class Stale(Gated):
    cdef readonly long long replica, generation

@cython.final
cdef class Confirm(Gated):
    cdef readonly long long replica, lineage, generation, round

@cython.final
cdef class Copy(Gated):
    cdef readonly long long generation, sequence
    cdef readonly tuple requests

@cython.final
cdef class Ping(Gated):
    cdef readonly long long generation

@cython.final
cdef class Pong(Gated):
    cdef readonly long long generation

@cython.locals(m=Request)
cpdef Request new_request(
    long long gate, unsigned long long target, long long replica, long long node, long long stamp, long long round, long long ended, long long known
)

@cython.locals(m=Response)
cpdef Response new_response(
    long long gate, long long replica, long long stamp, long long round, bint vote, long long owner, long long owner_stamp, long long generation
)

@cython.locals(m=Enqueue)
cpdef Enqueue new_enqueue(long long gate, long long replica, long long generation, long long via, tuple requests)

@cython.locals(m=IAmWinner)
cpdef IAmWinner new_winner(
    long long gate, unsigned long long target, long long replica, long long node, long long stamp, long long generation, long long lineage, long long round
)

@cython.locals(m=Release)
cpdef Release new_release(
    long long gate, unsigned long long target, long long replica, long long node, long long stamp, long long generation, long long lineage, long long heir, long long heir_stamp
)
