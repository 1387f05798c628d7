cimport cython

@cython.final
cdef class Table:
    cdef public dict numbers
    cdef public list things
    cpdef object number(self, thing)
