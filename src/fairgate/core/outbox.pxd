from fairgate.core.message cimport Message

cdef class Outbox:
    cpdef bint send(self, long long dst, Message msg) except -1
    cdef bint send_direct(self, long long dst, Message msg) except -1
    cpdef bint pass_on(self, long long dst, Message msg) except -1
    cpdef bint set_timer(self, str name, long long delay) except -1
    cpdef bint cancel_timer(self, str name) except -1
    cpdef bint granted(self, long long request, long long slot, long long fence) except -1
    cpdef bint lost(self, long long request, str why) except -1
    cpdef bint note(self, str mark) except -1
    cpdef long long choose(self, long long n) except -1

cdef class Collected(Outbox):
    cdef public list effects
    cdef public object chooser
    cpdef list drain(self)
