cimport cython
from fairgate.core.kbr cimport Keyed, Routed
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
    cpdef void note_owner(self, long long src, IAmWinner m, long long next_hop) except *
    @cython.locals(entry=Entry, onward=cython.longlong)
    cpdef Keyed clean_up(self, Release m, long long next_hop)
    cpdef bint is_news(self, long long generation, long long known) except -1
    cpdef void on_stale(self, Stale m) except *
    cpdef Replica replica(self, long long i)
    @cython.locals(r=Replica)
    cpdef void on_request(self, Request m) except *
    cpdef void vote_again(self, long long i, Replica r, long long round, long long known) except *
    @cython.locals(r=Replica)
    cpdef void on_yield(self, Yield m) except *
    cpdef void consider(self, long long i, Replica r, long long node, long long stamp, long long round, long long known) except *
    @cython.locals(at=cython.longlong, other_stamp=cython.longlong, other=cython.longlong)
    cpdef void keep(self, Replica r, long long node, long long stamp, long long round, long long known) except *
    cpdef void settle(self, long long i, Replica r) except *
    cpdef void hand_over(self, long long i, Replica r) except *
    cpdef void cast(self, long long i, Replica r) except *
    @cython.locals(owner=cython.longlong, owner_stamp=cython.longlong)
    cpdef void respond(self, long long i, Replica r, long long node, long long stamp, long long round, bint vote) except *
    cpdef void recall(self, long long i, Replica r, bint won) except *
    @cython.locals(r=Replica)
    cpdef void on_winner(self, IAmWinner m) except *
    @cython.locals(r=Replica)
    cpdef void on_release_message(self, Release m) except *
    cpdef void use_vote(self, Replica r, long long node, long long stamp) except *
    cpdef void set_holder(self, long long i, Replica r, long long node, long long stamp, long long generation, long long lineage) except *
    cpdef void dispossess(self, long long i, Replica r) except *
