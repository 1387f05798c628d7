cimport cython
from fairgate.sim.loop cimport Loop
from fairgate.sim.stream cimport Stream

cdef long long ACQUIRE

cdef class Workload:
    cdef readonly long long n, hold
    cdef public Loop loop
    @cython.final
    cdef bint ask_at(self, long long node, long long time) except -1
    cpdef bint arrived_at(self, long long node, long long time) except -1
    cdef public long long total_left
    cdef long long[::1] left
    cdef unsigned char[::1] planned
    cdef readonly Stream stream
    cdef public double give_up_share, give_up_mean
    cdef public bint hold_random
    cpdef bint begin(self, long long now) except -1
    cpdef bint done(self, long long node, long long now) except -1
    cpdef bint asking(self) except -1
    cpdef bint asked(self, long long node) except -1
    cpdef bint back(self, long long node, long long now) except -1
    cpdef bint gone(self, long long node, long long now) except -1
    cpdef bint take(self, long long node) except -1
    cpdef long long stay(self, long long node) except? -2
    cpdef long long give_up_after(self) except? -2

cdef class Closed(Workload):
    cdef double think

cdef class Open(Workload):
    cdef double gap
    cdef long long[::1] next_arrival

cdef class Rounds(Workload):
    cdef long long rounds_left, askers
    cdef set busy
    cdef list alive
    cpdef bint next_round(self, long long now) except -1
