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
    cpdef int forget_answers(self) except -1
    cpdef int on_response(self, Response m) except -1
    cpdef int know_nothing(self) except -1
    cpdef int learn_vote(self, Response m) except -1
    cpdef bint is_mine(self, long long i) except -1
    cpdef bint is_recalled(self, long long i) except -1
    cpdef bint has_won(self) except -1
    cpdef int on_late_vote(self, Response m) except -1
    @cython.locals(before=cython.longlong)
    cpdef int learn(self, long long i, long long news) except -1
    @cython.locals(i=cython.longlong)
    cpdef int end_round(self) except -1
    cpdef int yield_vote(self, long long i) except -1
    @cython.locals(i=cython.longlong)
    cpdef int on_recall(self, Recall m) except -1
    cpdef int on_sent_back(self, SentBack m) except -1
    cpdef int ask_again(self, long long i, long long ended) except -1
    cpdef long long rank(self) except -1
    cpdef int win(self) except -1
    cpdef int hold(self, tuple requests) except -1
    cpdef int take_queue(self, tuple requests) except -1
    @cython.locals(i=cython.longlong)
    cpdef int route_winner(self) except -1
    @cython.locals(stamp=cython.longlong, node=cython.longlong)
    cpdef int put(self, tuple asked) except -1
    cpdef int on_enqueue(self, Enqueue m) except -1
    cpdef int on_early_enqueue(self, Enqueue m) except -1
    cpdef int on_late_enqueue(self, Enqueue m) except -1
    cpdef int pass_on(self, long long replica, tuple requests) except -1
    cpdef int route_release(self, long long i, long long stamp) except -1
    cpdef long long named_heir(self) except -2
    cpdef int on_token(self, Token m) except -1
    cpdef int on_unwanted_token(self, Token m) except -1
