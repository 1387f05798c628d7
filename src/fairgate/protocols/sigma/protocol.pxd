cimport cython
from fairgate.core.kbr cimport Keyed
from fairgate.protocols.sigma.strawman cimport Strawman
from fairgate.protocols.sigma.votes cimport Release, Replica, Request, Resp, Response, Waiter, Yield, new_release, new_waiter

cdef long long NIL, NEVER, RESEND

cdef class Sigma(Strawman):
    cdef public long long retry, primed_at
    cdef public bint prime, probing
    @cython.locals(other=Resp)
    cpdef void probed(self, Resp r, Response m) except *
    @cython.locals(promoted=cython.bint)
    cpdef void take(self, Resp r, Response m) except *
    cpdef void retry_later(self, Resp r, long long wait) except *
    @cython.locals(r=Resp)
    cpdef void forget_served(self) except *
    cpdef void keep_a_while(self, Resp r) except *
    @cython.locals(r=Resp, unheard=cython.longlong, winners=cython.longlong, weight=cython.longlong)
    cpdef void contend(self) except *
    @cython.locals(r=Resp)
    cpdef void yield_wanted(self) except *
    cpdef bint may_yield(self, Resp r) except -1
    cpdef void give_back(self, Resp r) except *
    cpdef void send_yield(self, Resp r, long long grant) except *
    @cython.locals(r=Resp)
    cpdef void release_votes(self) except *
    @cython.locals(w=Waiter)
    cpdef void on_request(self, Replica rep, Request m) except *
    @cython.locals(w=Waiter)
    cpdef bint is_known(self, Replica rep, Request m) except -1
    cpdef void again(self, Replica rep, Waiter w, long long age) except *
    cpdef bint is_ahead(self, Replica rep, Waiter w) except -1
    cpdef bint is_overdue(self, Replica rep) except -1
    cpdef void inquire(self, Replica rep) except *
    @cython.locals(Tcs=cython.longlong, P=cython.longlong)
    cpdef void tell_waiter(self, Replica rep, Waiter w) except *
    @cython.locals(w=Waiter)
    cpdef void on_release_message(self, Replica rep, Release m) except *
    @cython.locals(took=cython.longlong)
    cpdef void observe(self, Replica rep) except *
    @cython.locals(w=Waiter)
    cpdef void resp_queue(self, Replica rep) except *
    @cython.locals(w=Waiter)
    cpdef void on_yield(self, Replica rep, Yield m) except *
    cpdef bint is_current(self, Replica rep, Yield m) except -1

cdef class SigmaLiteral(Sigma):
    pass
