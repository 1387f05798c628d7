# Ctrl-C does not interrupt compiled code, so a reading thread always cleans up after itself.
cimport cython
from fairgate.net.pipe cimport Pipe
from fairgate.net.system cimport Latch, Poller, heed

cdef class Reader:
    cdef readonly object owner, loop, on_quiet, elsewhere, timer
    cdef readonly Poller sockets, shown
    cdef readonly Latch reading, place
    cdef readonly dict connections
    cdef readonly long long bell, inner
    cdef readonly unsigned long long user

    cpdef bint read_for(self, what, timeout) except -1
    cpdef read_on(self, what, timeout)
    cpdef read(self, timeout)
    cpdef ring(self)
    @cython.locals(connection=Pipe)
    cpdef take(self, list ready, elsewhere)
