cimport cython
from fairgate.core.message cimport Message
from fairgate.core.node cimport Node
from fairgate.sim.metrics cimport Metrics
from fairgate.sim.seats cimport Seats
from fairgate.sim.workload cimport Workload

cdef class Invariants(Seats):
    cdef readonly object setup
    cdef readonly Workload workload
    cdef readonly Metrics metrics
    cdef readonly list violations
    cdef readonly long long requests, gave_up, violation_count, last_progress
    cdef public long long census_every, tokens, coordinators, patience
    cdef public bint check, timed
    cdef readonly bint cut
    cdef bint stuck
    cdef long long most_idle_events, entries_seen, events_seen
    cpdef long long waiting(self)
    cdef bint idle(self) except -1
    cdef bint watch(self) except -1
    cpdef bint lose(self, Message msg) except -1
    @cython.locals(node=Node, msg=Message, tokens=cython.longlong, coordinators=cython.longlong, wrong=str)
    cpdef bint census(self) except -1
    cpdef bint stray(self, long long dst, Message msg) except -1
    cpdef bint violate(self, str what) except -1
