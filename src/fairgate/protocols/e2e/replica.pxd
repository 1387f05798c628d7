cimport cython
from fairgate.core.kbr cimport Routed
from fairgate.core.keyed cimport Keyed
from fairgate.core.queues cimport put
from fairgate.protocols.e2e.messages cimport Enqueue, IAmWinner, Recall, Release, Request, Response, Stale, Yield, new_enqueue, new_response

cdef long long NIL

@cython.final
cdef class Replica:
    cdef public long long vote, vote_stamp, vote_round, vote_known, holder, holder_stamp, generation, lineage
    cdef public bint recalled
    cdef public list waiting
    cpdef bint is_better(self, long long known, long long stamp, long long node) except -1

@cython.final
cdef class Entry:
    cdef public long long owner, generation, next, previous

@cython.locals(entry=Entry)
cpdef Entry new_entry(long long owner, long long generation, long long next, long long previous)

cdef class Voter(Routed):
    cdef public dict replicas, entries
    cdef public bint tells
    cpdef bint stops(self, Request m) except -1
    @cython.locals(entry=Entry)
    cpdef bint intercept(self, Request msg) except -1
    @cython.locals(entry=Entry)
    cpdef int note_owner(self, long long src, IAmWinner m, long long next_hop) except -1
    @cython.locals(entry=Entry, onward=cython.longlong)
    cpdef Keyed clean_up(self, Release m, long long next_hop)
    cpdef bint is_news(self, long long generation, long long known) except -1
    cpdef int on_stale(self, Stale m) except -1
    cpdef Replica replica(self, long long i)
    @cython.locals(r=Replica)
    cpdef int on_request(self, Request m) except -1
    cpdef int vote_again(self, long long i, Replica r, long long round, long long known) except -1
    @cython.locals(r=Replica)
    cpdef int on_yield(self, Yield m) except -1
    cpdef int consider(self, long long i, Replica r, long long node, long long stamp, long long round, long long known) except -1
    @cython.locals(at=cython.longlong, other_stamp=cython.longlong, other=cython.longlong)
    cpdef int keep(self, Replica r, long long node, long long stamp, long long round, long long known) except -1
    cpdef int settle(self, long long i, Replica r) except -1
    cpdef int hand_over(self, long long i, Replica r) except -1
    cpdef int cast(self, long long i, Replica r) except -1
    @cython.locals(owner=cython.longlong, owner_stamp=cython.longlong)
    cpdef int respond(self, long long i, Replica r, long long node, long long stamp, long long round, bint vote) except -1
    cpdef int recall(self, long long i, Replica r, bint won) except -1
    @cython.locals(r=Replica)
    cpdef int on_winner(self, IAmWinner m) except -1
    @cython.locals(r=Replica)
    cpdef int on_release_message(self, Release m) except -1
    cpdef int use_vote(self, Replica r, long long node, long long stamp) except -1
    cpdef int set_holder(self, long long i, Replica r, long long node, long long stamp, long long generation, long long lineage) except -1
    cpdef int dispossess(self, long long i, Replica r) except -1
