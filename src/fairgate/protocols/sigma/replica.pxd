cimport cython
from fairgate.core.kbr cimport Routed
from fairgate.core.keyspace cimport is_between, place_of
from fairgate.protocols.sigma.votes cimport Ballot, Replica, Response

cdef long long NIL, NEVER, MILLION

cdef class Voters(Routed):
    cdef public long long lease, hold_time, lives, life, clock, seq, lease_at
    cdef public bint direct
    cdef public Ballot ballot
    cdef public tuple voters
    cdef public dict replicas
    cpdef long long my_life(self) except -2
    cpdef int hear(self, long long ts) except -1
    @cython.locals(found=Replica)
    cpdef Replica replica(self, long long i)
    cpdef int vote(self, Replica rep, long long client, long long life, long long ts, long long age) except -1
    cpdef int renew(self, Replica rep, long long age) except -1
    cpdef int tell_owner(self, Replica rep) except -1
    cpdef int lend(self, Replica rep) except -1
    cpdef int free(self, Replica rep) except -1
    @cython.locals(grant=cython.longlong, msg=Response)
    cpdef int respond(
        self, Replica rep, long long client, long long life, long long ts, long long age, long long wait, bint wanted
    ) except -1
    @cython.locals(rep=Replica, next_end=cython.longlong)
    cpdef int end_leases(self) except -1
