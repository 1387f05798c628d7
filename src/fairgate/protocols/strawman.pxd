cimport cython
from fairgate.core.kbr cimport Keyed, Routed
from fairgate.core.keyspace cimport is_between, place_of
from fairgate.protocols.votes cimport Ballot, Release, Replica, Request, Resp, Response

cdef long long NIL, NEVER, MILLION

cdef class Strawman(Routed):
    cdef public long long lease, hold_time, resend, backoff, lives, whole, needed, k, life, clock, ts, started
    cdef public long long mine, votes, heard, answered, seq, look_at, permit_at, lease_at
    cdef public bint direct
    cdef public Ballot ballot
    cdef public tuple voters
    cdef public list resp
    cdef public dict tally, replicas
    cpdef void begin(self) except *
    cpdef long long my_life(self) except -2
    @cython.locals(r=Resp)
    cpdef void ask_all(self) except *
    cpdef void ask(self, Resp r) except *
    cpdef void reach(self, Resp r, Keyed msg) except *
    @cython.locals(r=Resp)
    cpdef void on_response(self, Response m) except *
    cpdef void take(self, Resp r, Response m) except *
    cpdef void spare(self, Resp r) except *
    cpdef void hear(self, long long ts) except *
    cpdef void refuse(self, Response m) except *
    cpdef bint is_old(self, Resp r, Response m) except -1
    cpdef void learn(self, Resp r, Response m) except *
    cpdef void count(self, Resp r, long long owner, long long owner_ts, long long grant) except *
    @cython.locals(rest=cython.longlong)
    cpdef void uncount(self, Resp r) except *
    cpdef void judge(self) except *
    cpdef void contend(self) except *
    @cython.locals(r=Resp)
    cpdef void win(self) except *
    @cython.locals(r=Resp, weight=cython.longlong)
    cpdef long long valid(self) except -1
    @cython.locals(r=Resp, end=cython.longlong)
    cpdef void watch(self) except *
    cpdef void lose(self, str why) except *
    @cython.locals(r=Resp)
    cpdef void release_votes(self) except *
    @cython.locals(r=Resp)
    cpdef void end_request(self) except *
    @cython.locals(found=Replica)
    cpdef Replica replica(self, long long i)
    cpdef void on_request(self, Replica rep, Request m) except *
    cpdef void on_release_message(self, Replica rep, Release m) except *
    cpdef void vote(self, Replica rep, long long client, long long life, long long ts, long long age) except *
    cpdef void renew(self, Replica rep, long long age) except *
    cpdef void tell_owner(self, Replica rep) except *
    cpdef void lend(self, Replica rep) except *
    cpdef void free(self, Replica rep) except *
    @cython.locals(grant=cython.longlong, msg=Response)
    cpdef void respond(
        self, Replica rep, long long client, long long life, long long ts, long long age, long long wait, bint wanted
    ) except *
    @cython.locals(due=cython.longlong)
    cpdef void look_later(self, Resp r, long long delay) except *
    @cython.locals(r=Resp)
    cpdef void look(self) except *
    cpdef void look_at_one(self, Resp r) except *
    cpdef void ask_again(self, Resp r) except *
    cpdef void keep_permit(self) except *
    @cython.locals(rep=Replica, next_end=cython.longlong)
    cpdef void end_leases(self) except *
