# Compiled code is not broken off by Ctrl-C either: whoever reads leaves its place as it should.
cimport cython
from fairgate.net.pipe cimport Pipe

cdef class Reader:
    cdef readonly object home, loop, on_quiet, elsewhere, sockets, shown, reading, place, timer
    cdef readonly dict connections
    cdef readonly long long bell, inner
    cdef readonly unsigned long long user

    cpdef bint read_for(self, what, timeout) except -1
    cpdef read_on(self, what, timeout)
    cpdef read(self, timeout)
    cpdef ring(self)
    @cython.locals(connection=Pipe)
    cpdef take(self, list ready, elsewhere)
