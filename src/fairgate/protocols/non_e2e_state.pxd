cimport cython
from fairgate.core.queues cimport put
from fairgate.protocols.non_e2e_messages cimport Request, Skip

cdef long long NIL

@cython.final
@cython.no_gc
cdef class Entry:
    cdef public Entry after
    cdef public long long replica
    cdef public list queue
    cdef public long long ts, node, attempt, previous, next
    cpdef bint is_of(self, long long ts, long long node, long long attempt) noexcept
    cpdef void skip(self, long long gone, Skip m) noexcept
    cpdef void put(self, tuple asked) except *

@cython.final
cdef class Replica:
    cdef public tuple owner
    cdef public list queue
    cdef public bint wanted
    cpdef void load(self, key) except *

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
cpdef Entry find(Entry entry, long long replica)
cpdef Entry without(Entry entry, long long replica)
@cython.locals(ts=cython.longlong, other=cython.longlong)
cpdef bint is_earlier(tuple a, tuple b) except -1
@cython.locals(asked=tuple)
cpdef list merged(list one, tuple other)
cpdef Ask load_ask(key)
@cython.locals(entry=Entry)
cpdef Entry load_entry(long long replica, key, Entry after)
