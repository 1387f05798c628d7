from fairgate.core.message cimport Message
from fairgate.core.outbox cimport Outbox
from fairgate.core.setup cimport Setup

cdef class Record:
    cpdef bint clear(self) except -1

cdef class Node:
    cdef readonly long long me
    cdef public long long now
    cdef readonly Setup setup
    cdef public Outbox out
    cdef public dict timers
    cpdef bint set_up(self, long long me, Setup setup, Outbox out) except -1
    cpdef bint set_fields(self, Setup setup) except -1
    cpdef bint initialize(self, Setup setup) except -1
    cpdef bint on_start(self) except -1
    cpdef bint on_acquire(self, long long request) except -1
    cpdef bint on_release(self, long long request) except -1
    cpdef bint on_cancel(self, long long request) except -1
    cpdef bint on_message(self, long long src, Message msg) except -1
    cdef bint receive(self, long long src, Message msg) except -1
    cpdef bint on_timer(self, str name) except -1
    cpdef bint on_view(self, long long number, tuple members, tuple ghosts) except -1
    cpdef bint on_suspect(self, long long peer, str detector) except -1
    cpdef bint on_trust(self, long long peer, str detector) except -1
    cpdef bint on_crash(self, long long peer) except -1
    cpdef bint on_join(self, long long contact) except -1
    cpdef bint on_leave(self) except -1
    cpdef bint timer_due(self, str name) except -1
    cpdef bint set_timer(self, str name, long long delay) except -1
    cpdef bint cancel_timer(self, str name) except -1
    cpdef bint is_armed(self, str name) except -1
    cpdef tuple key(self)
    cpdef load(self, tuple key)
    cpdef tuple timers_key(self)
    cpdef load_timers(self, tuple key)
    cpdef check_version(self, tuple key)
    cpdef tuple slots(self)
    cpdef long long tokens(self)
    cpdef long long coordinators(self)
    cpdef str broken(self)
