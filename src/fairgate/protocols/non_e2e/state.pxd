cimport cython
from fairgate.core.queues cimport put
from fairgate.core.setup cimport Setup
from fairgate.protocols.non_e2e.messages cimport Request, Skip

cdef long long NIL

@cython.final
cdef class Terms:
    cdef public long long quorum, retry, longest
    cdef public bint answers_late, asks_again, attempts, by_number, earliest_keeps, replicas_vote, yield_gathers

@cython.locals(terms=Terms)
cpdef Terms terms_of(kind, Setup setup, long long replicas)

@cython.final
cdef class Entry:  # there are many: no methods, so no pointer to them, and the ids of simulated nodes are small
    cdef public Entry after
    cdef public list queue
    cdef public long long ts, attempt
    cdef public int replica, node, previous, next

@cython.final
cdef class Replica:
    cdef public tuple owner
    cdef public list queue
    cdef public bint wanted
    cpdef int load(self, key) except -1

@cython.final
cdef class Ask:
    cdef public long long attempt, holder
    cdef public bint asked, heard, vote, wanted

@cython.locals(ask=Ask)
cpdef Ask new_ask(long long attempt)
@cython.locals(entry=Entry)
cpdef Entry new_entry(Request m, long long previous, long long next_hop, Entry after)
@cython.locals(ask=Ask)
cpdef long long most_held(list asks, long long me) except -1
cpdef list in_order(Entry entry)
cpdef bint is_of(Entry entry, Request m) noexcept
cpdef int keep_in(Entry entry, tuple asked) except -1
cpdef void skip(Entry entry, long long gone, Skip m) noexcept
cpdef Entry find(Entry entry, long long replica)
cpdef Entry without(Entry entry, long long replica)
@cython.locals(ts=cython.longlong, other=cython.longlong)
cpdef bint is_earlier(tuple a, tuple b) except -1
@cython.locals(asked=tuple)
cpdef list merged(list one, tuple other)
cpdef Ask load_ask(key)
@cython.locals(entry=Entry)
cpdef Entry load_entry(long long replica, key, Entry after)
