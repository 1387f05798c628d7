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
    cpdef void hear(self, long long ts) except *
    @cython.locals(found=Replica)
    cpdef Replica replica(self, long long i)
    cpdef void vote(self, Replica rep, long long client, long long life, long long ts, long long age) except *
    cpdef void renew(self, Replica rep, long long age) except *
    cpdef void tell_owner(self, Replica rep) except *
    cpdef void lend(self, Replica rep) except *
    cpdef void free(self, Replica rep) except *
    @cython.locals(grant=cython.longlong, msg=Response)
    cpdef void respond(
        self, Replica rep, long long client, long long life, long long ts, long long age, long long wait, bint wanted
    ) except *
    @cython.locals(rep=Replica, next_end=cython.longlong)
    cpdef void end_leases(self) except *
