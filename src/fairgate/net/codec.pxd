cimport cython
from fairgate.net.system cimport headed

cdef long long HEAD_BYTES, LENGTH_BYTES

cpdef bytes encode(object frame, long long limit=*)
cpdef bint check(object value, int depth) except -1
cpdef object decode_body(bytes body)

cdef class Decoder:
    cdef public long long limit
    cdef public bytearray rest
    cdef public Py_ssize_t need

    @cython.locals(start=cython.Py_ssize_t, end=cython.Py_ssize_t, stop=cython.Py_ssize_t, length="long long")
    cpdef list feed(self, bytes data)
    cpdef bint check_head(self, long long length, long long version) except -1
