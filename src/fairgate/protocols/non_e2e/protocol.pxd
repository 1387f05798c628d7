cimport cython
from fairgate.core.kbr cimport Routed
from fairgate.core.keyed cimport Keyed
from fairgate.core.queues cimport is_same, put
from fairgate.protocols.non_e2e.messages cimport Gathering, GrantReq, Release, Request, Skip, Yield, new_grantreq, new_release, new_request
from fairgate.protocols.non_e2e.state cimport Ask, Entry, Replica, Terms, find, in_order, is_earlier, is_of, keep_in, load_ask, load_entry, merged, most_held, new_ask, new_entry, skip, terms_of, without

cdef long long NIL, LIFE, SHARES
cdef list NO_ASKS
cdef dict NO_REPLICAS

cdef class NonE2E(Routed):
    cdef readonly Terms terms
    cdef public long long clock, life, ts, delay, voted
    cdef public Entry first
    cdef public list asks
    cdef public dict replicas
    @cython.locals(ask=Ask)
    cpdef int ask(self, long long replica, tuple asked, bint past) except -1
    cpdef int forget(self) except -1
    cpdef int over(self, long long replica, long long ts, long long attempt) except -1
    @cython.locals(ask=Ask)
    cpdef int on_grantreq(self, long long src, GrantReq m) except -1
    cpdef int take_vote(self, long long src, long long replica, Ask ask) except -1
    cpdef long long votes(self) except -1
    @cython.locals(votes=cython.longlong)
    cpdef int count_votes(self) except -1
    cpdef int wait_for_votes(self) except -1
    @cython.locals(ask=Ask, heard=cython.longlong)
    cpdef bint all_heard(self) except -1
    cpdef bint somebody_wins(self) except -1
    @cython.locals(ask=Ask, given=cython.bint)
    cpdef int yield_votes(self) except -1
    cpdef int give_vote_back(self, long long replica, Ask ask) except -1
    cpdef int ask_later(self) except -1
    @cython.locals(ask=Ask, past=cython.bint, all_once_more=cython.bint)
    cpdef int ask_again(self) except -1
    cpdef bint may_be_lost(self) except -1
    @cython.locals(entry=Entry)
    cpdef Keyed pass_request(self, long long src, Request m, long long next_hop)
    cpdef int make_entry(self, Entry entry) except -1
    cpdef int inform(self, Request m, long long holder, bint way) except -1
    @cython.locals(entry=Entry, onward=Gathering)
    cpdef Keyed pass_gathering(self, long long src, Gathering m, long long next_hop)
    cpdef Gathering keep(self, Gathering onward, long long next_hop)
    cpdef int drop_entry(self, long long replica) except -1
    @cython.locals(ts=cython.longlong, node=cython.longlong, attempt=cython.longlong)
    cpdef bint is_own(self, Gathering m, tuple asked) except -1
    @cython.locals(at=cython.longlong)
    cpdef int take_out(self, list queue, Gathering m) except -1
    @cython.locals(replica=Replica)
    cpdef Replica replica(self, long long number)
    @cython.locals(replica=Replica, asked=tuple)
    cpdef int on_request(self, long long src, Request m) except -1
    cpdef int vote(self, long long number, Replica replica) except -1
    @cython.locals(ts=cython.longlong, node=cython.longlong, attempt=cython.longlong)
    cpdef int tell_owner(self, long long number, Replica replica) except -1
    @cython.locals(replica=Replica)
    cpdef int on_gathering(self, long long src, Gathering m) except -1
