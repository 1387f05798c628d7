cimport cython

@cython.final
cdef class Interned:
    cdef public dict numbers, ids
    cdef public list kinds, things, hashes, renamings, rows
    cpdef long long number(self, str kind, thing) except *
    cpdef long long add(self, str kind, thing) except *
