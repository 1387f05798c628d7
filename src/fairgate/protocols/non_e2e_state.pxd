cimport cython
from fairgate.core.queues cimport put

cdef long long NIL

@cython.final
cdef class Entry:
    cdef public tuple holder
    cdef public list queue
    cdef public long long previous, next
    cpdef void put(self, tuple asked) except *

@cython.final
cdef class Replica:
    cdef public tuple owner
    cdef public list queue
    cdef public bint wanted

@cython.final
cdef class Ask:
    cdef public long long attempt, holder
    cdef public bint asked, heard, vote, wanted

@cython.locals(ask=Ask)
cpdef Ask new_ask(long long attempt)
@cython.locals(entry=Entry)
cpdef Entry new_entry(tuple holder, long long previous, long long next_hop)
@cython.locals(asked=tuple)
cpdef list merged(list one, tuple other)
cpdef Ask load_ask(key)
cpdef Entry load_entry(key)
