"""The compiled version of system.py."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals, PyErr_SetFromErrno
from libc.errno cimport EINTR, errno
from libc.string cimport memcpy, memset

from fairgate.errors import ReentrantCall

cdef extern from "Python.h":
    void* PyThread_allocate_lock()
    void PyThread_free_lock(void* lock)
    ctypedef enum PyLockStatus:
        PY_LOCK_ACQUIRED, PY_LOCK_INTR
    int PyThread_acquire_lock(void* lock, int wait)
    PyLockStatus PyThread_acquire_lock_timed(void* lock, long long microseconds, int broken_off) nogil
    void PyThread_release_lock(void* lock)
    unsigned long PyThread_get_thread_ident()

cdef extern from "<sys/socket.h>" nogil:
    enum: MSG_DONTWAIT, MSG_NOSIGNAL
    Py_ssize_t recv(int number, void* to, size_t size, int flags)
    Py_ssize_t send(int number, const void* data, size_t size, int flags)

cdef extern from "<unistd.h>" nogil:
    int close_number "close"(int number)

cdef extern from "<time.h>" nogil:
    enum: CLOCK_BOOTTIME
    struct timespec:
        long tv_sec, tv_nsec
    int clock_gettime(int which, timespec* now)

cdef extern from "<sys/epoll.h>" nogil:
    enum: EPOLLIN, EPOLL_CLOEXEC, EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD
    ctypedef union epoll_data_t:
        int fd
    struct epoll_event:
        unsigned int events
        epoll_data_t data
    int epoll_create1(int flags)
    int epoll_ctl(int epoll, int what, int number, epoll_event* event)
    int epoll_wait(int epoll, epoll_event* events, int most, int milliseconds)

cdef enum:
    PIECE = 4096
    MOST_READY = 64
    LONGEST = 1 << 30  # ms


IN_A_STEP = "a signal handler cannot use a peer of a cluster that its own thread is using at this moment"


cdef class Latch:
    """Like threading.Lock. A thread that waits for it still handles signals: without that, Ctrl-C could not end a
    deadlock. ReentrantCall in a signal handler whose own thread has it: it would wait for itself."""

    def __cinit__(self):
        self.lock = PyThread_allocate_lock()
        if self.lock == NULL:
            raise MemoryError

    def __dealloc__(self):
        if self.lock != NULL:
            PyThread_free_lock(self.lock)

    cpdef bint acquire(self, bint blocking=True, double timeout=-1) except -1:
        if PyThread_acquire_lock(self.lock, 0):
            self.owner = PyThread_get_thread_ident()
            return True
        return blocking and self.wait(timeout)

    cdef bint wait(self, double timeout) except -1:
        cdef long long left = <long long>(timeout * 1_000_000) if timeout >= 0 else -1
        cdef long long deadline = clock() // 1_000 + left
        cdef PyLockStatus status
        if self.is_mine():
            raise ReentrantCall(IN_A_STEP)
        while True:
            with nogil:
                status = PyThread_acquire_lock_timed(self.lock, left, 1)
            if status == PY_LOCK_ACQUIRED:
                self.owner = PyThread_get_thread_ident()
                return True
            if status != PY_LOCK_INTR:
                return False
            heed()
            if timeout >= 0:
                left = max(deadline - clock() // 1_000, 0)

    cpdef release(self):
        if PyThread_acquire_lock(self.lock, 0):
            PyThread_release_lock(self.lock)
            raise RuntimeError("release unlocked lock")
        self.owner = 0
        PyThread_release_lock(self.lock)

    cpdef bint is_mine(self):
        return self.owner == PyThread_get_thread_ident()

    def __enter__(self):
        self.acquire()
        return True

    def __exit__(self, *how):
        self.release()


@cython.final
@cython.no_gc
@cython.freelist(8)
cdef class once:
    """As once.py: one turn with the latch, which is released when this is dropped."""

    cdef Latch latch
    cdef bint if_free, taken

    def __init__(self, Latch latch, bint if_free=False):
        self.latch = latch
        self.if_free = if_free

    def __iter__(self):
        return self

    def __next__(self):
        if self.taken or not self.latch.acquire(not self.if_free):
            raise StopIteration
        self.taken = True

    def __dealloc__(self):
        if self.taken:
            self.latch.owner = 0
            PyThread_release_lock(self.latch.lock)


def once_if_free(Latch latch):
    return once(latch, True)


cdef class Wire:
    def __cinit__(self):
        self.number = -1  # so that nothing is closed if `__init__` fails

    def __init__(self, int number):
        self.number = number

    def __dealloc__(self):
        if self.number >= 0:
            close_number(self.number)

    def fileno(self):
        return self.number

    cpdef bytes take(self):
        cdef char data[PIECE]
        cdef Py_ssize_t size = recv(self.number, data, PIECE, MSG_DONTWAIT)
        if size < 0:
            PyErr_SetFromErrno(OSError)
        return PyBytes_FromStringAndSize(data, size)

    cpdef Py_ssize_t give(self, data) except -1:
        cdef const unsigned char[::1] view
        cdef Py_ssize_t sent
        if type(data) is bytes:
            sent = send(self.number, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), MSG_DONTWAIT | MSG_NOSIGNAL)
        else:
            view = data
            sent = send(self.number, &view[0] if len(view) else NULL, len(view), MSG_DONTWAIT | MSG_NOSIGNAL)
        if sent < 0:
            PyErr_SetFromErrno(OSError)
        return sent

    def close(self):
        if self.number >= 0:
            close_number(self.number)
            self.number = -1


cdef class Poller:
    def __cinit__(self):
        self.number = epoll_create1(EPOLL_CLOEXEC)
        if self.number < 0:
            PyErr_SetFromErrno(OSError)

    def __dealloc__(self):
        if self.number >= 0:
            close_number(self.number)

    def fileno(self):
        return self.number

    def add(self, int number):
        self.change(EPOLL_CTL_ADD, number, EPOLLIN)

    def remove(self, int number):
        self.change(EPOLL_CTL_DEL, number, 0)

    cpdef hide(self, int number, bint hidden):
        self.change(EPOLL_CTL_MOD, number, 0 if hidden else EPOLLIN)

    cdef change(self, int what, int number, unsigned int events):
        cdef epoll_event event
        memset(&event, 0, sizeof(event))
        event.events = events
        event.data.fd = number
        if epoll_ctl(self.number, what, number, &event) < 0:
            PyErr_SetFromErrno(OSError)

    cpdef list wait(self, double seconds):
        cdef epoll_event events[MOST_READY]
        cdef int count, i
        if seconds != seconds:
            raise ValueError("cannot wait for NaN seconds")
        cdef int milliseconds = <int>min(seconds * 1000 + 0.999, <double>LONGEST) if seconds >= 0 else -1
        with nogil:
            count = epoll_wait(self.number, events, MOST_READY, milliseconds)
        if count < 0:
            if errno != EINTR:
                PyErr_SetFromErrno(OSError)
            heed()
            return []
        return [events[i].data.fd for i in range(count)]


cpdef heed():
    PyErr_CheckSignals()


cpdef long long clock() noexcept:
    cdef timespec now
    clock_gettime(CLOCK_BOOTTIME, &now)
    return <long long>now.tv_sec * 1_000_000_000 + now.tv_nsec


cpdef bytes headed(int version, bytes body):
    cdef Py_ssize_t size = PyBytes_GET_SIZE(body)
    cdef unsigned long long length = size + 1
    cdef bytes whole = PyBytes_FromStringAndSize(NULL, size + 5)
    cdef unsigned char* to = <unsigned char*>PyBytes_AS_STRING(whole)
    to[0] = length >> 24 & 255
    to[1] = length >> 16 & 255
    to[2] = length >> 8 & 255
    to[3] = length & 255
    to[4] = version
    memcpy(to + 5, PyBytes_AS_STRING(body), size)
    return whole
