cimport cython
from cpython.buffer cimport Py_buffer

@cython.final
cdef class Words:
    cdef Py_buffer view
    cdef volatile long long* words
    cdef readonly long long length

cdef long long outside(long long at) except? -1

cdef inline long long get(Words m, long long at) except? -1:
    if at < 0 or at >= m.length:
        return outside(at)
    return m.words[at]

cdef inline bint put(Words m, long long at, long long value) except -1:
    if at < 0 or at >= m.length:
        return outside(at)
    m.words[at] = value
    return 0

cpdef bint swap(Words m, long long at, long long old, long long new) except -1
cpdef void barrier() noexcept
