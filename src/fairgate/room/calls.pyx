"""The compiled version of calls.py."""

import os
from _signal import SIG_DFL, getsignal

from cpython.exc cimport PyErr_CheckSignals, PyErr_SetFromErrno
from libc.errno cimport EAGAIN, EINTR, ENOENT, ENOTDIR, ENXIO, EPIPE, errno
from libc.stdio cimport snprintf
from libc.stdlib cimport free, realloc

cdef extern from "Python.h":
    void* PyThread_allocate_lock()
    void PyThread_free_lock(void* lock)
    ctypedef enum PyLockStatus:
        PY_LOCK_INTR
    int PyThread_acquire_lock(void* lock, int wait)
    PyLockStatus PyThread_acquire_lock_timed(void* lock, long long microseconds, int interruptible) nogil
    void PyThread_release_lock(void* lock)
    unsigned long PyThread_get_thread_ident()

cdef extern from "<time.h>" nogil:
    enum: CLOCK_BOOTTIME
    struct timespec:
        long tv_sec, tv_nsec
    int clock_gettime(int which, timespec* now)
    int nanosleep(const timespec* length, timespec* left)

cdef extern from "<sys/file.h>" nogil:
    enum: LOCK_EX, LOCK_NB, LOCK_UN
    int flock(int fd, int what)

cdef extern from "<sched.h>" nogil:
    int sched_yield()

cdef extern from "<fcntl.h>" nogil:
    enum: O_RDONLY, O_WRONLY, O_NONBLOCK, O_CLOEXEC, O_NOFOLLOW
    int open_file "open"(const char* path, int flags)

cdef extern from "<sys/stat.h>" nogil:
    struct file_status "stat":
        unsigned int st_mode
        unsigned long long st_dev, st_ino
    int fstat(int fd, file_status* status)
    int lstat(const char* path, file_status* status)
    int S_ISFIFO(unsigned int mode)

cdef extern from "<unistd.h>" nogil:
    int close_file "close"(int fd)
    Py_ssize_t read(int fd, void* to, size_t size)
    Py_ssize_t write(int fd, const void* data, size_t size)

cdef extern from "<poll.h>" nogil:
    enum: POLLIN
    int ppoll(pollfd* fds, unsigned long count, const timespec* timeout, const void* mask)

cdef extern from "<signal.h>" nogil:
    enum: SIG_BLOCK, SIG_SETMASK, SIGPIPE
    ctypedef struct sigset_t:
        pass
    int sigemptyset(sigset_t* signals)
    int sigaddset(sigset_t* signals, int number)
    int pthread_sigmask(int how, const sigset_t* new, sigset_t* old)
    int sigtimedwait(const sigset_t* signals, void* info, const timespec* timeout)

cdef enum:
    NANOSECONDS = 1_000_000_000  # of a second
    TRIES = 3
    SHORTEST_NS = 20_000
    LONGEST_NS = 50_000_000
    MOST_TICKETS = 512
    STAT_BYTES = 512

FOREVER = 1 << 62
SECOND = NANOSECONDS
YIELDS = TRIES
DEAD, REMOVED, UNSEEN = -1, -2, -3


cpdef long long clock() noexcept:
    cdef timespec now
    clock_gettime(CLOCK_BOOTTIME, &now)
    return <long long>now.tv_sec * NANOSECONDS + now.tv_nsec


# The lock.


cdef class Mutex:
    def __cinit__(self):
        self.lock = PyThread_allocate_lock()
        if self.lock == NULL:
            raise MemoryError

    def __dealloc__(self):
        if self.lock != NULL:
            PyThread_free_lock(self.lock)

    cpdef bint acquire(self, bint blocking=True) except -1:
        """False if it is taken. No Python code runs between taking it and storing its owner."""
        if PyThread_acquire_lock(self.lock, 0) or blocking and self.wait():
            self.owner = PyThread_get_thread_ident()
            return True
        return False

    cdef bint wait(self) except -1:
        """A thread that waits still handles signals."""
        cdef PyLockStatus status
        while True:
            with nogil:
                status = PyThread_acquire_lock_timed(self.lock, -1, 1)
            if status != PY_LOCK_INTR:
                return True
            PyErr_CheckSignals()

    cpdef bint release(self) except -1:
        self.owner = 0
        PyThread_release_lock(self.lock)
        return 0


