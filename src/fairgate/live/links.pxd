cimport cython
from fairgate.net.codec cimport encode
from fairgate.net.pipe cimport Pipe

cdef class Links:
    cdef readonly object transport, lock, loop
    cdef readonly unsigned long long thread
    cdef public dict up, addresses, waiting
    cdef public set dialled
    cdef public list outgoing

    cpdef bint take(self, long long peer, tuple frame) except -1
    cpdef send(self, long long peer, tuple frame)
    cpdef transmit(self, long long peer, tuple frame)
    cpdef keep(self, long long peer, tuple frame)
    @cython.locals(pipe=Pipe)
    cpdef bint send_now(self, long long peer, tuple frame) except -1
