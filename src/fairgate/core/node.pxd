from fairgate.core.message cimport Message
from fairgate.core.outbox cimport Outbox
from fairgate.core.setup cimport Setup

cdef class Node:
    cdef readonly long long me
    cdef public long long now
    cdef readonly Setup setup
    cdef public Outbox out
    cdef public dict timers
    cpdef void set_up(self, long long me, Setup setup, Outbox out) except *
    cpdef void on_start(self) except *
    cpdef void on_acquire(self, long long request) except *
    cpdef void on_release(self, long long request) except *
    cpdef void on_cancel(self, long long request) except *
    cpdef void on_message(self, long long src, Message msg) except *
    cpdef void on_timer(self, str name) except *
    cpdef void on_view(self, long long number, tuple members) except *
    cpdef void on_suspect(self, long long peer, str detector) except *
    cpdef void on_trust(self, long long peer, str detector) except *
    cpdef void on_crash(self, long long peer) except *
    cpdef void on_join(self, long long contact) except *
    cpdef void on_leave(self) except *
    cpdef void timer_due(self, str name) except *
    cpdef void set_timer(self, str name, long long delay) except *
    cpdef void cancel_timer(self, str name) except *
    cpdef bint is_armed(self, str name) except -1
    cpdef tuple key(self)
    cpdef load(self, tuple key)
    cpdef tuple timers_key(self)
    cpdef load_timers(self, tuple key)
    cpdef check_version(self, tuple key)
    cpdef long long tokens(self)
    cpdef long long coordinators(self)
