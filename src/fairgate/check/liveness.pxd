cimport cython
from fairgate.check.expand cimport ints

cdef class Graph:
    cdef public object starts, targets, waiting
    cpdef bint extend(self, list ends, targets, waiting) except -1
    @cython.locals(state=cython.longlong, at=cython.longlong, starts='int[::1]', targets='int[::1]')
    cpdef bint leads_back(self) except *
    @cython.locals(
        count=cython.longlong, at=cython.longlong, ready=cython.longlong, done=cython.longlong, state=cython.longlong,
        target=cython.longlong, starts='int[::1]', targets='int[::1]', incoming='int[::1]',
    )
    cpdef list on_cycles(self)
