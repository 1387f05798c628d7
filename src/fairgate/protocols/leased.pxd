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
    cpdef int on_grant(self, Grant m) except -1
    cpdef int renew(self) except -1
    @cython.locals(left=cython.longlong)
    cpdef int on_renewed(self, Renewed m) except -1
    cpdef int on_gone(self, Gone m) except -1
    cpdef bint is_mine(self, long long slot, long long fence) except -1
    cpdef int forget_slot(self) except -1
    cpdef int enqueue(self, long long client) except -1
    cpdef int serve(self) except -1
    cpdef int offer(self, long long slot, long long client) except -1
    cpdef int on_renew(self, long long src, Renew m) except -1
    cpdef int give_back(self, long long slot, long long fence) except -1
    cpdef int free(self, long long slot) except -1
    cpdef bint is_current(self, long long slot, long long fence) except -1
