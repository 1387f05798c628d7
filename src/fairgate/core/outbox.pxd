from fairgate.core.message cimport Message

cdef class Outbox:
    cpdef void send(self, long long dst, Message msg) except *
    cpdef void pass_on(self, long long dst, Message msg) except *
    cpdef void set_timer(self, str name, long long delay) except *
    cpdef void cancel_timer(self, str name) except *
    cpdef void granted(self, long long request, long long slot, long long fence) except *
    cpdef void lost(self, long long request, str why) except *
    cpdef void note(self, str mark) except *
    cpdef long long choose(self, long long n) except -1

cdef class Collected(Outbox):
    cdef public list effects
    cdef public object chooser
    cpdef list drain(self)