cdef class Exclusive:
    def __init__(self):
        self.renew()

    cpdef renew(self):
        self.mutex = Mutex()
        self.postponed = []

    cpdef change(self, step):
        self.take(True)  # no exception can come between this and `try`, as it can in plain Python
        try:
            return self.change_alone(step, <long long>1 << 62)
        finally:
            self.give()

    cpdef try_change(self, step, long long patience):
        self.take(False)
        try:
            return self.change_alone(step, patience)
        finally:
            self.give()

    cpdef exclude_changes(self, call):
        self.take(True)
        try:
            return call()
        finally:
            self.give()

    cdef bint take(self, bint blocking) except -1:
        if self.mutex.owner == PyThread_get_thread_ident():
            self.refuse()
        if not self.mutex.acquire(blocking):
            raise BlockingIOError
        return 0

    cdef bint give(self) except -1:
        self.mutex.release()
        if self.postponed:
            self.catch_up()
        return 0

    cpdef change_alone(self, step, long long patience):
        raise NotImplementedError

    cpdef bint refuse(self) except -1:
        raise NotImplementedError

    cpdef bint catch_up(self) except -1:
        raise NotImplementedError


cpdef bint try_lock(int fd) except -1:
    if flock(fd, LOCK_EX | LOCK_NB) == 0:
        return True
    if errno != EAGAIN and errno != EINTR:
        PyErr_SetFromErrno(OSError)
    return False


cpdef bint lock(int fd, long long patience, long long since=0) except -1:
    cdef long long now, end
    cdef int attempt = 0
    cdef timespec length
    if try_lock(fd):
        return True
    now = clock()
    end = now + patience
    while True:
        if not since:
            pass
        elif attempt < TRIES:
            attempt += 1
            with nogil:
                sched_yield()
        else:
            length.tv_sec, length.tv_nsec = 0, pause_after(now - since)
            with nogil:
                nanosleep(&length, NULL)
            PyErr_CheckSignals()
        if try_lock(fd):
            return True
        now = clock()
        if now > end:
            return False


