cimport cython
from fairgate.core.kbr cimport Keyed, Routed
from fairgate.protocols.e2e_messages cimport (
    Enqueue, IAmWinner, Recall, Release, Request, Response, SentBack, Stale, Token, Yield
)

cdef long long NIL
cdef long long ASKED, OTHER, VOTE, RECALLED

cdef class Replica:
    cdef public long long vote, vote_stamp, vote_round, holder, holder_stamp, generation, lineage
    cdef public bint recalled
    cdef public list waiting

cdef class Entry:
    cdef public long long owner, generation, next, previous

cdef class E2E(Routed):
    cdef public long long quorum, clock, stamp, votes, missing, best, generation, lineage, tenure, heir, heir_stamp
    cdef public bint holding
    cdef public list rounds, known, queue, early
    cdef public dict replicas, entries
    cpdef void forget_answers(self) except *
    cpdef void on_response(self, Response m) except *
    cpdef void on_late_vote(self, Response m) except *
    @cython.locals(before=cython.longlong)
    cpdef void learn(self, long long i, long long news) except *
    @cython.locals(i=cython.longlong)
    cpdef void end_round(self) except *
    cpdef void yield_vote(self, long long i) except *
    @cython.locals(i=cython.longlong)
    cpdef void on_recall(self, Recall m) except *
    cpdef void on_sent_back(self, SentBack m) except *
    cpdef void ask_again(self, long long i, long long ended) except *
    cpdef void win(self) except *
    cpdef void hold(self, tuple requests) except *
    cpdef void take_queue(self, tuple requests) except *
    @cython.locals(i=cython.longlong)
    cpdef void route_winner(self) except *
    cpdef void put(self, long long stamp, long long node) except *
    cpdef void on_enqueue(self, Enqueue m) except *
    cpdef void on_early_enqueue(self, Enqueue m) except *
    cpdef void on_late_enqueue(self, Enqueue m) except *
    cpdef void route_release(self, long long i, long long stamp) except *
    cpdef long long named_heir(self) except -2
    cpdef void on_token(self, Token m) except *
    cpdef void on_unwanted_token(self, Token m) except *
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
    cpdef void vote_again(self, long long i, Replica r, long long round) except *
    @cython.locals(r=Replica)
    cpdef void on_yield(self, Yield m) except *
    cpdef void consider(self, long long i, Replica r, long long node, long long stamp, long long round, long long known) except *
    cpdef void keep(self, Replica r, long long node, long long stamp, long long round, long long known) except *
    cpdef void settle(self, long long i, Replica r) except *
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
