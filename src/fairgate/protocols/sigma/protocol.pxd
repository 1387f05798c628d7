cimport cython
from fairgate.core.keyed cimport Keyed
from fairgate.protocols.sigma.strawman cimport Strawman
from fairgate.protocols.sigma.votes cimport Release, Replica, Request, Resp, Response, Waiter, Yield, new_release, new_waiter

cdef long long NIL, NEVER, RESEND

cdef class Sigma(Strawman):
    cdef public long long retry, primed_at
    cdef public bint prime, probing
    @cython.locals(other=Resp)
    cpdef int probed(self, Resp r, Response m) except -1
    @cython.locals(promoted=cython.bint)
    cpdef int take(self, Resp r, Response m) except -1
    cpdef int retry_later(self, Resp r, long long wait) except -1
    @cython.locals(r=Resp)
    cpdef int forget_served(self) except -1
    cpdef int keep_a_while(self, Resp r) except -1
    @cython.locals(r=Resp, unheard=cython.longlong, winners=cython.longlong, weight=cython.longlong)
    cpdef int contend(self) except -1
    @cython.locals(r=Resp)
    cpdef int yield_wanted(self) except -1
    cpdef bint may_yield(self, Resp r) except -1
    cpdef int give_back(self, Resp r) except -1
    cpdef int send_yield(self, Resp r, long long grant) except -1
    @cython.locals(r=Resp)
    cpdef int release_votes(self) except -1
    @cython.locals(w=Waiter)
    cpdef int on_request(self, Replica rep, Request m) except -1
    @cython.locals(w=Waiter)
    cpdef bint is_known(self, Replica rep, Request m) except -1
    cpdef int again(self, Replica rep, Waiter w, long long age) except -1
    cpdef bint is_ahead(self, Replica rep, Waiter w) except -1
    cpdef bint is_overdue(self, Replica rep) except -1
    cpdef int inquire(self, Replica rep) except -1
    @cython.locals(Tcs=cython.longlong, P=cython.longlong)
    cpdef int tell_waiter(self, Replica rep, Waiter w) except -1
    @cython.locals(w=Waiter)
    cpdef int on_release_message(self, Replica rep, Release m) except -1
    @cython.locals(took=cython.longlong)
    cpdef int observe(self, Replica rep) except -1
    @cython.locals(w=Waiter)
    cpdef int resp_queue(self, Replica rep) except -1
    @cython.locals(w=Waiter)
    cpdef int on_yield(self, Replica rep, Yield m) except -1
    cpdef bint is_current(self, Replica rep, Yield m) except -1

cdef class SigmaLiteral(Sigma):
    pass
