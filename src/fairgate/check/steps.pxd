cimport cython
from fairgate.check.interning cimport Interned

@cython.final
cdef class StepOutcome:
    cdef public long long key
    cdef public bint lost
    cdef public tuple sent, choices, granted
    cdef public str broken

@cython.final
cdef class Steps:
    cdef public list outboxes, nodes
    cdef public object make, setup
    cdef public bint timed, conserving
    cdef public Interned table
    cdef public dict armed_timers, counted, delivered, remembered
    cpdef tuple deliver(self, long long key, long long message)
    cpdef tuple call(self, long long key, str event, tuple arguments)
