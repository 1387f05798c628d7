"""The compiled version of words.py."""

import mmap

cdef extern from *:
    bint compare_and_swap "__sync_bool_compare_and_swap"(volatile long long* word, long long old, long long new) nogil
    void full_barrier "__sync_synchronize"() nogil

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer


cdef class Words:
    def __cinit__(self, buffer):
        PyObject_GetBuffer(buffer, &self.view, PyBUF_WRITABLE)
        self.words = <volatile long long*>self.view.buf
        self.length = self.view.len // 8

    def __dealloc__(self):
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
    return Words(mmap.mmap(fd, size))


def copied(data):
    return Words(bytearray(data[: len(data) // 8 * 8]))
