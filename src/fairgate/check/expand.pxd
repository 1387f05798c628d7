cimport cython
from fairgate.check.model cimport Model

cdef long long REMEMBERED

@cython.final
cdef class Batch:
    cdef public list arrays
    cdef public object counts, waiting, fingerprints, steps, packed

@cython.final
cdef class Expander:
    cdef public Model model
    cdef public object sent
    @cython.locals(
        counts=list, waiting=list, fingerprints=list, steps=list, states=list, successors=list, state=tuple,
        at=cython.longlong, end=cython.longlong, mask=cython.longlong, moves=cython.bint, dead_end=cython.bint,
    )
    cpdef Batch expand(self, packed)
    @cython.locals(
        sent='long long[::1]', moves=cython.bint, must=cython.bint, action=tuple, state=tuple,
        fingerprint=cython.longlong, place=cython.longlong, length=cython.longlong, flag=cython.longlong,
    )
    cpdef bint add_steps(self, list successors, list fingerprints, list steps, list states) except *

@cython.locals(view='int[::1]', at=cython.longlong)
cpdef ints(list numbers)

@cython.locals(view='long long[::1]', at=cython.longlong)
cpdef longs(list numbers)

@cython.locals(found=list, at=cython.longlong, end=cython.longlong)
cpdef translated(packed, list numbers)
