cimport cython
from fairgate.net.codec cimport Decoder
from fairgate.net.system cimport Latch, Wire

cdef class Pipe:
    cdef public object owner, loop, link
    cdef public Wire raw
    cdef public Latch writing
    cdef public long long peer
    cdef public bint up
    cdef public Decoder decoder
    cdef public list waiting
    cdef public bytearray rest

    cpdef bint write_now(self, bytes data) except -1
    @cython.locals(sent=cython.Py_ssize_t)
    cpdef write(self, data)
    @cython.locals(data=bytes, frame=tuple)
    cpdef bint read(self, elsewhere) except -1
