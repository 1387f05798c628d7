cimport cython
from fairgate.sim.stream cimport Stream

cdef long long NIL
cdef long long MS
cdef unsigned long long WORD, GOLDEN, MIX_1, MIX_2

cdef class Latency:
    cdef readonly long long fixed, longest
    cpdef long long delay(self, long long src, long long dst) except -1

cdef class Uniform(Latency):
    cdef readonly long long low, width
    cdef readonly Stream stream
    cpdef long long delay(self, long long src, long long dst) except -1

cdef class Pairs(Latency):
    cdef readonly long long low
    cdef readonly unsigned long long width, salt
    @cython.locals(first=cython.ulonglong, second=cython.ulonglong, x=cython.ulonglong)
    cpdef long long delay(self, long long src, long long dst) except -1

cdef class Matrix(Latency):
    cdef readonly long long n
    cdef long long[::1] cells
    cpdef long long delay(self, long long src, long long dst) except -1

cdef class WideArea(Latency):
    cdef double[::1] x
    cdef double[::1] y
    cdef double[::1] detour
    cdef double scale
    cdef long long cap, floor
    @cython.locals(dx=double, dy=double, ns=cython.longlong)
    cpdef long long delay(self, long long src, long long dst) except -1
