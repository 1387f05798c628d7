cimport cython
from fairgate.core.kbr cimport Keyed
from fairgate.protocols.sigma.replica cimport Voters
from fairgate.protocols.sigma.votes cimport Release, Replica, Request, Resp, Response, new_release, new_request, new_resp

cdef long long NIL, NEVER, PATIENCE

cdef class Strawman(Voters):
    cdef public long long resend, renewal, backoff, whole, needed, k, ts, started
    cdef public long long mine, votes, heard, answered, look_at, permit_at
    cdef public list resp
    cdef public dict tally
    cpdef void begin(self) except *
    @cython.locals(r=Resp)
    cpdef void ask_all(self) except *
    cpdef void ask(self, Resp r) except *
    cpdef void reach(self, Resp r, Keyed msg) except *
    @cython.locals(r=Resp)
    cpdef void on_response(self, Response m) except *
    cpdef void take(self, Resp r, Response m) except *
    cpdef bint can_spare(self, Resp r) except -1
    cpdef void spare(self, Resp r) except *
    cpdef void refuse(self, Response m) except *
    cpdef bint is_old(self, Resp r, Response m) except -1
    cpdef void learn(self, Resp r, Response m) except *
    cpdef void count(self, Resp r, long long owner, long long owner_ts, long long grant) except *
    @cython.locals(rest=cython.longlong)
    cpdef void uncount(self, Resp r) except *
    cpdef void judge(self) except *
    cpdef void contend(self) except *
    cpdef void lose_round(self) except *
    @cython.locals(r=Resp)
    cpdef void win(self) except *
    @cython.locals(r=Resp, weight=cython.longlong)
    cpdef long long valid(self, long long margin) except -1
    @cython.locals(r=Resp, end=cython.longlong)
    cpdef void watch(self) except *
    cpdef void lose(self, str why) except *
    @cython.locals(r=Resp)
    cpdef void release_votes(self) except *
    @cython.locals(r=Resp)
    cpdef void end_request(self) except *
    @cython.locals(response=Response, request=Request, release=Release)
    cpdef void deliver(self, long long src, Keyed msg) except *
    cpdef void on_request(self, Replica rep, Request m) except *
    cpdef void on_release_message(self, Replica rep, Release m) except *
    @cython.locals(due=cython.longlong)
    cpdef void look_later(self, Resp r, long long delay) except *
    @cython.locals(r=Resp)
    cpdef void look(self) except *
    cpdef void look_at_one(self, Resp r) except *
    cpdef void ask_again(self, Resp r) except *
    cpdef void keep_permit(self) except *
