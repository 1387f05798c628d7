cimport cython

cdef long long NIL

@cython.final
cdef class Seat:
    cdef readonly int number, me, gate
    cdef public int state, slot
    cdef public long long request, asked, place
