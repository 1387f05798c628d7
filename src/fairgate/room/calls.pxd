cimport cython

cdef extern from "<poll.h>" nogil:
    struct pollfd:
        int fd
        short events, revents

@cython.final
cdef class Mutex:
    cdef void* lock
    cdef unsigned long owner
    cpdef bint acquire(self, bint blocking=*) except -1
    cdef bint wait(self) except -1
    cpdef bint release(self) except -1

cdef class Exclusive:
    cdef public Mutex mutex
    cdef public list postponed
    cpdef renew(self)
    cpdef change(self, step)
    cpdef try_change(self, step, long long patience)
    cpdef exclude_changes(self, call)
    cdef bint take(self, bint blocking) except -1
    cdef bint give(self) except -1
    cpdef change_alone(self, step, long long patience)
    cpdef bint refuse(self) except -1
    cpdef bint catch_up(self) except -1

@cython.final
cdef class Poll:
    cdef pollfd* fds
    cdef int count, room
    cpdef bint watch(self, int fd) except -1
    cpdef bint forget(self, int fd) except -1
    cpdef tuple wait(self, long long nanoseconds)

cpdef long long clock() noexcept
cpdef bint try_lock(int fd) except -1
cpdef bint lock(int fd, long long patience, long long since=*) except -1
cpdef long long pause_after(long long waited) noexcept
cpdef bint unlock(int fd) except -1
cpdef bint ring(int fd, long long ticket) except -1
cpdef int open_to_ring(str path) except? -4
cpdef list read_tickets(int bell)
cpdef bint is_same_file(str path, int fd) except -1
cpdef bint is_stopped(long long pid) noexcept
