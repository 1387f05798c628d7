"""The compiled version of words.py."""

import mmap
import os
import stat

cdef extern from *:
    """
    /* A file that is cut off while it is mapped: touching what is gone raises SIGBUS, which would end this process. In
       the directory of a group other users can do that. There a handler puts zeros in the place of the whole mapping.
       They are no table, and the next change notices that (RoomFile.prepare). All other faults end as they did before.
       The list is changed only with the GIL, and read by the handler at any moment. */
    #include <errno.h>
    #include <signal.h>
    #include <stdint.h>
    #include <stdlib.h>
    #include <sys/mman.h>

    struct mapping {
        volatile uintptr_t start, end;  /* no mapping if they are the same */
        struct mapping *next;
    };
    static struct mapping *volatile mappings;
    static struct sigaction bus_action_before;

    static void replace_mapping(int number, siginfo_t *info, void *context) {
        int error = errno;
        uintptr_t at = (uintptr_t)info->si_addr;
        struct mapping *one;
        for (one = info->si_code > 0 ? mappings : NULL; one; one = one->next)  /* from the kernel, not from kill(2) */
            if (one->start <= at && at < one->end
                && mmap((void *)one->start, one->end - one->start, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) {
                errno = error;
                return;
            }
        if (bus_action_before.sa_flags & SA_SIGINFO)
            bus_action_before.sa_sigaction(number, info, context);
        else if (bus_action_before.sa_handler != SIG_DFL && bus_action_before.sa_handler != SIG_IGN)
            bus_action_before.sa_handler(number);
        else if (info->si_code > 0 || bus_action_before.sa_handler == SIG_DFL) {
            sigaction(SIGBUS, &bus_action_before, NULL);  /* the same instruction raises it again */
            if (info->si_code <= 0)
                raise(number);
        }
        errno = error;
    }

    static int protect_mapping(const volatile void *start, size_t size) {
        static int installed;
        struct sigaction action;
        struct mapping *one;
        for (one = mappings; one && one->start != one->end; one = one->next)
            ;
        if (!one) {
            one = (struct mapping *)calloc(1, sizeof(struct mapping));
            if (!one)
                return -1;
            one->next = mappings;
            mappings = one;
        }
        one->start = (uintptr_t)start;
        one->end = (uintptr_t)start + size;
        sigaction(SIGBUS, NULL, &action);
        if (!installed || action.sa_handler == SIG_DFL) {  /* faulthandler.disable() sets it to that of before */
            bus_action_before = action;
            action.sa_sigaction = replace_mapping;
            action.sa_flags = SA_SIGINFO | SA_ONSTACK;
            sigemptyset(&action.sa_mask);
            sigaction(SIGBUS, &action, NULL);
            installed = 1;
        }
        return 0;
    }

    static void forget_mapping(const volatile void *start) {
        struct mapping *one;
        for (one = mappings; one; one = one->next)
            if (one->start == (uintptr_t)start) {
                one->end = 0;  /* first: the handler may run in another thread, and must not take 0 for the start */
                one->start = 0;
            }
    }
    """
    int protect_mapping(const volatile void* start, size_t size)
    void forget_mapping(const volatile void* start)
    bint compare_and_swap "__sync_bool_compare_and_swap"(volatile long long* word, long long old, long long new) nogil
    void full_barrier "__sync_synchronize"() nogil

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer


cdef class Words:
    def __cinit__(self, buffer):
        PyObject_GetBuffer(buffer, &self.view, PyBUF_WRITABLE)
        self.words = <volatile long long*>self.view.buf
        self.length = self.view.len // 8

    def __dealloc__(self):
        forget_mapping(self.words)
        PyBuffer_Release(&self.view)

    def __len__(self):
        return self.length

    def __getitem__(self, long long at):
        return get(self, at)

    def __setitem__(self, long long at, long long value):
        put(self, at, value)


cdef long long outside(long long at) except? -1:
    raise IndexError(f"there is no word {at}")


ATOMIC = True


cpdef bint swap(Words m, long long at, long long old, long long new) except -1:
    if at < 0 or at >= m.length:
        return outside(at)
    return compare_and_swap(&m.words[at], old, new)


cpdef void barrier() noexcept:
    full_barrier()


def mapped(fd, size):
    words = Words(mmap.mmap(fd, size))
    if os.fstat(fd).st_mode & stat.S_IWGRP:
        protect(words)
    return words


cdef bint protect(Words m) except -1:
    if protect_mapping(m.words, m.view.len):
        raise MemoryError
    return 0


def copied(data):
    return Words(bytearray(data[: len(data) // 8 * 8]))