cpdef long long pause_after(long long waited) noexcept:
    return min(max(waited // 4, <long long>SHORTEST_NS), <long long>LONGEST_NS)


cpdef bint unlock(int fd) except -1:
    if flock(fd, LOCK_UN) < 0:
        PyErr_SetFromErrno(OSError)
    return 0


# Pipes.


cpdef bint ring(int fd, long long ticket) except -1:
    if getsignal(SIGPIPE) == SIG_DFL:
        return ring_mortal(fd, ticket)
    return rings(fd, ticket)


cdef bint ring_mortal(int fd, long long ticket) except -1:
    cdef sigset_t pipe, before
    cdef timespec at_once
    sigemptyset(&pipe)
    sigaddset(&pipe, SIGPIPE)
    at_once.tv_sec, at_once.tv_nsec = 0, 0
    pthread_sigmask(SIG_BLOCK, &pipe, &before)
    try:
        heard = rings(fd, ticket)
        if not heard:
            sigtimedwait(&pipe, NULL, &at_once)
        return heard
    finally:
        pthread_sigmask(SIG_SETMASK, &before, NULL)


cdef bint rings(int fd, long long ticket) except -1:
    if write(fd, &ticket, sizeof(ticket)) < 0 and errno != EAGAIN and errno != EINTR:
        if errno == EPIPE:
            return False
        PyErr_SetFromErrno(OSError)
    return True


cdef bint is_pipe(bytes name):
    cdef file_status status
    return lstat(name, &status) == 0 and S_ISFIFO(status.st_mode)


cpdef int open_to_ring(str path) except? -4:
    cdef bytes name = os.fsencode(path)
    cdef int fd = open_file(name, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW)
    cdef file_status status
    if fd < 0 and errno == ENXIO:  # opening a socket gives the same error
        return -1 if is_pipe(name) else -3
    if fd < 0:
        return -2 if errno == ENOENT else -3
    if fstat(fd, &status) < 0 or not S_ISFIFO(status.st_mode):
        close_file(fd)
        return -3
    return fd


cpdef list read_tickets(int bell):
    cdef long long tickets[MOST_TICKETS]
    cdef Py_ssize_t size = read(bell, tickets, sizeof(tickets))
    cdef int i
    if size < 0 and errno != EAGAIN and errno != EINTR:
        PyErr_SetFromErrno(OSError)
    return [tickets[i] for i in range(max(size, 0) // <int>sizeof(long long))]


cdef class Poll:
    def __cinit__(self):
        self.fds = NULL
        self.count = self.room = 0

    def __init__(self, int bell):
        self.watch(bell)
        self.fds[0].events = POLLIN

    def __dealloc__(self):
        free(self.fds)

    cpdef bint watch(self, int fd) except -1:
        cdef pollfd* more
        if self.count == self.room:
            more = <pollfd*>realloc(self.fds, (2 * self.room + 4) * sizeof(pollfd))
            if more == NULL:
                raise MemoryError
            self.fds, self.room = more, 2 * self.room + 4
        self.fds[self.count].fd = fd
        self.fds[self.count].events = 0
        self.count += 1
        return 0

    cpdef bint forget(self, int fd) except -1:
        cdef int i
        for i in range(1, self.count):
            if self.fds[i].fd == fd:
                self.count -= 1
                self.fds[i].fd = self.fds[self.count].fd
                return 0
        raise KeyError(fd)

    cpdef tuple wait(self, long long nanoseconds):
        cdef timespec timeout
        cdef int found, i
        nanoseconds = max(nanoseconds, 0)
        timeout.tv_sec, timeout.tv_nsec = nanoseconds // NANOSECONDS, nanoseconds % NANOSECONDS
        PyErr_CheckSignals()
        with nogil:
            found = ppoll(self.fds, self.count, &timeout, NULL)
        if found < 0:
            if errno != EINTR:
                PyErr_SetFromErrno(OSError)
            PyErr_CheckSignals()
            return [], []
        if not found:
            return [], []
        dead = [self.fds[i].fd for i in range(1, self.count) if self.fds[i].revents]
        return read_tickets(self.fds[0].fd) if self.fds[0].revents else [], dead


# Files, and other processes.


cpdef bint is_same_file(str path, int fd) except -1:
    cdef file_status named, opened
    if lstat(os.fsencode(path), &named) < 0:
        if errno != ENOENT and errno != ENOTDIR:
            PyErr_SetFromErrno(OSError)
        return False
    if fstat(fd, &opened) < 0:
        PyErr_SetFromErrno(OSError)
    return named.st_ino == opened.st_ino and named.st_dev == opened.st_dev


cpdef bint is_stopped(long long pid) noexcept:
    cdef char name[32]
    cdef char text[STAT_BYTES]
    cdef Py_ssize_t size, at
    cdef int fd
    snprintf(name, sizeof(name), "/proc/%lld/stat", pid)
    fd = open_file(name, O_RDONLY | O_CLOEXEC)
    if fd < 0:
        return False
    size = read(fd, text, STAT_BYTES)
    close_file(fd)
    for at in range(size - 1, -1, -1):  # the name of the program, in brackets, may have brackets of its own
        if text[at] == c")":
            return at + 2 < size and (text[at + 2] == c"T" or text[at + 2] == c"t")
    return False
