cimport cython
from fairgate.core.queues cimport put
from fairgate.protocols.e2e.messages cimport Enqueue, IAmWinner, Recall, Release, Request, Response, SentBack, Stale, Token, Yield, new_enqueue, new_release, new_request, new_winner
from fairgate.protocols.e2e.replica cimport Voter

cdef long long NIL
cdef long long ASKED, OTHER, VOTE, RECALLED

cdef class E2E(Voter):
    cdef public long long quorum, clock, stamp, votes, missing, best, generation, lineage, tenure, tenure_lineage, heir, heir_stamp
    cdef public bint holding
    cdef public list rounds, known, queue, early
    cpdef void forget_answers(self) except *
    cpdef void on_response(self, Response m) except *
    cpdef void know_nothing(self) except *
    cpdef void learn_vote(self, Response m) except *
    cpdef bint is_mine(self, long long i) except -1
    cpdef bint is_recalled(self, long long i) except -1
    cpdef bint has_won(self) except -1
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
    cpdef long long rank(self) except -1
    cpdef void win(self) except *
    cpdef void hold(self, tuple requests) except *
    cpdef void take_queue(self, tuple requests) except *
    @cython.locals(i=cython.longlong)
    cpdef void route_winner(self) except *
    @cython.locals(stamp=cython.longlong, node=cython.longlong)
    cpdef void put(self, tuple asked) except *
    cpdef void on_enqueue(self, Enqueue m) except *
    cpdef void on_early_enqueue(self, Enqueue m) except *
    cpdef void on_late_enqueue(self, Enqueue m) except *
    cpdef void pass_on(self, long long replica, tuple requests) except *
    cpdef void route_release(self, long long i, long long stamp) except *
    cpdef long long named_heir(self) except -2
    cpdef void on_token(self, Token m) except *
    cpdef void on_unwanted_token(self, Token m) except *
