cimport cython

cdef class Graph:
    cdef public object starts, targets, waiting
    cpdef void edge(self, long long target) except *
    cpdef void close(self, long long waiting) except *
    @cython.locals(
        count=cython.longlong, at=cython.longlong, high=cython.longlong, done=cython.longlong, state=cython.longlong,
        target=cython.longlong, starts='long[::1]', targets='int[::1]', incoming='int[::1]', ready='int[::1]',
    )
    cpdef list on_cycles(self)
