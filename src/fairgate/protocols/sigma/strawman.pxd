cimport cython
from fairgate.core.keyed cimport Keyed
from fairgate.protocols.sigma.replica cimport Voters
from fairgate.protocols.sigma.votes cimport Release, Replica, Request, Resp, Response, new_release, new_request, new_resp

cdef long long NIL, NEVER, PATIENCE

cdef class Strawman(Voters):
    cdef public long long resend, renewal, backoff, whole, needed, k, ts, started
    cdef public long long mine, votes, heard, answered, look_at, permit_at
    cdef public list resp
    cdef public dict tally
    cpdef int begin(self) except -1
    @cython.locals(r=Resp)
    cpdef int ask_all(self) except -1
    cpdef int ask(self, Resp r) except -1
    cpdef int reach(self, Resp r, Keyed msg) except -1
    @cython.locals(r=Resp)
    cpdef int on_response(self, Response m) except -1
    cpdef int take(self, Resp r, Response m) except -1
    cpdef bint can_spare(self, Resp r) except -1
    cpdef int spare(self, Resp r) except -1
    cpdef int refuse(self, Response m) except -1
    cpdef bint is_old(self, Resp r, Response m) except -1
    cpdef int learn(self, Resp r, Response m) except -1
    cpdef int count(self, Resp r, long long owner, long long owner_ts, long long grant) except -1
    @cython.locals(rest=cython.longlong)
    cpdef int uncount(self, Resp r) except -1
    cpdef int judge(self) except -1
    cpdef int contend(self) except -1
    cpdef int lose_round(self) except -1
    @cython.locals(r=Resp)
    cpdef int win(self) except -1
    @cython.locals(r=Resp, weight=cython.longlong)
    cpdef long long valid(self, long long margin) except -1
    @cython.locals(r=Resp, end=cython.longlong)
    cpdef int watch(self) except -1
    cpdef int lose(self, str why) except -1
    @cython.locals(r=Resp)
    cpdef int release_votes(self) except -1
    @cython.locals(r=Resp)
    cpdef int end_request(self) except -1
    @cython.locals(response=Response, request=Request, release=Release)
    cpdef int deliver(self, long long src, Keyed msg) except -1
    cpdef int on_request(self, Replica rep, Request m) except -1
    cpdef int on_release_message(self, Replica rep, Release m) except -1
    @cython.locals(due=cython.longlong)
    cpdef int look_later(self, Resp r, long long delay) except -1
    @cython.locals(r=Resp)
    cpdef int look(self) except -1
    cpdef int look_at_one(self, Resp r) except -1
    cpdef int ask_again(self, Resp r) except -1
    cpdef int keep_permit(self) except -1
