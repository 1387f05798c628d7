cimport cython
from fairgate.core.message cimport Message
from fairgate.core.mutex cimport Mutex

cdef long long NIL

@cython.final
cdef class Request(Message):
    pass

@cython.final
cdef class Grant(Message):
    cdef readonly long long slot, fence

@cython.final
cdef class Renew(Message):
    cdef readonly long long slot, fence, n

@cython.final
cdef class Renewed(Message):
    cdef readonly long long slot, fence, n

@cython.final
cdef class Gone(Message):
    cdef readonly long long slot, fence

@cython.final
cdef class Release(Message):
    cdef readonly long long slot, fence

cdef class Leased(Mutex):
    cdef public long long lease, hold_time, root, slot, fence, n, until, last_fence
    cdef public bint renewing
    cdef public list queue, fences
    cpdef void on_grant(self, Grant m) except *
    cpdef void renew(self) except *
    @cython.locals(left=cython.longlong)
    cpdef void on_renewed(self, Renewed m) except *
    cpdef void on_gone(self, Gone m) except *
    cpdef bint is_mine(self, long long slot, long long fence) except -1
    cpdef void forget_slot(self) except *
    cpdef void enqueue(self, long long client) except *
    cpdef void serve(self) except *
    cpdef void offer(self, long long slot, long long client) except *
    cpdef void on_renew(self, long long src, Renew m) except *
    cpdef void give_back(self, long long slot, long long fence) except *
    cpdef void free(self, long long slot) except *
    cpdef bint is_current(self, long long slot, long long fence) except -1
