cdef class Latch:
    cdef void* lock
    cdef unsigned long owner
    cpdef bint acquire(self, bint blocking=*, double timeout=*) except -1
    cdef bint wait(self, double timeout) except -1
    cpdef release(self)
    cpdef bint is_mine(self)

cdef class Wire:
    cdef readonly int number
    cpdef bytes take(self)
    cpdef Py_ssize_t give(self, data) except -1

cdef class Poller:
    cdef readonly int number
    cdef change(self, int what, int number, unsigned int events)
    cpdef hide(self, int number, bint hidden)
    cpdef list wait(self, double seconds)

cpdef heed()
cpdef long long clock() noexcept
cpdef bytes headed(int version, bytes body)
